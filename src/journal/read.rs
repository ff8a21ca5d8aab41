//! What a journal says.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::error::{JournalError, READ};
use super::line::{self, Header, Scan, Tail};
use super::lock::Holder;
use super::moment::Moment;
use super::place::{Base, RolloutId};

/// One record with its place and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<R> {
    /// Its number, from 1 on, without gaps.
    pub n: u64,
    /// When it was appended.
    pub at: Moment,
    /// What it says.
    pub record: R,
}

/// A journal as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened<R> {
    /// Whose it is.
    pub header: Header,
    /// Everything that was acknowledged, in order; at most one batch more, in whole or in part, whose acknowledgement
    /// the writer did not live to see.
    pub records: Vec<Entry<R>>,
    /// An unfinished last line, if there was one.
    pub torn: Option<Torn>,
    /// The writer that died without letting go, if one did.
    pub left_by: Option<Holder>,
}

/// An unfinished last line: the writer died within a write that was never acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// The line, counted from 1 as editors do.
    pub line: u64,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// How many bytes of it there were.
    pub bytes: u64,
    /// Whether only the line end was missing; then its record counts.
    pub is_whole: bool,
    /// Where it is kept, if it was cut off. Reading alone cuts nothing.
    pub aside: Option<PathBuf>,
}

impl fmt::Display for Torn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, bytes, .. } = self;
        match &self.aside {
            _ if self.is_whole => write!(f, "line {line} lacked its line end; its record counts"),
            Some(aside) => {
                write!(f, "line {line} was never finished; its {bytes} bytes were cut off to {}", aside.display())
            }
            None => write!(f, "line {line} is not finished; its {bytes} bytes do not count"),
        }
    }
}

/// Reads a journal without a lock and without writing anything, as history and a second person do. Of a journal that is
/// being written, the last line may be on its way and then shows as torn.
pub fn read<R: DeserializeOwned>(base: &Base, id: &RolloutId) -> Result<Opened<R>, JournalError> {
    let path = base.journal(id);
    let bytes = fs::read(&path).map_err(|error| cannot_open(READ, base, id, &path, error))?;
    understand(&path, id, line::scan(&path, &bytes))
}

/// A failure to open the journal of a rollout.
pub(super) fn cannot_open(
    act: &'static str,
    base: &Base,
    id: &RolloutId,
    path: &Path,
    error: io::Error,
) -> JournalError {
    match error.kind() {
        io::ErrorKind::NotFound => JournalError::NoSuchRollout { id: id.to_string(), base: base.path().to_path_buf() },
        _ => JournalError::disk(act, path, error),
    }
}

/// Turns sound lines into records, or says why that cannot be.
pub(super) fn understand<R: DeserializeOwned>(
    path: &Path,
    id: &RolloutId,
    scan: Scan<'_>,
) -> Result<Opened<R>, JournalError> {
    let torn = torn(&scan);
    let header = match (scan.fault, scan.header) {
        (Some(fault), _) => return Err(fault),
        (None, Some(header)) => header,
        (None, None) => return Err(JournalError::NeverBegun { path: path.to_path_buf(), length: 0 }),
    };
    if header.id != *id {
        return Err(JournalError::Misplaced { path: path.to_path_buf(), id: header.id.to_string() });
    }
    let records = scan.lines.iter().map(|line| {
        let record = serde_json::from_str(line.record).map_err(|error| JournalError::UnknownRecord {
            path: path.to_path_buf(),
            line: line.n + 1,
            why: error.to_string(),
            program: header.program.clone(),
        })?;
        Ok(Entry { n: line.n, at: line.at, record })
    });
    let records = records.collect::<Result<_, JournalError>>()?;
    Ok(Opened { header, records, torn, left_by: None })
}

/// What is unfinished about the end of a journal.
pub(super) fn torn(scan: &Scan<'_>) -> Option<Torn> {
    match scan.tail {
        Tail::None => None,
        Tail::Unended { offset, bytes } => {
            Some(Torn { line: scan.chain.next, offset, bytes, is_whole: true, aside: None })
        }
        Tail::Torn { offset, bytes } => {
            Some(Torn { line: scan.chain.next + 1, offset, bytes, is_whole: false, aside: None })
        }
    }
}
