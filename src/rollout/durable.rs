//! What of a rollout outlives the program: the plan and how far it is, the node in hand, what is owed, who has the
//! word, and what was sent and not answered. It changes only by [`Change`]s, which the journal keeps; replaying them
//! gives exactly this again. Observations, rates and questions are not in it: after a replay they are unknown.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};

use super::control::Standing;
use super::effect::EffectId;
use super::engine::{Engine, Visit};
use super::obligation::Obligation;
use super::phase::tidb::Before;
use super::plan::Step;
use crate::cluster::{Timestamp, Version};

/// A part of the durable state. It notices when it may have been changed, so that no change is left out of the journal
/// and an unchanged state costs nothing.
#[derive(Clone, Debug, Default)]
pub struct Tracked<T> {
    value: T,
    is_touched: bool,
}

impl<T> Tracked<T> {
    /// A value that counts as new.
    pub const fn new(value: T) -> Self {
        Self { value, is_touched: true }
    }

    /// A value that is in the journal already.
    pub const fn kept(value: T) -> Self {
        Self { value, is_touched: false }
    }

    /// The value.
    pub const fn value(&self) -> &T {
        &self.value
    }

    /// Puts another value in its place.
    pub fn set(&mut self, value: T) {
        **self = value;
    }

    pub(super) const fn take_touch(&mut self) -> bool {
        std::mem::replace(&mut self.is_touched, false)
    }
}

impl<T> Deref for Tracked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Tracked<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.is_touched = true;
        &mut self.value
    }
}

/// What was sent and not answered yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// The request or act, exactly as it is shown.
    pub what: String,
    /// What kind of thing it is.
    pub kind: IntentKind,
    /// When.
    pub at: Timestamp,
}

/// What was sent: it decides what settles it when its answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntentKind {
    /// A drain: repeating it is harmless.
    Drain,
    /// A resign.
    Resign,
    /// `/upgrade/start` or `/upgrade/finish`: the state shows.
    Upgrade,
    /// An act on a process.
    Act,
}

/// When the rollout began and ended, and from where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The oldest version found when the plan was made.
    pub from: Option<Version>,
    /// When the plan stood.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// The durable state as one value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Durable {
    /// Its beginning and end.
    pub span: Span,
    /// The steps with their phases.
    pub plan: Vec<Step>,
    /// The capture in hand, as it was when its step began.
    pub visit: Option<Visit>,
    /// The `TiDB` server in hand, as it was before its restart.
    pub tidb_before: Option<Before>,
    /// What is owed.
    pub obligations: Vec<Obligation>,
    /// Who has the word.
    pub standing: Standing,
    /// What was sent and is not answered.
    pub intents: BTreeMap<EffectId, Intent>,
    /// The number of the last effect: no two of a rollout have the same, whichever program sent them.
    pub sent: u64,
}

/// One change of the durable state. Applying them in order gives the state; each is the whole new value of its part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Beginning or end.
    Span(Span),
    /// Steps were added, taken away or moved.
    Plan(Vec<Step>),
    /// One step changed: a phase began or ended, or its node was looked at.
    Step {
        /// Its place in the plan.
        index: usize,
        /// The step as it is now.
        step: Step,
    },
    /// Another capture is in hand, or more is known of it.
    Visit(Option<Visit>),
    /// Another `TiDB` server is in hand.
    TidbBefore(Option<Before>),
    /// Something was incurred, paid, or asked for again.
    Owed(Vec<Obligation>),
    /// Somebody said something, or the rollout came to another stage.
    Standing(Standing),
    /// Something was sent, or answered.
    Intents {
        /// What is not answered.
        open: BTreeMap<EffectId, Intent>,
        /// The number of the last effect.
        sent: u64,
    },
}

impl Durable {
    /// Takes a change in.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Span(span) => self.span = span,
            Change::Plan(plan) => self.plan = plan,
            Change::Step { index, step } => {
                // A place that does not exist cannot come from our own journal: its lines are checked and in order.
                if let Some(place) = self.plan.get_mut(index) {
                    *place = step;
                }
            }
            Change::Visit(visit) => self.visit = visit,
            Change::TidbBefore(before) => self.tidb_before = before,
            Change::Owed(obligations) => self.obligations = obligations,
            Change::Standing(standing) => self.standing = standing,
            Change::Intents { open, sent } => {
                self.intents = open;
                self.sent = sent;
            }
        }
    }
}

impl Engine {
    /// The durable state as it is now.
    pub fn durable(&self) -> Durable {
        Durable {
            span: self.span.value().clone(),
            plan: self.plan.value().clone(),
            visit: self.visit.value().clone(),
            tidb_before: self.tidb_before.value().clone(),
            obligations: self.obligations.value().clone(),
            standing: self.state.standing().clone(),
            intents: self.in_flight.value().clone(),
            sent: self.recorded.sent,
        }
    }

    /// What changed since this was last asked. The parts that were not touched are not even looked at.
    pub(super) fn take_changes(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        let known = &mut self.recorded;
        if self.span.take_touch() && known.span != *self.span {
            changes.push(Change::Span(self.span.value().clone()));
        }
        if self.plan.take_touch() {
            if known.plan.len() == self.plan.len() {
                let pairs = known.plan.iter().zip(self.plan.iter()).enumerate();
                let touched = pairs.filter(|(_, (before, now))| before != now);
                changes.extend(touched.map(|(index, (_, now))| Change::Step { index, step: now.clone() }));
            } else {
                changes.push(Change::Plan(self.plan.value().clone()));
            }
        }
        if self.visit.take_touch() && known.visit != *self.visit {
            changes.push(Change::Visit(self.visit.value().clone()));
        }
        if self.tidb_before.take_touch() && known.tidb_before != *self.tidb_before {
            changes.push(Change::TidbBefore(self.tidb_before.value().clone()));
        }
        if self.obligations.take_touch() && known.obligations != *self.obligations {
            changes.push(Change::Owed(self.obligations.value().clone()));
        }
        if self.state.take_touch() && known.standing != *self.state.standing() {
            changes.push(Change::Standing(self.state.standing().clone()));
        }
        if self.in_flight.take_touch() && known.intents != *self.in_flight {
            changes.push(Change::Intents { open: self.in_flight.value().clone(), sent: self.sent });
        }
        for change in &changes {
            known.apply(change.clone());
        }
        changes
    }
}

/// A map whose keys are no texts, as a list of pairs: JSON has no other keys.
pub(super) mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in crate::rollout) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(in crate::rollout) fn deserialize<'de, K, V, D>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Ok(Vec::<(K, V)>::deserialize(deserializer)?.into_iter().collect())
    }
}
