//! From sweeps to the document.

use std::collections::{BTreeMap, BTreeSet};

use super::{CaptureRow, ChangefeedStatus, PdSection, PdServer, StatusDocument, TidbSection, TidbServer, Unknown};
use crate::cluster::{
    Address, Architecture, CaptureEntry, CaptureId, CdcSweep, ChangefeedRow, FailureKind, GroupSweep, Named,
    NodeReading, NodeStatus, PdSweep, Reading, TidbReading, TidbSweep, Timestamp, UpgradeState,
};

pub(super) fn document(
    cdc: &CdcSweep,
    tidb: Option<&TidbSweep>,
    pd: Option<&PdSweep>,
    now: Timestamp,
) -> StatusDocument {
    let mut build = Build { cdc, now, unknown: BTreeSet::new() };
    let captures = build.captures();
    let changefeeds = build.changefeeds();
    let tidb = tidb.map(|sweep| build.tidb(sweep));
    let pd = pd.map(|sweep| build.pd(sweep));
    StatusDocument { captures, changefeeds, tidb, pd, unknown: build.unknown.into_iter().collect() }
}

struct Build<'a> {
    cdc: &'a CdcSweep,
    now: Timestamp,
    unknown: BTreeSet<Unknown>,
}

impl Build<'_> {
    fn note(&mut self, address: Option<&Address>, what: impl Into<String>, why: &(impl ToString + ?Sized)) {
        self.unknown.insert(Unknown { address: address.cloned(), what: what.into(), why: why.to_string() });
    }

    /// The value, or a note of why there is none.
    fn read<'r, T>(&mut self, reading: &'r Reading<T>, address: Option<&Address>, what: &str) -> Option<&'r T> {
        reading.as_ref().map_err(|why| self.note(address, what, why)).ok()
    }

    fn captures(&mut self) -> Option<Vec<CaptureRow>> {
        for node in self.cdc.nodes.iter().filter(|node| node.is_configured) {
            self.read(&node.status, Some(&node.address), "status");
        }
        let mut rows = Vec::new();
        let mut is_anything_read = false;
        for group in &self.cdc.groups {
            let cluster = &group.cluster_id;
            self.read(&group.health, None, &format!("health of TiCDC cluster {cluster}"));
            if group.processors.as_ref().err().is_none_or(|why| why.kind != FailureKind::NotAsked) {
                self.read(&group.processors, None, &format!("processors of TiCDC cluster {cluster}"));
            }
            for (id, placement) in group.placement.iter() {
                self.read(placement, None, &format!("tables of changefeed {id} in TiCDC cluster {cluster}"));
            }
            let list = self.read(&group.captures, None, &format!("captures of TiCDC cluster {cluster}"));
            is_anything_read |= list.is_some();
            let listed = list.map(Vec::as_slice).unwrap_or_default();
            if !listed.is_empty() && group.architecture.is_none() {
                let why = "the listed captures do not say it, or contradict each other";
                self.note(None, format!("architecture of TiCDC cluster {cluster}"), why);
            }
            rows.extend(listed.iter().map(|entry| self.listed(group, entry)));
            rows.extend(self.unlisted(group, listed));
        }
        rows.sort_by(|a, b| (&a.address, &a.id).cmp(&(&b.address, &b.id)));
        (is_anything_read || !rows.is_empty()).then_some(rows)
    }

    /// A capture that the owner lists. If no node says it is this one, it is a ghost, or a process that is silent.
    fn listed(&mut self, group: &GroupSweep, entry: &CaptureEntry) -> CaptureRow {
        let own = self.cdc.node_of(&entry.id);
        if own.is_none() {
            let why = match self.cdc.node_at(&entry.address).map(|node| &node.status) {
                Some(Ok(NodeStatus { id: Some(other), .. })) => format!("its address answers as capture {other}"),
                Some(Ok(_)) => "its address answers without an id yet".to_owned(),
                Some(Err(failure)) => failure.to_string(),
                None => "nothing answers as this capture".to_owned(),
            };
            self.note(Some(&entry.address), format!("status of capture {}", entry.id), &why);
        }
        let address = own.map_or(&entry.address, |(node, _)| &node.address);
        self.row(group, Some(&entry.id), address, Some(entry.is_owner), own)
    }

    /// Nodes that answer for this cluster and are not in its list: 200 is not membership (recorded/README 21).
    fn unlisted(&mut self, group: &GroupSweep, listed: &[CaptureEntry]) -> Vec<CaptureRow> {
        let is_list_read = group.captures.is_ok();
        let mut rows = Vec::new();
        for node in &self.cdc.nodes {
            let Ok(status) = &node.status else { continue };
            let is_here = status.cluster() == group.cluster_id;
            let is_listed = status.id.as_ref().is_some_and(|id| listed.iter().any(|entry| entry.id == *id));
            if !is_here || is_listed {
                continue;
            }
            if is_list_read {
                let why = if is_waiting(group, status) {
                    "in no list: a node of the new architecture waits until every classic capture is gone"
                } else {
                    "it answers, and the owner does not list it (yet)"
                };
                self.note(Some(&node.address), "membership", why);
            }
            let is_owner = is_list_read.then_some(false);
            rows.push(self.row(group, status.id.as_ref(), &node.address, is_owner, Some((node, status))));
        }
        rows
    }

    fn row(
        &mut self,
        group: &GroupSweep,
        id: Option<&CaptureId>,
        address: &Address,
        is_owner: Option<bool>,
        own: Option<(&NodeReading, &NodeStatus)>,
    ) -> CaptureRow {
        let status = own.map(|(_, status)| status);
        if let Some(status) = status {
            if status.version.is_none() {
                self.note(Some(address), "version", &format!("`{}` is no version", status.version_text));
            }
            if status.liveness.meaning.is_none() {
                let why = match status.liveness.raw {
                    Some(raw) => {
                        format!("the number {raw} means nothing in the {} architecture", status.architecture.word())
                    }
                    None => "the answer has no number for it".to_owned(),
                };
                self.note(Some(address), "liveness", &why);
            }
        }
        let tables = id.and_then(|id| tables_of(group, id));
        // In the new architecture not to be named is to carry nothing, and a node that waits carries nothing either.
        let may_be_unnamed =
            group.architecture == Some(Architecture::New) || status.is_some_and(|status| is_waiting(group, status));
        for (feed, placement) in group.placement.iter().filter(|_| !may_be_unnamed) {
            let is_named = id.is_some_and(|id| group.placement.at(id, feed).is_some());
            if placement.is_ok() && !is_named {
                self.note(
                    Some(address),
                    format!("tables of changefeed {feed}"),
                    "the owner does not place any there yet",
                );
            }
        }
        CaptureRow {
            id: id.cloned(),
            address: address.clone(),
            cluster_id: group.cluster_id.clone(),
            is_owner,
            version: status.and_then(|status| status.version.clone()),
            liveness: status.and_then(|status| status.liveness.meaning),
            liveness_raw: status.and_then(|status| status.liveness.raw),
            architecture: status.map(|status| status.architecture),
            tables: tables.as_ref().and_then(|by_feed| by_feed.values().copied().sum()),
            tables_by_changefeed: tables,
            age_ms: own.map(|(node, _)| millis(self.now.since(node.at))),
        }
    }

    fn changefeeds(&mut self) -> Option<Vec<ChangefeedStatus>> {
        let mut rows = None;
        for group in &self.cdc.groups {
            let cluster = &group.cluster_id;
            let Some(list) = self.read(&group.changefeeds, None, &format!("changefeeds of TiCDC cluster {cluster}"))
            else {
                continue;
            };
            if !list.is_empty() {
                self.read(&group.cluster_time, None, &format!("clock of TiCDC cluster {cluster}"));
            }
            let is_new = self.is_new(group);
            rows.get_or_insert_with(Vec::new).extend(list.iter().map(|row| changefeed(group, row, is_new)));
        }
        let mut rows: Vec<_> = rows?;
        let key = |row: &ChangefeedStatus| {
            (row.cluster_id.clone(), row.namespace.clone().or_else(|| row.keyspace.clone()), row.id.clone())
        };
        rows.sort_by_key(key);
        Some(rows)
    }

    /// Whether changefeeds have a keyspace and no namespace: by the listed captures, or by all that answer while no
    /// listed one does.
    fn is_new(&self, group: &GroupSweep) -> bool {
        let here = |status: &&NodeStatus| status.cluster() == group.cluster_id;
        let mut answering = self.cdc.nodes.iter().filter_map(|node| node.status.as_ref().ok()).filter(here).peekable();
        match group.architecture {
            Some(architecture) => architecture == Architecture::New,
            None => answering.peek().is_some() && answering.all(|status| status.architecture == Architecture::New),
        }
    }

    fn tidb(&mut self, sweep: &TidbSweep) -> TidbSection {
        let state = self.read(&sweep.state, None, "upgrading state of TiDB").map(|state| match state {
            UpgradeState::Normal => "normal",
            UpgradeState::Upgrading { .. } => "upgrading",
        });
        let servers = sweep.servers.iter().map(|server| self.tidb_server(sweep, server)).collect();
        TidbSection { state, servers }
    }

    fn tidb_server(&mut self, sweep: &TidbSweep, server: &TidbReading) -> TidbServer {
        let status = self.read(&server.status, Some(&server.address), "status").map(|status| status.version.clone());
        let info = self.read(&server.info, Some(&server.address), "info");
        let by_all = |ddl_id| sweep.all.as_ref().ok().map(|all| all.owner_id == ddl_id);
        TidbServer {
            address: server.address.clone(),
            version: status.or_else(|| info.map(|info| info.version.clone())),
            is_ddl_owner: info.and_then(|info| info.is_ddl_owner.or_else(|| by_all(info.ddl_id.clone()))),
        }
    }

    fn pd(&mut self, sweep: &PdSweep) -> PdSection {
        let servers = sweep.servers.iter().map(|server| PdServer {
            address: server.address.clone(),
            version: self.read(&server.version, Some(&server.address), "version").cloned(),
        });
        PdSection { servers: servers.collect() }
    }
}

/// Whether this node is of the new architecture and waits for the classic captures to go (recorded/README 21).
fn is_waiting(group: &GroupSweep, status: &NodeStatus) -> bool {
    group.architecture == Some(Architecture::Classic) && status.architecture == Architecture::New
}

/// The tables of one capture by changefeed. `None` if nothing was read of any changefeed's placement; a null for each
/// changefeed whose placement is unknown or, in the classic architecture, does not name this capture: in the new one
/// that means it carries none (recorded/README 18).
fn tables_of(group: &GroupSweep, capture: &CaptureId) -> Option<BTreeMap<String, Option<u64>>> {
    let changefeeds = group.changefeeds.as_ref().ok()?;
    let is_unasked = group.placement.is_empty() && changefeeds.iter().any(|row| !row.state.is_at_rest());
    if is_unasked {
        return None;
    }
    let count = |id, named: &Reading<Named>| {
        named.as_ref().ok()?;
        let tables = group.placement.at(capture, id).map(|ids| ids.len());
        let tables = if group.architecture == Some(Architecture::New) { tables.or(Some(0)) } else { tables };
        u64::try_from(tables?).ok()
    };
    Some(group.placement.iter().map(|(id, named)| (id.to_string(), count(id, named))).collect())
}

fn changefeed(group: &GroupSweep, row: &ChangefeedRow, is_new: bool) -> ChangefeedStatus {
    let space = row.id.namespace.to_string();
    let (namespace, keyspace) = if is_new { (None, Some(space)) } else { (Some(space), None) };
    let now = group.cluster_time.as_ref().ok();
    ChangefeedStatus {
        id: row.id.name.to_string(),
        namespace,
        keyspace,
        cluster_id: group.cluster_id.clone(),
        state: row.state.word().to_owned(),
        checkpoint_ts: row.checkpoint,
        lag_ms: row.checkpoint.zip(now).map(|(checkpoint, now)| millis(checkpoint.lag_behind(*now))),
        error: row.error.clone(),
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
