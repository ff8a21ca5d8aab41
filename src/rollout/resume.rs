//! Going on after the program was gone: from the durable state to an engine that is *undecided*.
//!
//! What was sent and not answered may have arrived or not; nothing is sent again on the strength of the journal. One full
//! round is read first; it says whether the node in hand is as it was, has come back as another process, or is not
//! there. Then a person is told all of it, and chooses. Until then nothing is sent.

use super::command::Command;
use super::control::Life;
use super::durable::{Durable, Intent, IntentKind, Span, Tracked};
use super::engine::{Engine, Request};
use super::phase::question;
use super::plan::{Phase, Target};
use super::policy::Policy;
use super::view::{PhaseKind, PhaseState, Question, StepKind};
use crate::cluster::Timestamp;

/// The reason of the question that only needs a word: nothing is unsettled.
pub const RESUMED: &str = "resumed";

/// What a round shows of the process that the rollout had in hand.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    /// The rollout was at no process, or not far enough for it to matter: the phase simply begins again.
    AsItWas(String),
    /// Another process answers there, as it should: its restart is over.
    CameBack(String),
    /// Another process answers there, and not as it should: the step begins again.
    BeginAgain(String),
    /// Nobody answers there.
    Nobody(String),
}

impl Found {
    fn text(&self) -> &str {
        match self {
            Self::AsItWas(text) | Self::CameBack(text) | Self::BeginAgain(text) | Self::Nobody(text) => text,
        }
    }
}

impl Engine {
    /// An engine that goes on from what a journal kept. It is undecided: see the head of this file.
    pub fn resume(request: Request, policy: Policy, durable: Durable, now: Timestamp) -> Self {
        let mut engine = Self::new(request, policy);
        engine.now = now;
        engine.resumed_at = Some(now);
        engine.sent = durable.sent;
        engine.span = Tracked::new(Span { ended_at: None, ..durable.span.clone() });
        engine.plan = Tracked::kept(durable.plan.clone());
        engine.visit = Tracked::kept(durable.visit.clone());
        engine.tidb_before = Tracked::kept(durable.tidb_before.clone());
        engine.obligations = Tracked::kept(durable.obligations.clone());
        engine.in_flight = Tracked::kept(durable.intents.clone());
        engine.state.resume(durable.standing.clone());
        engine.recorded = durable;
        engine.cursor = engine.next_phase().unwrap_or(engine.cursor);
        engine
    }

    /// Looks at what was read since the program came back, and asks. Says whether the engine is still undecided.
    pub(super) fn is_undecided(&mut self) -> bool {
        let Some(since) = self.resumed_at else { return false };
        if self.state.is_over() {
            self.resumed_at = None;
            return false;
        }
        match self.unread_since(since) {
            None => self.tell_found(),
            Some(missing) if self.now.since(since) >= self.policy.unknown_asks => {
                let at = self.span.started_at;
                let question = question(
                    "resume_unread",
                    format!("The cluster could not be read since the program came back: {missing}."),
                    format!(
                        "The rollout {} is where it was; nothing is sent before the cluster was read.",
                        begun(at, self.now)
                    ),
                    "See to what is named here; it is noticed by itself.",
                    &[],
                );
                self.ask(question);
            }
            Some(_) => {}
        }
        true
    }

    fn unread_since(&self, since: Timestamp) -> Option<String> {
        let cdc = self.picture.cdc.as_ref().filter(|sweep| sweep.begun >= since);
        let Some(cdc) = cdc else { return Some("TiCDC has not answered yet".to_owned()) };
        for group in &cdc.groups {
            let why = group.captures.as_ref().err().or_else(|| group.changefeeds.as_ref().err());
            if let Some(why) = why {
                return Some(format!("TiCDC cluster {} {why}", group.cluster_id));
            }
        }
        if !self.request.has_tidb {
            return None;
        }
        match self.picture.tidb.as_ref().filter(|sweep| sweep.begun >= since).map(|sweep| &sweep.state) {
            Some(Ok(_)) => None,
            Some(Err(why)) => Some(format!("the TiDB upgrade state: it {why}")),
            None => Some("TiDB has not answered yet".to_owned()),
        }
    }

    fn tell_found(&mut self) {
        if self.state.standing().life == Life::Aborted {
            // What is owed is offered again, as after the abort.
            self.in_flight.clear();
            self.resumed_at = None;
            self.state.decide();
            self.offer();
            return;
        }
        let found = self.found();
        self.settle_intents(&found);
        let question = self.resumed_question(&found);
        self.ask(question);
    }

    /// Takes away what needs no answer any more: the servers have shown what came of it, or it is too long ago to come to
    /// anything yet.
    fn settle_intents(&mut self, found: &Found) {
        let is_moved = !matches!(found, Found::AsItWas(_) | Found::Nobody(_));
        let owns = self.visit.as_ref().is_some_and(|visit| self.term(visit).is_some_and(|(id, _)| id == visit.old_id));
        let (now, policy) = (self.now, self.policy.clone());
        let is_open = |intent: &Intent| {
            let age = now.since(intent.at);
            match intent.kind {
                IntentKind::Drain | IntentKind::Upgrade => false,
                IntentKind::Resign => owns && age < policy.resign_deadline,
                IntentKind::Act => !is_moved && age < policy.verify_deadline,
            }
        };
        if !self.in_flight.values().all(is_open) {
            self.in_flight.retain(|_, intent| is_open(intent));
        }
    }

    fn resumed_question(&self, found: &Found) -> Question {
        let unsettled: Vec<_> = self.in_flight.values().map(|intent| intent.what.clone()).collect();
        let place = match self.next_phase().and_then(|(step, phase)| {
            let step = self.plan.get(step)?;
            Some((step, step.phases.get(phase)?))
        }) {
            Some((step, phase)) if phase.state == PhaseState::Waiting => {
                format!("before {} of {}", phase.kind.word(), step.target.label())
            }
            Some((step, phase)) => format!("in {} of {}", phase.kind.word(), step.target.label()),
            None => "after its last phase".to_owned(),
        };
        let sent = if unsettled.is_empty() {
            String::new()
        } else {
            format!(" Sent, and not known to have arrived: {}.", unsettled.join("; "))
        };
        let begun = begun(self.span.started_at, self.now);
        let what = format!("This rollout {begun} and was left {place}. {}{sent}", found.text());
        let (reason, means, own): (_, _, &[_]) = match found {
            Found::Nobody(_) => (
                "nobody_there",
                "It may be down, or just starting; nothing else is touched before it is known.",
                &[(Command::Retry, "look again")],
            ),
            _ if unsettled.is_empty() => (
                RESUMED,
                "Nothing was sent since the program came back.",
                &[(Command::Continue, "go on from here"), (Command::Step, "run the next phase, then wait")],
            ),
            _ => (
                "unsettled",
                "Nothing is sent again on the strength of the journal: each phase looks first at what the servers show.",
                &[
                    (Command::Continue, "go on from what the servers show"),
                    (Command::Step, "run the next phase, then wait"),
                ],
            ),
        };
        let advice = match found {
            Found::Nobody(_) => "Start the process on its node (the binary that is there); this is noticed by itself.",
            _ => "Go on, or abort and see what is owed.",
        };
        question(reason, what, means, advice, own)
    }

    /// What stands at the place where the rollout was left.
    fn found(&self) -> Found {
        let as_it_was = || Found::AsItWas("Nothing there stands in the way.".to_owned());
        let Some((step, phase)) = self.next_phase() else { return as_it_was() };
        let Some(at) = self.plan.get(step).filter(|step| step.is_open) else { return as_it_was() };
        let kind = at.phases.get(phase).map(|phase| phase.kind);
        match (&at.target, kind) {
            (Target::Capture { .. }, Some(kind)) => self.found_capture(kind, at.kind),
            (Target::Tidb(address), Some(kind)) => self.found_tidb(kind, address),
            _ => as_it_was(),
        }
    }

    fn found_capture(&self, phase: PhaseKind, step: StepKind) -> Found {
        let Some(visit) = self.visit.value() else { return Found::BeginAgain("The step had not begun.".to_owned()) };
        let at = &visit.address;
        let node = self.picture.cdc.as_ref().and_then(|sweep| sweep.node_at(at));
        let status = match node.map(|node| &node.status) {
            Some(Ok(status)) => status,
            // These phases wait for it by themselves, and say so.
            _ if matches!(phase, PhaseKind::Verify | PhaseKind::Settle) => {
                return Found::AsItWas(format!("{at} does not answer at the moment."));
            }
            Some(Err(why)) => return Found::Nobody(format!("{at} {why}.")),
            None => return Found::Nobody(format!("{at} was not asked.")),
        };
        if status.id.as_ref() == Some(&visit.old_id) {
            return Found::AsItWas(format!("{at} is still the process it was ({}).", visit.old_id.short()));
        }
        let id = status.id.as_ref().map_or("no id yet", |id| id.short());
        let version = &status.version_text;
        let is_right = match (&visit.to, &status.version) {
            (Some(to), Some(version)) => version.is_same_release(to),
            (None, Some(version)) => step == StepKind::Recover && version == &visit.old_version,
            (_, None) => false,
        };
        if is_right || phase == PhaseKind::Settle {
            Found::CameBack(format!("{at} is another process now ({id}) and runs {version}: it has been restarted."))
        } else {
            Found::BeginAgain(format!("{at} is another process now ({id}) and runs {version}: its step begins again."))
        }
    }

    fn found_tidb(&self, phase: PhaseKind, address: &crate::cluster::Address) -> Found {
        let Some(before) = self.tidb_before.value().as_ref().filter(|_| phase == PhaseKind::Restart) else {
            return Found::AsItWas(format!("TiDB {address} proves itself."));
        };
        let server = self.picture.tidb.as_ref().and_then(|sweep| sweep.server_at(address));
        match server.map(|server| &server.info) {
            Some(Ok(info)) if info.ddl_id == before.ddl_id => {
                Found::AsItWas(format!("TiDB {address} is still the process it was."))
            }
            Some(Ok(info)) if info.version.is_same_release(&self.request.target) => {
                Found::CameBack(format!("TiDB {address} is another process now and runs {}.", info.version))
            }
            Some(Ok(info)) => {
                Found::BeginAgain(format!("TiDB {address} is another process and runs {}.", info.version))
            }
            Some(Err(why)) => Found::Nobody(format!("TiDB {address} {why}.")),
            None => Found::Nobody(format!("TiDB {address} was not asked.")),
        }
    }

    /// A person answered what was asked after the program came back.
    pub(super) fn resume_with(&mut self, command: Command) {
        if self.resumed_at.is_none() {
            return;
        }
        self.state.withdraw();
        if command == Command::Abort {
            // What was sent may still arrive; what it would change is owed either way.
            self.resumed_at = None;
            self.in_flight.clear();
            self.state.decide();
        } else {
            self.decide();
        }
    }

    /// A person chose to go on: the plan is brought to what the servers show.
    fn decide(&mut self) {
        if self.resumed_at.take().is_none() {
            return;
        }
        let found = self.found();
        self.note(format!("resumed: {}", found.text()));
        self.in_flight.clear();
        self.state.decide();
        let Some((step, phase)) = self.next_phase() else { return };
        let now = self.now;
        let is_old = self.is_old_process();
        let Some(at) = self.plan.get_mut(step) else { return };
        match found {
            Found::CameBack(evidence) => {
                for phase in &mut at.phases {
                    let is_before_proof = !matches!(phase.kind, PhaseKind::Verify | PhaseKind::Settle);
                    if is_before_proof && !phase.state.is_over() {
                        phase.state = PhaseState::Done;
                        phase.ended_at = Some(now);
                        phase.note.clone_from(&evidence);
                    } else if !phase.state.is_over() {
                        *phase = Phase::new(phase.kind);
                    }
                }
                if let Some(visit) = &mut *self.visit {
                    visit.returned_at = Some(now);
                }
            }
            Found::BeginAgain(_) => {
                at.is_open = false;
                for phase in &mut at.phases {
                    *phase = Phase::new(phase.kind);
                }
                self.visit.set(None);
            }
            // A process that was to be stopped and is not: everything about it is asked afresh.
            Found::AsItWas(_) | Found::Nobody(_) => {
                let back_to = at.phases.iter().position(|phase| phase.kind == PhaseKind::Restart);
                let first = back_to.filter(|_| is_old).map_or(phase, |restart| restart.min(phase));
                for phase in at.phases.iter_mut().skip(first) {
                    *phase = Phase::new(phase.kind);
                }
            }
        }
        self.cursor = self.next_phase().unwrap_or(self.cursor);
    }

    /// Whether the capture in hand still is the process that was to be restarted.
    fn is_old_process(&self) -> bool {
        let Some(visit) = self.visit.value() else { return false };
        let node = self.picture.cdc.as_ref().and_then(|sweep| sweep.node_at(&visit.address));
        node.and_then(|node| node.status.as_ref().ok()).is_some_and(|status| status.id.as_ref() == Some(&visit.old_id))
    }
}

fn begun(at: Option<Timestamp>, now: Timestamp) -> String {
    at.map_or_else(
        || "was begun".to_owned(),
        |at| format!("was begun {} ago", crate::cluster::units::spoken(now.since(at))),
    )
}
