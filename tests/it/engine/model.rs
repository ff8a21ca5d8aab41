//! A cluster of a few captures and two `TiDB` servers as plain data: it answers the engine's effects, gives sweeps, and
//! watches over what must never happen.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tiroll::cluster::{
    Address, Architecture, CaptureId, Failure, FailureKind, FinishAnswer, Reading, StartAnswer, Timestamp, Version,
};
use tiroll::rollout::command::{Command, Instruction, Permission, Who};
use tiroll::rollout::durable::Durable;
use tiroll::rollout::effect::{Action, ActionOutcome, Call, CallAnswer, Component, Effect, EffectId, Input, Verb};
use tiroll::rollout::event::{Event, Fact};
use tiroll::rollout::policy::Policy;
use tiroll::rollout::view::{Mode, Name};
use tiroll::rollout::{Engine, Request, StepOutput};

use super::coordinator::Coordinator;

const EPOCH: i64 = 1_796_072_400_000;
/// How long an entry of an ended process stays listed.
const GHOST_MS: u64 = 5_000;

pub(crate) fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

#[derive(Clone, Debug)]
pub(crate) struct Capture {
    pub(crate) address: Address,
    pub(crate) generation: u32,
    pub(crate) version: &'static str,
    /// It was told to drain: liveness 1, which classic captures call stopping and new ones draining.
    pub(crate) stopping: bool,
    /// New architecture: it came to the end of its drain, liveness 2.
    pub(crate) is_finished: bool,
    /// Tables of the two changefeeds.
    pub(crate) tables: [u64; 2],
    /// Down until then.
    pub(crate) down_until: Option<u64>,
    /// When tables of others were given to it.
    given_at: u64,
    /// When it was last restarted.
    pub(crate) changed_at: u64,
    /// It runs the other architecture than the rest.
    pub(crate) is_other: bool,
    pub(crate) n: usize,
}

impl Capture {
    pub(crate) fn id(&self) -> CaptureId {
        CaptureId::new(format!("{:04}{:04}-7995-43c6-9372-51d69d484aff", self.n, self.generation))
    }

    /// Its liveness on the wire.
    pub(crate) const fn liveness(&self) -> i64 {
        self.stopping as i64 + self.is_finished as i64
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Tidb {
    pub(crate) address: Address,
    pub(crate) version: &'static str,
    pub(crate) start: i64,
    start_at: u64,
    pub(crate) down_until: Option<u64>,
}

/// What a test may spoil in the next sweep.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spoil {
    pub(crate) captures: bool,
    pub(crate) changefeeds: bool,
    pub(crate) target: bool,
    pub(crate) node: Option<usize>,
    pub(crate) tidb: bool,
}

/// The cluster, the engine that rolls it, and everything that is under way between them.
#[derive(Clone)]
pub(crate) struct Course {
    pub(crate) engine: Engine,
    pub(crate) now: u64,
    pub(crate) captures: Vec<Capture>,
    pub(crate) owner: usize,
    pub(crate) tidb: Vec<Tidb>,
    pub(crate) upgrading: bool,
    pub(crate) warning: bool,
    /// Tables of the second changefeed do not move.
    pub(crate) is_stuck: bool,
    /// What the coordinator of the new architecture has in memory.
    pub(crate) coordinator: Coordinator,
    /// Which `TiCDC` all captures are.
    pub(crate) architecture: Architecture,
    /// The next restart comes back as the other architecture.
    pub(crate) comes_back_as_other: bool,
    /// The second changefeed was paused by a person.
    pub(crate) is_second_paused: bool,
    /// The second changefeed has failed.
    pub(crate) has_second_failed: bool,
    /// The next restart comes back as this.
    pub(crate) comes_back_as: Option<&'static str>,
    /// The next call fails like this.
    pub(crate) next_call_fails: Option<FailureKind>,
    /// A call that fails takes hold all the same: its answer was lost.
    pub(crate) takes_hold: bool,
    /// The next drains are answered with this, and nothing is drained.
    pub(crate) count_is: Option<u64>,
    /// Health does not answer.
    pub(crate) is_unhealthy: bool,
    /// The checkpoint of the second changefeed stands where it was then.
    pub(crate) frozen_at: Option<u64>,
    /// The next call is answered only after this.
    pub(crate) next_answer_after: u64,
    /// Nobody owns until then: the owner crashed and its lease runs.
    pub(crate) no_owner_until: u64,
    /// Two captures are called owner.
    pub(crate) has_two_owners: bool,
    /// The next restarted process does not come back for this long.
    pub(crate) stays_down: u64,
    /// A person has confirmed something: then no `TiDB` may be left serving.
    has_confirmed: bool,
    /// What was skipped by name.
    left_out: BTreeSet<String>,
    /// What was typed for a forced restart that has not been ordered yet.
    forced: Option<String>,
    /// The program was killed at least once: then a replay of the tape alone gives another rollout.
    pub(crate) has_been_killed: bool,
    /// How long the machine slept: the monotonic clock stood still.
    slept_ms: i64,
    /// Whether everything that happens is kept.
    pub(crate) keeps_log: bool,
    /// How often each kind of debt is owed, by the events.
    owes: BTreeMap<&'static str, i32>,
    /// The next act is never heard of again, and nothing happens.
    pub(crate) loses_next_act: bool,
    pub(crate) ghosts: Vec<(usize, CaptureId, u64)>,
    inbox: Vec<(u64, Input)>,
    pub(crate) events: Vec<Event>,
    pub(crate) effects: Vec<Effect>,
    /// Mutating calls and acts so far.
    pub(crate) sent: usize,
    outstanding: BTreeSet<EffectId>,
    pub(crate) watched: Option<CaptureId>,
    /// When the engine last read the cluster.
    pub(crate) read_at: u64,
    pub(crate) owned_since: u64,
    /// What the changes told so far give, as the journal would keep them.
    pub(crate) kept: Durable,
    /// Every input with its time, for the replay.
    pub(crate) tape: Vec<(Timestamp, Input)>,
    pub(crate) outputs: Vec<StepOutput>,
}

pub(crate) fn request(is_auto: bool) -> Request {
    Request {
        target: version("v8.5.4"),
        is_watch: false,
        has_tidb: true,
        has_pd: false,
        executor: "sim",
        hand_over_passes: true,
        is_simulated: true,
        speed: 1.0,
        is_auto,
    }
}

impl Course {
    pub(crate) fn new(captures: usize, is_auto: bool) -> Self {
        let captures = (0..captures)
            .map(|n| Capture {
                address: Address::new("10.0.1.1", 8300 + u16::try_from(n).unwrap()),
                generation: 0,
                version: "v8.5.3",
                stopping: false,
                is_finished: false,
                tables: [6, 3],
                down_until: None,
                given_at: 0,
                changed_at: 0,
                is_other: false,
                n,
            })
            .collect();
        let tidb = (0..2)
            .map(|n| Tidb {
                address: Address::new("10.0.2.1", 10_080 + n),
                version: "v8.5.3",
                start: 1,
                start_at: 0,
                down_until: None,
            })
            .collect();
        Self {
            engine: Engine::new(request(is_auto), Policy::default()),
            now: 1_000,
            captures,
            owner: 0,
            tidb,
            upgrading: false,
            warning: false,
            is_stuck: false,
            coordinator: Coordinator::default(),
            architecture: Architecture::Classic,
            comes_back_as_other: false,
            is_second_paused: false,
            has_second_failed: false,
            comes_back_as: None,
            next_call_fails: None,
            takes_hold: false,
            count_is: None,
            is_unhealthy: false,
            frozen_at: None,
            next_answer_after: 100,
            no_owner_until: 0,
            has_two_owners: false,
            stays_down: 1_500,
            has_confirmed: false,
            left_out: BTreeSet::new(),
            forced: None,
            has_been_killed: false,
            slept_ms: 0,
            keeps_log: true,
            owes: BTreeMap::new(),
            loses_next_act: false,
            ghosts: Vec::new(),
            inbox: Vec::new(),
            events: Vec::new(),
            effects: Vec::new(),
            sent: 0,
            outstanding: BTreeSet::new(),
            watched: None,
            read_at: 0,
            owned_since: 0,
            kept: Durable::default(),
            tape: Vec::new(),
            outputs: Vec::new(),
        }
    }

    pub(crate) fn at(&self) -> Timestamp {
        Timestamp::new(EPOCH + i64::try_from(self.now).unwrap() + self.slept_ms, self.now)
    }

    pub(crate) fn mode(&self) -> Mode {
        self.engine.view().mode
    }

    pub(crate) fn asked(&self) -> Option<&'static str> {
        self.engine.view().question.map(|question| own(&question.reason))
    }

    /// Whether something that was sent is not answered yet.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.outstanding.is_empty()
    }

    /// What is due arrives.
    fn deliver(&mut self) {
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.inbox).into_iter().partition(|(at, _)| *at <= self.now);
        self.inbox = later;
        for (_, input) in due {
            self.tell(input);
        }
    }

    /// Tables are given to a capture, also to one that should get none.
    pub(crate) fn give(&mut self, n: usize) {
        for feed in 0..2 {
            for other in 0..self.captures.len() {
                let taken = if other == n { 0 } else { self.captures[other].tables[feed].min(2) };
                self.captures[other].tables[feed] -= taken;
                self.captures[n].tables[feed] += taken;
            }
        }
        self.captures[n].given_at = self.now;
    }

    /// Time passes and nothing is read: the machine slept.
    pub(crate) fn sleep(&mut self, ms: u64) -> usize {
        self.now += ms;
        self.live(ms);
        let before = self.sent;
        self.deliver();
        self.tell(Input::Tick);
        self.sent - before
    }

    /// The lid is closed for so long and opened again; says how much was sent before anything was read.
    pub(crate) fn close_lid(&mut self, ms: u64) -> usize {
        self.slept_ms += i64::try_from(ms).unwrap();
        // Long enough that something is due, and not so long that readings look old.
        self.now += 1_100;
        let before = self.sent;
        self.tell(Input::Tick);
        self.sent - before
    }

    /// Lets time pass: the cluster moves on, what is due arrives, and both sides are read.
    pub(crate) fn pass(&mut self, ms: u64, spoil: Spoil) {
        self.now += ms;
        self.live(ms);
        self.deliver();
        let sweep = self.cdc(spoil);
        self.read_at = self.now;
        self.tell(Input::Cdc(Arc::new(sweep)));
        let sweep = self.tidb_sweep(spoil);
        self.tell(Input::Tidb(Arc::new(sweep)));
    }

    /// The program is killed and started again: what was not written down is gone, answers under way are lost.
    pub(crate) fn kill(&mut self) {
        let line = serde_json::to_string(&self.kept).unwrap();
        let durable = serde_json::from_str(&line).unwrap();
        self.engine = Engine::resume(request(true), Policy::default(), durable, self.at());
        self.outstanding.clear();
        self.inbox.clear();
        self.watched = None;
        self.has_been_killed = true;
        self.pass(250, Spoil::default());
    }

    /// Passes time in steps until it is so; a quarter of an hour is too long for anything.
    pub(crate) fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..3_600 {
            if is_so(self) {
                return;
            }
            self.pass(250, Spoil::default());
        }
        let view = self.engine.view();
        panic!("{what} never came to be: {:?} {:?} {:?}", view.mode, view.current(), view.question);
    }

    /// Gives a command; one that is given by name with the name that is wanted for it.
    pub(crate) fn say(&mut self, command: Command) -> Permission {
        let named = self.engine.view().by_name.into_iter().find(|named| named.command == command);
        let instruction = match named.and_then(|named| named.typed.into_iter().next()) {
            Some(typed) => Instruction::by_name(command, typed, "the test wants it"),
            None => command.into(),
        };
        self.instruct(&instruction)
    }

    pub(crate) fn instruct(&mut self, instruction: &Instruction) -> Permission {
        let who = Who::new("test");
        let may_be_left_out = self.engine.view().current().map(|(step, _)| step.target.clone());
        let (permission, out) = self.engine.command(self.at(), &who, instruction.clone());
        if permission.is_ok() {
            match (instruction.command, &instruction.consent) {
                (Command::Confirm, _) => self.has_confirmed = true,
                (Command::Skip, _) => self.left_out.extend(may_be_left_out),
                (Command::Force, Some(consent)) => self.forced = Some(consent.typed.clone()),
                _ => {}
            }
        }
        if self.keeps_log {
            self.tape.push((self.at(), Input::Command { who, instruction: instruction.clone() }));
            self.outputs.push(out.clone());
        }
        self.take(out);
        permission
    }

    /// Whether a person left this node out by name.
    pub(crate) fn is_left_out(&self, address: &Address) -> bool {
        self.left_out.contains(&address.to_string())
    }

    fn tell(&mut self, input: Input) {
        if let Input::Answer { id, .. } | Input::Outcome { id, .. } = &input {
            self.outstanding.remove(id);
        }
        let at = self.at();
        if self.keeps_log {
            self.tape.push((at, input.clone()));
        }
        let out = self.engine.step(at, input);
        if self.keeps_log {
            self.outputs.push(out.clone());
        }
        self.take(out);
    }

    fn take(&mut self, out: StepOutput) {
        self.keep(&out);
        for event in &out.events {
            match &event.fact {
                Fact::ObligationIncurred(owed) => *self.owes.entry(own(&owed.kind)).or_default() += 1,
                Fact::ObligationPaid { owed, .. } | Fact::ObligationWaived { owed, .. } => {
                    *self.owes.entry(own(&owed.kind)).or_default() -= 1;
                }
                _ => {}
            }
        }
        if self.keeps_log {
            self.events.extend(out.events);
            self.effects.extend(out.effects.iter().cloned());
        }
        for effect in out.effects {
            match effect {
                Effect::Watch(watch) => self.watched = watch.target,
                Effect::Call { id, call } => {
                    assert!(self.outstanding.is_empty(), "{call}: another call is in flight");
                    self.sent += 1;
                    self.outstanding.insert(id);
                    self.watch_call(&call);
                    self.answer(id, &call);
                }
                Effect::Exec { id, action } => {
                    assert!(self.outstanding.is_empty(), "{action}: another call is in flight");
                    assert!(self.does_owe("start"), "an act nobody owes");
                    self.sent += 1;
                    self.outstanding.insert(id);
                    self.act(id, &action);
                }
            }
        }
    }

    /// Keeps what changed as a journal would, and holds the engine to it: replayed it is the state of the live one, and
    /// whatever is to be done now stands in it already.
    fn keep(&mut self, out: &StepOutput) {
        for change in &out.changes {
            // Through the text of it, but for the long explorations.
            let read = if self.keeps_log {
                serde_json::from_str(&serde_json::to_string(change).unwrap()).unwrap()
            } else {
                change.clone()
            };
            self.kept.apply(read);
        }
        if self.keeps_log || !out.changes.is_empty() {
            let live = self.engine.durable();
            assert!(self.kept == live, "replayed:\n{:#?}\nlive:\n{live:#?}", self.kept);
        }
        for effect in &out.effects {
            let id = match effect {
                Effect::Call { id, .. } | Effect::Exec { id, .. } => id,
                Effect::Watch(_) => continue,
            };
            assert!(self.kept.intents.contains_key(id), "{effect:?} was not written down before");
        }
    }

    fn does_owe(&self, kind: &str) -> bool {
        self.owes.get(kind).is_some_and(|count| *count > 0)
    }

    /// What must be changed back is owed before it is changed, and no drain or resign stands beside a stopping capture.
    fn watch_call(&self, call: &Call) {
        let target = match call {
            Call::Drain { capture, .. } => {
                assert!(self.does_owe("restart"), "a drain nobody owes");
                capture.clone()
            }
            Call::Resign { .. } => self.captures[self.owner].id(),
            Call::UpgradeStart => return assert!(self.does_owe("finish"), "a start nobody owes"),
            Call::UpgradeFinish => return,
        };
        // One of the other architecture is no member, whatever it says of itself.
        let is_beside = |c: &Capture| c.id() != target && c.stopping && c.down_until.is_none() && !c.is_other;
        let beside = self.captures.iter().any(is_beside);
        assert!(!beside || self.is_news(), "{call}: beside a stopping capture");
    }

    fn answer(&mut self, id: EffectId, call: &Call) {
        let takes_hold = std::mem::take(&mut self.takes_hold);
        let fails = self.next_call_fails.take().map(|kind| Failure::local(kind, "as the test wants it"));
        if takes_hold && fails.is_some() {
            match call {
                Call::Drain { capture, .. } => drop(self.drain(capture)),
                Call::Resign { .. } => self.resign(),
                Call::UpgradeStart => {}
                Call::UpgradeFinish => self.upgrading = false,
            }
        }
        let answer = match call {
            Call::Drain { capture, .. } => CallAnswer::Drain(fails.map_or_else(|| self.drain(capture), Err)),
            Call::Resign { .. } => CallAnswer::Resign(fails.map_or_else(
                || {
                    self.resign();
                    Ok(())
                },
                Err,
            )),
            Call::UpgradeStart => {
                let before = std::mem::replace(&mut self.upgrading, true);
                let said = if before { StartAnswer::Duplicated } else { StartAnswer::Success };
                CallAnswer::Start(fails.map_or(Ok(said), Err))
            }
            Call::UpgradeFinish => {
                let before = fails.is_none() && std::mem::replace(&mut self.upgrading, false);
                let said = if before { FinishAnswer::Success } else { FinishAnswer::Duplicated };
                CallAnswer::Finish(fails.map_or(Ok(said), Err))
            }
        };
        let after = std::mem::replace(&mut self.next_answer_after, 100);
        self.inbox.push((self.now + after, Input::Answer { id, sent_at: self.at(), answer }));
    }

    fn drain(&mut self, id: &CaptureId) -> Reading<u64> {
        if let Some(count) = self.count_is {
            return Ok(count);
        }
        if self.architecture == Architecture::New {
            return self.drain_new(id);
        }
        if self.now < self.no_owner_until {
            return Err(Failure::local(FailureKind::NoOwner, "nobody owns"));
        }
        let able = self.captures.iter().filter(|c| c.down_until.is_none()).count();
        let Some(n) = self.captures.iter().position(|c| &c.id() == id && c.down_until.is_none()) else {
            return Err(Failure::local(FailureKind::NoSuchCapture, "gone"));
        };
        if able < 2 {
            return Err(Failure::local(FailureKind::OnlyOneCapture, "alone"));
        }
        if n == self.owner {
            return Err(Failure::local(FailureKind::CannotDrainOwner, "owner"));
        }
        // The count leaves out a changefeed that is not normal (contract section 3.1).
        let capture = &mut self.captures[n];
        let count = capture.tables[0] + if self.warning { 0 } else { capture.tables[1] };
        capture.stopping |= count > 0;
        Ok(count)
    }

    /// Whether the cluster changed since the engine last read it: then it could not know better.
    fn is_news(&self) -> bool {
        let view = self.engine.view();
        let read: Vec<_> =
            view.groups.iter().flat_map(|g| &g.captures).map(|c| (c.id.clone(), c.liveness.raw)).collect();
        self.captures.iter().any(|c| !read.contains(&(c.id(), Some(c.liveness()))))
    }

    pub(crate) fn resign(&mut self) {
        let count = self.captures.len();
        let next = (1..=count).map(|step| (self.owner + step) % count);
        let able = |n: &usize| !self.captures[*n].stopping && self.captures[*n].down_until.is_none();
        if let Some(next) = next.clone().find(able) {
            self.owner = next;
            self.owned_since = self.now;
            self.coordinator.forget();
        }
    }

    fn act(&mut self, id: EffectId, action: &Action) {
        if std::mem::take(&mut self.loses_next_act) {
            self.outstanding.remove(&id);
            return;
        }
        let outcome = ActionOutcome::Returned { detail: "done".to_owned() };
        if action.verb == Verb::Start {
            // What runs is not started again: the act does nothing there.
            let n = self.captures.iter().position(|c| c.address == action.address);
            if let Some(n) = n.filter(|n| self.captures[*n].down_until.is_some()) {
                self.captures[n].down_until = Some(self.now + 1_500);
            }
            self.inbox.push((self.now + 1_000, Input::Outcome { id, outcome }));
            return;
        }
        let back = self.comes_back_as.take();
        let wanted = action.version.as_ref().map(|v| if v.as_str() == "v8.5.4" { "v8.5.4" } else { "v8.5.3" });
        match action.component {
            Component::Ticdc => {
                let n = self.captures.iter().position(|c| c.address == action.address).expect("a known address");
                let c = &self.captures[n];
                // THE promise: nothing that still carries tables, and no owner, is stopped.
                // Tables that somebody gave it since it was last read are nobody's to know.
                let is_unread = c.given_at >= self.read_at;
                let is_ordered = self.forced.take().is_some_and(|typed| typed.starts_with(&c.address.to_string()));
                assert!(!action.forced || is_ordered, "{action}: nobody said so");
                assert!(
                    action.forced
                        || c.down_until.is_some()
                        || c.tables == [0, 0]
                        || is_unread
                        || (self.is_second_paused && c.tables[0] == 0),
                    "{action}: it carries {:?}",
                    c.tables
                );
                let is_new_owner = self.owned_since >= self.read_at;
                assert!(c.down_until.is_some() || n != self.owner || is_new_owner, "{action}: it owns");
                let keeps = c.version;
                self.restart(n, back.or(wanted).unwrap_or(keeps));
            }
            Component::Tidb => {
                let at = self.now + 1_500;
                let others = self.tidb.iter().any(|t| t.address != action.address && t.down_until.is_none());
                let is_news = self.tidb.iter().any(|t| t.start_at >= self.read_at);
                assert!(others || self.has_confirmed || is_news, "{action}: no other serves");
                let tidb = self.tidb.iter_mut().find(|t| t.address == action.address).expect("a known address");
                tidb.version = back.or(wanted).unwrap_or(tidb.version);
                tidb.start += 60;
                tidb.start_at = self.now;
                tidb.down_until = Some(at);
            }
        }
        self.inbox.push((self.now + 1_000, Input::Outcome { id, outcome }));
    }

    /// A process ends and comes back; its tables are given to others when its entry leaves.
    pub(crate) fn restart(&mut self, n: usize, version: &'static str) {
        let id = self.captures[n].id();
        self.ghosts.push((n, id, self.now + GHOST_MS));
        let orphans = std::mem::take(&mut self.captures[n].tables);
        let capture = &mut self.captures[n];
        capture.generation += 1;
        capture.version = version;
        capture.stopping = false;
        capture.is_finished = false;
        capture.is_other = std::mem::take(&mut self.comes_back_as_other);
        capture.down_until = Some(self.now + std::mem::replace(&mut self.stays_down, 1_500));
        capture.changed_at = self.now;
        if self.owner == n {
            self.resign();
        }
        // New and orphaned tables never go to a stopping capture (contract section 3.1).
        let able = self.captures.iter().position(|c| c.n != n && c.down_until.is_none() && !c.stopping);
        let heir = able.unwrap_or(n);
        if orphans != [0, 0] {
            self.captures[heir].given_at = self.now;
        }
        for (tables, orphans) in self.captures[heir].tables.iter_mut().zip(orphans) {
            *tables += orphans;
        }
    }

    /// Somebody else restarts a `TiDB` server.
    pub(crate) fn restart_tidb(&mut self, n: usize, ms: u64) {
        let (now, tidb) = (self.now, &mut self.tidb[n]);
        tidb.start += 60;
        tidb.start_at = now;
        tidb.down_until = Some(now + ms);
    }

    fn live(&mut self, ms: u64) {
        self.ghosts.retain(|(_, _, until)| *until > self.now);
        for capture in &mut self.captures {
            capture.down_until = capture.down_until.filter(|until| *until > self.now);
        }
        for tidb in &mut self.tidb {
            tidb.down_until = tidb.down_until.filter(|until| *until > self.now);
        }
        self.live_coordinator();
        for n in 0..self.captures.len() {
            let is_lost = self.architecture == Architecture::New && !self.is_in_session(n);
            let to = self.captures.iter().position(|c| c.n != n && c.down_until.is_none() && !c.stopping);
            if let Some(to) =
                to.filter(|_| self.captures[n].stopping && self.captures[n].down_until.is_none() && !is_lost)
            {
                for feed in 0..2 {
                    let is_stuck = feed == 1 && (self.is_stuck || self.is_second_paused);
                    let moves = if is_stuck { 0 } else { (ms / 250).min(self.captures[n].tables[feed]) };
                    self.captures[n].tables[feed] -= moves;
                    self.captures[to].tables[feed] += moves;
                }
            }
        }
    }
}

/// A name that the engine gave: its own are never made at run time.
fn own(name: &Name) -> &'static str {
    match name {
        Cow::Borrowed(name) => name,
        Cow::Owned(name) => panic!("{name} was made at run time"),
    }
}
