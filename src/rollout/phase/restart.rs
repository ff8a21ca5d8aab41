//! `restart`: entering it asks afresh (one zero and one empty round, both begun after it starts), then the executor
//! acts. Its end proves nothing; `verify` does.

use super::drain::{ask_for_drain, beside};
use super::{Flow, LOOK_AGAIN, Turn, WAIT_LONGER, ask};
use crate::cluster::units::{counted, spoken};
use crate::cluster::{Architecture, FailureKind, Timestamp};
use crate::rollout::command::Command;
use crate::rollout::effect::{Action, ActionOutcome, CallAnswer, Component, EffectId, Verb};
use crate::rollout::engine::{Engine, Visit};
use crate::rollout::evidence::Verdict;
use crate::rollout::view::PhaseKind;

/// The machine.
#[derive(Clone, Debug)]
pub struct Restart {
    since: Timestamp,
    request: Option<EffectId>,
    /// When an act was ordered before, in this phase: its process may come up late.
    acted: Option<Timestamp>,
    /// When the last request that was answered 0 was sent.
    zero: Option<Timestamp>,
    /// Whether the newest round, begun after the phase, found it empty.
    round: bool,
    waits_for: String,
    act: Option<(EffectId, Timestamp)>,
    asked: Option<String>,
    failed: Option<String>,
}

impl Restart {
    /// A restart that begins now.
    pub const fn new(since: Timestamp) -> Self {
        Self {
            since,
            request: None,
            acted: None,
            zero: None,
            round: false,
            waits_for: String::new(),
            act: None,
            asked: None,
            failed: None,
        }
    }

    /// Starts over from now: nothing confirmed before counts.
    pub fn retry(&mut self, now: Timestamp) {
        let acted = self.acted.or_else(|| self.act.map(|(_, since)| since));
        *self = Self { request: self.request, acted, ..Self::new(now) };
    }

    /// Whether an act on the process is under way.
    pub const fn is_acting(&self) -> bool {
        self.act.is_some() && self.asked.is_none()
    }

    /// Whether an act was ordered in this phase.
    pub const fn has_acted(&self) -> bool {
        self.act.is_some() || self.acted.is_some()
    }

    /// Looks, and acts if it may.
    pub fn run(&mut self, engine: &mut Engine, turn: Turn) -> Flow {
        let Some(visit) = engine.visit.clone() else { return Flow::Stay("reading the cluster".to_owned()) };
        if let Some((id, since)) = self.act {
            return self.follow(engine, &visit, id, since, turn);
        }
        if let Some(flow) = self.came_back(engine, &visit) {
            return flow;
        }
        if let Some(flow) = self.confirm(engine, &visit, turn) {
            return flow;
        }
        if turn.may_act {
            engine.owe_start(Component::Ticdc, &visit.address, visit.old_id.as_str());
            let action = Action {
                verb: Verb::Restart,
                component: Component::Ticdc,
                address: visit.address.clone(),
                version: visit.to.clone(),
                forced: false,
            };
            self.act = Some((engine.exec(action), engine.now));
        }
        Flow::Stay("restarting".to_owned())
    }

    /// Another process answers at the address although this phase has nothing under way: our own act, late, or
    /// somebody else's.
    fn came_back(&self, engine: &mut Engine, visit: &Visit) -> Option<Flow> {
        let new = engine.new_process(&visit.address, &visit.old_id, self.acted.unwrap_or(self.since))?;
        if self.acted.is_some() {
            engine.note_return();
            return Some(Flow::Done(format!("a new process answers as {}", new.short())));
        }
        Some(ask(
            "restarted_elsewhere",
            format!(
                "{} answers as {} now, another process than the one that was drained; this rollout did not restart it.",
                visit.address,
                new.short()
            ),
            "Somebody else (or a supervisor) restarted it. It is not restarted on the evidence of the old one.",
            "See who it was. Look again takes the new process for this step: it is drained afresh, unless it is at the target.",
            &[LOOK_AGAIN],
        ))
    }

    /// `None` once one zero and one empty round, both begun after the phase, say so.
    fn confirm(&mut self, engine: &mut Engine, visit: &Visit, turn: Turn) -> Option<Flow> {
        if let Some(id) = self.request
            && let Some((sent_at, CallAnswer::Drain(reading))) = engine.take_answer(id)
        {
            self.request = None;
            match reading {
                Ok(0) => self.zero = Some(sent_at).filter(|at| *at >= self.since).or(self.zero),
                // Remaining work is no count of tables: a coordinator that is new says 1 until it has looked.
                Ok(work) if visit.architecture == Architecture::New => {
                    self.zero = None;
                    self.waits_for = format!("the coordinator says that work remains ({work})");
                }
                Ok(count) => {
                    engine.drain_counted(count, sent_at);
                    return Some(Flow::Back(PhaseKind::Drain, format!("{} came back to it", counted(count, "table"))));
                }
                Err(why) if why.kind == FailureKind::CannotDrainOwner => {
                    return Some(Flow::Back(PhaseKind::Drain, format!("it is the {} now", visit.architecture.owner())));
                }
                Err(why) => self.waits_for = format!("the {} {why}", visit.architecture.owner()),
            }
        }
        if let Some(round) = engine.round(visit).filter(|round| round.sweep.begun >= self.since) {
            // Only the newest round counts: what was empty a moment ago may have been given tables since.
            self.round = false;
            match round.judge() {
                Verdict::Empty => self.round = true,
                Verdict::Carries(list) => {
                    let sum = list.iter().map(|(_, count)| count).sum();
                    return Some(Flow::Back(PhaseKind::Drain, format!("{} came back to it", counted(sum, "table"))));
                }
                Verdict::Unknown(why) => self.waits_for = why,
            }
        }
        // A zero of an owner who has gone since is nothing.
        let owner_since = engine.picture.owner(&visit.cluster).map(|(_, since)| since);
        let is_zero = self.zero.is_some_and(|at| {
            engine.now.since(at) <= engine.fresh_within() && owner_since.is_some_and(|since| at >= since)
        });
        if is_zero && self.round && engine.is_fresh() {
            return beside(engine, visit);
        }
        if turn.spent >= engine.policy.unknown_asks {
            return Some(ask(
                "restart_unproven",
                format!("It could not be shown once more that {} is empty: {}.", visit.address, self.waits_for),
                "The process is not stopped on old evidence.",
                "See to what is named here, then look again.",
                &[LOOK_AGAIN, WAIT_LONGER],
            ));
        }
        let owner = engine.picture.owner(&visit.cluster).map(|(id, since)| (id.clone(), since));
        let stands = |since: &Timestamp| engine.now.since(*since) >= engine.policy.owner_stands;
        if !is_zero
            && self.request.is_none()
            && engine.drain_is_due()
            && engine.is_fresh()
            && let Some((owner, _)) = owner.filter(|(owner, since)| owner != &visit.old_id && stands(since))
        {
            if let Some(flow) = beside(engine, visit) {
                return Some(flow);
            }
            if turn.may_act || turn.may_ask_again {
                self.request = Some(ask_for_drain(engine, visit, &owner));
            }
        }
        Some(Flow::Stay(format!("making sure once more that it is empty {}", self.waits_for).trim().to_owned()))
    }

    fn follow(&mut self, engine: &mut Engine, visit: &Visit, id: EffectId, since: Timestamp, turn: Turn) -> Flow {
        match engine.take_outcome(id) {
            Some(ActionOutcome::Returned { detail }) => {
                engine.note_return();
                return Flow::Done(detail);
            }
            Some(ActionOutcome::Failed { message }) => self.failed = Some(message),
            Some(ActionOutcome::Asked { text }) => self.asked = Some(text),
            None => {}
        }
        if let Some(new) = engine.new_process(&visit.address, &visit.old_id, since) {
            engine.note_return();
            return Flow::Done(format!("a new process answers as {}", new.short()));
        }
        if let Some(message) = &self.failed {
            return ask(
                "executor_failed",
                format!("The restart of {} failed: {message}.", visit.address),
                "The process may be down, or still the old one. Nothing else is stopped meanwhile.",
                "Look at the node. If the process comes up by itself this step notices; retry asks for evidence again and restarts.",
                &[(Command::Retry, "make sure it is empty and restart it again")],
            );
        }
        if self.asked.is_none() && turn.spent >= engine.policy.verify_deadline {
            return ask(
                "executor_silent",
                format!(
                    "The restart of {} was ordered {} ago and nothing came of it.",
                    &visit.address,
                    spoken(turn.spent)
                ),
                "It is not known whether the process was stopped. Nothing else is stopped meanwhile.",
                "Look at the node. If a new process answers this step notices; retry makes sure again and restarts.",
                &[WAIT_LONGER, (Command::Retry, "make sure it is safe and restart it again")],
            );
        }
        self.asked.clone().map_or_else(|| Flow::Stay(format!("restarting for {}", spoken(turn.spent))), Flow::Stay)
    }
}
