//! What the abstract cluster shows when it is read, and what may go wrong with that.

use std::sync::Arc;

use tiroll::cluster::tidb::TidbAll;
use tiroll::cluster::{
    CaptureEntry, CaptureId, CdcSweep, ChangefeedRow, ChangefeedState, ClusterId, Failure, FailureKind, GroupSweep,
    LivenessReading, NodeReading, NodeStatus, Placement, Processors, Reading, TableId, TargetTables, TidbInfo,
    TidbReading, TidbStatus, TidbSweep, Timestamp, Tso, UpgradeState, Version,
};

use super::cluster::{Cluster, names};
use super::world::Way;

fn fails<T>(kind: FailureKind) -> Reading<T> {
    Err(Failure::local(kind, "as it happens"))
}

fn version(is_new: bool) -> Version {
    if is_new { names().new.clone() } else { names().old.clone() }
}

impl Cluster {
    /// A sweep of `TiCDC`, with the tables of the capture that is watched.
    pub(super) fn cdc(&self, begun: Timestamp, ended: Timestamp, watched: Option<&CaptureId>, way: Way) -> CdcSweep {
        let clock = u64::try_from(begun.wall_ms).unwrap();
        let tso = |ms: u64| Tso::new(ms << 18);
        let row = |feed: usize| ChangefeedRow {
            id: names().feeds[feed].clone(),
            state: ChangefeedState::Normal,
            checkpoint: tso(clock - 1_000),
            error: None,
        };
        let feeds = 0..self.feeds;
        let group = GroupSweep {
            cluster_id: ClusterId::default(),
            architecture: Some(self.architecture),
            captures: self.list(way),
            health: Ok(()),
            changefeeds: Ok(feeds.clone().map(row).collect()),
            processors: if self.is_classic() { Ok(Processors::default()) } else { fails(FailureKind::NotAsked) },
            placement: feeds.map(|feed| (names().feeds[feed].clone(), self.placement(feed, way))).collect(),
            target: watched.map(|id| self.target(id, way)),
            cluster_time: Ok(tso(clock).unwrap()),
        };
        let node = |n: usize| NodeReading {
            address: names().addresses[n].clone(),
            is_configured: true,
            status: self.status(n),
            at: begun,
        };
        let nodes: Vec<_> = (0..self.nodes.len()).map(node).collect();
        CdcSweep { begun, ended, nodes: nodes.into(), groups: vec![group] }
    }

    fn status(&self, n: usize) -> Reading<NodeStatus> {
        let node = &self.nodes[n];
        if !node.is_up() {
            return fails(FailureKind::Refused);
        }
        let version = version(node.is_new);
        Ok(NodeStatus {
            id: Some(self.id(n).clone()),
            version_text: version.as_str().into(),
            version: Some(version),
            git_hash: Arc::default(),
            cluster_id: Some(ClusterId::default()),
            pid: i64::try_from(node.generation).ok(),
            is_owner: self.owns(n),
            liveness: LivenessReading::new(Some(i64::from(node.liveness)), self.architecture),
            architecture: self.architecture,
        })
    }

    fn list(&self, way: Way) -> Reading<Vec<CaptureEntry>> {
        if way == Way::UnreadList {
            return fails(FailureKind::Timeout);
        }
        if self.ownerless > 0 {
            return fails(FailureKind::NoOwner);
        }
        let entry = |n: usize, generation: usize, is_owner: bool| CaptureEntry {
            id: names().ids[n][generation].clone(),
            address: names().addresses[n].clone(),
            cluster_id: Some(ClusterId::default()),
            is_owner,
        };
        let up = (0..self.nodes.len()).filter(|n| self.nodes[*n].is_up());
        let owns = |n: usize| n == self.owner || way == Way::TwoOwners;
        let mut list: Vec<_> = up.map(|n| entry(n, self.nodes[n].generation, owns(n))).collect();
        list.extend(self.ghosts.iter().map(|(n, generation, _)| entry(*n, *generation, false)));
        list.sort_by(|a, b| (&a.address, &a.id).cmp(&(&b.address, &b.id)));
        Ok(list)
    }

    fn tables(&self, n: usize, feed: usize, way: Way) -> Vec<TableId> {
        let count = if way == Way::NamesNothing { 0 } else { self.nodes[n].tables[feed] };
        (0..i64::from(count)).map(TableId).collect()
    }

    fn placement(&self, feed: usize, way: Way) -> Reading<Placement> {
        if way == Way::UnreadTables {
            return fails(FailureKind::Timeout);
        }
        let up = (0..self.nodes.len()).filter(|n| self.nodes[*n].is_up());
        let named = up.map(|n| (self.id(n).clone(), self.tables(n, feed, way)));
        Ok(named.filter(|(_, tables)| self.is_classic() || !tables.is_empty()).collect())
    }

    fn target(&self, id: &CaptureId, way: Way) -> TargetTables {
        let of = |feed: usize| match self.of(id) {
            _ if way == Way::UnreadTables => fails(FailureKind::Timeout),
            Some(n) => Ok(self.tables(n, feed, way)),
            None => fails(FailureKind::NoSuchCapture),
        };
        let by_changefeed = (0..self.feeds).map(|feed| (names().feeds[feed].clone(), of(feed))).collect();
        TargetTables { capture: id.clone(), by_changefeed }
    }

    /// A sweep of `TiDB`.
    pub(super) fn tidb(&self, begun: Timestamp, ended: Timestamp, way: Way) -> TidbSweep {
        let version = version(self.is_tidb_new);
        let is_unread = self.tidb_down > 0 || way == Way::UnreadTidb;
        let read = |is: UpgradeState| if is_unread { fails(FailureKind::Refused) } else { Ok(is) };
        let info = TidbInfo {
            ddl_id: format!("ddl-{}", self.tidb_starts).into(),
            version: version.clone(),
            git_hash: Arc::default(),
            sql_address: names().tidb.clone(),
            status_address: names().tidb.clone(),
            start_timestamp: self.tidb_starts,
            is_ddl_owner: Some(true),
        };
        let status = TidbStatus { version, connections: 0 };
        let server = TidbReading {
            address: names().tidb.clone(),
            status: if is_unread { fails(FailureKind::Refused) } else { Ok(status) },
            info: if is_unread { fails(FailureKind::Refused) } else { Ok(info) },
        };
        let upgrading = UpgradeState::Upgrading { servers: 1, percent: 100, is_consistent: true };
        let state = read(if self.is_upgrading { upgrading } else { UpgradeState::Normal });
        let all = Ok(TidbAll { owner_id: Arc::default(), servers: Vec::new() });
        TidbSweep { begun, ended, servers: vec![server], all, state }
    }
}
