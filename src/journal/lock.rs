//! Who may act: one writer for each rollout, and one program for each server that it may change.
//!
//! The lock is the operating system's, on an open file: it ends with the process that holds it, however that ends. What
//! stands in the file is for people. A file whose process died holds a name but no lock; it is taken over and that is
//! reported. Lock files are never removed: a program that waits for one could otherwise hold a lock on a file that
//! nobody sees. Programs meet only under the same base directory: another user, or another machine, has locks of its own.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::disk::{Disk, RealDisk, identity};
use super::error::{JournalError, LockHeld};
use super::line::length;
use super::moment::Moment;
use super::place::{Base, RolloutId, make_directories, open_note};
use crate::cluster::{Address, Timestamp};

/// A person and the process that acts for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writer {
    /// The person.
    pub name: String,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
}

impl Writer {
    /// This process on this machine, for a person of that name.
    pub fn here(name: impl Into<String>) -> Self {
        let host = ["/proc/sys/kernel/hostname", "/etc/hostname"]
            .iter()
            .find_map(|path| fs::read_to_string(path).ok())
            .or_else(|| std::env::var("HOSTNAME").ok())
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty());
        let host = host.unwrap_or_else(|| "this machine".to_owned());
        Self { name: name.into(), host, pid: std::process::id() }
    }
}

/// What a locked file says about who holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The person.
    pub name: String,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// The rollout it is held for.
    pub rollout: RolloutId,
    /// Since when.
    pub since: Moment,
    /// When the holder last said that it is alive.
    pub heartbeat: Moment,
}

impl Holder {
    /// A writer that holds something for a rollout from now on.
    pub fn new(writer: &Writer, rollout: &RolloutId, at: Timestamp) -> Self {
        let Writer { name, host, pid } = writer.clone();
        Self { name, host, pid, rollout: rollout.clone(), since: at.into(), heartbeat: at.into() }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, host, pid, rollout, since, .. } = self;
        write!(f, "{name} on {host} (process {pid}, rollout {rollout}, since {since})")
    }
}

/// A server that a rollout may change: its kind, as `cdc` or `tidb`, and its address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    kind: String,
    address: Address,
}

impl Claim {
    /// A claim to a server.
    pub fn new(kind: impl Into<String>, address: Address) -> Self {
        Self { kind: kind.into(), address }
    }

    /// Two claims share a file exactly if they are equal: every byte that is not plain is spelled in hexadecimal.
    fn file_name(&self) -> String {
        let spell = |byte| match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' => char::from(byte).to_string(),
            _ => format!("%{byte:02x}"),
        };
        let plain = |text: &str| text.bytes().map(spell).collect::<String>();
        format!(
            "{}-{}={}.lock",
            plain(&self.kind).replace('-', "%2d"),
            plain(&self.address.host()),
            self.address.port()
        )
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.address)
    }
}

/// The locks of a rollout on its servers, held until this value is dropped or the process ends.
#[derive(Debug)]
pub struct Locks {
    held: Vec<Held>,
    holder: Holder,
    taken_over: BTreeMap<Claim, Holder>,
}

#[derive(Debug)]
struct Held {
    path: PathBuf,
    file: File,
}

impl Locks {
    /// Takes all of the claims, or none.
    pub fn take(base: &Base, claims: &[Claim], holder: Holder) -> Result<Self, JournalError> {
        let mut claims = claims.to_vec();
        claims.sort();
        claims.dedup();
        make_directories(&base.locks())?;
        let mut held = Vec::with_capacity(claims.len());
        let mut taken_over = BTreeMap::new();
        for claim in claims {
            let path = base.locks().join(claim.file_name());
            let file = open_note(&path)?;
            seize(&file, &path, || claim.to_string(), &path)?;
            if let Some(holder) = read_note(&path) {
                taken_over.insert(claim, holder);
            }
            held.push(Held { path, file });
        }
        // Names are written only when all is taken, so that a failed attempt leaves the name of a dead process.
        let locks = Self { held, holder, taken_over };
        locks.write_names()?;
        Ok(locks)
    }

    /// What was held by processes that died without letting go, and by whom.
    pub const fn taken_over(&self) -> &BTreeMap<Claim, Holder> {
        &self.taken_over
    }

    /// Says in every file that the holder is alive, and finds out whether the files are still the ones it holds.
    pub fn heartbeat(&mut self, at: Timestamp) -> Result<(), JournalError> {
        for Held { path, file } in &self.held {
            stands(path, file)?;
        }
        self.holder.heartbeat = at.into();
        self.write_names()
    }

    fn write_names(&self) -> Result<(), JournalError> {
        self.held.iter().try_for_each(|held| write_note(&held.file, &held.path, &self.holder))
    }
}

impl Drop for Locks {
    /// A clean end leaves no name; closing the files ends the locks.
    fn drop(&mut self) {
        for held in &self.held {
            let _ = held.file.set_len(0);
        }
    }
}

/// Takes the lock on a file, at once or not at all. `note` is where its holder's name stands.
pub(super) fn seize(file: &File, path: &Path, what: impl FnOnce() -> String, note: &Path) -> Result<(), JournalError> {
    /// How often to look again when only a reader is in the way.
    const TRIES: usize = 10_000;
    /// How often when a writer seems to be: a child that is just being started holds what its parent has let go of, until
    /// it becomes another program.
    const BRIEFLY: usize = 2_000;
    let mut refused = 0;
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return stands(path, file),
            Err(TryLockError::Error(error)) => return Err(refusal(path, error)),
            Err(TryLockError::WouldBlock) => {}
        }
        // `is_held` shares a lock for a moment; whoever only looks must not turn a writer away.
        match file.try_lock_shared() {
            Ok(()) => {
                let _ = file.unlock();
                std::thread::yield_now();
            }
            Err(_) if refused < BRIEFLY => {
                refused += 1;
                std::thread::yield_now();
            }
            Err(_) => break,
        }
    }
    let holder = read_note(note);
    Err(JournalError::Held(Box::new(LockHeld { what: what(), path: path.to_path_buf(), holder })))
}

/// Whether somebody holds the lock on a file.
pub(super) fn is_held(file: &File) -> bool {
    match file.try_lock_shared() {
        Ok(()) => {
            let _ = file.unlock();
            false
        }
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(_)) => false,
    }
}

/// Whether the file at a path is the one that is open.
fn stands(path: &Path, file: &File) -> Result<(), JournalError> {
    let look = |error| JournalError::disk("look at", path, error);
    let own = identity(&file.metadata().map_err(look)?);
    match RealDisk.at(path).map_err(look)? {
        Some(there) if there.is_same_file(own) => Ok(()),
        Some(_) | None => Err(JournalError::LockLost { path: path.to_path_buf() }),
    }
}

fn refusal(path: &Path, error: io::Error) -> JournalError {
    /// "No locks available", which has no kind of its own.
    const ENOLCK: [i32; 2] = [37, 77];
    let has_none =
        error.kind() == io::ErrorKind::Unsupported || error.raw_os_error().is_some_and(|code| ENOLCK.contains(&code));
    if has_none {
        JournalError::NoLocks { path: path.to_path_buf(), source: error }
    } else {
        JournalError::disk("lock", path, error)
    }
}

/// Reads who a file names; `None` if it names nobody, as after a clean end.
pub(super) fn read_note(path: &Path) -> Option<Holder> {
    let bytes = fs::read(path).ok()?;
    // The rest of a longer note may follow for a moment.
    serde_json::Deserializer::from_slice(&bytes).into_iter().next()?.ok()
}

/// Writes a name into a file in place: the file that is locked must stay the one that is seen.
pub(super) fn write_note(file: &File, path: &Path, holder: &Holder) -> Result<(), JournalError> {
    let mut text = serde_json::to_vec(holder)
        .map_err(|error| JournalError::Unwritable { path: path.to_path_buf(), why: error.to_string() })?;
    text.push(b'\n');
    let written = file.write_all_at(&text, 0).and_then(|()| file.set_len(length(&text)));
    written.map_err(|error| JournalError::disk("write to", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_servers_never_share_a_lock_file() {
        let claim = |kind: &str, host: &str, port| Claim::new(kind, Address::new(host, port)).file_name();
        assert_eq!(claim("cdc", "10.0.1.1", 8300), "cdc-10.0.1.1=8300.lock");
        assert_eq!(claim("cdc", "TiCDC-1.example", 8300), "cdc-ticdc-1.example=8300.lock");
        assert_eq!(claim("cdc", "[2001:db8:0::1]", 8300), "cdc-2001%3adb8%3a%3a1=8300.lock");
        assert_eq!(claim("cdc", "a/../b", 1), "cdc-a%2f..%2fb=1.lock");
        assert_ne!(claim("cdc", "a-b", 1), claim("cdc-a", "b", 1));
    }

    #[test]
    fn a_file_system_without_locks_is_named_as_the_cause() {
        for error in [io::ErrorKind::Unsupported.into(), io::Error::from_raw_os_error(37)] {
            let error = refusal(Path::new("/net/x.lock"), error);
            assert!(matches!(error, JournalError::NoLocks { .. }), "{error}");
            assert!(error.remedy().contains("network file systems"));
        }
    }
}
