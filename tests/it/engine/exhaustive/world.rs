//! One state: the engine, the abstract cluster, and what is under way between them; and everything that may happen next.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tiroll::cluster::{Architecture, CaptureId, Failure, FailureKind, FinishAnswer, StartAnswer, Timestamp};
use tiroll::rollout::command::{Command, Who};
use tiroll::rollout::durable::Durable;
use tiroll::rollout::effect::{Action, ActionOutcome, Call, CallAnswer, Component, Effect, EffectId, Input, Verb};
use tiroll::rollout::policy::Policy;
use tiroll::rollout::view::Mode;
use tiroll::rollout::{Engine, Request, StepOutput};

use super::cluster::{Cluster, DEAD, EPOCH, names};
use super::promises::Seen;

/// How long a step of time is, in milliseconds.
pub(super) const STEP: u64 = 1_000;
/// How often a person gives the rollout up in one course: paying can be given up, too.
const ABORTS: u8 = 1;

/// What the next step of time brings beside its passing. All but the first use up a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Everything as it should be.
    Plain,
    /// What was sent never arrives: a call times out, an act is never heard of again.
    Lost,
    /// It takes hold, and its answer is lost: a call times out, an act is said to have failed.
    AnswerLost,
    /// Its answer comes twice.
    AnswerTwice,
    /// Its answer comes three steps late.
    AnswerLate,
    /// The executor fails, and nothing was done.
    ActFailed,
    /// The process comes back on the old binary.
    OldBinary,
    /// The process does not come back.
    StaysDown,
    /// The drain is answered 0 whatever is there.
    FalseZero,
    /// The list of captures cannot be read.
    UnreadList,
    /// The tables cannot be read.
    UnreadTables,
    /// `TiDB` cannot be read.
    UnreadTidb,
    /// What is read now was asked for long ago, and shows the cluster as it was a step ago.
    SlowSweep,
    /// Nothing is read at all.
    NoSweep,
    /// Two captures are called owner.
    TwoOwners,
    /// New architecture: the maintainers name no table.
    NamesNothing,
}

/// What may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// A step of time passes, what was sent arrives and is answered, and both sides are read.
    Pass(Way),
    /// A person gives a command.
    Say(Command),
    /// A person does by hand what a question advises: starts or restarts this capture.
    Mend(usize),
    /// The same for the `TiDB` server's binary, or for a state that somebody left behind.
    MendTidb,
    /// A fault: the process of a capture ends and is started again by nobody's order, as this version.
    Crash { n: usize, is_new: bool },
    /// A fault: it ends and stays down.
    Die(usize),
    /// A fault: the duty goes to another, or to the same one anew.
    Elect(usize),
    /// A fault: a capture is given tables that was to give its own away.
    Give(usize),
    /// A fault: somebody drains a capture.
    Drain(usize),
    /// A fault: the `TiDB` server ends and is started again.
    CrashTidb,
    /// A fault: somebody starts or finishes an upgrade of `TiDB`.
    Toggle,
    /// A fault: this program is killed and started again; what was under way arrives, or does not.
    Kill { arrives: bool },
}

impl Move {
    pub(super) const fn is_fault(self) -> bool {
        !matches!(self, Self::Pass(Way::Plain) | Self::Say(_) | Self::Mend(_) | Self::MendTidb)
    }

    /// Whether it leaves something undone.
    pub(super) const fn gives_up(self) -> bool {
        matches!(self, Self::Say(Command::Abort | Command::Close))
    }
}

/// What made the engine look.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cause {
    /// A person's word.
    Word(Command),
    /// Something it was told; whether it was free to act before.
    Told { was_free: bool },
}

/// What was sent.
#[derive(Clone, Debug)]
pub(super) enum Sent {
    Call(Call),
    Act(Action),
}

/// What a journal would have kept. It is proven equal to the engine's own state after each step, and so not told twice.
#[derive(Clone, Default)]
pub(super) struct Kept(pub(super) Durable);

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}

/// A state. Its `Debug` text is what tells it from others.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) cluster: Cluster,
    pub(super) now: u64,
    /// Faults that may still happen.
    pub(super) faults: u8,
    /// Aborts that a person may still give.
    aborts: u8,
    /// What was sent and has not arrived.
    pub(super) wire: Option<(EffectId, Sent)>,
    /// Answers, and in how many steps they come.
    pub(super) inbox: Vec<(u8, Input)>,
    watched: Option<CaptureId>,
    /// What the changes told so far give.
    pub(super) kept: Kept,
    pub(super) seen: Seen,
}

fn request() -> Request {
    Request {
        target: names().new.clone(),
        is_watch: false,
        has_tidb: true,
        has_pd: false,
        executor: "sim",
        hand_over_passes: true,
        is_simulated: true,
        speed: 1.0,
        is_auto: true,
    }
}

/// Limits of a few steps, so that everything old is soon equally old.
pub(super) fn policy() -> Policy {
    let s = Duration::from_secs;
    Policy {
        poll_moving: s(1),
        poll_idle: s(1),
        watch: s(1),
        stale_after: s(1),
        zeros_apart: s(1),
        owner_stands: s(1),
        no_owner_warn: s(2),
        no_owner_guard: s(4),
        unknown_asks: s(4),
        resign_deadline: s(3),
        drain_stall: s(4),
        drain_deadline: s(8),
        verify_deadline: s(6),
        settle_deadline: s(6),
        upgrading_deadline: s(4),
        lag_limit: s(4),
        lag_factor: 2.0,
        lag_hold: s(1),
        call_upgrade: s(4),
        call_drain: s(4),
        call_other: s(4),
    }
}

fn timeout() -> Failure {
    Failure::local(FailureKind::Timeout, "as it happens")
}

impl World {
    /// A rollout that has read nothing yet.
    pub(super) fn new(architecture: Architecture, captures: usize, feeds: usize, faults: u8) -> Self {
        Self {
            engine: Engine::new(request(), policy()),
            cluster: Cluster::new(architecture, captures, feeds),
            now: STEP,
            faults,
            aborts: ABORTS,
            wire: None,
            inbox: Vec::new(),
            watched: None,
            kept: Kept::default(),
            seen: Seen::default(),
        }
    }

    fn at(&self) -> Timestamp {
        Timestamp::new(i64::try_from(EPOCH + self.now).unwrap(), self.now)
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.engine.mode(), Mode::Ended(_))
    }

    /// Whether no person has the word.
    pub(super) fn is_free(&self) -> bool {
        matches!(self.engine.mode(), Mode::Running | Mode::StepRunning)
    }

    pub(super) fn asked(&self) -> Option<&str> {
        self.engine.question().map(|question| &*question.reason)
    }

    /// Everything that may happen next, the plain passing of time first.
    pub(super) fn moves(&self) -> Vec<Move> {
        if self.is_over() {
            return Vec::new();
        }
        let mut moves = vec![Move::Pass(Way::Plain)];
        moves.extend(self.instructions());
        if self.faults > 0 {
            moves.extend(self.faults_now());
        }
        moves
    }

    /// Everything a person may say or do now; what is sensible comes first.
    fn instructions(&self) -> Vec<Move> {
        let mut said = self.mends();
        // A question's own choices come in its order.
        let choices = self.engine.question().into_iter().flat_map(|question| &question.choices);
        let rest = [Command::Continue].into_iter().chain(Command::ALL);
        for command in choices.map(|choice| choice.command).chain(rest) {
            let is_left = command != Command::Abort || self.aborts > 0;
            // What is said by name overrules the promises that are held here; the random courses say it.
            let is_left = is_left && !command.is_by_name();
            if is_left && !said.contains(&Move::Say(command)) && self.engine.permission(command).is_ok() {
                said.push(Move::Say(command));
            }
        }
        said
    }

    /// What a sensible person does without giving anything up; time passes where nothing is asked.
    pub(super) fn sensible(&self) -> Move {
        let is_held = matches!(self.engine.mode(), Mode::Asking | Mode::Paused | Mode::Stepping | Mode::Aborted);
        let said = self.instructions().into_iter().filter(|said| is_held && !said.gives_up());
        // A hand or a word is better than looking again, and that is better than waiting.
        let rank = |said: &Move| match said {
            Move::Mend(_) | Move::MendTidb | Move::Say(Command::Confirm) => 0,
            Move::Say(Command::Continue | Command::Retry) => 1,
            _ => 2,
        };
        said.min_by_key(rank).unwrap_or(Move::Pass(Way::Plain))
    }

    /// What a question advises to be done by hand.
    fn mends(&self) -> Vec<Move> {
        let Some(question) = self.engine.question() else { return Vec::new() };
        let (reason, cluster) = (&*question.reason, &self.cluster);
        // After an abort only what the rollout does not offer to pay is left to a hand.
        let is_aborted = reason == "aborted";
        if is_aborted && question.choices.len() > 1 {
            return Vec::new();
        }
        let is_of_process =
            is_aborted || matches!(reason, "wrong_version" | "not_all_there" | "not_verified" | "not_all_at_target");
        let is_wanted = |n: &usize| {
            let node = &cluster.nodes[*n];
            let is_beside = matches!(reason, "leftover" | "nobody_able") && !self.is_in_hand(*n);
            let is_left = (is_of_process || is_beside) && node.liveness > 0;
            let is_wrong = is_of_process && !is_aborted && node.generation > 0 && node.is_new != self.is_wanted_new(*n);
            node.down == DEAD || (node.is_up() && (is_left || is_wrong))
        };
        let mut mends: Vec<_> = (0..cluster.nodes.len()).filter(is_wanted).map(Move::Mend).collect();
        let is_tidb_wrong = cluster.tidb_down == 0 && cluster.tidb_starts > 1 && !cluster.is_tidb_new;
        if (is_of_process && !is_aborted && is_tidb_wrong) || (reason == "found_upgrading" && cluster.is_upgrading) {
            mends.push(Move::MendTidb);
        }
        mends
    }

    fn is_in_hand(&self, n: usize) -> bool {
        self.kept.0.visit.as_ref().is_some_and(|visit| visit.address == names().addresses[n])
    }

    /// The binary with which a person starts a capture: what the step in hand expects there, else what it has.
    fn is_wanted_new(&self, n: usize) -> bool {
        let visit = self.kept.0.visit.as_ref().filter(|_| self.is_in_hand(n));
        let is_over = self.asked() == Some("not_all_there");
        visit.map_or(is_over || self.cluster.nodes[n].is_new, |visit| *visit.expected() == names().new)
    }

    fn faults_now(&self) -> Vec<Move> {
        use Way as W;
        let mut ways = vec![W::UnreadList, W::UnreadTables, W::UnreadTidb, W::SlowSweep, W::NoSweep, W::TwoOwners];
        if !self.cluster.is_classic() {
            ways.push(W::NamesNothing);
        }
        match &self.wire {
            Some((_, Sent::Call(call))) => {
                ways.extend([W::Lost, W::AnswerLost, W::AnswerTwice, W::AnswerLate]);
                ways.extend(matches!(call, Call::Drain { .. }).then_some(W::FalseZero));
            }
            Some((_, Sent::Act(_))) => {
                ways.extend([W::Lost, W::AnswerLost, W::AnswerTwice, W::AnswerLate, W::ActFailed, W::OldBinary]);
                ways.push(W::StaysDown);
            }
            None => {}
        }
        let mut moves: Vec<_> = ways.into_iter().map(Move::Pass).collect();
        moves.extend([Move::CrashTidb, Move::Toggle]);
        for (n, node) in self.cluster.nodes.iter().enumerate().filter(|(_, node)| node.is_up()) {
            moves.extend([Move::Crash { n, is_new: false }, Move::Crash { n, is_new: true }, Move::Die(n)]);
            if node.liveness > 0 {
                moves.push(Move::Give(n));
            } else if self.cluster.ownerless == 0 {
                moves.push(Move::Elect(n));
                moves.extend((self.cluster.owner != n).then_some(Move::Drain(n)));
            }
        }
        if !self.kept.0.plan.is_empty() {
            moves.push(Move::Kill { arrives: true });
            moves.extend(self.wire.is_some().then_some(Move::Kill { arrives: false }));
        }
        moves
    }

    /// The state after it, or the promise that it breaks.
    pub(super) fn after(&self, next: Move) -> Result<Self, String> {
        let mut world = self.clone();
        world.faults -= u8::from(next.is_fault());
        let cluster = &mut world.cluster;
        match next {
            Move::Pass(way) => world.pass(way)?,
            Move::Say(command) => world.say(command)?,
            Move::Mend(n) => cluster.restart(n, self.is_wanted_new(n), false, false),
            Move::MendTidb if self.asked() == Some("found_upgrading") => cluster.is_upgrading = false,
            Move::MendTidb => cluster.restart_tidb(true),
            Move::Crash { n, is_new } => cluster.restart(n, is_new, false, false),
            Move::Die(n) => cluster.restart(n, cluster.nodes[n].is_new, false, true),
            Move::Elect(n) => cluster.elect(n),
            Move::Give(n) => drop(cluster.give(n)),
            Move::Drain(n) => {
                cluster.nodes[n].liveness = 1;
                cluster.nodes[n].is_news = true;
            }
            Move::CrashTidb => cluster.restart_tidb(cluster.is_tidb_new),
            Move::Toggle => {
                cluster.is_upgrading = !cluster.is_upgrading;
                cluster.is_upgrading_by_us = false;
            }
            Move::Kill { arrives } => world.kill(arrives)?,
        }
        world.check_debts()?;
        Ok(world)
    }

    fn say(&mut self, command: Command) -> Result<(), String> {
        self.aborts -= u8::from(command == Command::Abort);
        let at = self.at();
        let (permission, out) = self.engine.command(at, &Who::new("test"), command);
        permission.map_err(|why| format!("{command:?} was permitted and is refused: {why}"))?;
        self.seen.said(command, at);
        self.take(out, Cause::Word(command))
    }

    fn pass(&mut self, way: Way) -> Result<(), String> {
        let sent_at = self.at();
        if let Some((id, sent)) = self.wire.take() {
            self.arrive(id, &sent, way, sent_at);
        }
        let [between, ended] = [STEP / 2, STEP].map(|ms| sent_at.plus(Duration::from_millis(ms)));
        let read = |world: &mut Self, begun: Timestamp| {
            let cdc = world.cluster.cdc(begun, ended, world.watched.as_ref(), way);
            world.cluster.was_read();
            (cdc, world.cluster.tidb(begun, ended, way))
        };
        let before = (way == Way::SlowSweep).then(|| read(self, between));
        self.now += STEP;
        self.cluster.live();
        self.inbox.iter_mut().for_each(|(left, _)| *left -= 1);
        let (due, later) = std::mem::take(&mut self.inbox).into_iter().partition(|(left, _)| *left == 0);
        self.inbox = later;
        let due: Vec<(u8, Input)> = due;
        for (_, input) in due {
            self.tell(input)?;
        }
        if way == Way::NoSweep {
            return self.tell(Input::Tick);
        }
        let (cdc, tidb) = before.unwrap_or_else(|| read(self, ended));
        self.tell(Input::Cdc(Arc::new(cdc)))?;
        self.tell(Input::Tidb(Arc::new(tidb)))
    }

    fn tell(&mut self, input: Input) -> Result<(), String> {
        self.seen.told(&input);
        let was_free = self.is_free();
        let out = self.engine.step(self.at(), input);
        self.take(out, Cause::Told { was_free })
    }

    /// What was sent takes hold, or not, and is answered, or not.
    fn arrive(&mut self, id: EffectId, sent: &Sent, way: Way, sent_at: Timestamp) {
        let input = match sent {
            Sent::Call(call) => {
                let answer = (way != Way::Lost).then(|| self.call(call, way)).filter(|_| way != Way::AnswerLost);
                let answer = answer.unwrap_or_else(|| match call {
                    Call::Drain { .. } => CallAnswer::Drain(Err(timeout())),
                    Call::Resign { .. } => CallAnswer::Resign(Err(timeout())),
                    Call::UpgradeStart => CallAnswer::Start(Err(timeout())),
                    Call::UpgradeFinish => CallAnswer::Finish(Err(timeout())),
                });
                Input::Answer { id, sent_at, answer }
            }
            Sent::Act(_) if way == Way::Lost => return,
            Sent::Act(action) => {
                if way != Way::ActFailed {
                    self.act(action, way);
                }
                let text = "as it happens".to_owned();
                let outcome = if matches!(way, Way::ActFailed | Way::AnswerLost) {
                    ActionOutcome::Failed { message: text }
                } else {
                    ActionOutcome::Returned { detail: text }
                };
                Input::Outcome { id, outcome }
            }
        };
        if way == Way::AnswerTwice {
            self.inbox.push((1, input.clone()));
        }
        self.inbox.push((if way == Way::AnswerLate { 4 } else { 1 }, input));
    }

    fn call(&mut self, call: &Call, way: Way) -> CallAnswer {
        let refused = || Failure::local(FailureKind::Refused, "as it happens");
        let cluster = &mut self.cluster;
        match call {
            Call::Drain { capture, .. } => CallAnswer::Drain(cluster.drain(capture, way == Way::FalseZero)),
            Call::Resign { owner, .. } if cluster.owns(Cluster::at(owner)) => {
                cluster.elect((cluster.owner + 1) % cluster.nodes.len());
                CallAnswer::Resign(Ok(()))
            }
            Call::Resign { .. } => CallAnswer::Resign(Err(Failure::local(FailureKind::NoOwner, "as it happens"))),
            Call::UpgradeStart if cluster.tidb_down > 0 => CallAnswer::Start(Err(refused())),
            Call::UpgradeFinish if cluster.tidb_down > 0 => CallAnswer::Finish(Err(refused())),
            Call::UpgradeStart => {
                let was = std::mem::replace(&mut cluster.is_upgrading, true);
                cluster.is_upgrading_by_us |= !was;
                CallAnswer::Start(Ok(if was { StartAnswer::Duplicated } else { StartAnswer::Success }))
            }
            Call::UpgradeFinish => {
                cluster.is_upgrading_by_us = false;
                let was = std::mem::take(&mut cluster.is_upgrading);
                CallAnswer::Finish(Ok(if was { FinishAnswer::Success } else { FinishAnswer::Duplicated }))
            }
        }
    }

    fn act(&mut self, action: &Action, way: Way) {
        let is_new = |before: bool| before || (action.version.is_some() && way != Way::OldBinary);
        let cluster = &mut self.cluster;
        match (action.component, action.verb) {
            (Component::Ticdc, verb) => {
                let n = Cluster::at(&action.address);
                // A start of what runs, or comes up by itself, does nothing.
                if verb == Verb::Restart || cluster.nodes[n].down == DEAD {
                    cluster.restart(n, is_new(cluster.nodes[n].is_new), true, way == Way::StaysDown);
                }
            }
            (Component::Tidb, Verb::Restart) => cluster.restart_tidb(is_new(cluster.is_tidb_new)),
            (Component::Tidb, Verb::Start) => {}
        }
    }

    /// What was not written down is gone, and answers under way are lost.
    fn kill(&mut self, arrives: bool) -> Result<(), String> {
        if let Some((id, sent)) = self.wire.take().filter(|_| arrives) {
            self.arrive(id, &sent, Way::Plain, self.at());
        }
        self.inbox.clear();
        self.watched = None;
        self.seen = Seen::default();
        self.engine = Engine::resume(request(), policy(), self.kept.0.clone(), self.at());
        self.tell(Input::Tick)
    }

    fn take(&mut self, out: StepOutput, cause: Cause) -> Result<(), String> {
        for change in out.changes.iter().cloned() {
            self.kept.0.apply(change);
        }
        self.check_changes(&out)?;
        self.check_events(&out.events)?;
        for effect in out.effects {
            self.check_effect(&effect, cause)?;
            match effect {
                Effect::Watch(watch) => self.watched = watch.target,
                Effect::Call { id, call } => self.wire = Some((id, Sent::Call(call))),
                Effect::Exec { id, action } => self.wire = Some((id, Sent::Act(action))),
            }
        }
        Ok(())
    }
}
