//! Guards: what pauses the rollout whichever phase runs. One that tripped and was acknowledged by *continue* is silent
//! until its condition clears.

use std::collections::BTreeSet;
use std::time::Duration;

use super::command::Command;
use super::engine::Engine;
use super::phase::question;
use super::view::Question;
use crate::cluster::units::spoken;
use crate::cluster::{ChangefeedRow, ChangefeedState, Timestamp};

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
    /// More versions among the captures of a cluster than may run together.
    ThirdVersion,
    /// A changefeed that ran has failed.
    ChangefeedFailed,
}

impl Guard {
    const ALL: [Self; 6] = [
        Self::Unwritten,
        Self::NoOwner,
        Self::TwoOwners,
        Self::NothingRead,
        Self::ThirdVersion,
        Self::ChangefeedFailed,
    ];

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
            Self::ThirdVersion => "third_version",
            Self::ChangefeedFailed => "changefeed_failed",
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
            // Replication has stopped altogether: that is said before whatever else is asked.
            let is_urgent =
                guard == Guard::ThirdVersion && self.state.is_held_by_question() && self.asking_guard().is_none();
            if self.guards.acknowledged.contains(&guard) || !(self.state.is_unheld() || is_urgent) {
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
                Guard::ThirdVersion => (
                    format!(
                        "Among the captures run {}: more than two versions.",
                        self.too_many_versions().unwrap_or_default()
                    ),
                    "TiCDC then stops every changefeed, although their state still reads normal: no checkpoint moves.",
                ),
                Guard::ChangefeedFailed => (
                    format!("{} ran when this step began and has failed.", self.failed_changefeeds().join(", ")),
                    "It replicates nothing any more, and its tables were stopped. The rollout did not ask for that.",
                ),
                Guard::Unwritten => (
                    self.guards.unwritten.as_ref().map(|(_, why)| why.clone()).unwrap_or_default(),
                    "What was to be done next was not done: nothing is, that is not written down before.",
                ),
            };
            let (advice, go_on) = match guard {
                Guard::ThirdVersion => (
                    "Bring the captures to at most two versions at once; replication goes on by itself then. This is urgent.",
                    "go on; say no more of it until it is over",
                ),
                Guard::ChangefeedFailed => (
                    "See its error (Enter on it shows it), mend the cause and resume it; or go on without it.",
                    "go on without it; say no more of it until it is over",
                ),
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
            Guard::ThirdVersion => return self.too_many_versions().map(|_| Duration::ZERO),
            Guard::ChangefeedFailed => {
                return (!self.failed_changefeeds().is_empty()).then_some(Duration::ZERO);
            }
            Guard::NoOwner => (groups.filter_map(|group| group.no_owner_since).min()?, self.policy.no_owner_guard),
            Guard::TwoOwners => (groups.filter_map(|group| group.contested_since).min()?, self.policy.no_owner_guard),
            Guard::NothingRead => {
                // While the program slept nobody was there to read.
                let read = self.picture.cdc.as_ref()?.begun;
                (self.state.unread_since().map_or(read, |woke| read.max(woke)), self.policy.unknown_asks)
            }
        };
        let held = self.now.since(since);
        (held >= limit.max(self.fresh_within())).then_some(held)
    }

    /// The guard that asks at the moment.
    fn asking_guard(&self) -> Option<Guard> {
        self.state.question().and_then(Guard::of)
    }

    /// Whether what is asked at the moment holds whichever phase runs.
    pub(super) fn is_guard_asking(&self) -> bool {
        self.asking_guard().is_some()
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

    /// The versions of a cluster where there are more than two, ghosts included: the rule compares texts (contract
    /// section 5).
    fn too_many_versions(&self) -> Option<String> {
        self.picture.groups.values().find_map(|group| {
            let versions = &group.versions;
            (versions.len() > 2).then(|| versions.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(", "))
        })
    }

    /// Changefeeds that ran when the present step began and are failed by the newest reading.
    fn failed_changefeeds(&self) -> Vec<String> {
        let Some(visit) = self.visit.value() else { return Vec::new() };
        let rows = self.picture.groups.get(&visit.cluster).and_then(|group| group.changefeeds.known());
        let has_failed = |row: &&ChangefeedRow| {
            let ran = || visit.feeds.get(&row.id).is_some_and(|before| before.state.is_running());
            row.state == ChangefeedState::Failed && ran()
        };
        let failed = rows.into_iter().flatten().filter(has_failed);
        failed.map(|row| format!("changefeed {}", row.id.label())).collect()
    }
}
