//! What the journal keeps of a rollout, line by line: how it was begun, what changed, and the facts that scripts and
//! people are told. One schema: a fact in the journal has the name and the data it has on a JSON line.

use serde::{Deserialize, Serialize};

use super::durable::{Change, Durable};
use super::event::Event;
use crate::cluster::{Address, Version};

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// The first one: all that is needed to go on.
    Began(Began),
    /// The durable state changed.
    Change(Change),
    /// A fact; replaying needs none.
    Fact {
        /// Its stable name.
        event: String,
        /// Its data, as on a JSON line.
        data: serde_json::Value,
    },
}

/// How a rollout was begun. No secret is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Began {
    /// The version of the schema it was written in; journals of before there were versions are of the first.
    #[serde(default = "first_schema")]
    pub schema: u32,
    /// `upgrade`.
    pub operation: String,
    /// The version every server shall have.
    pub target: Version,
    /// The captures, as they were named.
    pub cdc: Vec<Address>,
    /// The status ports of the `TiDB` servers, as they were named.
    pub tidb: Vec<Address>,
    /// The PD servers, as they were named.
    pub pd: Vec<Address>,
    /// How processes are restarted, as it was named.
    pub executor: String,
    /// Numbers of the policy that were set, as they were named.
    pub set: Vec<String>,
}

const fn first_schema() -> u32 {
    1
}

impl Record {
    /// A fact as it is kept.
    pub fn of(event: &Event) -> Self {
        Self::Fact { event: event.fact.name().to_owned(), data: event.fact.data() }
    }
}

/// What replaying a journal gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replayed {
    /// How it was begun; `None` for a journal that is not of a rollout.
    pub began: Option<Began>,
    /// The durable state.
    pub durable: Durable,
}

impl Replayed {
    /// Replays records in their order.
    pub fn from_records(records: impl IntoIterator<Item = Record>) -> Self {
        let mut replayed = Self::default();
        for record in records {
            match record {
                Record::Began(began) => replayed.began = Some(began),
                Record::Change(change) => replayed.durable.apply(change),
                Record::Fact { .. } => {}
            }
        }
        replayed
    }
}
