//! Going through the plan: choosing the next phase, opening a node's visit, running the machine, taking its word.

use std::time::Duration;

use super::drain_record::DrainRecord;
use super::durable::IntentKind;
use super::engine::{Engine, Visit};
use super::event::Fact;
use super::phase::{Flow, Machine, Turn, resign, restart, settle, tidb, upgrading, verify};
use super::plan::{Phase, Target};
use super::view::{Outcome, PhaseKind, PhaseState, Question, StepKind};

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

    /// Whether it is a restart that was ordered and is nobody's but a person's to go on with.
    pub const fn waits_for_a_hand(&self) -> bool {
        matches!(&self.machine, Machine::Restart(restart) if restart.waits_for_a_hand())
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

    /// The first phase that is not over.
    pub(super) fn next_phase(&self) -> Option<(usize, usize)> {
        let mut steps = self.plan.iter().enumerate();
        steps.find_map(|(s, step)| step.phases.iter().position(|phase| !phase.state.is_over()).map(|p| (s, p)))
    }

    /// Begins the next phase; says whether one runs now.
    fn begin_next(&mut self) -> bool {
        let Some((step, phase)) = self.next_phase() else {
            if self.is_paying() {
                self.paid_so_far();
            } else if self.is_all_there() {
                let proven = self.proven();
                self.end(Outcome::Done, 0, proven);
            }
            return false;
        };
        self.cursor = (step, phase);
        self.reconsider(step);
        if !self.state.may_begin() {
            self.waits_for.clear();
            self.opening_since = None;
            return false;
        }
        // One mutating call in flight for each cluster: a phase may end while its last request is still under way.
        if self.has_call_in_flight() {
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
        self.waits_for.clear();
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

    /// Whether a mutating call is under way.
    pub(super) fn has_call_in_flight(&self) -> bool {
        self.in_flight.values().any(|intent| intent.kind != IntentKind::Act)
    }

    pub(super) fn phase_mut(&mut self, step: usize, phase: usize) -> Option<&mut Phase> {
        self.plan.get_mut(step)?.phases.get_mut(phase)
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
                if let Some(visit) = self.visit.value() {
                    let is_same = self.drain.as_ref().is_some_and(|record| record.capture == visit.old_id);
                    if let Some(record) = self.drain.as_mut().filter(|_| is_same) {
                        record.begin_again();
                    }
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
            (_, PhaseKind::EnterUpgrading) => Machine::Enter(upgrading::Enter::new(self.owes_finish())),
            (_, PhaseKind::LeaveUpgrading) => Machine::Leave(upgrading::Leave::new(now, self.is_paying())),
        };
        Some((machine, label, kind))
    }

    /// Lets the machine look; says whether something came to an end, so that more may follow.
    fn run_active(&mut self) -> bool {
        let Some(mut active) = self.active.take() else { return false };
        let may_act = self.state.may_act();
        let turn = Turn { may_act, may_ask_again: !may_act && self.may_ask_again(), spent: active.spent };
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
        match flow {
            Flow::Stay(note) => {
                self.waits_for = note;
                self.active = Some(active);
                false
            }
            Flow::Done(evidence) => {
                self.active = Some(active);
                self.withdraw_of_phase();
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
        self.waits_for.clear();
        let now = self.now;
        let (step, phase) = self.cursor;
        let Some(at) = self.plan.get_mut(step) else { return };
        let (target, step_kind) = (at.target.label(), at.kind);
        let Some(phase) = at.phases.get_mut(phase) else { return };
        let took = phase.started_at.map_or(Duration::ZERO, |since| now.since(since));
        let kind = phase.kind;
        phase.state = state;
        phase.ended_at = Some(now);
        evidence.clone_into(&mut phase.note);
        if state == PhaseState::Done {
            // What the servers have shown needs no word of the executor any more.
            self.in_flight.retain(|_, intent| intent.kind != IntentKind::Act);
            self.took.push_back((step_kind, kind, took));
        }
        self.emit(Fact::PhaseEnded {
            step,
            target,
            phase: kind,
            outcome: match state {
                PhaseState::Done => "done",
                PhaseState::Skipped => "skipped",
                PhaseState::Waiting | PhaseState::Running | PhaseState::Asking | PhaseState::Aborted => "aborted",
            }
            .into(),
            evidence: evidence.to_owned(),
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        });
    }

    pub(super) fn ask(&mut self, mut question: Question) {
        if self.is_kept_by_guard(&question) {
            return;
        }
        let (step, phase) = self.cursor;
        if let Some(at) = self.plan.get_mut(step) {
            question.target = at.target.label();
            if let Some(phase) = at.phases.get_mut(phase) {
                if !phase.state.is_over() {
                    phase.state = PhaseState::Asking;
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
        self.withdraw_of_phase();
        // The person who granted this phase granted what it takes: going back needs no second word.
        self.state.grant();
    }

    /// Tries the running phase again.
    pub(super) fn retry_active(&mut self) {
        let now = self.now;
        let fresh = self.reread_visit();
        let Some(active) = &mut self.active else { return };
        active.spent = Duration::ZERO;
        // A person who says so starts the count of "the owner again" over.
        if let Some(visit) = &mut *self.visit {
            visit.owner_refusals = 0;
        }
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
            self.visit.set(Some(visit));
            if self.active.as_ref().is_some_and(|active| matches!(active.machine, Machine::Restart(_))) {
                self.active = None;
                self.go_back(PhaseKind::Drain, "another process answers there now");
            }
        }
    }

    /// Where the capture was restarted by somebody else, its new id is what is drained.
    fn reread_visit(&self) -> Option<Visit> {
        match &self.active.as_ref()?.machine {
            Machine::Resign(_) | Machine::Drain(_) => {}
            Machine::Restart(restart) if !restart.has_acted() => {}
            _ => return None,
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
        // What is waived needs its time to hold, too.
        if let Some(active) = &mut self.active {
            active.spent = Duration::ZERO;
        }
        match self.active.as_mut().map(|active| &mut active.machine) {
            // A person vouches that fewer tables are all there are.
            Some(Machine::Drain(_) | Machine::Restart(_)) => {
                if let Some(group) = self.visit.as_ref().and_then(|visit| self.picture.groups.get_mut(&visit.cluster)) {
                    group.most.clear();
                }
                if let Some(visit) = &mut *self.visit {
                    visit.feeds.values_mut().for_each(|before| before.tables = None);
                }
            }
            Some(Machine::HandOver(machine)) => machine.confirm(),
            Some(Machine::Resign(machine)) => machine.confirm(),
            Some(Machine::Settle(machine)) => machine.confirm(),
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
