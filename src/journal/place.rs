//! Where journals live, and what a rollout is called.

use std::ffi::OsString;
use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::JournalError;
use super::moment::Moment;
use crate::cluster::Timestamp;

/// The directory under which everything of this room lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base(PathBuf);

impl Base {
    /// The directory that a person named.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The usual place: `$XDG_STATE_HOME/tiroll`, else `~/.local/state/tiroll`. As that standard has it, a relative
    /// path in the variable counts as none.
    pub fn usual() -> Result<Self, JournalError> {
        Self::from_environment(|name| std::env::var_os(name))
    }

    fn from_environment(read: impl Fn(&str) -> Option<OsString>) -> Result<Self, JournalError> {
        let absolute = |name| read(name).map(PathBuf::from).filter(|path| path.is_absolute());
        absolute("XDG_STATE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
            .map(|state| Self(state.join("tiroll")))
            .ok_or(JournalError::NoHome)
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The directory of a rollout; also the place for what belongs to it but not to its journal.
    pub fn rollout(&self, id: &RolloutId) -> PathBuf {
        self.rollouts().join(id.as_str())
    }

    pub(super) fn rollouts(&self) -> PathBuf {
        self.0.join("rollouts")
    }

    pub(super) fn locks(&self) -> PathBuf {
        self.0.join("locks")
    }

    pub(super) fn journal(&self, id: &RolloutId) -> PathBuf {
        self.rollout(id).join("journal.jsonl")
    }

    pub(super) fn writer(&self, id: &RolloutId) -> PathBuf {
        self.rollout(id).join("writer.json")
    }
}

/// The name of a rollout: `20261201-041055-7f3a`, the time it began (UTC) and four random digits. Names sort by time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RolloutId(String);

impl RolloutId {
    /// A new name for a rollout that begins now.
    pub fn new(at: Timestamp) -> Self {
        // The keys of a hasher are random in each process and differ between two hashers of one.
        let random = RandomState::new().build_hasher().finish() & 0xffff;
        Self(format!("{}-{random:04x}", Moment::from(at).compact()))
    }

    /// Takes a name that a person typed. Only small letters, digits and hyphens, so that a name is never a path.
    pub fn parse(text: &str) -> Result<Self, JournalError> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if text.is_empty() || text.len() > 64 || !is_plain {
            return Err(JournalError::BadId { text: text.to_owned() });
        }
        Ok(Self(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RolloutId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for RolloutId {
    type Error = JournalError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<RolloutId> for String {
    fn from(id: RolloutId) -> Self {
        id.0
    }
}

/// Makes a directory and those above it, for this user alone.
pub(super) fn make_directories(path: &Path) -> Result<(), JournalError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| JournalError::disk("make", path, error))
}

/// Makes one directory that must not exist yet, for this user alone.
pub(super) fn make_directory(path: &Path) -> Result<(), JournalError> {
    DirBuilder::new().mode(0o700).create(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => JournalError::Exists { path: path.to_path_buf() },
        _ => JournalError::disk("make", path, error),
    })
}

/// Makes a file that must not exist yet, for this user alone; what is written goes to its end.
pub(super) fn make_file(path: &Path) -> Result<File, JournalError> {
    let made = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path);
    made.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => JournalError::Exists { path: path.to_path_buf() },
        _ => JournalError::disk("make", path, error),
    })
}

/// Opens a file of notes for people, which is made if need be, for this user alone.
pub(super) fn open_note(path: &Path) -> Result<File, JournalError> {
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    opened.map_err(|error| JournalError::disk("open", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(state: Option<&str>, home: Option<&str>) -> Option<PathBuf> {
        let read = |name: &str| match name {
            "XDG_STATE_HOME" => state.map(OsString::from),
            "HOME" => home.map(OsString::from),
            _ => None,
        };
        Base::from_environment(read).ok().map(|base| base.path().to_path_buf())
    }

    #[test]
    fn the_usual_place_follows_the_standard() {
        assert_eq!(base(Some("/s"), Some("/home/a")), Some("/s/tiroll".into()));
        assert_eq!(base(None, Some("/home/a")), Some("/home/a/.local/state/tiroll".into()));
        assert_eq!(base(Some("relative"), Some("/home/a")), Some("/home/a/.local/state/tiroll".into()));
        assert_eq!(base(Some(""), None), None);
    }

    #[test]
    fn names_sort_by_time_and_are_never_paths() {
        let first = RolloutId::new(Timestamp::new(1_796_098_255_123, 0));
        let second = RolloutId::new(Timestamp::new(1_796_098_256_000, 0));
        assert!(first.as_str().starts_with("20261201-041055-"), "{first}");
        assert!(first < second);
        assert_eq!(RolloutId::parse(first.as_str()).unwrap(), first);
        for text in ["", "..", "a/b", "A", "a b", "\u{e9}"] {
            assert!(RolloutId::parse(text).is_err(), "{text}");
        }
    }
}
