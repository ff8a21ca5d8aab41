//! What goes over the socket: one JSON value a line, each way.

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use crate::cluster::Timestamp;
use crate::rollout::command::{Instruction, Permission, Who};
use crate::rollout::event::Event;
use crate::rollout::view::{TableNames, View};

/// Both sides must speak the same: the program may have been replaced since the rollout began.
pub(super) const PROTOCOL: u32 = 1;

/// The longest line taken from a client: names and a command fit many times.
pub(super) const LONGEST_TO_ROLLOUT: usize = 16 * 1024;
/// The longest line taken from a rollout: a view of the largest cluster fits many times.
pub(super) const LONGEST_TO_CLIENT: usize = 64 * 1024 * 1024;

/// The longest name of a person that is kept.
const LONGEST_NAME: usize = 80;

/// What somebody attaches for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Looks, stays, and may answer questions.
    Steers,
    /// Looks only; its commands are refused.
    Looks,
    /// Gives one command and goes: nobody to wait for.
    Tells,
}

/// A line to the rollout.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToRollout {
    /// The first one.
    Hello {
        /// The protocol spoken.
        protocol: u32,
        /// Who attaches.
        who: Who,
        /// What for.
        role: Role,
    },
    /// A command.
    Command {
        /// The number that its answer names again.
        id: u64,
        /// Who gives it.
        who: Who,
        /// Which, and what was typed for it.
        #[serde(flatten)]
        instruction: Instruction,
    },
}

/// A line to a client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToClient {
    /// The answer to a hello that is taken.
    Welcome {
        /// The protocol spoken.
        protocol: u32,
        /// The version of the program that runs the rollout.
        program: String,
        /// Its time: the moments in views and events are of its clock.
        now: Timestamp,
    },
    /// Nothing more comes, for this reason.
    Refused {
        /// Why.
        why: String,
    },
    /// The names of tables: sent apart from the views, and only when they changed.
    Names(TableNames),
    /// The newest view, without the names of tables.
    View(Box<View>),
    /// A fact.
    Event(Event),
    /// So many facts went by faster than this client took them.
    Missed(u64),
    /// The engine's word on a command.
    Answer {
        /// The number of the command.
        id: u64,
        /// The word.
        permission: Permission,
    },
    /// The program that runs the rollout ends.
    Bye,
}

/// A value as a line.
pub(super) fn line<T: Serialize>(value: &T) -> std::io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// Writes a value as a line.
pub(super) async fn write<T: Serialize + Sync>(to: &mut (impl AsyncWrite + Unpin), value: &T) -> std::io::Result<()> {
    to.write_all(&line(value)?).await
}

/// A name as it is kept and shown: it came from another program.
pub(super) fn plain(who: &Who) -> Who {
    let name: String = who.name.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect();
    Who::new(if name.trim().is_empty() { "somebody".to_owned() } else { name })
}
