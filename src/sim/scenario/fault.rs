//! Faults: when something goes wrong and what. The same form is read from scenario files and from the control server.

use serde::Deserialize;
use serde::de::{self, Deserializer};

use super::{FeedState, VersionText};

/// One fault. It happens once, or, for an answer, as often as it says.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What sets it off; at once when absent.
    #[serde(default)]
    pub when: Trigger,
    /// What happens.
    #[serde(rename = "do")]
    pub effect: Effect,
}

/// A process by its name (`capture-1`, `tidb-2`, `pd-1`) or by its `host:port`.
pub type Process = String;

/// What sets a fault off.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Trigger {
    /// At once.
    #[default]
    Now,
    /// Virtual milliseconds since the start.
    At(u64),
    /// The first drain of this capture that finds tables on it.
    Drain(Process),
    /// The capture holds fewer tables than this, after a drain of it began.
    TablesBelow(Process, usize),
    /// The process is told to stop.
    Stop(Process),
    /// The process is started again.
    Restart(Process),
    /// The owner of this `TiCDC` cluster id is told to resign.
    Resign(String),
    /// `/upgrade/start` changed the state.
    UpgradeStart,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTrigger {
    at_ms: Option<u64>,
    drain: Option<Process>,
    tables_below: Option<RawBelow>,
    stop: Option<Process>,
    restart: Option<Process>,
    resign: Option<String>,
    upgrade_start: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBelow {
    process: Process,
    count: usize,
}

impl<'de> Deserialize<'de> for Trigger {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawTrigger::deserialize(deserializer)?;
        let mut all: Vec<Self> = Vec::new();
        all.extend(raw.at_ms.map(Self::At));
        all.extend(raw.drain.map(Self::Drain));
        all.extend(raw.tables_below.map(|below| Self::TablesBelow(below.process, below.count)));
        all.extend(raw.stop.map(Self::Stop));
        all.extend(raw.restart.map(Self::Restart));
        all.extend(raw.resign.map(Self::Resign));
        all.extend(raw.upgrade_start.map(|_| Self::UpgradeStart));
        only_one(all, "`when`", "at_ms, drain, tables_below, stop, restart, resign, upgrade_start")
    }
}

/// What happens. New faults are added here, in [`RawEffect`] and where the world lets them happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The process dies without a word (kill -9).
    Kill(Process),
    /// The process ends by itself (SIGTERM).
    Stop(Process),
    /// The process lives but refuses connections for a while.
    Refuse(Process, Until),
    /// An endpoint answers something else, or slowly, or not at all.
    Answer(Answer),
    /// A table does not begin to replicate on the capture it moves to: its drain does not end.
    StuckTable(Stuck),
    /// A changefeed changes its state.
    Changefeed(ChangefeedFault),
    /// The next start of the process fails: it never listens.
    NoReturn(Process),
    /// The next start of the process runs this version, whatever was asked for.
    WrongVersion(Process, VersionText),
    /// The next start of the process takes this many milliseconds more.
    SlowStart(Process, u64),
    /// A changefeed falls behind.
    Lag(LagFault),
    /// Somebody else (a supervisor, a colleague) starts the process, and ends the one that runs there before.
    Restart(Restart),
    /// The coordinator of the new architecture believes that nothing is left on this capture the next time it works
    /// that out in a drain: liveness becomes 2 and the answer 0, while tables stay there until the process is gone
    /// (recorded/README 46). Without any effect in the classic architecture.
    FalseZero(Process),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEffect {
    kill: Option<Process>,
    stop: Option<Process>,
    refuse: Option<RawRefuse>,
    answer: Option<Answer>,
    stuck_table: Option<Stuck>,
    changefeed: Option<ChangefeedFault>,
    no_return: Option<Process>,
    wrong_version: Option<RawVersion>,
    slow_start: Option<RawSlow>,
    lag: Option<LagFault>,
    restart: Option<Restart>,
    false_zero: Option<RawProcess>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProcess {
    process: Process,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRefuse {
    process: Process,
    for_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawVersion {
    process: Process,
    version: VersionText,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSlow {
    process: Process,
    by_ms: u64,
}

impl<'de> Deserialize<'de> for Effect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawEffect::deserialize(deserializer)?;
        let mut all: Vec<Self> = Vec::new();
        all.extend(raw.kill.map(Self::Kill));
        all.extend(raw.stop.map(Self::Stop));
        all.extend(raw.refuse.map(|refuse| Self::Refuse(refuse.process, Until(refuse.for_ms))));
        all.extend(raw.answer.map(Self::Answer));
        all.extend(raw.stuck_table.map(Self::StuckTable));
        all.extend(raw.changefeed.map(Self::Changefeed));
        all.extend(raw.no_return.map(Self::NoReturn));
        all.extend(raw.wrong_version.map(|wrong| Self::WrongVersion(wrong.process, wrong.version)));
        all.extend(raw.slow_start.map(|slow| Self::SlowStart(slow.process, slow.by_ms)));
        all.extend(raw.lag.map(Self::Lag));
        all.extend(raw.restart.map(Self::Restart));
        all.extend(raw.false_zero.map(|zero| Self::FalseZero(zero.process)));
        only_one(
            all,
            "`do`",
            "kill, stop, refuse, answer, stuck_table, changefeed, no_return, wrong_version, slow_start, lag, restart, false_zero",
        )
    }
}

fn only_one<T, E: de::Error>(mut all: Vec<T>, field: &str, names: &str) -> Result<T, E> {
    match (all.pop(), all.len()) {
        (Some(only), 0) => Ok(only),
        (None, _) => Err(E::custom(format!("{field} says nothing, expected exactly one of {names}"))),
        (Some(_), others) => {
            Err(E::custom(format!("{field} says {} things, expected exactly one of {names}", others + 1)))
        }
    }
}

/// Virtual milliseconds that something lasts; for ever when absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Until(pub Option<u64>);

/// What an endpoint answers instead of the truth. Everything that is absent matches, or stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// At this process only.
    pub process: Option<Process>,
    /// For this method only.
    pub method: Option<String>,
    /// For this route only, as a template: `/api/v2/captures/{id}/drain`.
    pub route: Option<String>,
    /// The status to answer with.
    pub status: Option<u16>,
    /// An error code to answer with, as `TiCDC` writes it: `CDC:ErrVersionIncompatible`.
    pub code: Option<String>,
    /// The message that goes with the code, or, without one, the whole body.
    pub message: Option<String>,
    /// The content type to answer with.
    pub content_type: Option<String>,
    /// Whether to close the connection without an answer.
    #[serde(default)]
    pub drop: bool,
    /// Whether the request is carried out all the same, so that only its answer is another one or is lost.
    #[serde(default)]
    pub acts: bool,
    /// How many virtual milliseconds to wait before the answer.
    pub slow_ms: Option<u64>,
    /// How many virtual milliseconds this lasts.
    pub for_ms: Option<u64>,
    /// How many answers are changed.
    pub times: Option<u32>,
}

/// Which table does not begin to replicate elsewhere: by name, or any one on a capture.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stuck {
    /// One of the tables that this capture has now.
    pub process: Option<Process>,
    /// This table, as `database.table`.
    pub table: Option<String>,
    /// How many virtual milliseconds it does not begin; for ever when absent.
    pub for_ms: Option<u64>,
}

/// The state a changefeed falls into.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangefeedFault {
    /// Its id.
    pub id: String,
    /// Its new state.
    pub state: FeedState,
    /// Code of the error it shows.
    pub code: Option<String>,
    /// Message of the error it shows.
    pub message: Option<String>,
    /// After how many virtual milliseconds it is normal again; never when absent.
    pub for_ms: Option<u64>,
}

/// A process that somebody else starts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// Which; one that runs there is told to end first.
    pub process: Process,
    /// The version it starts with; the one that is installed when absent.
    pub version: Option<VersionText>,
    /// After how many virtual milliseconds; at once when absent.
    #[serde(default)]
    pub after_ms: u64,
}

/// How far a changefeed falls behind.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LagFault {
    /// Its id.
    pub id: String,
    /// Additional lag in virtual milliseconds; 0 ends it.
    pub by_ms: u64,
}
