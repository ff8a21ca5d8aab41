//! What must hold in every state. It is judged by what the engine was told and by what is true of the cluster, and never
//! by what the engine believes.

use std::time::Duration;

use tiroll::cluster::{CaptureId, CdcSweep, FailureKind, Liveness, Timestamp};
use tiroll::rollout::StepOutput;
use tiroll::rollout::command::Command;
use tiroll::rollout::effect::{Action, Call, CallAnswer, Component, Effect, Input};
use tiroll::rollout::event::{Event, Fact};
use tiroll::rollout::obligation::Debt;
use tiroll::rollout::view::{Ending, Mode, Outcome, PhaseKind};

use super::cluster::{Cluster, names};
use super::world::{Cause, Sent, World, policy};

/// What the engine was told, as far as promises are about it.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    round: Option<Round>,
    /// The owner by the newest list, and since when without a break.
    owner: Option<(CaptureId, Timestamp)>,
    /// The zeros in a row: of which capture, the first and the last by when they were asked for.
    zeros: Option<(CaptureId, Timestamp, Timestamp)>,
    /// Whether a round begun after the first of them found that capture empty, and none found otherwise since.
    has_empty_round: bool,
    /// Under whom the drain of which capture was last heard.
    heard: Option<(CaptureId, (CaptureId, Timestamp))>,
    /// When the running restart phase began, or was begun again by a person.
    restart_since: Option<Timestamp>,
    /// The last command.
    said: Option<Command>,
    /// Whether a person said that no `TiDB` may serve for a while.
    has_confirmed: bool,
}

/// The newest sweep, in the words of the promises.
#[derive(Clone, Debug)]
struct Round {
    begun: Timestamp,
    ended: Timestamp,
    /// The capture whose tables were asked for, and how many it has; `None` where any part could not be read.
    target: Option<(CaptureId, usize)>,
    /// Listed, and alive by their own word.
    able: Vec<CaptureId>,
    leaving: Vec<CaptureId>,
}

impl Round {
    fn of(sweep: &CdcSweep) -> Self {
        let group = &sweep.groups[0];
        let list = group.captures.as_deref().unwrap_or_default();
        let calls_itself = |is: fn(Liveness) -> bool| {
            let meaning = |id: &CaptureId| sweep.node_of(id).and_then(|(_, status)| status.liveness.meaning);
            list.iter().filter(|entry| meaning(&entry.id).is_some_and(is)).map(|entry| entry.id.clone()).collect()
        };
        let target = group.target.as_ref().filter(|target| {
            list.iter().any(|entry| entry.id == target.capture)
                && list.iter().all(|entry| sweep.node_of(&entry.id).is_some())
        });
        let tables = target.and_then(|target| {
            let read = target.by_changefeed.values().map(|tables| tables.as_ref().ok().map(Vec::len));
            Some((target.capture.clone(), read.sum::<Option<usize>>()?))
        });
        Self {
            begun: sweep.begun,
            ended: sweep.ended,
            target: tables,
            able: calls_itself(|liveness| liveness == Liveness::Alive),
            leaving: calls_itself(|liveness| liveness != Liveness::Alive),
        }
    }
}

fn has_no_owner(sweep: &CdcSweep) -> bool {
    let why = sweep.groups[0].captures.as_ref().err();
    why.is_some_and(|why| why.kind == FailureKind::NoOwner)
}

impl Seen {
    pub(super) fn told(&mut self, input: &Input) {
        match input {
            Input::Cdc(sweep) => self.told_sweep(sweep),
            Input::Answer { sent_at, answer: CallAnswer::Drain(Ok(count)), .. } => {
                let Some((owner, since)) = self.owner.clone().filter(|(_, since)| sent_at >= since) else { return };
                let Some((capture, heard)) = &mut self.heard else { return };
                // A 1 is also what a coordinator says that has not taken it up.
                if *count != 1 {
                    *heard = (owner, since);
                }
                match &mut self.zeros {
                    _ if *count > 0 => self.zeros = None,
                    Some((of, _, last)) if of == capture => *last = *sent_at,
                    zeros => {
                        *zeros = Some((capture.clone(), *sent_at, *sent_at));
                        self.has_empty_round = false;
                    }
                }
            }
            _ => {}
        }
    }

    fn told_sweep(&mut self, sweep: &CdcSweep) {
        let begun = sweep.begun;
        if let Ok(list) = &sweep.groups[0].captures {
            let mut owners = list.iter().filter(|entry| entry.is_owner).map(|entry| &entry.id);
            let owner = owners.next().filter(|_| owners.next().is_none());
            if self.owner.as_ref().map(|(id, _)| id) != owner {
                self.owner = owner.map(|owner| (owner.clone(), begun));
                self.zeros = None;
            }
        } else if has_no_owner(sweep) {
            (self.owner, self.zeros) = (None, None);
        }
        let round = Round::of(sweep);
        if let (Some((of, first, _)), Some((target, tables))) = (&self.zeros, &round.target) {
            let counts = of == target && begun >= *first;
            self.has_empty_round = counts && *tables == 0;
        }
        self.round = Some(round);
    }

    pub(super) fn said(&mut self, command: Command, at: Timestamp) {
        self.said = Some(command);
        match command {
            Command::Confirm => self.has_confirmed = true,
            Command::Retry if self.restart_since.is_some() => self.restart_since = Some(at),
            _ => {}
        }
    }
}

fn require(holds: bool, promise: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(promise.to_owned()) }
}

impl World {
    /// The changes told give the durable state, and whatever is to be done stands in it already.
    pub(super) fn check_changes(&self, out: &StepOutput) -> Result<(), String> {
        require(self.kept.0 == self.engine.durable(), "replaying the changes gives the durable state")?;
        for effect in &out.effects {
            if let Effect::Call { id, .. } | Effect::Exec { id, .. } = effect {
                require(self.kept.0.intents.contains_key(id), "what is sent was written down before")?;
            }
        }
        Ok(())
    }

    pub(super) fn check_events(&mut self, events: &[Event]) -> Result<(), String> {
        for event in events {
            match &event.fact {
                Fact::PhaseStarted { phase, .. } => {
                    self.seen.restart_since = (*phase == PhaseKind::Restart).then_some(event.at);
                    self.seen.has_confirmed = false;
                }
                Fact::PhaseEnded { phase: PhaseKind::Drain, outcome, .. } if outcome == "done" => {
                    let seen = &self.seen;
                    let zeros =
                        seen.zeros.as_ref().filter(|(_, first, last)| last.since(*first) >= policy().zeros_apart);
                    require(zeros.is_some(), "a drain ends on two zeros in a row under one owner")?;
                    require(seen.has_empty_round, "a drain ends on an empty round begun after the first zero")?;
                }
                Fact::RolloutEnded { ending, owed } => self.check_end(ending, owed.len())?,
                _ => {}
            }
        }
        Ok(())
    }

    fn check_end(&self, ending: &Ending, owed: usize) -> Result<(), String> {
        require(owed == self.kept.0.obligations.len(), "what is owed is said at the end")?;
        if ending.outcome != Outcome::Done {
            return Ok(());
        }
        require(owed == 0, "nothing is owed at a good end")?;
        let cluster = &self.cluster;
        let is_there = cluster.nodes.iter().all(|node| node.is_news || (node.is_new && node.is_up()));
        require(is_there && cluster.is_tidb_new, "at a good end every server is up at the target")
    }

    pub(super) fn check_effect(&mut self, effect: &Effect, cause: Cause) -> Result<(), String> {
        if matches!(effect, Effect::Watch(_)) {
            return Ok(());
        }
        self.check_silence(effect, cause)?;
        self.check_alone(effect)?;
        match effect {
            Effect::Call { call: Call::Drain { capture, .. }, .. } => {
                self.check_beside(capture, "a drain")?;
                let owner = self.seen.owner.clone();
                let heard = self.seen.heard.take().filter(|(of, _)| of == capture).map(|(_, owner)| owner);
                self.seen.heard = heard.or(owner).map(|owner| (capture.clone(), owner));
            }
            Effect::Call { call: Call::Resign { .. }, .. } => {
                let visit = self.kept.0.visit.as_ref().ok_or("a resign is part of a step")?;
                self.check_beside(&visit.old_id, "a resign")?;
            }
            Effect::Call { call: Call::UpgradeStart, .. } => {
                require(self.owes(|debt| *debt == Debt::Finish), "the finish is owed before the start")?;
            }
            Effect::Exec { action, .. } => self.check_act(action)?,
            Effect::Call { call: Call::UpgradeFinish, .. } | Effect::Watch(_) => {}
        }
        Ok(())
    }

    /// Nothing is sent while somebody else has the word, but what a person orders by name, and a lost drain of the new
    /// architecture under a question.
    fn check_silence(&self, effect: &Effect, cause: Cause) -> Result<(), String> {
        let is_lost = match effect {
            Effect::Call { call: Call::Drain { capture, .. }, .. } if !self.cluster.is_classic() => {
                let heard = self.seen.heard.as_ref().filter(|(of, _)| of == capture).map(|(_, owner)| owner);
                heard.is_some() && heard != self.seen.owner.as_ref()
            }
            _ => false,
        };
        let holds = match (self.engine.mode(), cause) {
            // A look may send and then ask, or find its question answered and then send.
            (_, Cause::Told { was_free: true })
            | (Mode::Running | Mode::StepRunning, _)
            | (Mode::Aborted, Cause::Word(Command::Start)) => true,
            // A person's pause goes before a question.
            _ if self.kept.0.standing.is_paused => is_lost && self.seen.said == Some(Command::AskAgain),
            (Mode::Asking, _) => is_lost,
            _ => false,
        };
        require(holds, &format!("nothing is sent while a person has the word: {effect:?}"))
    }

    /// One mutating call in flight; an act that nobody heard of again is a person's to repeat.
    fn check_alone(&self, effect: &Effect) -> Result<(), String> {
        let is_act = |sent: &Sent| matches!(sent, Sent::Act(_));
        let is_repeated = matches!(effect, Effect::Exec { .. }) && self.seen.said == Some(Command::Retry);
        let on_wire = self.wire.as_ref().is_none_or(|(_, sent)| is_repeated && is_act(sent));
        // An act whose process has been seen to come back needs no outcome any more.
        let is_answer =
            |input: &Input| matches!(input, Input::Answer { id, .. } if self.kept.0.intents.contains_key(id));
        require(on_wire && !self.inbox.iter().any(|(_, input)| is_answer(input)), "one call is in flight at a time")
    }

    fn check_beside(&self, id: &CaptureId, what: &str) -> Result<(), String> {
        let round = self.fresh().ok_or_else(|| format!("{what} is asked for on a fresh reading"))?;
        require(round.able.iter().any(|able| able != id), &format!("{what} is asked for where another one is able"))?;
        let is_alone = round.leaving.iter().all(|leaving| leaving == id);
        require(is_alone, &format!("{what} is not asked for beside another that leaves"))
    }

    fn limit(&self) -> Duration {
        let round = self.seen.round.as_ref().map_or(Duration::ZERO, |round| round.ended.since(round.begun));
        policy().stale_after.max(round * 2)
    }

    fn fresh(&self) -> Option<&Round> {
        let now = Timestamp::new(0, self.now);
        self.seen.round.as_ref().filter(|round| now.since(round.begun) <= self.limit())
    }

    fn check_act(&self, action: &Action) -> Result<(), String> {
        let is_owed = |debt: &Debt| matches!(debt, Debt::Start { address, .. } if *address == action.address);
        require(self.owes(is_owed), "a start is owed before a process is stopped")?;
        match (action.component, action.verb) {
            (Component::Ticdc, tiroll::rollout::effect::Verb::Restart) if !action.forced => {
                self.check_stop(Cluster::at(&action.address))
            }
            (Component::Tidb, tiroll::rollout::effect::Verb::Restart) => {
                require(self.seen.has_confirmed, "the only TiDB is stopped on a person's word")
            }
            _ => Ok(()),
        }
    }

    /// No stop is asked for on evidence that is stale, unknown, not zero or of the owner, nor without another able one.
    fn check_stop(&self, n: usize) -> Result<(), String> {
        // Who runs there now may already be another one: that nobody could know.
        let id = &self.kept.0.visit.as_ref().ok_or("a stop is part of a step")?.old_id;
        let (seen, node) = (&self.seen, &self.cluster.nodes[n]);
        self.check_beside(id, "a stop")?;
        let now = Timestamp::new(0, self.now);
        let since = seen.restart_since.ok_or("a stop is part of a restart")?;
        let is_empty = |round: &Round| round.target == Some((id.clone(), 0)) && round.begun.mono_ms >= since.mono_ms;
        require(self.fresh().is_some_and(is_empty), "a stop is asked for on a fresh round that found nothing")?;
        let zero = seen
            .zeros
            .as_ref()
            .filter(|(of, _, last)| of == id && last.mono_ms >= since.mono_ms && now.since(*last) <= self.limit());
        require(zero.is_some(), "a stop is asked for on a fresh zero")?;
        let owner = seen.owner.as_ref().map(|(owner, _)| owner);
        require(owner.is_some_and(|owner| owner != id), "a stop is asked for while another one owns")?;
        // What befell it since it was last read nobody could know.
        require(node.tables == [0, 0] || node.is_news, "what is stopped carries no table")?;
        require(!self.cluster.owns(n) || self.cluster.is_owner_news, "what is stopped does not own")
    }

    fn owes(&self, is_it: impl Fn(&Debt) -> bool) -> bool {
        self.kept.0.obligations.iter().any(|owed| is_it(&owed.debt))
    }

    /// Whatever the rollout changed and must change back is owed for as long as that is so.
    pub(super) fn check_debts(&self) -> Result<(), String> {
        let cluster = &self.cluster;
        require(!cluster.is_upgrading_by_us || self.owes(|debt| *debt == Debt::Finish), "the finish is owed")?;
        for (n, node) in cluster.nodes.iter().enumerate() {
            let is_drain = |debt: &Debt| matches!(debt, Debt::Drain { capture, .. } if capture == cluster.id(n));
            require(!node.is_drained_by_us || self.owes(is_drain), "a drained capture is owed its restart")?;
            let at = &names().addresses[n];
            let is_start = |debt: &Debt| matches!(debt, Debt::Start { address, .. } if address == at);
            require(!node.is_stopped_by_us || self.owes(is_start), "a stopped process is owed its start")?;
        }
        Ok(())
    }
}
