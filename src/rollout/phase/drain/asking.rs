//! Asking for a drain: what must hold beside the target, and when the request is repeated.
//!
//! In the new architecture the drain is a session in the coordinator's memory. When the coordinator changes it is lost,
//! and the new one places nothing at all until the drain of that capture is asked for again or the capture leaves
//! (contract section 3.2; recorded cdc-new-more 08). So there, and only there, the request goes on through a pause that
//! no person made, and a person who paused is offered to ask once more.

use super::super::{Flow, LOOK_AGAIN, ask};
use crate::cluster::{Architecture, CaptureId, Reading, Timestamp};
use crate::rollout::command::Command;
use crate::rollout::effect::{Call, CallAnswer, EffectId};
use crate::rollout::engine::{Engine, Visit};

/// The last drain request, whichever phase sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    capture: CaptureId,
    /// Who owned then.
    owner: CaptureId,
    at: Timestamp,
    /// Whether an earlier request for the same capture was sent under another owner, or another term of this one.
    has_moved: bool,
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
pub(crate) fn ask_for_drain(engine: &mut Engine, visit: &Visit, owner: &CaptureId) -> EffectId {
    engine.owe_drain(visit);
    engine.asked_drain = Some(Asked {
        capture: visit.old_id.clone(),
        owner: owner.clone(),
        at: engine.now,
        has_moved: engine.has_coordinator_changed(visit),
    });
    engine.state.use_ask_again();
    let owner = engine.picture.address_of(&visit.cluster, owner);
    let call = Call::Drain { cluster: visit.cluster.clone(), capture: visit.old_id.clone(), owner };
    engine.call(call)
}

impl Engine {
    /// Whether the drain may be asked for again by now.
    pub(crate) fn drain_is_due(&self) -> bool {
        self.asked_drain.as_ref().is_none_or(|asked| self.now.since(asked.at) >= self.policy.zeros_apart)
    }

    /// New architecture: whether the coordinator changed while our drain of this capture was open. From then on one
    /// request need not be enough, since it may be answered before the new coordinator is ready.
    pub(crate) fn has_coordinator_changed(&self, visit: &Visit) -> bool {
        let asked = self.asked_drain.as_ref().filter(|asked| asked.capture == visit.old_id);
        asked.is_some_and(|asked| asked.has_moved) || self.is_placement_frozen(visit)
    }

    /// New architecture: whether the present coordinator has not been asked for our drain, and so places nothing.
    pub(crate) fn is_placement_frozen(&self, visit: &Visit) -> bool {
        let asked = self.asked_drain.as_ref().filter(|asked| asked.capture == visit.old_id);
        let owner = self.picture.owner(&visit.cluster);
        visit.architecture == Architecture::New
            && asked.zip(owner).is_some_and(|(asked, (owner, since))| owner != &asked.owner || since > asked.at)
    }

    /// Between two phases no machine asks: a drained capture that waits for its restart loses its drain with the
    /// coordinator like any other.
    pub(crate) fn keep_drain_open(&mut self) {
        if let Some((_, Ok(work))) = self.take_kept_answer() {
            self.drain_worked(work);
        }
        let Some(visit) = self.visit.value().clone() else { return };
        let is_open = self.active.is_none() && self.in_flight.is_empty() && self.owes_drain(&visit.old_id);
        if !is_open || !self.may_ask_again() || !self.drain_is_due() || !self.is_fresh() {
            return;
        }
        let Some((owner, since)) = self.picture.owner(&visit.cluster).map(|(id, since)| (id.clone(), since)) else {
            return;
        };
        let stands = self.now.since(since) >= self.policy.owner_stands;
        if stands && owner != visit.old_id && beside(self, &visit).is_none() {
            self.kept_open = Some(ask_for_drain(self, &visit, &owner));
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
        visit.is_some_and(|visit| self.is_placement_frozen(visit))
    }

    /// Whether the request may be repeated although nothing else may be sent: see the head of this file.
    pub(crate) fn may_ask_again(&self) -> bool {
        let has_changed = self.visit.as_ref().is_some_and(|visit| self.has_coordinator_changed(visit));
        has_changed && (self.state.is_held_by_question() || self.state.is_told_to_ask_again())
    }
}
