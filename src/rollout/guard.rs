//! Guards: what pauses the rollout whichever phase runs. One that tripped and was acknowledged by *continue* is silent
//! until its condition clears.

use std::collections::BTreeSet;
use std::time::Duration;

use super::command::Command;
use super::engine::Engine;
use super::phase::question;
use super::view::Question;
use crate::cluster::Timestamp;
use crate::cluster::units::spoken;

/// The guards there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guard {
    /// `TiCDC` has had no owner for long.
    NoOwner,
    /// More than one capture is called owner.
    TwoOwners,
    /// Nothing was read for long.
    NothingRead,
    /// The journal cannot be written, and nothing is done that does not stand there.
    Unwritten,
}

impl Guard {
    const ALL: [Self; 4] = [Self::Unwritten, Self::NoOwner, Self::TwoOwners, Self::NothingRead];

    fn of(question: &Question) -> Option<Self> {
        Self::ALL.into_iter().find(|guard| guard.reason() == question.reason)
    }

    /// The stable name of its question.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NoOwner => "no_owner",
            Self::TwoOwners => "two_owners",
            Self::NothingRead => "nothing_read",
            Self::Unwritten => "journal_unwritten",
        }
    }
}

/// What is known of the guards.
#[derive(Clone, Debug, Default)]
pub struct Guards {
    acknowledged: BTreeSet<Guard>,
    /// Since when the journal cannot be written, and why.
    pub(super) unwritten: Option<(Timestamp, String)>,
}

impl Engine {
    /// Trips a guard whose condition holds and was not acknowledged.
    pub(super) fn watch_guards(&mut self) {
        if !self.state.is_going() || self.plan.is_empty() {
            return;
        }
        for guard in Guard::ALL {
            let held = self.held(guard);
            let Some(held) = held else {
                self.guards.acknowledged.remove(&guard);
                continue;
            };
            if self.guards.acknowledged.contains(&guard) || !self.may_act() {
                continue;
            }
            let (what, means) = match guard {
                Guard::NoOwner => (
                    format!("TiCDC has had no owner for {}.", spoken(held)),
                    "Nothing is scheduled and no checkpoint moves without one; after a crash 8 to 10 s are normal.",
                ),
                Guard::TwoOwners => (
                    format!("For {} more than one capture was called owner.", spoken(held)),
                    "What either of them says of tables proves nothing.",
                ),
                Guard::NothingRead => (
                    format!("Nothing was read of TiCDC for {}.", spoken(held)),
                    "No phase may go on what was read before.",
                ),
                Guard::Unwritten => (
                    self.guards.unwritten.as_ref().map(|(_, why)| why.clone()).unwrap_or_default(),
                    "What was to be done next was not done: nothing is, that is not written down before.",
                ),
            };
            let (advice, go_on) = match guard {
                Guard::Unwritten => ("See to the disk and the directory; then go on.", "try again, and go on"),
                Guard::NoOwner | Guard::TwoOwners | Guard::NothingRead => (
                    "See to the captures. Continue goes on, and is silent about this until it is over.",
                    "go on; say no more of it until it is over",
                ),
            };
            let question = question(guard.reason(), what, means, advice, &[(Command::Continue, go_on)]);
            self.ask(question);
            return;
        }
    }

    /// For how long its condition has held, if beyond its limit.
    fn held(&self, guard: Guard) -> Option<Duration> {
        let groups = self.picture.groups.values();
        let (since, limit) = match guard {
            // The first time is one too many.
            Guard::Unwritten => return self.guards.unwritten.as_ref().map(|(since, _)| self.now.since(*since)),
            Guard::NoOwner => (groups.filter_map(|group| group.no_owner_since).min()?, self.policy.no_owner_guard),
            Guard::TwoOwners => (groups.filter_map(|group| group.contested_since).min()?, self.policy.no_owner_guard),
            Guard::NothingRead => (self.picture.cdc.as_ref()?.begun, self.policy.unknown_asks),
        };
        let held = self.now.since(since);
        (held >= limit.max(self.fresh_within())).then_some(held)
    }

    /// The guard that asks at the moment.
    fn asking_guard(&self) -> Option<Guard> {
        self.state.question().and_then(Guard::of)
    }

    /// Whether a question must wait, since a guard asks: answered first, it would be forgotten.
    pub(super) fn is_kept_by_guard(&self, question: &Question) -> bool {
        self.asking_guard().is_some() && Guard::of(question).is_none()
    }

    /// The phase that asked has come to its end. A guard's question stands whichever phase runs: only a person answers
    /// it, and the next phase waits for that.
    pub(super) fn withdraw_of_phase(&mut self) {
        if self.asking_guard().is_none() {
            self.state.withdraw();
        }
    }

    /// Takes *continue* as the answer to a guard; says whether there was one.
    pub(super) fn acknowledge_guard(&mut self) -> bool {
        let Some(guard) = self.asking_guard() else { return false };
        // A journal that still cannot be written is asked about again at once.
        if guard != Guard::Unwritten {
            self.guards.acknowledged.insert(guard);
        }
        self.resume_asking();
        true
    }
}
