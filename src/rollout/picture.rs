//! What is known of the cluster: the sweeps absorbed into values with an age, and the little history that evidence
//! needs (since when an owner stands, which changefeeds exist, which version an id had).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::{
    Address, CaptureEntry, CaptureId, CdcSweep, ChangefeedId, ChangefeedRow, ClusterId, Failure, FailureKind,
    GroupSweep, Liveness, NodeStatus, Observed, PdSweep, Placement, TableId, TidbSweep, Timestamp, Tso,
};

/// Samples kept for sparklines and rates.
const HISTORY: usize = 120;

/// Tables of one capture, by changefeed.
pub type Tables = Arc<BTreeMap<ChangefeedId, Vec<TableId>>>;

/// Everything observed.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// The newest sweep of `TiCDC`.
    pub cdc: Option<Arc<CdcSweep>>,
    /// The newest sweep of `TiDB`.
    pub tidb: Option<Arc<TidbSweep>>,
    /// The newest sweep of PD.
    pub pd: Option<Arc<PdSweep>>,
    /// What is known of each `TiCDC` cluster.
    pub groups: BTreeMap<ClusterId, GroupPicture>,
    /// The last status of every capture ever seen, by id: a ghost's version is remembered by it.
    pub statuses: BTreeMap<CaptureId, Observed<NodeStatus>>,
    /// The configured address at which a capture answered.
    pub asked_at: BTreeMap<CaptureId, Address>,
    /// Whether the cluster is upgrading.
    pub is_upgrading: Observed<bool>,
    /// Since when it is known to be upgrading.
    pub upgrading_since: Option<Timestamp>,
    /// Last good reading of each `TiDB` server's version.
    pub tidb_versions: BTreeMap<Address, Observed<crate::cluster::Version>>,
    /// Whether each `TiDB` server's `/status` answers 200.
    pub tidb_serves: BTreeMap<Address, Observed<()>>,
    /// Last good reading of each PD server's version.
    pub pd_versions: BTreeMap<Address, Observed<crate::cluster::Version>>,
}

/// What is known of one `TiCDC` cluster.
#[derive(Clone, Debug, Default)]
pub struct GroupPicture {
    /// The list of captures.
    pub captures: Observed<Vec<CaptureEntry>>,
    /// The owner by that list.
    pub owner: Observed<Option<CaptureId>>,
    /// Since when this owner has been seen without a break.
    pub owner_since: Option<Timestamp>,
    /// Since when no owner was seen.
    pub no_owner_since: Option<Timestamp>,
    /// Since when more than one capture is called owner.
    pub contested_since: Option<Timestamp>,
    /// The checkpoint of each changefeed, and since when it is that.
    pub moved: BTreeMap<ChangefeedId, (Option<Tso>, Timestamp)>,
    /// The list of changefeeds.
    pub changefeeds: Observed<Vec<ChangefeedRow>>,
    /// Every changefeed ever seen: one that vanishes from the list is missing, not gone.
    pub known: BTreeSet<ChangefeedId>,
    /// The health call.
    pub health: Observed<bool>,
    /// Tables by capture.
    pub tables: BTreeMap<CaptureId, Observed<Tables>>,
    /// The last number of tables of each changefeed, over all captures, that was not zero.
    pub totals: BTreeMap<ChangefeedId, u64>,
    /// The largest such number since the present step began: what a whole answer must come up to.
    pub most: BTreeMap<ChangefeedId, u64>,
    /// Since when a changefeed that never named a table has named none, all of it under one owner.
    pub bare_since: BTreeMap<ChangefeedId, Timestamp>,
    /// The cluster's own clock.
    pub cluster_time: Observed<Tso>,
    /// Lag of each changefeed over time, in milliseconds.
    pub lags: BTreeMap<ChangefeedId, VecDeque<u64>>,
    /// Tables of each capture over time.
    pub counts: BTreeMap<CaptureId, VecDeque<(Timestamp, u64)>>,
}

impl Picture {
    /// Takes a sweep of `TiCDC` in.
    pub fn absorb_cdc(&mut self, sweep: &Arc<CdcSweep>) {
        for node in &sweep.nodes {
            match &node.status {
                Ok(status) => {
                    if let Some(id) = &status.id {
                        self.statuses.entry(id.clone()).or_default().absorb(Ok(status.clone()), node.at);
                        self.asked_at.insert(id.clone(), node.address.clone());
                    }
                }
                Err(why) => {
                    let silent: Vec<_> =
                        self.asked_at.iter().filter(|(_, at)| **at == node.address).map(|(id, _)| id.clone()).collect();
                    for id in silent {
                        self.statuses.entry(id).or_default().absorb(Err(why.clone()), node.at);
                    }
                }
            }
        }
        for group in &sweep.groups {
            self.groups.entry(group.cluster_id.clone()).or_default().absorb(group, sweep.begun);
        }
        self.cdc = Some(Arc::clone(sweep));
    }

    /// Takes a sweep of `TiDB` in.
    pub fn absorb_tidb(&mut self, sweep: &Arc<TidbSweep>) {
        let state = sweep.state.clone().map(|s| !matches!(s, crate::cluster::UpgradeState::Normal));
        self.is_upgrading.absorb(state, sweep.begun);
        match self.is_upgrading.known() {
            Some(true) => self.upgrading_since = self.upgrading_since.or(Some(sweep.begun)),
            Some(false) => self.upgrading_since = None,
            None => {}
        }
        for server in &sweep.servers {
            let version = server.info.clone().map(|info| info.version);
            self.tidb_versions.entry(server.address.clone()).or_default().absorb(version, sweep.begun);
            let serves = server.status.clone().map(|_| ());
            self.tidb_serves.entry(server.address.clone()).or_default().absorb(serves, sweep.begun);
        }
        self.tidb = Some(Arc::clone(sweep));
    }

    /// Takes a sweep of PD in.
    pub fn absorb_pd(&mut self, sweep: &Arc<PdSweep>) {
        for server in &sweep.servers {
            self.pd_versions.entry(server.address.clone()).or_default().absorb(server.version.clone(), sweep.begun);
        }
        self.pd = Some(Arc::clone(sweep));
    }

    /// The address to talk to a capture at: where it answered as itself, else the one it advertises.
    pub fn address_of(&self, group: &ClusterId, id: &CaptureId) -> Option<Address> {
        self.asked_at.get(id).cloned().or_else(|| {
            let list = self.groups.get(group)?.captures.last()?;
            list.iter().find(|entry| &entry.id == id).map(|entry| entry.address.clone())
        })
    }

    /// The owner of a cluster and since when it stands, if the last read named one.
    pub fn owner(&self, group: &ClusterId) -> Option<(&CaptureId, Timestamp)> {
        let group = self.groups.get(group)?;
        Some((group.owner.known()?.as_ref()?, group.owner_since?))
    }

    /// How a capture calls itself in the newest sweep; `None` is unknown.
    pub fn liveness_now(&self, id: &CaptureId) -> Option<Liveness> {
        self.cdc.as_ref()?.node_of(id)?.1.liveness.meaning
    }

    /// Listed captures other than `target` that are alive by their own word: those that could take tables.
    pub fn able_beside(&self, group: &ClusterId, target: &CaptureId) -> Vec<CaptureId> {
        self.listed(group)
            .filter(|entry| &entry.id != target && self.liveness_now(&entry.id) == Some(Liveness::Alive))
            .map(|entry| entry.id.clone())
            .collect()
    }

    /// Captures other than `target` that are draining or stopping by their own word.
    pub fn leaving_beside(&self, group: &ClusterId, target: &CaptureId) -> Vec<CaptureId> {
        self.listed(group)
            .filter(|entry| &entry.id != target && self.is_leaving(group, &entry.id))
            .map(|entry| entry.id.clone())
            .collect()
    }

    /// Liveness never goes back while a process lives: one that was stopping and cannot be read now still is, unless
    /// another process has taken its address.
    fn is_leaving(&self, group: &ClusterId, id: &CaptureId) -> bool {
        let last = self.statuses.get(id).and_then(Observed::last).and_then(|status| status.liveness.meaning);
        let is_taken = || {
            let address = self.address_of(group, id)?;
            let node = self.cdc.as_ref()?.node_at(&address)?;
            Some(node.status.as_ref().ok()?.id.as_ref() != Some(id))
        };
        matches!(last, Some(Liveness::Draining | Liveness::Stopping)) && is_taken() != Some(true)
    }

    fn listed(&self, group: &ClusterId) -> impl Iterator<Item = &CaptureEntry> {
        self.groups.get(group).and_then(|g| g.captures.known()).into_iter().flatten()
    }

    /// Whether something is under way that somebody may be watching: a capture that comes or goes, tables that move, or a
    /// `TiDB` cluster that is upgrading.
    pub fn is_moving(&self) -> bool {
        let is_leaving = |id: &CaptureId| self.liveness_now(id) != Some(Liveness::Alive);
        self.is_upgrading.last() == Some(&true)
            || self.groups.values().any(|group| {
                let moved = |samples: &VecDeque<(Timestamp, u64)>| {
                    let mut last = samples.iter().rev().map(|(_, count)| count);
                    last.next() != last.next() && samples.len() > 1
                };
                group.captures.last().into_iter().flatten().any(|entry| is_leaving(&entry.id))
                    || group.owner.last() == Some(&None)
                    || group.counts.values().any(moved)
            })
    }

    /// How old data may be to pass a gate: the configured limit, or twice the last round where that took longer.
    pub fn fresh_within(&self, stale_after: Duration) -> Duration {
        let round = self.cdc.as_ref().map_or(Duration::ZERO, |sweep| sweep.ended.since(sweep.begun));
        stale_after.max(round * 2)
    }
}

impl GroupPicture {
    fn absorb(&mut self, group: &GroupSweep, at: Timestamp) {
        let owner = match &group.captures {
            Ok(list) => match list.iter().filter(|entry| entry.is_owner).count() {
                0 => Ok(None),
                1 => Ok(group.owner().map(|entry| entry.id.clone())),
                _ => {
                    self.contested_since = self.contested_since.or(Some(at));
                    self.owner_since = None;
                    Err(Failure::local(FailureKind::Unexpected, "two captures are called owner in one list"))
                }
            },
            Err(why) if why.kind == FailureKind::NoOwner => Ok(None),
            Err(why) => Err(why.clone()),
        };
        self.track_owner(owner, at);
        self.captures.absorb(group.captures.clone(), at);
        self.health.absorb(
            match &group.health {
                Ok(()) => Ok(true),
                Err(why) if why.kind == FailureKind::Unhealthy => Ok(false),
                Err(why) => Err(why.clone()),
            },
            at,
        );
        if let Ok(rows) = &group.changefeeds {
            self.known.extend(rows.iter().map(|row| row.id.clone()));
            for row in rows {
                let moved = self.moved.entry(row.id.clone()).or_insert((row.checkpoint, at));
                if moved.0 != row.checkpoint {
                    *moved = (row.checkpoint, at);
                }
            }
        }
        self.changefeeds.absorb(group.changefeeds.clone(), at);
        self.cluster_time.absorb(group.cluster_time.clone(), at);
        self.absorb_tables(group, at);
        self.count_tables(group, at);
        self.sample(at);
    }

    /// Keeps how many tables each changefeed names: what is named later is held against it.
    fn count_tables(&mut self, group: &GroupSweep, at: Timestamp) {
        let owner_since = self.owner_since;
        self.bare_since.retain(|id, since| {
            matches!(group.placement.get(id), Some(Ok(_))) && owner_since.is_some_and(|owner| *since >= owner)
        });
        for (id, placement) in &group.placement {
            let Ok(placement) = placement else { continue };
            let total = count_all(placement);
            if total > 0 {
                self.totals.insert(id.clone(), total);
                let most = self.most.entry(id.clone()).or_default();
                *most = total.max(*most);
                self.bare_since.remove(id);
            } else {
                self.bare_since.entry(id.clone()).or_insert(at);
            }
        }
    }

    fn track_owner(&mut self, owner: Result<Option<CaptureId>, Failure>, at: Timestamp) {
        let before = self.owner.last().cloned().flatten();
        if owner.is_ok() {
            self.contested_since = None;
        }
        match &owner {
            Ok(Some(now)) => {
                if before.as_ref() != Some(now) || self.no_owner_since.is_some() || self.owner_since.is_none() {
                    self.owner_since = Some(at);
                }
                self.no_owner_since = None;
            }
            Ok(None) => {
                self.no_owner_since = self.no_owner_since.or(Some(at));
                self.owner_since = None;
            }
            Err(_) => {}
        }
        self.owner.absorb(owner, at);
    }

    fn absorb_tables(&mut self, group: &GroupSweep, at: Timestamp) {
        let Ok(list) = &group.captures else {
            let why = group.captures.as_ref().err();
            for seen in self.tables.values_mut() {
                if let Some(why) = why {
                    seen.absorb(Err(why.clone()), at);
                }
            }
            return;
        };
        self.tables.retain(|id, _| list.iter().any(|entry| &entry.id == id));
        let unread = group.placement.values().find_map(|reading| reading.as_ref().err());
        for entry in list {
            let slot = self.tables.entry(entry.id.clone()).or_default();
            if let Some(why) = unread.or_else(|| group.changefeeds.as_ref().err()) {
                slot.absorb(Err(why.clone()), at);
                continue;
            }
            let mut tables = BTreeMap::new();
            for (feed, reading) in &group.placement {
                if let Some(ids) = reading.as_ref().ok().and_then(|placement| placement.get(&entry.id)) {
                    tables.insert(feed.clone(), ids.clone());
                }
            }
            slot.absorb(Ok(Arc::new(tables)), at);
        }
    }

    fn sample(&mut self, at: Timestamp) {
        if let (Some(rows), Some(now)) = (self.changefeeds.known(), self.cluster_time.known()) {
            for row in rows {
                if let Some(checkpoint) = row.checkpoint {
                    let lag = u64::try_from(checkpoint.lag_behind(*now).as_millis()).unwrap_or(u64::MAX);
                    push(self.lags.entry(row.id.clone()).or_default(), lag);
                }
            }
        }
        for (id, tables) in &self.tables {
            if let Some(tables) = tables.known() {
                let count = tables.values().map(Vec::len).sum::<usize>();
                push(self.counts.entry(id.clone()).or_default(), (at, u64::try_from(count).unwrap_or(u64::MAX)));
            }
        }
        let listed = &self.tables;
        self.counts.retain(|id, _| listed.contains_key(id));
    }

    /// The lag of a changefeed by the newest reading of both its checkpoint and the cluster's clock.
    pub fn lag(&self, row: &ChangefeedRow) -> Option<Duration> {
        let now = self.cluster_time.last()?;
        row.checkpoint.map(|checkpoint| checkpoint.lag_behind(*now))
    }
}

fn push<T>(history: &mut VecDeque<T>, sample: T) {
    if history.len() >= HISTORY {
        history.pop_front();
    }
    history.push_back(sample);
}

/// Every table of a placement, one on the move at each of its places.
pub(super) fn count_all(placement: &Placement) -> u64 {
    placement.values().map(|ids| u64::try_from(ids.len()).unwrap_or(u64::MAX)).fold(0, u64::saturating_add)
}
