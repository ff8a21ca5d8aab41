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
    is_under_way: bool,
    /// A request of an earlier try that is still under way: nothing else is sent meanwhile.
    under_way: Option<EffectId>,
    /// A person goes on although health does not answer.
    is_waived: bool,
}

impl Resign {
    /// Starts over.
    pub fn retry(&mut self) {
        let under_way = self.sent.filter(|_| self.is_under_way).map(|(id, _)| id).or(self.under_way);
        *self = Self { under_way, ..Self::default() };
    }

    /// A person goes on although health does not answer.
    pub const fn confirm(&mut self) {
        self.is_waived = true;
    }

    /// Looks, and acts if it may.
    pub fn run(&mut self, engine: &mut Engine, turn: Turn) -> Flow {
        let Some(visit) = engine.visit.value().clone() else { return Flow::Stay("reading the cluster".to_owned()) };
        let policy = engine.policy.clone();
        if let Some((id, _)) = self.sent
            && let Some((_, CallAnswer::Resign(answer))) = engine.take_answer(id)
        {
            self.is_under_way = false;
            self.refusal = answer.err().map(|why| format!("the {} {why}", visit.architecture.owner()));
        }
        if self.under_way.is_some_and(|id| engine.take_answer(id).is_some()) {
            self.under_way = None;
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
                if stood >= policy.owner_stands && self.is_waived {
                    let stood = spoken(stood);
                    return Flow::Done(format!("{label} owns and has stood {stood}; health waived by a person"));
                }
                if turn.spent >= policy.unknown_asks {
                    return unhealthy(engine, &visit.cluster, &label);
                }
                Flow::Stay(format!("{label} owns now; waiting until it has stood a while and health answers"))
            }
            _ if self.sent.is_some() => self.waiting(turn, &policy.resign_deadline),
            Some((_, since)) => self.send(engine, &visit, since, turn),
            None if turn.spent >= policy.unknown_asks => ask(
                "no_owner_read",
                format!("For {} no owner of TiCDC could be read.", spoken(turn.spent)),
                "Without an owner nothing can be drained.",
                "See whether the captures can be reached and elect an owner, then look again.",
                &[LOOK_AGAIN],
            ),
            None => Flow::Stay(format!("waiting for {}", visit.architecture.an_owner())),
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
        if self.under_way.is_some() {
            return Flow::Stay("the last request is still under way".to_owned());
        }
        if !engine.is_fresh() || engine.now.since(since) < engine.policy.owner_stands {
            return Flow::Stay("waiting for a fresh reading of the owner".to_owned());
        }
        let leaving = engine.picture.leaving_beside(&visit.cluster, &visit.old_id);
        if let Some(other) = leaving.first() {
            let label = engine.capture_label(&visit.cluster, other);
            return ask(
                "leftover",
                format!("Capture {label} is stopping."),
                "It will not take owner duty, and no drain is asked for beside it.",
                format!("Restart {label} on the binary it has; when it is back, look again."),
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
            self.is_under_way = true;
            engine.reset_spent();
        }
        Flow::Stay(format!("asking the {} to resign", visit.architecture.owner()))
    }
}

/// Another owner stands, and health does not answer: only a person can go on.
fn unhealthy(engine: &Engine, cluster: &crate::cluster::ClusterId, label: &str) -> Flow {
    let health = engine.picture.groups.get(cluster).map(|group| &group.health);
    let found = match health.and_then(|health| health.failure()) {
        Some(why) => format!("it {why}"),
        None => "TiCDC says the cluster is unhealthy".to_owned(),
    };
    ask(
        "unhealthy",
        format!("{label} owns, but health does not answer: {found}."),
        "A changefeed whose captures are not all ready, or a third version, is the usual cause; the drain may then stall.",
        "See what is not ready and look again, or go on all the same.",
        &[LOOK_AGAIN, (crate::rollout::command::Command::Confirm, "go on although health does not answer")],
    )
}
