//! `restart`: entering it asks afresh (one zero and one empty round, both begun after it starts), then the executor
//! acts. Its end proves nothing; `verify` does.

use super::act::{Act, Words};
use super::drain::{Ready, ask_for_drain, beside, is_for_good, ready};
use super::{Flow, LOOK_AGAIN, Turn, WAIT_LONGER, ask};
use crate::cluster::units::counted;
use crate::cluster::{Architecture, FailureKind, Timestamp};
use crate::rollout::effect::{CallAnswer, Component, EffectId};
use crate::rollout::engine::{Engine, Visit};
use crate::rollout::evidence::{Verdict, tables_in};
use crate::rollout::view::PhaseKind;

/// The machine.
#[derive(Clone, Debug)]
pub struct Restart {
    since: Timestamp,
    request: Option<EffectId>,
    /// When the last request that was answered 0 was sent.
    zero: Option<Timestamp>,
    /// Whether the newest round, begun after the phase, found it empty.
    round: bool,
    waits_for: String,
    /// The drain was refused in a way that asking again does not heal.
    is_refused: bool,
    act: Act,
}

impl Restart {
    /// A restart that begins now.
    pub fn new(since: Timestamp) -> Self {
        Self {
            since,
            request: None,
            zero: None,
            round: false,
            waits_for: String::new(),
            is_refused: false,
            act: Act::default(),
        }
    }

    /// Starts over from now: nothing confirmed before counts.
    pub fn retry(&mut self, now: Timestamp) {
        *self = Self { request: self.request, act: self.act.again(), ..Self::new(now) };
    }

    /// Whether an act on the process is under way.
    pub const fn is_acting(&self) -> bool {
        self.act.is_acting()
    }

    /// Whether one was ordered that nobody but a person goes on with: the old process may live on for long.
    pub const fn waits_for_a_hand(&self) -> bool {
        self.act.is_ordered() && !self.act.is_acting()
    }

    /// Whether an act was ordered in this phase.
    pub fn has_acted(&self) -> bool {
        self.act.since().is_some()
    }

    /// Looks, and acts if it may.
    pub fn run(&mut self, engine: &mut Engine, turn: Turn) -> Flow {
        let Some(visit) = engine.visit.value().clone() else { return Flow::Stay("reading the cluster".to_owned()) };
        if self.act.is_ordered() {
            return self.follow(engine, &visit, turn);
        }
        if let Some(flow) = self.came_back(engine, &visit) {
            return flow;
        }
        let is_forced = engine.is_forced(&visit);
        if is_forced && engine.has_call_in_flight() {
            return Flow::Stay("forced: waiting for the end of the last request".to_owned());
        }
        if !is_forced && let Some(flow) = self.confirm(engine, &visit, turn) {
            return flow;
        }
        if turn.may_act {
            let (address, id) = (&visit.address, visit.old_id.as_str());
            engine.forced = None;
            self.act.restart(engine, Component::Ticdc, address, visit.to.as_ref(), id, is_forced);
        }
        Flow::Stay("restarting".to_owned())
    }

    /// Another process answers at the address although this phase has nothing under way: our own act, late, or
    /// somebody else's.
    fn came_back(&self, engine: &mut Engine, visit: &Visit) -> Option<Flow> {
        let new = engine.new_process(&visit.address, &visit.old_id, self.act.since().unwrap_or(self.since))?;
        if self.has_acted() {
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
            if let Ok(work) = reading {
                engine.drain_was_answered(visit, work, sent_at);
            }
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
                Err(why) => {
                    self.is_refused = is_for_good(why.kind);
                    self.waits_for = format!("the {} {why}", visit.architecture.owner());
                }
            }
        }
        if let Some(round) = engine.round(visit).filter(|round| round.sweep.begun >= self.since) {
            // Only the newest round counts: what was empty a moment ago may have been given tables since.
            self.round = false;
            match round.judge() {
                Verdict::Empty => self.round = true,
                Verdict::Carries(list) => {
                    let tables = counted(tables_in(&list), "table");
                    return Some(Flow::Back(PhaseKind::Drain, format!("{tables} came back to it")));
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
        if !is_zero && let Some(flow) = self.send(engine, visit, turn) {
            return Some(flow);
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
        let why = if self.waits_for.is_empty() { String::new() } else { format!(": {}", self.waits_for) };
        Some(Flow::Stay(format!("making sure once more that it is empty{why}")))
    }

    /// Asks for one more zero, also where a question is due that it may answer; a question of its own if that is needed.
    fn send(&mut self, engine: &mut Engine, visit: &Visit, turn: Turn) -> Option<Flow> {
        if self.request.is_some() || !engine.drain_is_due() {
            return None;
        }
        match ready(engine, visit) {
            Ready::Of(term) if turn.may_act || (engine.may_ask_again() && !self.is_refused) => {
                self.request = Some(ask_for_drain(engine, visit, &term));
            }
            Ready::Asks(flow) => return Some(flow),
            Ready::NotYet(why) => self.waits_for = why,
            // It is not even asked: the answer would be that the owner cannot be drained.
            Ready::Owns if turn.may_act => {
                let owner = visit.architecture.owner();
                return Some(Flow::Back(PhaseKind::Drain, format!("it is the {owner} now")));
            }
            Ready::Of(_) | Ready::Owns => {}
        }
        None
    }

    fn follow(&mut self, engine: &mut Engine, visit: &Visit, turn: Turn) -> Flow {
        let what = visit.address.to_string();
        let words = Words {
            what: &what,
            means: "The process may be down, or still the old one. Nothing else is stopped meanwhile.",
            retry: "make sure it is empty and restart it again",
        };
        self.act.follow(engine, turn, &words, |engine, since| {
            let new = engine.new_process(&visit.address, &visit.old_id, since)?;
            Some(format!("a new process answers as {}", new.short()))
        })
    }
}
