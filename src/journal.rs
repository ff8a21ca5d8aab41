//! A rollout's durable record on disk: append, fsync, lock, read back, list.
//!
//! What is done to a cluster is written here before it is done, and its outcome after, so that whoever comes next, be
//! it the same program after a crash, knows what is owed. The room does not know what a record is: any type that
//! serialises will do. It refuses to know engine, servers, screen and async code, and reads no clock: times come in as
//! arguments. Its calls block; a caller with an event loop runs them beside it.
//!
//! ```text
//! $XDG_STATE_HOME/tiroll/
//!   rollouts/20261201-041055-7f3a/
//!     journal.jsonl            the record; see `line` for its format
//!     journal.torn-18          an unfinished last line that was cut off, kept for people
//!     writer.json              who writes, for people; the lock itself is on journal.jsonl
//!   locks/cdc-10.0.1.1=8300.lock
//! ```
//!
//! The invariants: a record that [`Journal::append`] has acknowledged is read back exactly or the file is refused with
//! the place where it is damaged; no record is written twice; a failed append leaves the file as it was.

mod disk;
mod error;
mod line;
mod list;
mod lock;
mod moment;
mod open;
mod place;
mod read;
mod write;

pub use disk::{Disk, Identity, RealDisk};
pub use error::{JournalError, LockHeld};
pub use line::Header;
pub use list::{Condition, Summary, list};
pub use lock::{Claim, Holder, Locks, Writer};
pub use moment::Moment;
pub use place::{Base, RolloutId};
pub use read::{Entry, Opened, Torn, read};
pub use write::Journal;
