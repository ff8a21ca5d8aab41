//! The engine: a value that is told what happened and says what shall be done.
//!
//! [`Engine::step`] is the only way in. It never awaits, never reads a clock and never fails; everything unexpected
//! becomes a question. What a phase does is in [`super::phase`]; what may be said when is in [`super::control`]; what is
//! shown is in [`super::readout`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::control::State;
use super::drain_record::DrainRecord;
use super::durable::{Change, Durable, Intent, IntentKind, Span, Tracked};
use super::effect::{Action, ActionOutcome, Call, CallAnswer, Cut, Effect, EffectId, Input, Pace, Watch};
use super::event::{Event, Fact, PlannedStep, Weight};
use super::obligation::Obligation;
use super::phase::drain::Asked;
use super::phase::tidb::Before;
use super::picture::Picture;
use super::plan::{Planned, Step, Target, plan_upgrade};
use super::policy::Policy;
use super::runner::Active;
use super::view::{Ending, Outcome, StepKind, TableNames};
use crate::cluster::{
    Address, Architecture, CaptureId, ChangefeedId, ChangefeedState, ClusterId, Timestamp, Tso, Version,
};

/// What is asked of the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The version every server shall have.
    pub target: Version,
    /// Whether nothing shall be changed: the cluster is only looked at.
    pub is_watch: bool,
    /// Whether `TiDB` servers were named.
    pub has_tidb: bool,
    /// Whether PD servers were named.
    pub has_pd: bool,
    /// How processes are restarted, by name.
    pub executor: &'static str,
    /// Whether the hand-over of PD and `TiKV` passes by itself: only on a simulated cluster.
    pub hand_over_passes: bool,
    /// Whether the cluster is simulated.
    pub is_simulated: bool,
    /// How fast a simulated cluster runs; 1 for a real one.
    pub speed: f64,
    /// Whether phase follows phase without being told.
    pub is_auto: bool,
}

/// The capture a step is about, as it was when the step began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    /// Its cluster.
    pub cluster: ClusterId,
    /// Its id before the restart.
    pub old_id: CaptureId,
    /// The address it is asked at.
    pub address: Address,
    /// Which `TiCDC` it is: drain, liveness and tables differ.
    pub architecture: Architecture,
    /// Its version before the restart.
    pub old_version: Version,
    /// Its process id before the restart.
    pub old_pid: Option<i64>,
    /// The version it shall come back with; `None` keeps its binary.
    pub to: Option<Version>,
    /// The changefeeds as they were.
    #[serde(with = "super::durable::pairs")]
    pub feeds: BTreeMap<ChangefeedId, FeedBefore>,
    /// How often "cannot drain the owner" was heard in this step.
    pub owner_refusals: u32,
    /// When the executor returned, or the new process was first seen.
    pub returned_at: Option<Timestamp>,
}

impl Visit {
    /// The version it should come back with, for people.
    pub fn expected(&self) -> &Version {
        self.to.as_ref().unwrap_or(&self.old_version)
    }
}

/// A changefeed when the step began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedBefore {
    /// Its state.
    pub state: ChangefeedState,
    /// Its checkpoint.
    pub checkpoint: Option<Tso>,
    /// Its lag, if known.
    pub lag: Option<Duration>,
    /// How many tables it had over all captures, if any were named.
    pub tables: Option<u64>,
    /// Whether its checkpoint had stood still for longer than a lag may be: this step does not mend that.
    pub stood_still: bool,
}

/// What one step gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepOutput {
    /// To be done, in this order.
    pub effects: Vec<Effect>,
    /// Facts, in this order.
    pub events: Vec<Event>,
    /// What changed of the durable state: on disk before any of the effects.
    pub changes: Vec<Change>,
    /// When the engine wants to be told the time again, if nothing else happens.
    pub wake_at: Option<Timestamp>,
}

/// The rollout. Cloning one gives an independent rollout in the same state: exploration branches that way.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(super) request: Request,
    pub(super) policy: Policy,
    pub(super) now: Timestamp,
    pub(super) picture: Picture,
    pub(super) names: Arc<TableNames>,
    pub(super) plan: Tracked<Vec<Step>>,
    pub(super) cursor: (usize, usize),
    pub(super) state: State,
    pub(super) active: Option<Active>,
    pub(super) visit: Tracked<Option<Visit>>,
    pub(super) tidb_before: Tracked<Option<Before>>,
    pub(super) drain: Option<DrainRecord>,
    pub(super) obligations: Tracked<Vec<Obligation>>,
    pub(super) span: Tracked<Span>,
    pub(super) reading_since: Option<Timestamp>,
    pub(super) opening_since: Option<Timestamp>,
    /// The last drain request, by any phase: never more than one a second.
    pub(super) asked_drain: Option<Asked>,
    /// A capture that a person has ordered to be restarted as it is. A program that comes back has forgotten the order.
    pub(super) forced: Option<CaptureId>,
    /// The drain request that no machine waits for.
    pub(super) kept_open: Option<EffectId>,
    pub(super) in_flight: Tracked<BTreeMap<EffectId, Intent>>,
    /// The durable state as the changes told so far give it.
    pub(super) recorded: Durable,
    /// What the running phase waits for; it is worth nothing after a restart of the program.
    pub(super) waits_for: String,
    answers: BTreeMap<EffectId, (Timestamp, CallAnswer)>,
    outcomes: BTreeMap<EffectId, ActionOutcome>,
    /// The number of the last effect.
    pub(super) sent: u64,
    /// Since when it is undecided, where it goes on from a journal.
    pub(super) resumed_at: Option<Timestamp>,
    watch: Option<Watch>,
    out: StepOutput,
    warned_no_owner: bool,
    pub(super) guards: super::guard::Guards,
    /// Durations of finished phases, for the estimate.
    pub(super) took: VecDeque<(StepKind, super::view::PhaseKind, Duration)>,
}

impl Engine {
    /// A rollout that has read nothing yet.
    pub fn new(request: Request, policy: Policy) -> Self {
        let state = State::new(request.is_auto, request.is_watch);
        Self {
            request,
            policy,
            now: Timestamp::new(0, 0),
            picture: Picture::default(),
            names: Arc::default(),
            plan: Tracked::default(),
            cursor: (0, 0),
            state,
            active: None,
            visit: Tracked::default(),
            tidb_before: Tracked::default(),
            drain: None,
            obligations: Tracked::default(),
            span: Tracked::default(),
            reading_since: None,
            opening_since: None,
            asked_drain: None,
            forced: None,
            kept_open: None,
            in_flight: Tracked::default(),
            recorded: Durable::default(),
            waits_for: String::new(),
            answers: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            sent: 0,
            resumed_at: None,
            watch: None,
            out: StepOutput::default(),
            warned_no_owner: false,
            guards: super::guard::Guards::default(),
            took: VecDeque::new(),
        }
    }

    /// Takes an input at a moment, and says what follows. Whether a command was taken only [`Engine::command`] tells.
    pub fn step(&mut self, now: Timestamp, input: Input) -> StepOutput {
        let input = match input {
            Input::Command { who, instruction } => return self.command(now, &who, instruction).1,
            other => other,
        };
        self.pass_time(now);
        self.absorb(input);
        self.catch_up();
        if self.is_undecided() {
            return self.finish();
        }
        self.settle_obligations();
        self.watch_owner();
        self.watch_guards();
        self.advance();
        self.keep_drain_open();
        self.follow_abandoned_drain();
        self.finish()
    }

    /// Moves the engine's time and charges it to the running phase, unless nothing may run. A stretch that the program
    /// slept through is charged to nobody (see [`super::gap`]).
    pub(super) fn pass_time(&mut self, now: Timestamp) {
        let before = std::mem::replace(&mut self.now, now);
        if before.mono_ms == 0 {
            return;
        }
        if let Some(gap) = super::gap::Gap::between(before, now) {
            self.wake_after(gap);
            return;
        }
        if self.state.may_act()
            && let Some(active) = &mut self.active
        {
            active.spent += now.since(before);
        }
    }

    /// Collects what this step gave.
    pub(super) fn finish(&mut self) -> StepOutput {
        self.set_watch();
        let mut out = std::mem::take(&mut self.out);
        out.changes = self.take_changes();
        out.wake_at = self.wake_at();
        out
    }

    fn absorb(&mut self, input: Input) {
        match input {
            Input::Tick | Input::Command { .. } => {}
            Input::Cdc(sweep) => {
                self.picture.absorb_cdc(&sweep);
                self.watch_captures(&sweep);
            }
            Input::Tidb(sweep) => {
                self.picture.absorb_tidb(&sweep);
                self.watch_tidb(&sweep);
            }
            Input::Pd(sweep) => self.picture.absorb_pd(&sweep),
            Input::Names(names) => self.names = names,
            Input::Answer { id, sent_at, answer } => {
                if self.in_flight.remove(&id).is_some() {
                    self.emit(Fact::Answered { id: id.0, what: answer.to_string() });
                    self.answers.insert(id, (sent_at, answer));
                }
            }
            Input::Outcome { id, outcome } => {
                let text = match &outcome {
                    ActionOutcome::Returned { detail } => detail.clone(),
                    ActionOutcome::Failed { message } => format!("failed: {message}"),
                    ActionOutcome::Asked { text } => text.clone(),
                };
                if self.in_flight.remove(&id).is_some() {
                    if matches!(outcome, ActionOutcome::Asked { .. }) {
                        self.warn(text);
                    } else {
                        self.emit(Fact::Answered { id: id.0, what: text });
                    }
                    self.outcomes.insert(id, outcome);
                }
            }
            Input::Unwritten(why) => {
                self.guards.unwritten = why.map(|why| {
                    let since = self.guards.unwritten.as_ref().map_or(self.now, |(since, _)| *since);
                    (since, why)
                });
            }
            Input::Cut { cut, reason } => self.cut(cut, reason),
        }
    }

    /// Ends from outside, saying what is owed.
    fn cut(&mut self, cut: Cut, reason: String) {
        let (outcome, exit_code) = match cut {
            Cut::Interrupted => (Outcome::Interrupted, 130),
            Cut::TimedOut => (Outcome::TimedOut, 5),
            Cut::Paused => (Outcome::Paused, 3),
        };
        self.end(outcome, exit_code, reason);
    }

    /// The end; the first one counts.
    pub(super) fn end(&mut self, outcome: Outcome, exit_code: u8, reason: String) {
        if self.state.is_over() {
            return;
        }
        self.span.ended_at = Some(self.now);
        let ending = Ending { outcome, exit_code, reason };
        let owed = self.obligations.iter().map(Obligation::view).collect();
        self.state.end(ending.clone());
        self.emit(Fact::RolloutEnded { ending, owed });
    }

    /// Makes the plan as soon as everything it needs has been read.
    pub(super) fn read(&mut self) {
        let since = *self.reading_since.get_or_insert(self.now);
        if self.request.has_pd && self.picture.pd.is_none() {
            return;
        }
        match plan_upgrade(&self.picture, &self.request.target, self.request.has_tidb) {
            Planned::Unread(missing) => {
                if self.now.since(since) >= self.policy.unknown_asks {
                    let reason = format!(
                        "The cluster could not be read whole: {missing}. Nothing was changed. Bring it up (or leave that address out), then start again."
                    );
                    self.end(Outcome::Failed, 1, reason);
                }
            }
            Planned::NothingToDo => {
                let reason = format!("Nothing to do: every server runs {} already.", self.request.target);
                self.end(Outcome::NothingToDo, 0, reason);
            }
            Planned::Refused { reason, target, what, advice } => self.refuse(reason, target, what, advice),
            Planned::Steps { from, steps } => {
                self.span.set(Span { from: from.clone(), started_at: Some(self.now), ended_at: None });
                self.plan.set(steps);
                let steps = self.planned();
                self.emit(Fact::RolloutStarted {
                    operation: "upgrade".into(),
                    from: from.map(|version| version.to_string()),
                    to: self.request.target.to_string(),
                    executor: self.request.executor.into(),
                    simulated: self.request.is_simulated,
                    steps,
                });
                self.state.begin();
            }
        }
    }

    /// The plan as scripts see it.
    pub fn planned(&self) -> Vec<PlannedStep> {
        self.plan
            .iter()
            .map(|step| PlannedStep {
                target: step.target.label(),
                phases: step
                    .phases
                    .iter()
                    .filter(|phase| phase.state != super::view::PhaseState::Skipped)
                    .map(|phase| phase.kind.name().into())
                    .collect(),
            })
            .filter(|step| !step.phases.is_empty())
            .collect()
    }

    fn refuse(&mut self, reason: &'static str, target: String, what: String, advice: String) {
        let means = "Nothing was changed and nothing was asked of the cluster.".to_owned();
        let question = super::view::Question {
            reason: reason.into(),
            step: "plan".to_owned(),
            target,
            what,
            means,
            advice,
            choices: Vec::new(),
        };
        let message = question.message();
        self.emit(Fact::Paused(question));
        self.end(Outcome::Refused, 3, message);
    }

    /// Says aloud when there has been no owner for a while.
    fn watch_owner(&mut self) {
        let gone = self.picture.groups.values().filter_map(|group| group.no_owner_since).min();
        match gone {
            Some(since) if self.now.since(since) >= self.policy.no_owner_warn => {
                if !self.warned_no_owner {
                    self.warned_no_owner = true;
                    self.warn("TiCDC has had no owner for a while; after a crash up to 10 s are normal".to_owned());
                }
            }
            Some(_) => {}
            None => self.warned_no_owner = false,
        }
    }

    // ---- what machines ask of the engine -------------------------------------------------------------------------

    /// Sends a mutating call.
    pub(super) fn call(&mut self, call: Call) -> EffectId {
        let kind = match call {
            Call::Drain { .. } => IntentKind::Drain,
            Call::Resign { .. } => IntentKind::Resign,
            Call::UpgradeStart | Call::UpgradeFinish => IntentKind::Upgrade,
        };
        let id = self.new_effect(kind, call.to_string());
        self.out.effects.push(Effect::Call { id, call });
        id
    }

    /// Has an act done on a process.
    pub(super) fn exec(&mut self, action: Action) -> EffectId {
        let id = self.new_effect(IntentKind::Act, action.to_string());
        self.out.effects.push(Effect::Exec { id, action });
        id
    }

    fn new_effect(&mut self, kind: IntentKind, what: String) -> EffectId {
        self.sent += 1;
        let id = EffectId(self.sent);
        self.emit(Fact::Sent { id: id.0, what: what.clone() });
        self.in_flight.insert(id, Intent { what, kind, at: self.now });
        id
    }

    /// The answer to a call, once.
    pub(super) fn take_answer(&mut self, id: EffectId) -> Option<(Timestamp, CallAnswer)> {
        self.answers.remove(&id)
    }

    /// The outcome of an act, once.
    pub(super) fn take_outcome(&mut self, id: EffectId) -> Option<ActionOutcome> {
        self.outcomes.remove(&id)
    }

    /// Records a fact.
    pub(super) fn emit(&mut self, fact: Fact) {
        self.out.events.push(Event { at: self.now, fact });
    }

    /// Records a line that somebody should look at.
    pub(super) fn warn(&mut self, text: String) {
        self.emit(Fact::Noted { weight: Weight::Warning, text });
    }

    /// Records a line.
    pub(super) fn note(&mut self, text: String) {
        self.emit(Fact::Noted { weight: Weight::Info, text });
    }

    /// How old a reading may be to pass a gate now.
    pub(super) fn fresh_within(&self) -> Duration {
        self.picture.fresh_within(self.policy.stale_after)
    }

    /// The lag a changefeed may have, given its lag before the step.
    pub(super) fn lag_limit(&self, before: Option<Duration>) -> Duration {
        let scaled = before.map_or(Duration::ZERO, |lag| lag.mul_f64(self.policy.lag_factor));
        self.policy.lag_limit.max(scaled)
    }

    /// A capture's address for people.
    pub(super) fn capture_label(&self, cluster: &ClusterId, id: &CaptureId) -> String {
        self.picture.address_of(cluster, id).map_or_else(|| id.short().to_owned(), |address| address.to_string())
    }

    /// A process at this address, asked after `since`, with another id than the old one.
    pub(super) fn new_process(&self, address: &Address, old: &CaptureId, since: Timestamp) -> Option<CaptureId> {
        let sweep = self.picture.cdc.as_ref()?;
        let node = sweep.node_at(address).filter(|node| node.at >= since)?;
        let id = node.status.as_ref().ok()?.id.as_ref()?;
        (id != old).then(|| id.clone())
    }

    /// The executor returned, or the new process was seen: `verify` counts from here.
    pub(super) fn note_return(&mut self) {
        let now = self.now;
        if let Some(visit) = &mut *self.visit
            && visit.returned_at.is_none()
        {
            visit.returned_at = Some(now);
            // Checkpoints read up to here are from before the restart was over: one that has moved since is proof.
            let rows = self.picture.groups.get(&visit.cluster).and_then(|group| group.changefeeds.last());
            for row in rows.into_iter().flatten() {
                if let Some(before) = visit.feeds.get_mut(&row.id) {
                    before.checkpoint = row.checkpoint.or(before.checkpoint);
                }
            }
        }
    }

    /// Whether anything may be sent.
    pub(super) fn may_act(&self) -> bool {
        self.state.may_act()
    }

    /// Deadlines of the running phase count from now.
    pub(super) const fn reset_spent(&mut self) {
        self.state.reset_spent = true;
    }

    // ---- watching ------------------------------------------------------------------------------------------------

    fn set_watch(&mut self) {
        let watch = self.wanted_watch();
        if self.watch.as_ref() != Some(&watch) && !self.state.is_over() {
            self.out.effects.push(Effect::Watch(watch.clone()));
            self.watch = Some(watch);
        }
    }

    fn wanted_watch(&self) -> Watch {
        let is_busy = self.active.is_some() || self.state.is_reading() || !self.obligations.is_empty();
        let is_moving = is_busy || self.picture.is_moving();
        let is_restart = self.active.as_ref().is_some_and(Active::is_around_restart);
        let pace = match (is_restart, is_moving) {
            (true, _) => Pace::Restart,
            (false, true) => Pace::Moving,
            (false, false) => Pace::Idle,
        };
        let step = self.plan.get(self.cursor.0);
        let is_capture = step.is_some_and(|step| matches!(step.target, Target::Capture { .. }));
        let target = self.visit.as_ref().filter(|_| is_capture).map(|visit| visit.old_id.clone());
        Watch { pace, target }
    }

    fn wake_at(&self) -> Option<Timestamp> {
        if self.state.is_over() {
            return None;
        }
        let pause = if self.active.is_some() { self.policy.poll_moving } else { self.policy.poll_idle };
        Some(self.now.plus(pause))
    }
}
