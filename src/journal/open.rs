//! How a journal comes to be open for writing: begun, gone on with, or put back where it was.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::disk::{Disk, RealDisk, identity, write_all};
use super::error::{JournalError, READ};
use super::line::{self, Chain, FORMAT, Header, Tail, VERSION, length};
use super::lock::{Holder, Writer, read_note, seize};
use super::place::{Base, RolloutId, make_directories, make_directory, make_file};
use super::read::{Opened, cannot_open, understand};
use super::write::Journal;
use crate::cluster::Timestamp;

impl Journal {
    /// Begins the journal of a new rollout. When this returns, directory, file and first line are on the disk.
    /// `title` says in one line what the rollout is about.
    pub fn create(
        base: &Base,
        id: &RolloutId,
        at: Timestamp,
        writer: &Writer,
        title: &str,
    ) -> Result<Self, JournalError> {
        Self::create_on(Arc::new(RealDisk), base, id, at, writer, title)
    }

    /// [`Journal::create`] on a given disk.
    pub fn create_on(
        disk: Arc<dyn Disk>,
        base: &Base,
        id: &RolloutId,
        at: Timestamp,
        writer: &Writer,
        title: &str,
    ) -> Result<Self, JournalError> {
        let directory = base.rollout(id);
        make_directories(&base.rollouts())?;
        make_directory(&directory)?;
        let begun = Self::begin(disk, base, id, at, writer, title);
        if begun.is_err() {
            // What nobody was told of must not stand in the history.
            let _ = fs::remove_dir_all(&directory);
        }
        begun
    }

    fn begin(
        disk: Arc<dyn Disk>,
        base: &Base,
        id: &RolloutId,
        at: Timestamp,
        writer: &Writer,
        title: &str,
    ) -> Result<Self, JournalError> {
        let path = base.journal(id);
        let file = make_file(&path)?;
        let mut journal = Self::hold(disk, base, id, file, Holder::new(writer, id, at))?;
        let header = Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            id: id.clone(),
            started: at.into(),
            title: title.to_owned(),
            writer: writer.clone(),
        };
        journal.append(at, &[header])?;
        journal.sync_names()?;
        journal.write_name()?;
        Ok(journal)
    }

    /// Opens the journal of a rollout to go on with it. An unfinished last line is cut off, kept aside and reported;
    /// anything else that is amiss is refused and nothing is touched.
    pub fn open<R: DeserializeOwned>(
        base: &Base,
        id: &RolloutId,
        at: Timestamp,
        writer: &Writer,
    ) -> Result<(Self, Opened<R>), JournalError> {
        Self::open_on(Arc::new(RealDisk), base, id, at, writer)
    }

    /// [`Journal::open`] on a given disk.
    pub fn open_on<R: DeserializeOwned>(
        disk: Arc<dyn Disk>,
        base: &Base,
        id: &RolloutId,
        at: Timestamp,
        writer: &Writer,
    ) -> Result<(Self, Opened<R>), JournalError> {
        let path = base.journal(id);
        let file = OpenOptions::new().read(true).append(true).open(&path);
        let file = file.map_err(|error| cannot_open("open for writing", base, id, &path, error))?;
        let mut journal = Self::hold(disk, base, id, file, Holder::new(writer, id, at))?;
        let mut bytes = Vec::new();
        let read = (&journal.file).read_to_end(&mut bytes);
        read.map_err(|error| JournalError::disk(READ, &path, error))?;
        let scan = line::scan(&path, &bytes);
        let (tail, chain) = (scan.tail, scan.chain);
        let mut opened = understand(&path, id, scan)?;
        journal.chain = chain;
        journal.length = length(&bytes);
        let aside = journal.mend(tail, &bytes)?;
        if let Some(torn) = &mut opened.torn {
            torn.aside = aside;
        }
        // The writer before may have died between its last write and the sync; from here on the record counts.
        journal.sync()?;
        opened.left_by = read_note(&base.writer(id));
        journal.write_name()?;
        Ok((journal, opened))
    }

    /// Takes the lock on a file that is open.
    fn hold(
        disk: Arc<dyn Disk>,
        base: &Base,
        id: &RolloutId,
        file: File,
        holder: Holder,
    ) -> Result<Self, JournalError> {
        let path = base.journal(id);
        seize(&file, &path, || format!("rollout {id}"), &base.writer(id))?;
        let own = identity(&file.metadata().map_err(|error| JournalError::disk("look at", &path, error))?);
        let (base, id) = (base.clone(), id.clone());
        let chain = Chain::default();
        Ok(Self { disk, base, id, path, file, own, note: None, holder, length: 0, chain, has_rest: false })
    }

    /// Writes the journal anew after its file or directory was removed: the open file still has every byte of it.
    /// Does nothing if it is in its place; refuses to overwrite what somebody else put there.
    pub fn restore(&mut self) -> Result<(), JournalError> {
        match self.check_place() {
            Err(JournalError::Vanished { .. }) => {}
            other => return other,
        }
        let mut bytes = vec![0; usize::try_from(self.length).unwrap_or(usize::MAX)];
        let read = self.file.read_exact_at(&mut bytes, 0);
        read.map_err(|error| JournalError::disk("read again", &self.path, error))?;
        if let Some(fault) = line::scan(&self.path, &bytes).fault {
            return Err(fault);
        }
        make_directories(&self.base.rollout(&self.id))?;
        let file = make_file(&self.path)?;
        let restored = self.refill(file, &bytes);
        if restored.is_err() {
            let _ = fs::remove_file(&self.path);
        }
        restored
    }

    fn refill(&mut self, file: File, bytes: &[u8]) -> Result<(), JournalError> {
        let mut journal = Self::hold(Arc::clone(&self.disk), &self.base, &self.id, file, self.holder.clone())?;
        journal.write(bytes)?;
        journal.chain = self.chain;
        journal.sync_names()?;
        // The old value clears the name when it goes, perhaps in the same file.
        *self = journal;
        self.write_name()
    }

    /// Finishes or cuts off an unfinished last line, and says where it is kept.
    fn mend(&mut self, tail: Tail, bytes: &[u8]) -> Result<Option<PathBuf>, JournalError> {
        match tail {
            Tail::None => Ok(None),
            Tail::Unended { .. } => self.write(b"\n").map(|()| None),
            Tail::Torn { offset, .. } => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let aside = self.keep_aside(bytes.get(start..).unwrap_or_default())?;
                self.length = offset;
                self.has_rest = true;
                self.cut_rest()?;
                Ok(Some(aside))
            }
        }
    }

    fn keep_aside(&self, bytes: &[u8]) -> Result<PathBuf, JournalError> {
        let mut path = self.path.with_file_name(format!("journal.torn-{}", self.chain.next));
        let mut again = 1;
        let file = loop {
            match make_file(&path) {
                // A line of this number was torn before.
                Err(JournalError::Exists { .. }) => {
                    again += 1;
                    path.set_file_name(format!("journal.torn-{}-{again}", self.chain.next));
                }
                other => break other?,
            }
        };
        let kept = write_all(&*self.disk, &file, bytes).and_then(|()| self.disk.sync(&file));
        if let Err(error) = kept {
            let _ = fs::remove_file(&path);
            return Err(JournalError::disk("write to", path, error));
        }
        self.sync_directory(&self.base.rollout(&self.id))?;
        Ok(path)
    }

    /// Puts the names of file and directories on the disk.
    fn sync_names(&self) -> Result<(), JournalError> {
        self.sync_directory(&self.base.rollout(&self.id))?;
        self.sync_directory(&self.base.rollouts())?;
        self.sync_directory(self.base.path())?;
        // The base may be new as well, but what is above it may be closed to this user.
        let above: io::Result<()> = self.base.path().parent().map_or(Ok(()), |above| self.disk.sync_directory(above));
        drop(above);
        Ok(())
    }

    fn sync_directory(&self, path: &Path) -> Result<(), JournalError> {
        self.disk.sync_directory(path).map_err(|error| JournalError::disk("sync", path, error))
    }
}
