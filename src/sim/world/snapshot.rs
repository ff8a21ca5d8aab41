//! The world as it is, in the form of `status --json`: what an honest client could see at best.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::sim::scenario::Architecture;

use super::World;
use super::tidb::Health;

/// The whole of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct State {
    /// Captures in the owners' lists, sorted by address, then id.
    pub captures: Vec<CaptureState>,
    /// Changefeeds of all clusters, sorted by cluster, namespace and id.
    pub changefeeds: Vec<FeedSnapshot>,
    /// The `TiDB` servers.
    pub tidb: TidbState,
    /// The PD servers.
    pub pd: PdStates,
    /// What cannot be known.
    pub unknown: Vec<Unknown>,
}

/// A capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaptureState {
    /// Its id.
    pub id: String,
    /// Where it listens.
    pub address: String,
    /// Its `TiCDC` cluster.
    pub cluster_id: String,
    /// Whether it owns.
    pub is_owner: bool,
    /// Its version, `null` for a ghost.
    pub version: Option<String>,
    /// `alive`, `draining` or `stopping`, `null` for a ghost.
    pub liveness: Option<&'static str>,
    /// The number on the wire.
    pub liveness_raw: Option<u64>,
    /// `classic` or `new`; `null` for a ghost.
    pub architecture: Option<&'static str>,
    /// Tables it lists.
    pub tables: usize,
    /// The same for each changefeed that runs, as `namespace/id`.
    pub tables_by_changefeed: BTreeMap<String, usize>,
    /// Always 0: this is no reading.
    pub age_ms: u64,
}

/// A changefeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FeedSnapshot {
    /// Its id.
    pub id: String,
    /// Its namespace (classic).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its keyspace (new architecture).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyspace: Option<String>,
    /// Its `TiCDC` cluster.
    pub cluster_id: String,
    /// Its state, in the servers' word.
    pub state: &'static str,
    /// Its checkpoint as a TSO.
    pub checkpoint_ts: u64,
    /// Milliseconds by which the checkpoint is behind the cluster's clock.
    pub lag_ms: u64,
    /// The error it shows.
    pub error: Option<ErrorState>,
}

/// An error of a changefeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorState {
    /// Its code.
    pub code: String,
    /// Its message.
    pub message: String,
}

/// The `TiDB` servers and their common state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TidbState {
    /// `normal` or `upgrading`.
    pub state: Option<&'static str>,
    /// Sorted by address.
    pub servers: Vec<TidbServerState>,
}

/// A `TiDB` server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct TidbServerState {
    /// `host:status_port`.
    pub address: String,
    /// Without the `8.0.11-TiDB-` in front.
    pub version: Option<String>,
    /// Whether it owns DDL.
    pub is_ddl_owner: bool,
}

/// The PD servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PdStates {
    /// Sorted by address.
    pub servers: Vec<PdState>,
}

/// A PD server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PdState {
    /// Its client address.
    pub address: String,
    /// Its version.
    pub version: Option<String>,
}

/// Something that cannot be known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unknown {
    /// What.
    pub what: String,
    /// Where it would have been read.
    pub address: String,
    /// Why it cannot.
    pub why: String,
}

/// A TSO of the cluster: milliseconds since 1970, and 18 bits of a counter. The counter is not 0, so that a client that
/// reads the number as a float gets it wrong here as it would elsewhere.
pub(crate) fn tso(ms: u64) -> u64 {
    (ms << 18) | 5
}

const REFUSED: &str = "connection refused";

impl World {
    /// The world as it is.
    pub fn state(&mut self) -> State {
        let mut unknown = Vec::new();
        State {
            captures: self.capture_states(&mut unknown),
            changefeeds: self.feed_states(),
            tidb: self.tidb_state(&mut unknown),
            pd: self.pd_states(&mut unknown),
            unknown,
        }
    }

    fn capture_states(&self, unknown: &mut Vec<Unknown>) -> Vec<CaptureState> {
        let mut list = Vec::new();
        for cluster in &self.clusters {
            let members = cluster.office.as_ref().map(|office| office.members.clone());
            let mut members = members.unwrap_or_default();
            // Without an owner's list there are still the processes that answer for themselves.
            let running = self.slots.iter().filter_map(|slot| slot.current);
            let of_cluster = running.filter(|current| self.clusters[self.instances[*current].cluster].id == cluster.id);
            for current in of_cluster {
                if !members.contains(&current) && self.instances[current].ready {
                    members.push(current);
                }
            }
            let owner = cluster.office.as_ref().map(|office| office.owner);
            for member in members {
                list.push(self.capture_state(member, Some(member) == owner, unknown));
            }
        }
        for slot in &self.slots {
            let listed = list.iter().any(|it: &CaptureState| it.address == slot.address);
            if slot.current.is_none() && !listed {
                unknown.push(Unknown {
                    what: format!("capture at {}", slot.address),
                    address: slot.address.clone(),
                    why: REFUSED.to_owned(),
                });
            }
        }
        list.sort_by(|a, b| (&a.address, &a.id).cmp(&(&b.address, &b.id)));
        list
    }

    fn capture_state(&self, member: usize, is_owner: bool, unknown: &mut Vec<Unknown>) -> CaptureState {
        let it = &self.instances[member];
        let address = self.slots[it.slot].address.clone();
        let answers = it.alive && it.ready;
        if !answers {
            let why = if it.alive {
                "cdc server is not ready"
            } else if self.slots[it.slot].current.is_some() {
                "another process answers at its address"
            } else {
                REFUSED
            };
            unknown.push(Unknown { what: format!("capture {}", it.id), address: address.clone(), why: why.to_owned() });
        }
        let mut tables_by_changefeed = BTreeMap::new();
        for feed in &self.clusters[it.cluster].feeds {
            let feed = &self.feeds[*feed];
            if feed.state.runs() {
                tables_by_changefeed.insert(format!("{}/{}", feed.namespace, feed.id), feed.listed_on(member));
            }
        }
        CaptureState {
            id: it.id.clone(),
            address,
            cluster_id: self.clusters[it.cluster].id.clone(),
            is_owner,
            version: answers.then(|| it.version.clone()),
            liveness: answers.then_some(it.liveness.as_str()),
            liveness_raw: answers.then_some(it.liveness_raw()),
            architecture: answers.then_some(it.architecture.as_str()),
            tables: tables_by_changefeed.values().sum(),
            tables_by_changefeed,
            age_ms: 0,
        }
    }

    fn feed_states(&mut self) -> Vec<FeedSnapshot> {
        let clock = self.clock_ms();
        let mut list = Vec::new();
        for feed in 0..self.feeds.len() {
            let checkpoint = self.checkpoint_of(feed);
            let it = &self.feeds[feed];
            let is_new = self.clusters[it.cluster].architecture == Architecture::New;
            list.push(FeedSnapshot {
                id: it.id.clone(),
                namespace: (!is_new).then(|| it.namespace.clone()),
                keyspace: is_new.then(|| it.namespace.clone()),
                cluster_id: self.clusters[it.cluster].id.clone(),
                state: it.state.as_str(),
                checkpoint_ts: tso(checkpoint),
                lag_ms: clock.saturating_sub(checkpoint),
                error: it
                    .error
                    .as_ref()
                    .map(|error| ErrorState { code: error.code.clone(), message: error.message.clone() }),
            });
        }
        list.sort_by(|a, b| {
            (&a.cluster_id, &a.namespace, &a.keyspace, &a.id).cmp(&(&b.cluster_id, &b.namespace, &b.keyspace, &b.id))
        });
        list
    }

    fn tidb_state(&self, unknown: &mut Vec<Unknown>) -> TidbState {
        let mut servers = Vec::new();
        for (index, server) in self.tidb.servers.iter().enumerate() {
            let instance = self.tidb.current(index).filter(|it| it.health == Health::Serving);
            if instance.is_none() {
                unknown.push(Unknown {
                    what: format!("TiDB at {}", server.status),
                    address: server.status.clone(),
                    why: REFUSED.to_owned(),
                });
            }
            servers.push(TidbServerState {
                address: server.status.clone(),
                version: instance.map(|it| it.version.clone()),
                is_ddl_owner: server.current.is_some() && self.tidb.ddl_owner == server.current,
            });
        }
        servers.sort();
        TidbState { state: Some(if self.tidb.upgrading { "upgrading" } else { "normal" }), servers }
    }

    fn pd_states(&self, unknown: &mut Vec<Unknown>) -> PdStates {
        let mut servers = Vec::new();
        for server in &self.pd {
            if !server.running {
                unknown.push(Unknown {
                    what: format!("PD at {}", server.address),
                    address: server.address.clone(),
                    why: REFUSED.to_owned(),
                });
            }
            servers.push(PdState {
                address: server.address.clone(),
                version: server.running.then(|| server.version.clone()),
            });
        }
        servers.sort();
        PdStates { servers }
    }
}
