//! `resign`: the owner hands its duty over. Accepted is not done: it ends when a *different* owner has stood a while and
//! health answers (contract section 4.1).

use super::{Flow, LOOK_AGAIN, Turn, ask};
use crate::cluster::Timestamp;
use crate::cluster::units::spoken;
use crate::rollout::effect::{Call, CallAnswer, EffectId};
use crate::rollout::engine::Engine;

/// The machine.
#[derive(Clone, Debug, Default)]
pub struct Resign {
    sent: Option<(EffectId, Timestamp)>,
    refusal: Option<String>,
}

impl Resign {
    /// Starts over.
    pub fn retry(&mut self) {
        *self = Self::default();
    }

    /// Looks, and acts if it may.
    pub fn run(&mut self, engine: &mut Engine, turn: Turn) -> Flow {
        let Some(visit) = engine.visit.clone() else { return Flow::Stay("reading the cluster".to_owned()) };
        let policy = engine.policy.clone();
        if let Some((id, _)) = self.sent
            && let Some((_, CallAnswer::Resign(Err(why)))) = engine.take_answer(id)
        {
            self.refusal = Some(format!("the owner {why}"));
        }
        let owner = engine.picture.owner(&visit.cluster).map(|(id, since)| (id.clone(), since));
        match owner {
            Some((id, since)) if id != visit.old_id => {
                let stood = engine.picture.cdc.as_ref().map_or(std::time::Duration::ZERO, |s| s.begun.since(since));
                let is_healthy =
                    engine.picture.groups.get(&visit.cluster).and_then(|g| g.health.known().copied()) == Some(true);
                let label = engine.capture_label(&visit.cluster, &id);
                if stood >= policy.owner_stands && is_healthy {
                    return Flow::Done(format!("{label} owns and has stood {}; healthy", spoken(stood)));
                }
                Flow::Stay(format!("{label} owns now; waiting until it has stood a while and health answers"))
            }
            _ if self.sent.is_some() => self.waiting(turn, &policy.resign_deadline),
            Some((_, since)) => self.send(engine, &visit, since, turn),
            None => Flow::Stay("waiting for an owner".to_owned()),
        }
    }

    fn waiting(&self, turn: Turn, deadline: &std::time::Duration) -> Flow {
        if turn.spent >= *deadline {
            let what = self.refusal.clone().map_or_else(
                || format!("The owner was asked to resign {} ago and no other capture owns.", spoken(turn.spent)),
                |why| format!("The resign was not accepted: {why}."),
            );
            return ask(
                "resign_without_effect",
                what,
                "The owner cannot be drained, so this step waits. Each resign costs lag; it is not repeated by itself.",
                "See whether another capture is alive and not stopping, then retry.",
                &[(crate::rollout::command::Command::Retry, "ask it to resign once more")],
            );
        }
        Flow::Stay("resign accepted; waiting for another owner".to_owned())
    }

    fn send(
        &mut self,
        engine: &mut Engine,
        visit: &crate::rollout::engine::Visit,
        since: Timestamp,
        turn: Turn,
    ) -> Flow {
        if !engine.is_fresh() || engine.now.since(since) < engine.policy.owner_stands {
            return Flow::Stay("waiting for a fresh reading of the owner".to_owned());
        }
        let leaving = engine.picture.leaving_beside(&visit.cluster, &visit.old_id);
        if let Some(other) = leaving.first() {
            let label = engine.capture_label(&visit.cluster, other);
            return ask(
                "leftover",
                format!("Capture {label} is stopping."),
                "It will not take owner duty, and a drain beside it would send tables back and forth.",
                format!("Restart {label} on the binary it has; this step goes on when it is back."),
                &[LOOK_AGAIN],
            );
        }
        if engine.picture.able_beside(&visit.cluster, &visit.old_id).is_empty() {
            return ask(
                "nobody_able",
                "No other capture is able to own.".to_owned(),
                "A resign would give the duty back to the same capture.",
                "Bring another capture up, then look again.",
                &[LOOK_AGAIN],
            );
        }
        if turn.may_act {
            let call = Call::Resign { cluster: visit.cluster.clone(), owner: visit.address.clone() };
            self.sent = Some((engine.call(call), engine.now));
            engine.reset_spent();
        }
        Flow::Stay("asking the owner to resign".to_owned())
    }
}
