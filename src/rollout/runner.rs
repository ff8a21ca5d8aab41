//! Going through the plan: choosing the next phase, opening a node's visit, running the machine, taking its word.

use std::time::Duration;

use super::control::close_phase;
use super::drain_record::DrainRecord;
use super::engine::{Engine, FeedBefore, Visit};
use super::event::Fact;
use super::obligation::Debt;
use super::phase::{Flow, Machine, Turn, ask, resign, restart, settle, tidb, upgrading, verify};
use super::plan::{Phase, Step, Target};
use super::view::{Outcome, PhaseKind, PhaseState, Question, StepKind};
use crate::cluster::{Address, ClusterId};

/// The reason of the question about a node that cannot be read before its step.
const NODE_UNREAD: &str = "node_unread";
/// The reason of the question asked when every step is over and yet something is not as it should be.
const NOT_ALL_THERE: &str = "not_all_there";

/// The phase that runs.
#[derive(Clone, Debug)]
pub struct Active {
    /// Its machine.
    pub machine: Machine,
    /// How long it has run, pauses left out.
    pub spent: Duration,
}

impl Active {
    /// Whether it asks for a drain of the visited capture.
    pub const fn is_drain_of_visit(&self) -> bool {
        matches!(self.machine, Machine::Drain(_) | Machine::Restart(_))
    }

    /// Whether it restarts a process or proves that one came back.
    pub const fn proves_restart(&self) -> bool {
        matches!(
            self.machine,
            Machine::Restart(_) | Machine::Verify(_) | Machine::TidbRestart(_) | Machine::TidbVerify(_)
        )
    }

    /// Whether the cluster should be read often.
    pub const fn is_around_restart(&self) -> bool {
        match &self.machine {
            Machine::Restart(restart) => restart.is_acting(),
            Machine::TidbRestart(restart) => restart.is_acting(),
            Machine::Verify(_) | Machine::TidbVerify(_) | Machine::Enter(_) | Machine::Leave(_) => true,
            Machine::Resign(_) | Machine::Drain(_) | Machine::Settle(_) | Machine::HandOver(_) => false,
        }
    }
}

impl Engine {
    /// Goes on as far as evidence and permission reach.
    pub(super) fn advance(&mut self) {
        if self.state.is_reading() {
            self.read();
        }
        // Bounded by the phases there are: each turn ends one, begins one, or stops.
        for _ in 0..=4 * self.plan.iter().map(|step| step.phases.len()).sum::<usize>() + 4 {
            if !self.state.is_going() {
                break;
            }
            if self.active.is_none() && !self.begin_next() {
                break;
            }
            if !self.run_active() {
                break;
            }
        }
        self.offer();
    }

    /// Begins the next phase; says whether one runs now.
    fn begin_next(&mut self) -> bool {
        let next = self
            .plan
            .iter()
            .enumerate()
            .find_map(|(s, step)| step.phases.iter().position(|phase| !phase.state.is_over()).map(|p| (s, p)));
        let Some((step, phase)) = next else {
            if self.is_paying() {
                self.paid_so_far();
            } else if self.is_all_there() {
                let to = self.request.target.clone();
                self.end(Outcome::Done, 0, format!("Every server of the plan is proven to run {to}."));
            }
            return false;
        };
        self.cursor = (step, phase);
        self.reconsider(step);
        if !self.state.may_begin() {
            self.opening_since = None;
            return false;
        }
        // One mutating call in flight for each cluster: a phase may end while its last request is still under way.
        if self.in_flight.values().any(|is_act| !is_act) {
            return false;
        }
        if !self.plan.get(step).is_some_and(|step| step.is_open) {
            if let Some(why) = self.why_needless(step) {
                self.skip_step(step, &why);
                return self.begin_next();
            }
            if !self.open_step(step) {
                self.wait_to_open(step);
                return false;
            }
            if let Some(step) = self.plan.get_mut(step) {
                step.is_open = true;
            }
        }
        self.opening_since = None;
        let (step, phase) = self.cursor;
        let Some((machine, target, kind)) = self.machine_for(step, phase) else { return false };
        self.state.use_grant();
        let now = self.now;
        if let Some(phase) = self.phase_mut(step, phase) {
            phase.state = PhaseState::Running;
            phase.started_at = Some(now);
            phase.note.clear();
        }
        self.emit(Fact::PhaseStarted { step, target, phase: kind });
        self.active = Some(Active { machine, spent: Duration::ZERO });
        true
    }

    /// Whether nothing is left to do: every server of the plan still says so, and nothing is owed. What somebody else
    /// did meanwhile must not end as done.
    fn is_all_there(&mut self) -> bool {
        let to = self.request.target.clone();
        let mut behind = Vec::new();
        for step in &self.plan {
            let version = match &step.target {
                Target::Capture { address, .. } => self
                    .picture
                    .cdc
                    .as_ref()
                    .and_then(|sweep| sweep.node_at(address)?.status.as_ref().ok()?.version.clone()),
                Target::Tidb(address) => {
                    self.picture.tidb_versions.get(address).and_then(|version| version.known().cloned())
                }
                Target::Cluster(_) => continue,
            };
            match version {
                Some(version) if version.is_same_release(&to) => {}
                Some(version) => behind.push(format!("{} runs {version}", step.target.label())),
                None => behind.push(format!("{} does not answer", step.target.label())),
            }
        }
        behind.extend(self.obligations.iter().map(|obligation| obligation.view().what));
        if behind.is_empty() {
            self.opening_since = None;
            if self.state.question().is_some_and(|question| question.reason == NOT_ALL_THERE) {
                self.state.withdraw();
            }
            return true;
        }
        let since = *self.opening_since.get_or_insert(self.now);
        if self.state.question().is_none() && self.now.since(since) >= self.policy.unknown_asks {
            let flow = ask(
                NOT_ALL_THERE,
                format!("Every step is over, and yet: {}.", behind.join("; ")),
                "The rollout is not called done while that is so.",
                "See to what is named here; it ends by itself when it is mended.",
                &[(super::command::Command::Retry, "look again")],
            );
            if let Flow::Ask(question) = flow {
                self.ask(*question);
            }
        }
        false
    }

    /// Why a step that has not begun need not be taken any more.
    fn why_needless(&self, step: usize) -> Option<String> {
        let step = self.plan.get(step)?;
        let to = &self.request.target;
        match (&step.target, step.kind) {
            (Target::Capture { address, .. }, StepKind::Recover) => {
                self.drained_at(address).is_none().then(|| "nothing is owed there any more".to_owned())
            }
            (Target::Capture { cluster, address }, StepKind::Capture) if self.is_fresh() => {
                let sweep = self.picture.cdc.as_ref()?;
                let status = sweep.node_at(address)?.status.as_ref().ok()?;
                let version = status.version.as_ref().filter(|version| version.is_same_release(to))?;
                let list = sweep.group(cluster)?.captures.as_ref().ok()?;
                let is_listed = list.iter().any(|entry| Some(&entry.id) == status.id.as_ref());
                (is_listed && status.liveness.meaning == Some(crate::cluster::Liveness::Alive))
                    .then(|| format!("already {version}"))
            }
            (Target::Tidb(address), _) => {
                let sweep = self.picture.tidb.as_ref()?;
                let server = sweep.servers.iter().find(|server| &server.address == address)?;
                let version = &server.info.as_ref().ok().filter(|info| info.version.is_same_release(to))?.version;
                let is_fresh = self.now.since(sweep.begun) <= self.policy.stale_after;
                (is_fresh && server.status.is_ok()).then(|| format!("already {version}"))
            }
            _ => None,
        }
    }

    fn skip_step(&mut self, step: usize, why: &str) {
        let Some(step) = self.plan.get_mut(step) else { return };
        for phase in step.phases.iter_mut().filter(|phase| !phase.state.is_over()) {
            phase.state = PhaseState::Skipped;
        }
        why.clone_into(&mut step.note);
        let label = step.target.label();
        self.note(format!("{label}: {why}"));
    }

    /// The drained capture that is owed a restart at this address.
    fn drained_at(&self, at: &Address) -> Option<&crate::cluster::CaptureId> {
        self.obligations.iter().find_map(|obligation| match &obligation.debt {
            Debt::Drain { address, capture, .. } if address == at => Some(capture),
            Debt::Drain { .. } | Debt::Start { .. } | Debt::Finish => None,
        })
    }

    /// A node that could not be read when its step was to begin, and a person was asked about, may answer by now.
    fn reconsider(&mut self, step: usize) {
        let is_about_opening = self.state.question().is_some_and(|question| question.reason == NODE_UNREAD);
        if is_about_opening && self.why_closed(step).is_none() {
            self.state.withdraw();
            self.set_note(step, PhaseState::Waiting, String::new());
        }
    }

    /// The step's node cannot be read: says so, and asks a person when that lasts.
    fn wait_to_open(&mut self, step: usize) {
        let Some(why) = self.why_closed(step) else { return };
        let since = *self.opening_since.get_or_insert(self.now);
        self.set_note(step, PhaseState::Waiting, format!("waiting: {why}"));
        if self.now.since(since) < self.policy.unknown_asks {
            return;
        }
        let flow = ask(
            NODE_UNREAD,
            format!("The next step cannot begin: {why}."),
            "A node is only touched when it, its owner and its changefeeds have just been read.",
            "See to the node; the step begins by itself when it answers.",
            &[(super::command::Command::Retry, "look again")],
        );
        if let Flow::Ask(question) = flow {
            self.ask(*question);
        }
    }

    fn set_note(&mut self, step: usize, state: PhaseState, note: String) {
        let phase = self.cursor.1;
        if let Some(phase) = self.phase_mut(step, phase) {
            phase.state = state;
            phase.note = note;
        }
    }

    /// Why a step on this node may not begin now.
    fn why_closed(&self, step: usize) -> Option<String> {
        let step = self.plan.get(step)?;
        let Target::Capture { cluster, address } = &step.target else { return None };
        let Some(sweep) = &self.picture.cdc else { return Some("TiCDC was not read".to_owned()) };
        match sweep.node_at(address).map(|node| &node.status) {
            Some(Ok(_)) => {}
            Some(Err(why)) => return Some(format!("{address} {why}")),
            None => return Some(format!("{address} was not asked")),
        }
        if self.picture.owner(cluster).is_none() {
            return Some("TiCDC names no owner".to_owned());
        }
        if !self.is_fresh() {
            return Some("the last reading of TiCDC is too old".to_owned());
        }
        let Some(visit) = self.look_at(cluster, address, step.kind) else {
            return Some(format!("the id, the version or the changefeeds of {address} could not be read"));
        };
        if step.kind == StepKind::Recover && self.drained_at(address).is_some_and(|drained| drained != &visit.old_id) {
            return Some(format!(
                "a new process answers at {address}, and the old id is not gone or it is not alive yet"
            ));
        }
        None
    }

    fn phase_mut(&mut self, step: usize, phase: usize) -> Option<&mut Phase> {
        self.plan.get_mut(step)?.phases.get_mut(phase)
    }

    /// Looks at a node afresh before its step; says whether the step may begin.
    fn open_step(&mut self, step: usize) -> bool {
        let Some(Step { kind, target, .. }) = self.plan.get(step) else { return false };
        let kind = *kind;
        let Target::Capture { cluster, address } = target.clone() else {
            self.visit = None;
            return true;
        };
        if self.why_closed(step).is_some() {
            return false;
        }
        let Some(visit) = self.look_at(&cluster, &address, kind) else { return false };
        let owner = self.picture.owner(&cluster).map(|(id, _)| id.clone());
        let Some(owner) = owner else { return false };
        let is_owner = owner == visit.old_id;
        let later = self.plan.iter().enumerate().skip(step + 1).rfind(|(_, other)| {
            let is_same = matches!(&other.target, Target::Capture { cluster: c, .. } if c == &cluster);
            is_same && other.kind == StepKind::Capture && other.phases.iter().any(|phase| !phase.state.is_over())
        });
        if is_owner
            && kind == StepKind::Capture
            && let Some((last, _)) = later
        {
            self.note(format!("{address} owns now; it goes last"));
            let moved = self.plan.remove(step);
            self.plan.insert(last, moved);
            return self.open_step(step);
        }
        if let Some(step) = self.plan.get_mut(step) {
            let has_resign = step.phases.first().is_some_and(|phase| phase.kind == PhaseKind::Resign);
            match (is_owner, has_resign) {
                (true, false) => step.phases.insert(0, Phase::new(PhaseKind::Resign)),
                (false, true) => {
                    step.phases.remove(0);
                }
                _ => {}
            }
            if is_owner {
                "owner, last".clone_into(&mut step.note);
            } else if step.kind == StepKind::Capture {
                step.note.clear();
            }
        }
        self.drain = None;
        self.visit = Some(visit);
        true
    }

    fn look_at(&self, cluster: &ClusterId, address: &Address, kind: StepKind) -> Option<Visit> {
        let sweep = self.picture.cdc.as_ref()?;
        let status = sweep.node_at(address)?.status.as_ref().ok()?;
        let group = self.picture.groups.get(cluster)?;
        let rows = group.changefeeds.known()?;
        let feeds = rows
            .iter()
            .map(|row| {
                let before = FeedBefore { state: row.state.clone(), checkpoint: row.checkpoint, lag: group.lag(row) };
                (row.id.clone(), before)
            })
            .collect();
        Some(Visit {
            cluster: cluster.clone(),
            old_id: status.id.clone()?,
            address: address.clone(),
            old_version: status.version.clone()?,
            old_pid: status.pid,
            to: (kind == StepKind::Capture).then(|| self.request.target.clone()),
            feeds,
            owner_refusals: 0,
            returned_at: None,
        })
    }

    fn machine_for(&mut self, step: usize, phase: usize) -> Option<(Machine, String, PhaseKind)> {
        let at = self.plan.get(step)?;
        let kind = at.phases.get(phase)?.kind;
        let label = at.target.label();
        let now = self.now;
        let returned = self.visit.as_ref().and_then(|visit| visit.returned_at).unwrap_or(now);
        let to = self.request.target.clone();
        let machine = match (&at.target, kind) {
            (Target::Tidb(address), PhaseKind::Restart) => {
                Machine::TidbRestart(tidb::TidbRestart::new(address.clone(), to))
            }
            (Target::Tidb(address), _) => Machine::TidbVerify(tidb::TidbVerify::new(address.clone(), to, now)),
            (_, PhaseKind::Resign) => Machine::Resign(resign::Resign::default()),
            (_, PhaseKind::Drain) => {
                if let Some(visit) = &self.visit {
                    let is_same = self.drain.as_ref().is_some_and(|record| record.capture == visit.old_id);
                    if !is_same {
                        self.drain = Some(DrainRecord::new(visit.old_id.clone(), visit.address.to_string(), now));
                    }
                }
                Machine::Drain(Box::default())
            }
            (_, PhaseKind::Restart) => Machine::Restart(restart::Restart::new(now)),
            (_, PhaseKind::Verify) => Machine::Verify(verify::Verify::new(returned)),
            (_, PhaseKind::Settle) => Machine::Settle(settle::Settle::new(now)),
            (_, PhaseKind::HandOver) => Machine::HandOver(upgrading::HandOver::default()),
            (_, PhaseKind::EnterUpgrading) => Machine::Enter(upgrading::Enter::default()),
            (_, PhaseKind::LeaveUpgrading) => Machine::Leave(upgrading::Leave::new(now, self.is_paying())),
        };
        Some((machine, label, kind))
    }

    /// Lets the machine look; says whether something came to an end, so that more may follow.
    fn run_active(&mut self) -> bool {
        let Some(mut active) = self.active.take() else { return false };
        let turn = Turn { may_act: self.state.may_act(), spent: active.spent };
        let flow = match &mut active.machine {
            Machine::Resign(machine) => machine.run(self, turn),
            Machine::Drain(machine) => machine.run(self, turn),
            Machine::Restart(machine) => machine.run(self, turn),
            Machine::Verify(machine) => machine.run(self, turn),
            Machine::Settle(machine) => machine.run(self, turn),
            Machine::TidbRestart(machine) => machine.run(self, turn),
            Machine::TidbVerify(machine) => machine.run(self, turn),
            Machine::HandOver(machine) => machine.run(self),
            Machine::Enter(machine) => machine.run(self, turn),
            Machine::Leave(machine) => machine.run(self, turn),
        };
        if std::mem::take(&mut self.state.reset_spent) {
            active.spent = Duration::ZERO;
        }
        let (step, phase) = self.cursor;
        match flow {
            Flow::Stay(note) => {
                if let Some(phase) = self.phase_mut(step, phase) {
                    phase.note = note;
                }
                self.active = Some(active);
                false
            }
            Flow::Done(evidence) => {
                self.active = Some(active);
                self.state.withdraw();
                self.end_active_as(PhaseState::Done, &evidence);
                true
            }
            Flow::Ask(question) => {
                self.active = Some(active);
                self.ask(*question);
                false
            }
            Flow::Back(to, why) => {
                self.active = None;
                self.go_back(to, &why);
                true
            }
        }
    }

    /// Ends the running phase in this way and says so.
    pub(super) fn end_active_as(&mut self, state: PhaseState, evidence: &str) {
        if self.active.take().is_none() {
            return;
        }
        let now = self.now;
        let (step, phase) = self.cursor;
        let Some(at) = self.plan.get_mut(step) else { return };
        let (target, step_kind) = (at.target.label(), at.kind);
        let Some(phase) = at.phases.get_mut(phase) else { return };
        let took = phase.started_at.map_or(Duration::ZERO, |since| now.since(since));
        let kind = phase.kind;
        close_phase(phase, state, evidence, now);
        if state == PhaseState::Done {
            // What the servers have shown needs no word of the executor any more.
            self.in_flight.retain(|_, is_act| !*is_act);
            self.took.push_back((step_kind, kind, took));
        }
        self.emit(Fact::PhaseEnded {
            step,
            target,
            phase: kind,
            outcome: if state == PhaseState::Done { "done" } else { "aborted" },
            evidence: evidence.to_owned(),
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        });
    }

    fn ask(&mut self, mut question: Question) {
        let (step, phase) = self.cursor;
        if let Some(at) = self.plan.get_mut(step) {
            question.target = at.target.label();
            if let Some(phase) = at.phases.get_mut(phase) {
                if !phase.state.is_over() {
                    phase.state = PhaseState::Asking;
                    phase.note.clone_from(&question.what);
                }
                question.step = format!("{}/{}", kind_name(at.kind), phase.kind.name());
            }
        }
        if self.state.ask(question.clone()) {
            self.emit(Fact::Paused(question));
        }
    }

    /// An earlier phase of the step is done again, said aloud.
    fn go_back(&mut self, to: PhaseKind, why: &str) {
        let (step, from) = self.cursor;
        let Some(at) = self.plan.get_mut(step) else { return };
        let index = at.phases.iter().position(|phase| phase.kind == to).unwrap_or_else(|| {
            at.phases.insert(0, Phase::new(to));
            0
        });
        for phase in at.phases.iter_mut().skip(index) {
            *phase = Phase::new(phase.kind);
        }
        let label = at.target.label();
        self.warn(format!("{label}: back to {}: {why}", to.word()));
        self.cursor = (step, index.min(from));
        self.state.withdraw();
        // The person who granted this phase granted what it takes: going back needs no second word.
        self.state.grant();
    }

    /// Tries the running phase again.
    pub(super) fn retry_active(&mut self) {
        let now = self.now;
        let fresh = self.reread_visit();
        let Some(active) = &mut self.active else { return };
        active.spent = Duration::ZERO;
        match &mut active.machine {
            Machine::Resign(machine) => machine.retry(),
            Machine::Drain(machine) => machine.retry(),
            Machine::Restart(machine) => machine.retry(now),
            Machine::Verify(machine) => machine.retry(),
            Machine::Settle(machine) => machine.retry(),
            Machine::TidbRestart(machine) => machine.retry(),
            Machine::Enter(machine) => machine.retry(),
            Machine::Leave(machine) => machine.retry(now),
            Machine::TidbVerify(_) | Machine::HandOver(_) => {}
        }
        if let Some(visit) = fresh {
            self.note(format!("{} is {} now", visit.address, visit.old_id.short()));
            self.drain = Some(DrainRecord::new(visit.old_id.clone(), visit.address.to_string(), now));
            self.visit = Some(visit);
        }
    }

    /// Where the capture was restarted by somebody else before its drain ended, its new id is what is drained.
    fn reread_visit(&self) -> Option<Visit> {
        if !matches!(self.active.as_ref()?.machine, Machine::Resign(_) | Machine::Drain(_)) {
            return None;
        }
        let visit = self.visit.as_ref()?;
        let kind = self.plan.get(self.cursor.0)?.kind;
        let found = self.look_at(&visit.cluster, &visit.address, kind)?;
        (found.old_id != visit.old_id).then_some(found)
    }

    /// Gives the running phase as much time again.
    pub(super) fn extend_active(&mut self) {
        let Some(active) = &mut self.active else { return };
        if let Machine::Drain(machine) = &mut active.machine {
            machine.extend(active.spent);
        } else {
            active.spent = Duration::ZERO;
        }
    }

    /// A person vouches for what the running phase cannot see.
    pub(super) fn confirm_active(&mut self) {
        match self.active.as_mut().map(|active| &mut active.machine) {
            Some(Machine::HandOver(machine)) => machine.confirm(),
            Some(Machine::TidbRestart(machine)) => machine.confirm(),
            _ => {}
        }
    }
}

/// The step's kind in JSON.
const fn kind_name(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Capture => "capture",
        StepKind::HandOver => "hand_over",
        StepKind::EnterUpgrading => "enter_upgrading",
        StepKind::Tidb => "tidb",
        StepKind::LeaveUpgrading => "leave_upgrading",
        StepKind::Recover => "recover",
    }
}
