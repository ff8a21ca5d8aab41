//! Asking for a drain: what must hold beside the target, and when the request is repeated.
//!
//! In the new architecture the drain is a session in the coordinator's memory. When the coordinator changes it is lost,
//! and the new one places nothing at all until the drain of that capture is asked for again or the capture leaves
//! (contract section 3.2; recorded cdc-new-more 08). So there, and only there, the request goes on through a hold that
//! no person made, and a person who paused is offered to ask once more. It goes on until it is *heard*: a coordinator
//! that still lists its dead predecessor answers 1 and opens nothing (recorded cdc-new-more 09).

use super::super::{Flow, LOOK_AGAIN, ask};
use crate::cluster::{Architecture, CaptureId, Reading, Timestamp};
use crate::rollout::command::Command;
use crate::rollout::effect::{Call, CallAnswer, EffectId};
use crate::rollout::engine::{Engine, Visit};
use crate::rollout::runner::Active;

/// An owner and since when it stands: the same capture elected again knows nothing of before either.
pub(crate) type Term = (CaptureId, Timestamp);

/// The last drain request, whichever phase sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    capture: CaptureId,
    at: Timestamp,
    /// The owner under whom the drain is known to be open: the first one asked, then each that has heard of it.
    open_under: Term,
}

/// Whether a drain may be asked for now.
pub(crate) enum Ready {
    /// Of this owner.
    Of(Term),
    /// Not yet, for this reason.
    NotYet(String),
    /// The target owns.
    Owns,
    /// Only a person can decide.
    Asks(Flow),
}

/// What must hold before a drain is asked for, in either phase that does.
pub(crate) fn ready(engine: &Engine, visit: &Visit) -> Ready {
    let an_owner = visit.architecture.an_owner();
    let Some((owner, since)) = engine.picture.owner(&visit.cluster).map(|(id, since)| (id.clone(), since)) else {
        return Ready::NotYet(format!("waiting for {an_owner}"));
    };
    if owner == visit.old_id {
        return Ready::Owns;
    }
    if !engine.is_fresh() || engine.now.since(since) < engine.policy.owner_stands {
        return Ready::NotYet(format!("waiting for {an_owner} who has stood a while"));
    }
    match beside(engine, visit) {
        Some(flow) => Ready::Asks(flow),
        None => Ready::Of((owner, since)),
    }
}

/// What must hold beside the target before a drain is asked for; a question if it does not.
pub(crate) fn beside(engine: &Engine, visit: &Visit) -> Option<Flow> {
    if let Some(other) = engine.picture.leaving_beside(&visit.cluster, &visit.old_id).first() {
        let label = engine.capture_label(&visit.cluster, other);
        return Some(ask(
            "leftover",
            format!("Capture {label} is stopping while {} is to be drained.", visit.address),
            match visit.architecture {
                Architecture::Classic => {
                    "Tables would go back and forth between the two without end, so the drain is not asked for."
                }
                Architecture::New => {
                    "Its drain is held open until it leaves, and no other capture is drained before, so that is not asked for."
                }
            },
            format!("Restart {label} on the binary it has; when it is back, look again."),
            &[LOOK_AGAIN],
        ));
    }
    if engine.picture.able_beside(&visit.cluster, &visit.old_id).is_empty() {
        return Some(ask(
            "nobody_able",
            format!("No capture but {} is able to take tables.", visit.address),
            "A drain has nowhere to move them.",
            "Bring another capture up, then look again.",
            &[(Command::Retry, "look again and go on from here")],
        ));
    }
    None
}

/// Sends the drain request; the obligation stands before it.
pub(crate) fn ask_for_drain(engine: &mut Engine, visit: &Visit, term: &Term) -> EffectId {
    engine.owe_drain(visit);
    let before = engine.asked_drain.take().filter(|asked| asked.capture == visit.old_id);
    engine.asked_drain = Some(Asked {
        capture: visit.old_id.clone(),
        at: engine.now,
        open_under: before.map_or_else(|| term.clone(), |asked| asked.open_under),
    });
    let owner = engine.picture.address_of(&visit.cluster, &term.0);
    let call = Call::Drain { cluster: visit.cluster.clone(), capture: visit.old_id.clone(), owner };
    engine.call(call)
}

impl Engine {
    /// Whether the drain may be asked for again by now.
    pub(crate) fn drain_is_due(&self) -> bool {
        self.asked_drain.as_ref().is_none_or(|asked| self.now.since(asked.at) >= self.policy.zeros_apart)
    }

    /// The owner and since when it stands.
    pub(crate) fn term(&self, visit: &Visit) -> Option<Term> {
        self.picture.owner(&visit.cluster).map(|(id, since)| (id.clone(), since))
    }

    /// New architecture: whether the coordinator changed while our drain of this capture was open, and the present one
    /// has not heard of it. Until it has, it places nothing in the whole cluster.
    pub(crate) fn is_drain_lost_of(&self, visit: &Visit) -> bool {
        let asked = self.asked_drain.as_ref().filter(|asked| asked.capture == visit.old_id);
        visit.architecture == Architecture::New
            && asked.zip(self.term(visit)).is_some_and(|(asked, term)| asked.open_under != term)
    }

    /// Takes an answer to our drain as a sign that the coordinator has heard of it. A 1 is none while tables are there:
    /// it is also what one says that has not begun yet.
    pub(crate) fn drain_was_answered(&mut self, visit: &Visit, work: u64, sent_at: Timestamp) {
        let Some(term) = self.term(visit).filter(|(_, since)| sent_at >= *since) else { return };
        let is_empty = self.round(visit).and_then(|round| round.tables_there()).is_some_and(|there| there.is_empty());
        if work == 1 && !is_empty {
            return;
        }
        if let Some(asked) = self.asked_drain.as_mut().filter(|asked| asked.capture == visit.old_id) {
            asked.open_under = term;
            self.state.use_ask_again();
        }
    }

    /// Where no machine asks: between two phases, and while a restart waits for somebody's hand. A drained capture loses
    /// its drain with the coordinator there like anywhere.
    pub(crate) fn keep_drain_open(&mut self) {
        if self.visit.is_none() {
            return;
        }
        if let Some((sent_at, Ok(work))) = self.take_kept_answer()
            && let Some(visit) = self.visit.value().clone()
        {
            self.drain_was_answered(&visit, work, sent_at);
            self.drain_worked(work);
        }
        let is_unasked = self.active.as_ref().is_none_or(Active::waits_for_a_hand);
        let may_send = self.may_ask_again() || (self.active.is_some() && self.may_act());
        if !is_unasked || !may_send || !self.is_drain_lost() || !self.in_flight.is_empty() || !self.drain_is_due() {
            return;
        }
        if let Some(visit) = self.visit.value().clone()
            && let Ready::Of(term) = ready(self, &visit)
        {
            self.kept_open = Some(ask_for_drain(self, &visit, &term));
        }
    }

    fn take_kept_answer(&mut self) -> Option<(Timestamp, Reading<u64>)> {
        let (at, answer) = self.take_answer(self.kept_open?)?;
        self.kept_open = None;
        match answer {
            CallAnswer::Drain(reading) => Some((at, reading)),
            CallAnswer::Resign(_) | CallAnswer::Start(_) | CallAnswer::Finish(_) => None,
        }
    }

    /// Whether nothing in the cluster is placed until our drain is asked for again.
    pub(crate) fn is_drain_lost(&self) -> bool {
        let visit = self.visit.as_ref().filter(|visit| self.owes_drain(&visit.old_id));
        visit.is_some_and(|visit| self.is_drain_lost_of(visit))
    }

    /// Whether the request may be repeated although nothing else may be sent: see the head of this file.
    pub(crate) fn may_ask_again(&self) -> bool {
        self.state.unread_since().is_none()
            && self.is_drain_lost()
            && (self.state.is_held_by_question() || self.state.is_told_to_ask_again())
    }
}
