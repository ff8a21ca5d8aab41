//! What can go wrong with a journal, always in three parts: what happened, what it means for the rollout, what to do.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::lock::Holder;

/// What was tried when a file could not be read.
pub(super) const READ: &str = "read";

/// Why a journal could not be written, read or locked. [`Display`](fmt::Display) says what happened;
/// [`JournalError::meaning`] and [`JournalError::remedy`] are the other two parts.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The disk refused: full, read-only, broken, or no permission.
    #[error("cannot {act} {}: {source}", path.display())]
    Disk {
        /// What was tried, as a verb with its preposition: `write to`.
        act: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file that is being written no longer stands in its directory.
    #[error("{} is no longer there", path.display())]
    Vanished {
        /// Where it stood.
        path: PathBuf,
    },
    /// Another file stands where ours stood.
    #[error("{} was replaced by another file", path.display())]
    Replaced {
        /// Where ours stood.
        path: PathBuf,
    },
    /// Somebody else changed the length of the file that we alone may write.
    #[error("{} was changed by somebody else: it has {found} bytes where {expected} were written", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// Its length by our own count.
        expected: u64,
        /// Its length.
        found: u64,
    },
    /// A complete line is not what was written.
    #[error("{} is damaged in line {line}, at byte {offset}: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1 as editors do.
        line: u64,
        /// Where the line begins, in bytes from the beginning of the file.
        offset: u64,
        /// What is wrong there.
        why: String,
    },
    /// The file ends before its first line does.
    #[error("{} ends within its first line, at byte {length}", path.display())]
    NeverBegun {
        /// The file.
        path: PathBuf,
        /// Its length.
        length: u64,
    },
    /// The file is not a journal of this program.
    #[error("{} is no journal of tiroll: its first line does not begin like one", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The journal was written in a format that came later than this program.
    #[error("{} is written in version {version} of the format; this program knows version {known}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u64,
        /// The latest version that this program knows.
        known: u64,
    },
    /// The journal belongs to another rollout than the directory it stands in.
    #[error("{} is the journal of rollout {id}, not of its directory's", path.display())]
    Misplaced {
        /// The file.
        path: PathBuf,
        /// The rollout that it names.
        id: String,
    },
    /// An intact line holds a record that this program does not understand.
    #[error("line {line} of {} is intact, but its record is unknown here: {why}", path.display())]
    UnknownRecord {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// What the reader said.
        why: String,
        /// The version of the program that wrote the journal.
        program: String,
    },
    /// A record has no form as one line of text.
    #[error("a record cannot be written to {}: {why}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Somebody else holds the lock.
    #[error(transparent)]
    Held(Box<LockHeld>),
    /// A lock file is no longer the one that is locked.
    #[error("the lock file {} was removed or replaced", path.display())]
    LockLost {
        /// Where it stood.
        path: PathBuf,
    },
    /// The file system knows no locks.
    #[error("cannot lock {}: {source}", path.display())]
    NoLocks {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no rollout of that id.
    #[error("there is no rollout {id} under {}", base.display())]
    NoSuchRollout {
        /// The id.
        id: String,
        /// Where it was looked for.
        base: PathBuf,
    },
    /// A rollout of that id exists already.
    #[error("{} exists already", path.display())]
    Exists {
        /// Its directory or file.
        path: PathBuf,
    },
    /// A text that cannot be the id of a rollout.
    #[error("`{text}` is no id of a rollout; expected one like 20261201-041055-7f3a")]
    BadId {
        /// The text.
        text: String,
    },
    /// Neither `XDG_STATE_HOME` nor `HOME` names a directory.
    #[error("neither XDG_STATE_HOME nor HOME names a directory, so there is no place for a journal")]
    NoHome,
}

/// Who holds a lock that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHeld {
    /// What is locked, in words: `rollout 2026…` or `cdc 10.0.1.1:8300`.
    pub what: String,
    /// The file that is locked.
    pub path: PathBuf,
    /// Who says to hold it; `None` when the file does not tell, as in the moment of taking it.
    pub holder: Option<Holder>,
}

impl fmt::Display for LockHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.holder {
            Some(holder) => write!(f, "{} is held by {holder}", self.what),
            None => write!(f, "{} is held by a process that has not written its name to {}", self.what, {
                self.path.display()
            }),
        }
    }
}

impl std::error::Error for LockHeld {}

impl JournalError {
    /// A refusal of the disk. `act` is a verb with its preposition: `write to`.
    pub(super) fn disk(act: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Disk { act, path: path.into(), source }
    }

    /// What it means for the rollout.
    pub fn meaning(&self) -> &'static str {
        match self {
            Self::Disk { act: READ, .. } => "nothing was changed, and nothing can be told of it until it can be read",
            Self::Disk { .. } | Self::Vanished { .. } | Self::Replaced { .. } => {
                "nothing more is done to the cluster, since it could not be put on record; what is on record is kept"
            }
            Self::Changed { .. } => {
                "nothing more is done to the cluster: two writers, or a cut file, would make the record untrue"
            }
            Self::Damaged { .. } | Self::Misplaced { .. } => {
                "the rollout is not resumed from it: what was done and what is owed can no longer be told for sure"
            }
            Self::NeverBegun { .. } => "nothing was done to the cluster: the first line comes before every act",
            Self::Foreign { .. } => "nothing can be told from it, and nothing is written to it",
            Self::Newer { .. } | Self::UnknownRecord { .. } => {
                "the rollout is not resumed by this program, since it could misread what is owed"
            }
            Self::Unwritable { .. } => "nothing was written, and what the record announces is not done",
            Self::Held(_) => "nothing was changed: two programs must not act on the same servers at once",
            Self::LockLost { .. } => "nothing more is done to the cluster: another program may now take the same lock",
            Self::NoLocks { .. } => "nothing was changed: without a lock, two programs could act on the same servers",
            Self::NoSuchRollout { .. } | Self::BadId { .. } => "nothing was changed",
            Self::Exists { .. } => "no rollout was begun, and nothing was overwritten",
            Self::NoHome => "no rollout was begun, since it could not be put on record",
        }
    }

    /// What to do.
    pub fn remedy(&self) -> String {
        match self {
            Self::Disk { source, path, .. } => disk_remedy(source, path),
            Self::Vanished { path } | Self::Replaced { path } => format!(
                "put the directory of {} back where it was, then try again; the program still has the whole journal \
                 open and can write it anew, but only while it runs",
                path.display()
            ),
            Self::Changed { path, .. } => {
                format!("find out who writes to {}; end this rollout here and resume it from the file", path.display())
            }
            Self::Damaged { path, line, .. } => format!(
                "restore {} from a copy, if there is one; else read it (the lines before line {line} are sound), look \
                 at the servers for what is owed, and start a new rollout",
                path.display()
            ),
            Self::NeverBegun { path, .. } => {
                format!("remove the directory of {} and start a new rollout", path.display())
            }
            Self::Foreign { path } => format!("move {} out of the way if it is not needed there", path.display()),
            Self::Newer { .. } => "use the tiroll that began the rollout, or a later one".to_owned(),
            Self::Misplaced { id, .. } => format!("move it to the directory named {id}, where its lock is"),
            Self::UnknownRecord { program, .. } => {
                format!("use tiroll {program}, which began the rollout, or a later one")
            }
            Self::Unwritable { .. } => "this is a fault of the program; please report it".to_owned(),
            Self::Held(held) => held.remedy(),
            Self::LockLost { .. } => {
                "make sure that no other tiroll acts on the same servers; end this one and resume the rollout"
                    .to_owned()
            }
            Self::NoLocks { .. } => {
                "choose a state directory on a local disk: some network file systems have no locks".to_owned()
            }
            Self::NoSuchRollout { .. } | Self::BadId { .. } => "`tiroll history` lists the rollouts".to_owned(),
            Self::Exists { .. } => "try again: the next id will be another".to_owned(),
            Self::NoHome => "set HOME, or set XDG_STATE_HOME to an absolute path".to_owned(),
        }
    }
}

impl LockHeld {
    fn remedy(&self) -> String {
        match &self.holder {
            Some(holder) => format!(
                "`tiroll attach {}` shows that rollout from here; the lock is free as soon as process {} on {} ends",
                holder.rollout, holder.pid, holder.host
            ),
            None => "try again in a moment; the lock is free as soon as the process that holds it ends".to_owned(),
        }
    }
}

fn disk_remedy(source: &io::Error, path: &std::path::Path) -> String {
    use io::ErrorKind as Kind;
    let path = path.display();
    match source.kind() {
        Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge => {
            format!("make room on the disk that holds {path}, then try again")
        }
        Kind::ReadOnlyFilesystem => format!("make the file system that holds {path} writable, then try again"),
        Kind::PermissionDenied => format!("give this user the right to write {path}, then try again"),
        Kind::NotFound => format!("put the directory of {path} back, then try again"),
        _ => format!("look at the system's log for the disk that holds {path}, then try again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_of_the_disk_names_the_path_and_what_to_do() {
        for (kind, word) in [
            (io::ErrorKind::StorageFull, "make room"),
            (io::ErrorKind::ReadOnlyFilesystem, "writable"),
            (io::ErrorKind::PermissionDenied, "the right"),
            (io::ErrorKind::Other, "log"),
        ] {
            let error = JournalError::disk("write to", "/state/journal.jsonl", kind.into());
            assert!(error.to_string().starts_with("cannot write to /state/journal.jsonl: "), "{error}");
            assert!(error.remedy().contains(word), "{}", error.remedy());
            assert!(error.meaning().contains("nothing more is done"));
        }
    }

    #[test]
    fn a_lock_without_a_name_still_says_when_it_is_free() {
        let held = LockHeld { what: "cdc a:1".into(), path: "/l".into(), holder: None };
        let error = JournalError::Held(Box::new(held));
        assert_eq!(error.to_string(), "cdc a:1 is held by a process that has not written its name to /l");
        assert!(error.remedy().contains("is free as soon as"));
    }
}
