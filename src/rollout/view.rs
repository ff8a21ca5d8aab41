//! The read model: all that the screen and the headless mode ever see of a rollout.
//!
//! A view is built after every step of the engine and handed out behind an `Arc`; readers never reach into the engine.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::command::{Command, Permission};
use crate::cluster::{
    Architecture, CaptureId, ChangefeedError, ChangefeedId, ChangefeedState, ClusterId, Failure, LivenessReading,
    Observed, TableId, TableIds, Timestamp, Version,
};

/// Names of tables, as far as a `TiDB` server could tell them.
pub type TableNames = BTreeMap<TableId, String>;

/// A stable name that scripts rely on: of this program, or read back from one that attached.
pub type Name = Cow<'static, str>;

/// Everything there is to show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// When this view was built.
    pub at: Timestamp,
    /// What the rollout is about.
    pub title: Title,
    /// What the engine is doing.
    pub mode: Mode,
    /// When the plan stood and the rollout began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// About how much longer the rollout takes, running straight on; `None` is unknown.
    pub remaining: Option<Duration>,
    /// The plan; empty until the cluster was read.
    pub plan: Vec<StepView>,
    /// The current step and phase, as indices into the plan.
    pub cursor: Option<(usize, usize)>,
    /// The `TiCDC` clusters, by cluster id.
    pub groups: Vec<GroupView>,
    /// The drain that is open or was last seen in the current step.
    pub drain: Option<DrainView>,
    /// The `TiDB` servers; `None` if none were named.
    pub tidb: Option<TidbView>,
    /// The PD servers; empty if none were named.
    pub pd: Vec<PdView>,
    /// What has been changed and must be changed back.
    pub owed: Vec<OwedView>,
    /// What the rollout is waiting for a person to say.
    pub question: Option<Question>,
    /// Every command, with the reason when it cannot be given now.
    pub commands: Vec<(Command, Permission)>,
    /// Of these the ones that are given by name and may be given now.
    #[serde(default)]
    pub by_name: Vec<ByName>,
    /// Names of tables.
    pub table_names: Arc<TableNames>,
    /// What could not be read in the last sweep: the server, and why.
    pub unread: Vec<(String, Failure)>,
}

impl View {
    /// Whether this command may be given now, or why not.
    pub fn permission(&self, command: Command) -> Permission {
        self.commands
            .iter()
            .find(|(known, _)| *known == command)
            .map_or_else(|| Err("there is no rollout to steer".to_owned()), |(_, permission)| permission.clone())
    }

    /// The capture with this id, wherever it is.
    pub fn capture(&self, id: &CaptureId) -> Option<&CaptureView> {
        self.groups.iter().flat_map(|group| &group.captures).find(|capture| &capture.id == id)
    }

    /// The phase under the cursor.
    pub fn current(&self) -> Option<(&StepView, &PhaseView)> {
        let (step, phase) = self.cursor?;
        let step = self.plan.get(step)?;
        Some((step, step.phases.get(phase)?))
    }

    /// Phases that are over, and all phases.
    pub fn progress(&self) -> (usize, usize) {
        let phases = || self.plan.iter().flat_map(|step| &step.phases);
        (phases().filter(|phase| phase.state.is_over()).count(), phases().count())
    }
}

/// A command that is given by name, as it stands now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByName {
    /// Which.
    pub command: Command,
    /// What must be typed: one of these. A name, and for a forced restart the number of tables (`unknown` where it is).
    pub typed: Vec<String>,
    /// What it would do here, in sentences.
    pub means: Vec<String>,
}

impl ByName {
    /// Whether this is what must be typed. The tables on a capture only become fewer while somebody types: a number that
    /// is higher than theirs says as much.
    pub fn accepts(&self, typed: &str) -> bool {
        let typed = typed.trim();
        let split = |text: &str| {
            let (address, tables) = text.rsplit_once(' ')?;
            Some((address.to_owned(), tables.parse::<u64>().ok()?))
        };
        let is_enough = |wanted: &str| match (split(wanted), split(typed)) {
            (Some((at, now)), Some((named, then))) => at == named && then >= now,
            _ => false,
        };
        let is_counted = self.command == Command::Force;
        self.typed.iter().any(|wanted| wanted == typed || (is_counted && is_enough(wanted)))
    }
}

/// What the rollout is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Title {
    /// `upgrade` or `watch`.
    pub operation: Name,
    /// The version the cluster had when the plan was made.
    pub from: Option<Version>,
    /// The version it shall have.
    pub to: Option<Version>,
    /// Whether the cluster is a simulated one; then every header and output says so.
    pub is_simulated: bool,
    /// How fast a simulated cluster runs; 1 for a real one.
    pub speed: f64,
    /// How processes are restarted: `sim`, `manual`, or nothing when only watching.
    pub executor: Name,
}

/// What the engine is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The cluster is being read; there is no plan yet.
    Reading,
    /// Looking only.
    Watching,
    /// The next phase waits for `step` or `continue`.
    Stepping,
    /// A phase runs, and the engine will wait after it.
    StepRunning,
    /// Phase after phase runs.
    Running,
    /// A person said pause.
    Paused,
    /// The engine asks: see [`View::question`].
    Asking,
    /// Aborted; what is owed can be paid: see [`View::question`].
    Aborted,
    /// Over.
    Ended(Ending),
}

impl Mode {
    /// The mode in one or two words, as the header shows it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Watching => "watching",
            Self::Stepping | Self::StepRunning => "STEP",
            Self::Running => "AUTO",
            Self::Paused => "PAUSED",
            Self::Asking => "ASKING",
            Self::Aborted => "ABORTED",
            Self::Ended(_) => "ENDED",
        }
    }
}

/// How a rollout ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// How.
    pub outcome: Outcome,
    /// The exit code of the program (design section 9).
    pub exit_code: u8,
    /// Why, in a sentence.
    pub reason: String,
}

/// How a rollout ended, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything in the plan is done and proven.
    Done,
    /// Everything was at the target already.
    NothingToDo,
    /// Refused before anything was changed.
    Refused,
    /// Waiting for a person; headless mode ends here.
    Paused,
    /// Given up by a person.
    Aborted,
    /// Out of time.
    TimedOut,
    /// A signal.
    Interrupted,
    /// Something could not be read, or the program failed.
    Failed,
}

impl Outcome {
    /// Whether only the program ended, and the rollout can be gone on with as it was.
    pub const fn is_of_program(self) -> bool {
        matches!(self, Self::Paused | Self::TimedOut | Self::Interrupted | Self::Failed)
    }
}

/// One node's visit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepView {
    /// What the step is about.
    pub kind: StepKind,
    /// The node's address, or a word such as `cluster` for steps that are about none.
    pub target: String,
    /// A remark: `owner, last`, `already v8.5.4`.
    pub note: String,
    /// What is done there, in order.
    pub phases: Vec<PhaseView>,
}

impl StepView {
    /// The state of the whole step.
    pub fn state(&self) -> PhaseState {
        let mut states = self.phases.iter().map(|phase| phase.state);
        let first = states.clone().find(|state| !state.is_over());
        match first {
            None if self.phases.iter().all(|phase| phase.state == PhaseState::Skipped) => PhaseState::Skipped,
            None => PhaseState::Done,
            Some(PhaseState::Waiting) if states.any(PhaseState::is_over) => PhaseState::Running,
            Some(state) => state,
        }
    }
}

/// What a step is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// A capture.
    Capture,
    /// PD and `TiKV`, which somebody else upgrades.
    HandOver,
    /// Taking the `TiDB` cluster into the upgrading state.
    EnterUpgrading,
    /// A `TiDB` server.
    Tidb,
    /// Taking the `TiDB` cluster out of the upgrading state.
    LeaveUpgrading,
    /// Restarting a drained capture on the binary it has, after an abort.
    Recover,
}

/// One thing done inside a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseView {
    /// Which.
    pub kind: PhaseKind,
    /// How far it is.
    pub state: PhaseState,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// How long it took, once over.
    pub took: Option<Duration>,
    /// What it waits for, or what ended it.
    pub note: String,
}

/// The phases (design section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseKind {
    /// The owner hands its duty over.
    Resign,
    /// The capture gives its tables away.
    Drain,
    /// The process is stopped, replaced and started.
    Restart,
    /// The new process proves itself.
    Verify,
    /// The changefeeds come back to where they were.
    Settle,
    /// A person or another tool upgrades PD and `TiKV`.
    HandOver,
    /// `/upgrade/start`.
    EnterUpgrading,
    /// `/upgrade/finish`.
    LeaveUpgrading,
}

impl PhaseKind {
    /// The phase's name for people.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Resign => "resign",
            Self::Drain => "drain",
            Self::Restart => "restart",
            Self::Verify => "verify",
            Self::Settle => "settle",
            Self::HandOver => "hand-over",
            Self::EnterUpgrading => "enter upgrading",
            Self::LeaveUpgrading => "leave upgrading",
        }
    }

    /// The phase's stable name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resign => "resign",
            Self::Drain => "drain",
            Self::Restart => "restart",
            Self::Verify => "verify",
            Self::Settle => "settle",
            Self::HandOver => "hand_over",
            Self::EnterUpgrading => "enter_upgrading",
            Self::LeaveUpgrading => "leave_upgrading",
        }
    }
}

/// How far a phase is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseState {
    /// Not begun.
    Waiting,
    /// Running.
    Running,
    /// Waiting for a person.
    Asking,
    /// Ended on evidence.
    Done,
    /// Not needed.
    Skipped,
    /// Given up.
    Aborted,
}

impl PhaseState {
    /// Whether nothing more will happen in it.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Skipped | Self::Aborted)
    }
}

/// One `TiCDC` cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupView {
    /// Its id.
    pub cluster_id: ClusterId,
    /// The owner, as the list last said; `None` inside is "no owner".
    pub owner: Observed<Option<CaptureId>>,
    /// The captures, listed or configured, by address and id.
    pub captures: Vec<CaptureView>,
    /// The changefeeds, by id; `Unknown` until the list was read.
    pub changefeeds: Observed<Vec<ChangefeedView>>,
    /// The health call.
    pub health: Observed<bool>,
}

impl GroupView {
    /// What the field calls the capture that schedules the others: the new architecture has a coordinator.
    pub fn owner_word(&self) -> &'static str {
        if self.is_new() { Architecture::New.owner() } else { Architecture::Classic.owner() }
    }

    /// Whether the captures in its list are of the new architecture.
    pub fn is_new(&self) -> bool {
        let mut listed = self.captures.iter().filter(|capture| capture.standing != Standing::Unlisted);
        listed.any(|capture| capture.architecture == Some(Architecture::New))
    }
}

/// One capture as far as it is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaptureView {
    /// Its id.
    pub id: CaptureId,
    /// Its address.
    pub address: String,
    /// Its version; `None` is unknown.
    pub version: Option<Version>,
    /// Its liveness.
    pub liveness: LivenessReading,
    /// Its architecture, where known.
    pub architecture: Option<Architecture>,
    /// Whether the list calls it the owner.
    pub is_owner: bool,
    /// What it is, seen from here.
    pub standing: Standing,
    /// Its tables by changefeed.
    #[serde(with = "placed")]
    pub tables: Observed<Arc<BTreeMap<ChangefeedId, TableIds>>>,
    /// Tables gained (or lost) in the last minute, if that is known.
    pub per_minute: Option<i64>,
    /// The largest lag of the changefeeds with tables here.
    pub lag: Option<Duration>,
    /// When its own status was last asked for.
    pub seen_at: Option<Timestamp>,
}

impl CaptureView {
    /// How many tables it lists; `None` is unknown.
    pub fn table_count(&self) -> Option<u64> {
        let tables = self.tables.last()?;
        Some(tables.values().map(|ids| u64::try_from(ids.len()).unwrap_or(u64::MAX)).sum())
    }
}

/// Tables by changefeed, read or not, as a list of pairs: JSON has no keys but texts.
mod placed {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::cluster::{ChangefeedId, Observed, TableIds};

    type Tables = BTreeMap<ChangefeedId, TableIds>;
    type Pairs = Vec<(ChangefeedId, TableIds)>;

    pub(super) fn serialize<S: Serializer>(tables: &Observed<Arc<Tables>>, to: S) -> Result<S::Ok, S::Error> {
        tables.map(|tables| tables.iter().map(|(id, ids)| (id.clone(), ids.clone())).collect::<Pairs>()).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Observed<Arc<Tables>>, D::Error> {
        let pairs = Observed::<Pairs>::deserialize(from)?;
        Ok(pairs.map(|pairs| Arc::new(pairs.iter().cloned().collect())))
    }
}

/// What a capture is, seen from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Listed, and answers as itself.
    Present,
    /// Listed, but its address is answered by another process or by nobody: it is leaving.
    Ghost,
    /// Answers, but is in no list (yet).
    Unlisted,
    /// Listed; its own answer could not be read.
    Silent,
}

/// One changefeed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangefeedView {
    /// Its id.
    pub id: ChangefeedId,
    /// Its state.
    pub state: ChangefeedState,
    /// How far its checkpoint is behind the cluster's clock; `None` is unknown.
    pub lag: Option<Duration>,
    /// Its lag over the last minutes, oldest first, in milliseconds.
    pub lag_history: Vec<u64>,
    /// Its tables, counted once each; `None` is unknown.
    pub tables: Option<u64>,
    /// Its error or warning.
    pub error: Option<ChangefeedError>,
}

/// A drain, live.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrainView {
    /// The capture.
    pub capture: CaptureId,
    /// Its address.
    pub address: String,
    /// Tables left: by the classic drain call, else by the last round; `None` until there is one worth showing.
    pub count: Option<u64>,
    /// New architecture: remaining work by the last answer of the drain call, which is no count of tables and stays at
    /// 1 or more until the capture calls itself stopping (recorded/README 16).
    pub work: Option<u64>,
    /// The highest count seen: the whole of the bar.
    pub baseline: u64,
    /// When that count was asked for.
    pub counted_at: Option<Timestamp>,
    /// When the drain began.
    pub started_at: Timestamp,
    /// Tables a second over the last stretch; `None` is unknown.
    pub rate: Option<f64>,
    /// About how much longer; `None` is unknown.
    pub remaining: Option<Duration>,
    /// Counts over time, oldest first.
    pub history: Vec<u64>,
    /// Tables still there by changefeed, most first, as the last round saw it.
    pub by_changefeed: Vec<(ChangefeedId, u64)>,
    /// What it waits for.
    pub waiting_for: String,
    /// New architecture: whether the coordinator changed since it was last asked for. Nothing in the whole cluster is
    /// placed until it is asked for again (recorded cdc-new-more 08).
    pub is_lost: bool,
    /// Whether it is over.
    pub is_done: bool,
}

/// The `TiDB` side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TidbView {
    /// Whether the cluster is upgrading; then user DDL hangs.
    pub is_upgrading: Observed<bool>,
    /// Since when it is known to be upgrading.
    pub upgrading_since: Option<Timestamp>,
    /// The servers, by address.
    pub servers: Vec<TidbServerView>,
}

/// One `TiDB` server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TidbServerView {
    /// Its status address.
    pub address: String,
    /// Its SQL address, where known.
    pub sql_address: Option<String>,
    /// Its version.
    pub version: Observed<Version>,
    /// Whether it owns DDL; `None` is unknown.
    pub is_ddl_owner: Option<bool>,
    /// Whether `/status` answered 200 in the last sweep, or why not.
    pub serves: Observed<()>,
}

/// One PD server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PdView {
    /// Its client address.
    pub address: String,
    /// Its version.
    pub version: Observed<Version>,
}

/// Something that was changed and must be changed back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwedView {
    /// `finish`, `restart` or `start`.
    pub kind: Name,
    /// The capture's or server's address, or `tidb`.
    pub target: String,
    /// What was done, and what it means until it is undone.
    pub what: String,
    /// What pays it, as a person would do it without this program.
    pub how: String,
    /// Since when, for people.
    pub since: Timestamp,
}

/// Something only a person can decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// A stable name of the reason, for scripts: `drain_stalled`, `wrong_version`, …
    pub reason: Name,
    /// The step's kind and the phase's name, as `capture/drain`.
    pub step: String,
    /// The node.
    pub target: String,
    /// What happened, in a sentence.
    pub what: String,
    /// What it means for the rollout.
    pub means: String,
    /// What to do.
    pub advice: String,
    /// What can be chosen, the harmless first.
    pub choices: Vec<Choice>,
}

impl Question {
    /// The three parts in one text.
    pub fn message(&self) -> String {
        let parts = [&self.what, &self.means, &self.advice];
        parts.iter().filter(|part| !part.is_empty()).map(|part| part.as_str()).collect::<Vec<_>>().join(" ")
    }
}

/// One way to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The command that chooses it.
    pub command: Command,
    /// What it will do here.
    pub label: String,
}
