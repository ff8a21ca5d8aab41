//! What a capture answers from: who owns, whom the owner sees, which tables are where. Lists come in another order on
//! every call, as maps do on the servers (recorded).

use super::types::{Instance, Vacancy};
use super::{Feed, World};

/// Who answers a call that only an owner answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnerView {
    /// The owner of this cluster, which lives.
    Serving(usize),
    /// Nobody serves yet: `ErrOwnerNotFound`.
    NotFound,
    /// Nobody can own: `election: no leader`.
    NoLeader,
    /// The owner's process is dead and its lease runs: the address that refuses connections.
    Dead(String),
    /// Another process listens at the dead owner's address and finds itself named as the owner.
    Looping,
}

/// A capture in the owner's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureView {
    /// Its id.
    pub id: String,
    /// Whether it answers as the owner.
    pub is_owner: bool,
    /// Where it listens, or listened.
    pub address: String,
    /// The id of its `TiCDC` cluster.
    pub cluster_id: String,
}

/// Tables of one capture in one changefeed, as its scheduler knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carrying {
    /// The capture's id.
    pub capture_id: String,
    /// Table ids, the ones being prepared included.
    pub table_ids: Vec<u64>,
}

impl World {
    /// Who answers owner calls of the cluster that a capture belongs to.
    pub fn owner_view(&self, capture: usize) -> OwnerView {
        let cluster = self.slots[capture].cluster;
        let it = &self.clusters[cluster];
        let Some(office) = &it.office else {
            return match it.vacancy {
                Vacancy::Handover => OwnerView::NotFound,
                Vacancy::Nobody => OwnerView::NoLeader,
            };
        };
        let owner = &self.instances[office.owner];
        if owner.alive {
            return OwnerView::Serving(cluster);
        }
        let slot = &self.slots[owner.slot];
        if slot.current.is_some_and(|current| self.instances[current].listening) {
            return OwnerView::Looping;
        }
        OwnerView::Dead(slot.address.clone())
    }

    pub(crate) fn instance_at(&self, capture: usize) -> Option<&Instance> {
        self.slots[capture].current.map(|current| &self.instances[current])
    }

    pub(crate) fn capture_address(&self, capture: usize) -> &str {
        &self.slots[capture].address
    }

    pub(crate) fn cluster_id_at(&self, capture: usize) -> &str {
        &self.clusters[self.slots[capture].cluster].id
    }

    /// Whether a capture's own status says that it owns. The old owner still says so in the gap after a resign
    /// (recorded).
    pub(crate) fn says_owner(&self, capture: usize) -> bool {
        let Some(current) = self.slots[capture].current else {
            return false;
        };
        let cluster = &self.clusters[self.slots[capture].cluster];
        match &cluster.office {
            Some(office) => {
                let resigning = office.coordinator.as_ref().is_some_and(|it| it.resigning);
                office.owner == current && !resigning
            }
            None => {
                cluster.last_owner == Some(current) && cluster.vacant_since.is_some_and(|since| self.now < since + 300)
            }
        }
    }

    /// The owner's list of captures, ghosts included.
    pub fn captures_of(&mut self, cluster: usize) -> Vec<CaptureView> {
        let Some(office) = &self.clusters[cluster].office else {
            return Vec::new();
        };
        let mut list: Vec<CaptureView> = office
            .members
            .iter()
            .map(|member| CaptureView {
                id: self.instances[*member].id.clone(),
                is_owner: *member == office.owner,
                address: self.slots[self.instances[*member].slot].address.clone(),
                cluster_id: self.clusters[cluster].id.clone(),
            })
            .collect();
        self.order.shuffle(&mut list);
        list
    }

    pub(crate) fn knows_capture(&self, cluster: usize, id: &str) -> bool {
        self.clusters[cluster]
            .office
            .as_ref()
            .is_some_and(|office| office.members.iter().any(|member| self.instances[*member].id == id))
    }

    /// Whether a cluster is healthy: legal versions, and every normal changefeed with all captures initialised
    /// (contract section 1.4).
    pub fn healthy(&self, cluster: usize) -> bool {
        use crate::sim::scenario::{Architecture, FeedState};
        if self.clusters[cluster].architecture == Architecture::New {
            // A coordinator looks at its own liveness only, and it is never drained (contract section 1.4).
            return self.living_owner(cluster).is_some();
        }
        !self.frozen(cluster)
            && self.clusters[cluster]
                .feeds
                .iter()
                .map(|feed| &self.feeds[*feed])
                .filter(|feed| feed.state == FeedState::Normal)
                .all(Feed::initialised)
    }

    /// Changefeeds of a cluster, by index.
    pub(crate) fn feeds_of(&self, cluster: usize) -> &[usize] {
        &self.clusters[cluster].feeds
    }

    /// Every changefeed with every capture its scheduler knows: `(changefeed, capture id)`.
    pub(crate) fn processors_of(&mut self, cluster: usize) -> Vec<(usize, String)> {
        let mut list = Vec::new();
        for feed in &self.clusters[cluster].feeds {
            if let Some(sched) = &self.feeds[*feed].sched {
                list.extend(sched.captures.keys().map(|capture| (*feed, self.instances[*capture].id.clone())));
            }
        }
        self.order.shuffle(&mut list);
        list
    }

    /// Tables of a changefeed on one capture. `None` when its scheduler knows no such capture: also for one that lives
    /// but has not answered a new owner yet, for up to 1.4 s (recorded). A ghost that a new owner sees never
    /// answers and shows none.
    pub fn carrying(&mut self, feed: usize, capture_id: &str) -> Option<Vec<u64>> {
        let statuses = self.task_status(feed);
        let found = statuses.into_iter().find(|it| it.capture_id == capture_id);
        found.map(|it| it.table_ids)
    }

    /// Tables of a changefeed on every capture that has answered its scheduler, and ghosts without any.
    pub(crate) fn task_status(&mut self, feed: usize) -> Vec<Carrying> {
        let Some(sched) = &self.feeds[feed].sched else {
            return Vec::new();
        };
        let captures: Vec<(usize, bool)> = sched
            .captures
            .iter()
            .map(|(capture, known)| (*capture, *known))
            .filter(|(capture, known)| *known || !self.instances[*capture].alive)
            .collect();
        let mut list = Vec::new();
        for (capture, known) in captures {
            list.push(Carrying {
                capture_id: self.instances[capture].id.clone(),
                table_ids: if known { self.table_ids(feed, capture) } else { Vec::new() },
            });
        }
        self.order.shuffle(&mut list);
        list
    }

    pub(super) fn table_ids(&mut self, feed: usize, capture: usize) -> Vec<u64> {
        let mut ids: Vec<u64> = self.feeds[feed]
            .spans
            .iter()
            .filter(|span| span.state.is_on(capture))
            .map(|span| self.tables[span.table].id)
            .collect();
        self.order.shuffle(&mut ids);
        ids
    }

    pub(super) fn table_name(&self, table: usize) -> String {
        let it = &self.tables[table];
        format!("{}.{}", self.databases[it.database].1, it.name)
    }

    /// Databases of users: `(id, name)`.
    pub(crate) fn databases(&self) -> &[(u64, String)] {
        &self.databases
    }

    /// A table by its id: `(database index, name)`.
    pub(crate) fn table_by_id(&self, id: u64) -> Option<(usize, &str)> {
        self.tables.iter().find(|table| table.id == id).map(|table| (table.database, table.name.as_str()))
    }

    /// Tables of one database: `(id, name)`, the newest first.
    pub(crate) fn tables_in(&self, database: usize) -> Vec<(u64, &str)> {
        let mut list: Vec<(u64, &str)> = self
            .tables
            .iter()
            .filter(|table| table.database == database)
            .map(|table| (table.id, table.name.as_str()))
            .collect();
        list.reverse();
        list
    }

    /// A random order for something that is kept in a map on the servers.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        self.order.shuffle(items);
    }

    /// A duration between two bounds, for answers.
    pub(crate) fn jitter(&mut self, low: u64, high: u64) -> u64 {
        self.order.range(low, high)
    }
}
