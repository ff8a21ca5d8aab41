//! Guards: what pauses the rollout whichever phase runs. One that tripped and was acknowledged by *continue* is silent
//! until its condition has been gone for a while, or something new comes to it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::command::Command;
use super::durable::IntentKind;
use super::engine::Engine;
use super::phase::{Machine, question};
use super::view::Question;
use crate::cluster::units::spoken;
use crate::cluster::{ChangefeedRow, ChangefeedState, Timestamp};

mod watched;

use watched::Watched;

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
    /// A capture does not answer, and this rollout did not stop it.
    CaptureSilent,
    /// A `TiDB` server does not answer, and this rollout did not stop it.
    TidbSilent,
    /// A changefeed is behind by more than it may be, and does not catch up.
    Lag,
    /// Somebody else told the owner to resign.
    ForeignResign,
    /// Somebody else put `TiDB` into the upgrading state.
    ForeignStart,
}

impl Guard {
    const ALL: [Self; 11] = [
        Self::Unwritten,
        Self::NoOwner,
        Self::TwoOwners,
        Self::NothingRead,
        Self::ThirdVersion,
        Self::ChangefeedFailed,
        Self::CaptureSilent,
        Self::TidbSilent,
        Self::ForeignStart,
        Self::ForeignResign,
        Self::Lag,
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
            Self::CaptureSilent => "capture_silent",
            Self::TidbSilent => "tidb_silent",
            Self::Lag => "lag_over_limit",
            Self::ForeignResign => "foreign_resign",
            Self::ForeignStart => "foreign_start",
        }
    }
}

/// What is known of the guards.
#[derive(Clone, Debug, Default)]
pub struct Guards {
    acknowledged: BTreeMap<Guard, Acknowledged>,
    watched: Watched,
    /// Since when the journal cannot be written, and why.
    pub(super) unwritten: Option<(Timestamp, String)>,
}

/// A guard that a person has said to be silent.
#[derive(Clone, Debug)]
struct Acknowledged {
    /// What it was about: something new to it is asked about again.
    about: BTreeSet<String>,
    /// Since when its condition is gone. What comes back within a moment is the same thing.
    gone_since: Option<Timestamp>,
}

impl Guards {
    /// Whether a person knows of this; forgotten once nothing of it has been there for as long as `for_good` says.
    fn is_silent(&mut self, guard: Guard, held: Option<&Held>, now: Timestamp, for_good: Duration) -> bool {
        let smoulders = match guard {
            Guard::CaptureSilent => !self.watched.captures.is_empty(),
            Guard::TidbSilent => !self.watched.tidb.is_empty(),
            Guard::Lag => !self.watched.lagging.is_empty(),
            _ => held.is_some(),
        };
        let Some(known) = self.acknowledged.get_mut(&guard) else { return false };
        if smoulders {
            known.gone_since = None;
            return held.is_none_or(|held| held.about.is_subset(&known.about));
        }
        if now.since(*known.gone_since.get_or_insert(now)) >= for_good {
            self.acknowledged.remove(&guard);
        }
        true
    }

    /// What was seen before a gap in time says nothing of how long it has been so.
    pub(super) fn forget_watched(&mut self) {
        self.watched = Watched::default();
    }
}

/// A condition that holds beyond its limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Held {
    /// For how long.
    held: Duration,
    /// What it is about, in words.
    about: BTreeSet<String>,
}

impl Held {
    fn list(&self) -> String {
        self.about.iter().cloned().collect::<Vec<_>>().join(", ")
    }
}

impl Engine {
    /// Trips a guard whose condition holds and was not acknowledged.
    pub(super) fn watch_guards(&mut self) {
        if !self.state.is_going() || self.plan.is_empty() {
            return;
        }
        for guard in Guard::ALL {
            let held = self.held(guard);
            let is_silent = self.guards.is_silent(guard, held.as_ref(), self.now, self.policy.owner_stands);
            let Some(held) = held else { continue };
            // Replication has stopped altogether: that is said before whatever else is asked.
            let is_urgent =
                guard == Guard::ThirdVersion && self.state.is_held_by_question() && self.asking_guard().is_none();
            if is_silent || !(self.state.is_unheld() || is_urgent) {
                continue;
            }
            let question = question_of(guard, &held);
            self.ask(question);
            return;
        }
    }

    /// Its condition, if it holds beyond its limit.
    fn held(&self, guard: Guard) -> Option<Held> {
        let groups = self.picture.groups.values();
        let nothing = BTreeSet::new;
        let (since, limit, about) = match guard {
            // The first time is one too many.
            Guard::Unwritten => {
                let (since, why) = self.guards.unwritten.as_ref()?;
                return Some(Held { held: self.now.since(*since), about: BTreeSet::from([why.clone()]) });
            }
            Guard::ThirdVersion => return at_once(self.too_many_versions().into_iter().collect()),
            Guard::ChangefeedFailed => return at_once(self.failed_changefeeds().into_iter().collect()),
            Guard::ForeignResign => return at_once(self.guards.watched.resigned.clone()),
            Guard::ForeignStart => return self.is_foreign_start().then(Held::default),
            Guard::CaptureSilent => return self.silent(&self.guards.watched.captures),
            Guard::TidbSilent => return self.silent(&self.guards.watched.tidb),
            Guard::Lag => return self.lagging(),
            Guard::NoOwner => {
                (groups.filter_map(|group| group.no_owner_since).min()?, self.policy.no_owner_guard, nothing())
            }
            Guard::TwoOwners => {
                (groups.filter_map(|group| group.contested_since).min()?, self.policy.no_owner_guard, nothing())
            }
            Guard::NothingRead => {
                // While the program slept nobody was there to read.
                let read = self.picture.cdc.as_ref()?.begun;
                let since = self.state.unread_since().map_or(read, |woke| read.max(woke));
                (since, self.policy.unknown_asks, nothing())
            }
        };
        let held = self.now.since(since);
        (held >= limit.max(self.fresh_within())).then_some(Held { held, about })
    }

    /// Servers that have been silent for longer than a restart by a supervisor and a session take.
    fn silent(&self, watched: &BTreeMap<crate::cluster::Address, Timestamp>) -> Option<Held> {
        let limit = self.policy.no_owner_guard.max(self.fresh_within());
        let over = || watched.iter().filter(|(_, since)| self.now.since(**since) >= limit);
        let held = over().map(|(_, since)| self.now.since(*since)).max()?;
        Some(Held { held, about: over().map(|(address, _)| address.to_string()).collect() })
    }

    /// Changefeeds that are behind and stay so: a spike of some seconds is usual while tables move.
    fn lagging(&self) -> Option<Held> {
        let limit = 2 * self.policy.unknown_asks;
        let over = || self.guards.watched.lagging.iter().filter(|(_, (since, _))| self.now.since(*since) >= limit);
        let held = over().map(|(_, (since, _))| self.now.since(*since)).max()?;
        Some(Held { held, about: over().map(|(id, _)| format!("changefeed {}", id.label())).collect() })
    }

    fn is_foreign_start(&self) -> bool {
        let enters = self.active.as_ref().is_some_and(|active| matches!(active.machine, Machine::Enter(_)));
        let asks = self.in_flight.values().any(|intent| intent.kind == IntentKind::Upgrade);
        self.picture.is_upgrading.known() == Some(&true) && !self.owes_finish() && !enters && !asks
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
            let about = self.held(guard).map(|held| held.about).unwrap_or_default();
            self.guards.acknowledged.insert(guard, Acknowledged { about, gone_since: None });
        }
        if guard == Guard::ForeignResign {
            self.guards.watched.resigned.clear();
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

/// A condition that is one as soon as there is anything to it.
fn at_once(about: BTreeSet<String>) -> Option<Held> {
    (!about.is_empty()).then_some(Held { held: Duration::ZERO, about })
}

/// What a guard asks.
fn question_of(guard: Guard, held: &Held) -> Question {
    let about = held.list();
    let lasted = spoken(held.held);
    let (what, means) = match guard {
        Guard::NoOwner => (
            format!("TiCDC has had no owner for {lasted}."),
            "Nothing is scheduled and no checkpoint moves without one; after a crash 8 to 10 s are normal.",
        ),
        Guard::TwoOwners => (
            format!("For {lasted} more than one capture was called owner."),
            "What either of them says of tables proves nothing.",
        ),
        Guard::NothingRead => {
            (format!("Nothing was read of TiCDC for {lasted}."), "No phase may go on what was read before.")
        }
        Guard::ThirdVersion => (
            format!("Among the captures run {about}: more than two versions."),
            "TiCDC then stops every changefeed, although their state still reads normal: no checkpoint moves.",
        ),
        Guard::ChangefeedFailed => (
            format!("{about} ran when this step began and has failed."),
            "It replicates nothing any more, and its tables were stopped. The rollout did not ask for that.",
        ),
        Guard::Unwritten => {
            (about, "What was to be done next was not done: nothing is, that is not written down before.")
        }
        Guard::CaptureSilent => (
            format!("{about} has not answered for {lasted}, and this rollout did not stop it."),
            "Its tables stand still until others have taken them, and one capture fewer can take those of the next node.",
        ),
        Guard::TidbSilent => (
            format!("TiDB {about} has not answered for {lasted}, and this rollout did not stop it."),
            "Its sessions are gone, and one server fewer is left while the next is restarted.",
        ),
        Guard::Lag => (
            format!("The lag of {about} is over its limit and has not become less for {lasted}."),
            "A drain or a restart of the next node makes it more. The servers do not say why; a sink that is slow, or tables that wait for a capture, are the usual causes.",
        ),
        Guard::ForeignResign => (
            format!("{about}. This rollout did not ask for that, and the one before still runs."),
            "Somebody else may be working on this cluster; what they stop next is not known here.",
        ),
        Guard::ForeignStart => (
            "The TiDB cluster is in the upgrading state, and this rollout did not put it there.".to_owned(),
            "Somebody else's upgrade is under way, or one ended without its finish. User DDL hangs.",
        ),
    };
    let silently = "go on; say no more of it until it is over";
    let (advice, go_on) = match guard {
        Guard::ThirdVersion => (
            "Bring the captures to at most two versions at once; replication goes on by itself then. This is urgent.",
            silently,
        ),
        Guard::ChangefeedFailed => (
            "See its error (Enter on it shows it), mend the cause and resume it; or go on without it.",
            "go on without it; say no more of it until it is over",
        ),
        Guard::Unwritten => ("See to the disk and the directory; then go on.", "try again, and go on"),
        Guard::NoOwner | Guard::TwoOwners | Guard::NothingRead => {
            ("See to the captures. Continue goes on, and is silent about this until it is over.", silently)
        }
        Guard::CaptureSilent | Guard::TidbSilent => {
            ("Start it again (its log says why it ended), then continue; or go on without it.", silently)
        }
        Guard::Lag => ("See to the changefeed and its sink; continue once it catches up.", silently),
        Guard::ForeignResign => ("Find out who it was, then continue.", "go on with the owner there is now"),
        Guard::ForeignStart => (
            "Find out whose it is. If nobody is upgrading: POST /upgrade/finish to any TiDB server, then continue.",
            silently,
        ),
    };
    question(guard.reason(), what, means, advice, &[(Command::Continue, go_on)])
}
