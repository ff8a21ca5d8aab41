//! What the engine wants done, and how the world answers.

use std::fmt;
use std::sync::Arc;

use super::command::{Instruction, Who};
use super::view::TableNames;
use serde::{Deserialize, Serialize};

use crate::cluster::{
    Address, CaptureId, CdcSweep, ClusterId, Failure, FailureKind, FinishAnswer, PdSweep, Reading, StartAnswer,
    TidbSweep, Timestamp, Version,
};

/// The id of an effect; its outcome names it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EffectId(pub u64);

/// Something to be done by the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A mutating call, sent once.
    Call {
        /// Its id.
        id: EffectId,
        /// The call.
        call: Call,
    },
    /// An act on a process.
    Exec {
        /// Its id.
        id: EffectId,
        /// The act.
        action: Action,
    },
    /// From now on read this, this often.
    Watch(Watch),
}

/// A mutating call to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Ask for a drain: also the poll of its progress, the one call that repeats.
    Drain {
        /// The `TiCDC` cluster.
        cluster: ClusterId,
        /// The capture to empty.
        capture: CaptureId,
        /// The owner's configured address, where known.
        owner: Option<Address>,
    },
    /// Ask the owner to give its duty up.
    Resign {
        /// The `TiCDC` cluster.
        cluster: ClusterId,
        /// The owner's configured address.
        owner: Address,
    },
    /// `POST /upgrade/start`.
    UpgradeStart,
    /// `POST /upgrade/finish`.
    UpgradeFinish,
}

impl Call {
    /// The answer to a call that was not sent, since it could not be written down before.
    pub fn not_sent(&self) -> CallAnswer {
        let why = || Failure::local(FailureKind::NotAsked, "it could not be written down before");
        match self {
            Self::Drain { .. } => CallAnswer::Drain(Err(why())),
            Self::Resign { .. } => CallAnswer::Resign(Err(why())),
            Self::UpgradeStart => CallAnswer::Start(Err(why())),
            Self::UpgradeFinish => CallAnswer::Finish(Err(why())),
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drain { capture, owner, .. } => {
                write!(f, "PUT /api/v1/captures/drain {{\"capture_id\":\"{capture}\"}}")?;
                owner.as_ref().map_or(Ok(()), |owner| write!(f, " at {owner}"))
            }
            Self::Resign { owner, .. } => write!(f, "POST /api/v2/owner/resign at {owner}"),
            Self::UpgradeStart => f.write_str("POST /upgrade/start"),
            Self::UpgradeFinish => f.write_str("POST /upgrade/finish"),
        }
    }
}

/// What a call was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallAnswer {
    /// The drain's count.
    Drain(Reading<u64>),
    /// Accepted, which is not done.
    Resign(Reading<()>),
    /// The text of start, told apart.
    Start(Reading<StartAnswer>),
    /// The text of finish, told apart.
    Finish(Reading<FinishAnswer>),
}

impl fmt::Display for CallAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drain(Ok(count)) => write!(f, "202, {count} left"),
            Self::Resign(Ok(())) => f.write_str("accepted"),
            Self::Start(Ok(answer)) => write!(f, "{answer:?}"),
            Self::Finish(Ok(answer)) => write!(f, "{answer:?}"),
            Self::Drain(Err(why)) | Self::Resign(Err(why)) | Self::Start(Err(why)) | Self::Finish(Err(why)) => {
                write!(f, "{why}")
            }
        }
    }
}

/// The kind of server an act is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Component {
    /// A capture.
    Ticdc,
    /// A `TiDB` server.
    Tidb,
}

impl Component {
    /// The name people use.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ticdc => "TiCDC",
            Self::Tidb => "TiDB",
        }
    }
}

/// What is done to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Stop it, replace its binary where a version is named, start it.
    Restart,
    /// Start it: it is down.
    Start,
}

/// An act on a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// What is done.
    pub verb: Verb,
    /// To which kind of server.
    pub component: Component,
    /// Where: the configured address (a `TiDB` server's status address).
    pub address: Address,
    /// The version it shall come back with; `None` keeps its binary.
    pub version: Option<Version>,
    /// Whether a person said in words that tables may still be there.
    pub forced: bool,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.verb {
            Verb::Restart => "restart",
            Verb::Start => "start",
        };
        write!(f, "{verb} {} {}", self.component.word(), self.address)?;
        match &self.version {
            Some(version) => write!(f, " as {version}"),
            None => f.write_str(" on the binary it has"),
        }
    }
}

/// How an act went. It proves nothing: the servers do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionOutcome {
    /// The executor returned.
    Returned {
        /// What it said.
        detail: String,
    },
    /// The executor failed.
    Failed {
        /// What it said.
        message: String,
    },
    /// A person was told what to do; the servers will show when it happened.
    Asked {
        /// What the person was told.
        text: String,
    },
}

/// What the pollers shall read, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// How often.
    pub pace: Pace,
    /// The capture whose tables are wanted by name.
    pub target: Option<CaptureId>,
}

/// How often the cluster is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Nothing happens.
    Idle,
    /// Something moves, or a gate waits.
    Moving,
    /// Around a restart.
    Restart,
}

/// How a rollout is ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// A signal, or the screen was left.
    Interrupted,
    /// `--timeout` ran out.
    TimedOut,
    /// Headless mode met a question.
    Paused,
}

/// What the engine is told.
#[derive(Clone, Debug)]
pub enum Input {
    /// Time has passed.
    Tick,
    /// `TiCDC` was read.
    Cdc(Arc<CdcSweep>),
    /// `TiDB` was read.
    Tidb(Arc<TidbSweep>),
    /// PD was read.
    Pd(Arc<PdSweep>),
    /// Tables have names.
    Names(Arc<TableNames>),
    /// A call was answered.
    Answer {
        /// The effect.
        id: EffectId,
        /// When the request was sent.
        sent_at: Timestamp,
        /// The answer.
        answer: CallAnswer,
    },
    /// An act is over.
    Outcome {
        /// The effect.
        id: EffectId,
        /// How it went.
        outcome: ActionOutcome,
    },
    /// A person (or headless mode) says something.
    Command {
        /// Who.
        who: Who,
        /// What.
        instruction: Instruction,
    },
    /// What had to be written down before anything else could not be, for this reason; nothing that was to be done with
    /// it was done. `None`: it stands there now.
    Unwritten(Option<String>),
    /// End now, leaving what is.
    Cut {
        /// Why.
        cut: Cut,
        /// The reason in a sentence.
        reason: String,
    },
}
