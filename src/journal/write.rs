//! Writing a journal.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::disk::{Disk, Identity, write_all};
use super::error::JournalError;
use super::line::{Chain, length};
use super::lock::{Holder, write_note};
use super::moment::Moment;
use super::place::{Base, RolloutId, open_note};
use crate::cluster::Timestamp;

/// The journal of one rollout, open for its one writer. The lock ends with this value or with the process.
#[derive(Debug)]
pub struct Journal {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) base: Base,
    pub(super) id: RolloutId,
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) own: Identity,
    /// The file for people, once a name was written to it.
    pub(super) note: Option<File>,
    pub(super) holder: Holder,
    /// How many bytes are acknowledged.
    pub(super) length: u64,
    pub(super) chain: Chain,
    /// Whether bytes of a failed append may follow the acknowledged ones.
    pub(super) has_rest: bool,
}

impl Journal {
    /// The rollout.
    pub const fn id(&self) -> &RolloutId {
        &self.id
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many records are acknowledged, the header not counted.
    pub const fn records(&self) -> u64 {
        self.chain.next.saturating_sub(1)
    }

    /// Appends records, all of one time. When this returns `Ok` they are on the disk. On an error none of them
    /// counts, and the same call may be made again later: what the attempt left in the file is cut off at once, or, if
    /// the disk refuses that too, before anything else is written.
    pub fn append<R: Serialize>(&mut self, at: Timestamp, records: &[R]) -> Result<(), JournalError> {
        if records.is_empty() {
            return Ok(());
        }
        let mut chain = self.chain;
        let mut bytes = Vec::with_capacity(records.len() * 256);
        for record in records {
            chain.push(&mut bytes, at.into(), &self.text(record)?);
        }
        self.write(&bytes)?;
        self.chain = chain;
        Ok(())
    }

    /// Says in the file for people that the writer is alive, and finds out whether the journal is still in its place.
    pub fn heartbeat(&mut self, at: Timestamp) -> Result<(), JournalError> {
        self.check_place()?;
        self.holder.heartbeat = Moment::from(at);
        self.write_name()
    }

    fn text<R: Serialize>(&self, record: &R) -> Result<String, JournalError> {
        let fail = |why: String| JournalError::Unwritable { path: self.path.clone(), why };
        let text = serde_json::to_string(record).map_err(|error| fail(error.to_string()))?;
        // Only a record that brings JSON text of its own can hold one.
        if text.contains('\n') { Err(fail("its text has more than one line".to_owned())) } else { Ok(text) }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), JournalError> {
        self.check_place()?;
        self.cut_rest()?;
        let written = write_all(&*self.disk, &self.file, bytes)
            .map_err(|error| JournalError::disk("write to", &self.path, error))
            .and_then(|()| self.sync());
        if written.is_ok() {
            self.length += length(bytes);
        } else {
            // After a failed sync nobody knows which bytes have reached the disk, and a second sync would not say:
            // what was written must go and be written again.
            self.has_rest = true;
            // If this fails too, the next append begins with it.
            let _ = self.cut_rest();
        }
        written
    }

    pub(super) fn sync(&self) -> Result<(), JournalError> {
        self.disk.sync(&self.file).map_err(|error| JournalError::disk("sync", &self.path, error))
    }

    /// Cuts off what a failed append left behind.
    pub(super) fn cut_rest(&mut self) -> Result<(), JournalError> {
        if self.has_rest {
            let cut = self.disk.cut(&self.file, self.length);
            cut.map_err(|error| JournalError::disk("cut the unfinished end of", &self.path, error))?;
            self.has_rest = false;
        }
        Ok(())
    }

    /// Finds out whether the file in the directory is the one that is open, and as long as it was left.
    pub(super) fn check_place(&self) -> Result<(), JournalError> {
        let path = || self.path.clone();
        match self.disk.at(&self.path).map_err(|error| JournalError::disk("look at", &self.path, error))? {
            None => Err(JournalError::Vanished { path: path() }),
            Some(there) if !there.is_same_file(self.own) => Err(JournalError::Replaced { path: path() }),
            Some(Identity { length, .. }) if length < self.length || (length > self.length && !self.has_rest) => {
                Err(JournalError::Changed { path: path(), expected: self.length, found: length })
            }
            Some(_) => Ok(()),
        }
    }

    /// Writes the holder's name into the file for people.
    pub(super) fn write_name(&mut self) -> Result<(), JournalError> {
        let path = self.base.writer(&self.id);
        if self.note.is_none() {
            self.note = Some(open_note(&path)?);
        }
        self.note.as_ref().map_or(Ok(()), |note| write_note(note, &path, &self.holder))
    }
}

impl Drop for Journal {
    /// A clean end leaves no name; closing the file ends the lock.
    fn drop(&mut self) {
        let _ = self.cut_rest();
        if let Some(note) = &self.note {
            let _ = note.set_len(0);
        }
    }
}
