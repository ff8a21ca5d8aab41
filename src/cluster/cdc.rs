//! What `TiCDC` says of itself.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ids::{Address, CaptureId, ChangefeedId, ClusterId};
use super::units::Tso;
use super::version::Version;

/// Which of the two `TiCDC` architectures a node runs. Liveness numbers, drain and tables differ between them
/// (contract section 0), so it is found out per node and never assumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Architecture {
    /// Owner, schedulers and processors.
    Classic,
    /// Coordinator and maintainers.
    New,
}

impl Architecture {
    /// The word used in JSON and on screen.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::New => "new",
        }
    }

    /// What the field calls the capture that schedules the others; the wire says `is_owner` in both.
    pub const fn owner(self) -> &'static str {
        match self {
            Self::Classic => "owner",
            Self::New => "coordinator",
        }
    }

    /// The same with its article.
    pub const fn an_owner(self) -> &'static str {
        match self {
            Self::Classic => "an owner",
            Self::New => "a coordinator",
        }
    }
}

/// Whether a capture takes tables and owner duty, by its own word. It only ever goes down while the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Liveness {
    /// Takes part in everything.
    Alive,
    /// New architecture only: giving its tables away.
    Draining,
    /// Takes no table and no owner duty any more; only a restart of the process cures it.
    Stopping,
}

impl Liveness {
    /// The word used in JSON and on screen.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Draining => "draining",
            Self::Stopping => "stopping",
        }
    }
}

/// The liveness field of a status answer as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct LivenessReading {
    /// The number, or `None` if the field was absent or no number.
    pub raw: Option<i64>,
    /// What it means in the node's architecture; absent and unknown numbers mean *unknown*, never alive (field report 36).
    pub meaning: Option<Liveness>,
}

impl LivenessReading {
    /// Reads the number by the architecture: 1 is stopping in classic and draining in the new one.
    pub const fn new(raw: Option<i64>, architecture: Architecture) -> Self {
        let meaning = match (raw, architecture) {
            (Some(0), _) => Some(Liveness::Alive),
            (Some(1), Architecture::Classic) | (Some(2), Architecture::New) => Some(Liveness::Stopping),
            (Some(1), Architecture::New) => Some(Liveness::Draining),
            _ => None,
        };
        Self { raw, meaning }
    }
}

/// A node's own `/api/v1/status`: local to the node asked, the only place where version and liveness are visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// Its capture id; `None` while the process has not registered (the server then says `""`).
    pub id: Option<CaptureId>,
    /// Its version; `None` if the text could not be read as one.
    pub version: Option<Version>,
    /// The version as it came.
    pub version_text: Arc<str>,
    /// The commit it was built from.
    pub git_hash: Arc<str>,
    /// Its `TiCDC` cluster; `None` where the answer had none (older releases).
    pub cluster_id: Option<ClusterId>,
    /// Its process id.
    pub pid: Option<i64>,
    /// Whether this process holds an owner object now, which is not the same as being the elected owner.
    pub is_owner: bool,
    /// Its liveness.
    pub liveness: LivenessReading,
    /// The architecture it runs, as found by two signals.
    pub architecture: Architecture,
}

impl NodeStatus {
    /// The cluster it belongs to. Releases that do not name theirs have only the default one (contract section 0).
    pub fn cluster(&self) -> ClusterId {
        self.cluster_id.clone().unwrap_or_default()
    }
}

/// One entry of the owner's list of captures. The list has neither version nor liveness and keeps the dead for 5 s
/// (contract section 1.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureEntry {
    /// The capture.
    pub id: CaptureId,
    /// The address it advertises.
    pub address: Address,
    /// Its `TiCDC` cluster, where the list says it.
    pub cluster_id: Option<ClusterId>,
    /// Whether it is the owner that answered.
    pub is_owner: bool,
}

/// The state of a changefeed, by the server's word.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ChangefeedState {
    /// Replicating.
    Normal,
    /// Retrying after an error; its tables are still placed, but the drain count leaves it out.
    Warning,
    /// About to retry.
    Pending,
    /// Paused by a person.
    Stopped,
    /// Given up; only a person can resume it.
    Failed,
    /// Reached its target.
    Finished,
    /// Being removed.
    Removed,
    /// `""`: no state yet.
    Uninitialised,
    /// A word this program does not know, or the old `error`: neither good nor bad, shown as it came (field report 27).
    Other(Arc<str>),
}

impl ChangefeedState {
    /// Reads the server's word.
    pub fn parse(word: &str) -> Self {
        match word {
            "normal" => Self::Normal,
            "warning" => Self::Warning,
            "pending" => Self::Pending,
            "stopped" => Self::Stopped,
            "failed" => Self::Failed,
            "finished" => Self::Finished,
            "removed" => Self::Removed,
            "" => Self::Uninitialised,
            other => Self::Other(Arc::from(other)),
        }
    }

    /// The server's word.
    pub fn word(&self) -> &str {
        match self {
            Self::Normal => "normal",
            Self::Warning => "warning",
            Self::Pending => "pending",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Finished => "finished",
            Self::Removed => "removed",
            Self::Uninitialised => "",
            Self::Other(word) => word,
        }
    }

    /// Whether it replicates and so must be running again after a node's step.
    pub const fn is_running(&self) -> bool {
        matches!(self, Self::Normal | Self::Warning | Self::Pending)
    }

    /// Whether it is known to carry no table anywhere.
    pub const fn is_at_rest(&self) -> bool {
        matches!(self, Self::Stopped | Self::Failed | Self::Finished | Self::Removed)
    }
}

impl Serialize for ChangefeedState {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl<'de> Deserialize<'de> for ChangefeedState {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::parse(&String::deserialize(deserializer)?))
    }
}

impl fmt::Display for ChangefeedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Uninitialised => "starting",
            other => other.word(),
        })
    }
}

/// The error or warning a changefeed carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangefeedError {
    /// For example `CDC:ErrSnapshotLostByGC`.
    pub code: Arc<str>,
    /// The server's message.
    pub message: Arc<str>,
}

/// One entry of the changefeed list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangefeedRow {
    /// The changefeed.
    pub id: ChangefeedId,
    /// Its state.
    pub state: ChangefeedState,
    /// Its checkpoint; `None` if it has none yet.
    pub checkpoint: Option<Tso>,
    /// Its error or warning, where the list names one.
    pub error: Option<ChangefeedError>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn liveness_numbers_mean_what_the_architecture_says() {
        let read = |raw, architecture| LivenessReading::new(raw, architecture).meaning;
        assert_eq!(read(Some(1), Architecture::Classic), Some(Liveness::Stopping));
        assert_eq!(read(Some(1), Architecture::New), Some(Liveness::Draining));
        assert_eq!(read(Some(2), Architecture::New), Some(Liveness::Stopping));
        assert_eq!(read(Some(2), Architecture::Classic), None);
        assert_eq!(read(None, Architecture::Classic), None);
        assert_eq!(read(Some(0), Architecture::Classic), Some(Liveness::Alive));
    }

    #[test]
    fn an_unknown_state_is_neither_running_nor_at_rest() {
        for word in ["error", "", "resuming"] {
            let state = ChangefeedState::parse(word);
            assert!(!state.is_running() && !state.is_at_rest(), "{word}");
            assert_eq!(state.word(), word);
        }
    }
}
