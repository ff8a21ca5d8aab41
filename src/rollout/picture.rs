//! What is known of the cluster: the sweeps absorbed into values with an age, and the little history that evidence
//! needs (since when an owner stands, which changefeeds exist, which version an id had).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::placement::distinct;
use crate::cluster::{
    Address, ByCapture, CaptureEntry, CaptureId, CaptureTables, CdcSweep, ChangefeedId, ChangefeedRow, ClusterId,
    Failure, FailureKind, GroupSweep, Liveness, NodeStatus, Observed, PdSweep, Placements, TableIds, TidbSweep,
    Timestamp, Tso, UpgradeState,
};

/// Samples kept for sparklines and rates.
const HISTORY: usize = 120;

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
    pub statuses: ByCapture<Observed<NodeStatus>>,
    /// The configured address at which a capture answered.
    pub asked_at: ByCapture<Address>,
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
    /// What each listed capture carries.
    pub tables: BTreeMap<CaptureId, Carrier>,
    /// The tables of each changefeed over the listed captures, each counted once; `None` while some were never read.
    pub distinct: Option<BTreeMap<ChangefeedId, u64>>,
    /// The last number of tables of each changefeed, over all captures, that was not zero.
    pub totals: BTreeMap<ChangefeedId, u64>,
    /// The largest such number since the present step began: what a whole answer must come up to.
    pub most: BTreeMap<ChangefeedId, u64>,
    /// Since when a changefeed that never named a table has named none, all of it under one owner.
    pub bare_since: BTreeMap<ChangefeedId, Timestamp>,
    /// The versions of the captures in the list, ghosts included; none while the list cannot be read.
    pub versions: BTreeSet<Arc<str>>,
    /// Whether a listed capture does not say that it is alive.
    is_leaving: bool,
    /// Whether tables came or went between the two newest readings of a capture's.
    has_moved: bool,
    /// The cluster's own clock.
    pub cluster_time: Observed<Tso>,
    /// Lag of each changefeed over time, in milliseconds.
    pub lags: BTreeMap<ChangefeedId, VecDeque<u64>>,
}

/// The tables of one capture.
#[derive(Clone, Debug, Default)]
pub struct Carrier {
    /// Those it has.
    pub seen: Observed<CaptureTables>,
    /// How many it had over time.
    pub counts: VecDeque<(Timestamp, u64)>,
}

impl Picture {
    /// Takes a sweep of `TiCDC` in.
    pub fn absorb_cdc(&mut self, sweep: &Arc<CdcSweep>) {
        let is_same = self.cdc.as_ref().is_some_and(|before| before.nodes.say_the_same(&sweep.nodes));
        if is_same {
            self.renew_nodes(sweep);
        } else {
            self.absorb_nodes(sweep);
        }
        let mut is_other = !is_same;
        for group in &sweep.groups {
            is_other |= self.groups.entry(group.cluster_id.clone()).or_default().absorb(group, sweep.begun);
        }
        if is_other {
            for group in self.groups.values_mut() {
                group.look_over(&self.statuses, sweep);
            }
        }
        self.cdc = Some(Arc::clone(sweep));
    }

    /// Takes in that every node said the same once more.
    fn renew_nodes(&mut self, sweep: &CdcSweep) {
        for node in &sweep.nodes {
            if let Some(status) = node.capture().and_then(|id| self.statuses.get_mut(id)) {
                status.renew(node.at);
            }
        }
    }

    fn absorb_nodes(&mut self, sweep: &CdcSweep) {
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
    }

    /// Takes a sweep of `TiDB` in.
    pub fn absorb_tidb(&mut self, sweep: &Arc<TidbSweep>) {
        let state = sweep.state.as_ref().map(|state| *state != UpgradeState::Normal);
        self.is_upgrading.absorb(state.map_err(Clone::clone), sweep.begun);
        match self.is_upgrading.known() {
            Some(true) => self.upgrading_since = self.upgrading_since.or(Some(sweep.begun)),
            Some(false) => self.upgrading_since = None,
            None => {}
        }
        for server in &sweep.servers {
            let version = server.info.as_ref().map(|info| info.version.clone()).map_err(Clone::clone);
            self.tidb_versions.entry(server.address.clone()).or_default().absorb(version, sweep.begun);
            let serves = server.status.as_ref().map(drop).map_err(Clone::clone);
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
        self.is_upgrading.last() == Some(&true) || self.groups.values().any(GroupPicture::is_moving)
    }

    /// How old data may be to pass a gate: the configured limit, or twice the last round where that took longer.
    pub fn fresh_within(&self, stale_after: Duration) -> Duration {
        let round = self.cdc.as_ref().map_or(Duration::ZERO, |sweep| sweep.ended.since(sweep.begun));
        stale_after.max(round * 2)
    }
}

impl GroupPicture {
    /// Takes it in, and says whether the list of captures may be another one than before.
    fn absorb(&mut self, group: &GroupSweep, at: Timestamp) -> bool {
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
        let is_other_list = self.captures.follow(&group.captures, at);
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
        self.changefeeds.follow(&group.changefeeds, at);
        self.cluster_time.absorb(group.cluster_time.clone(), at);
        self.absorb_tables(group, is_other_list, at);
        self.has_moved = self.tables.values().any(Carrier::has_moved);
        self.count_tables(group, at);
        self.sample_lags();
        is_other_list || group.captures.is_err()
    }

    /// Keeps how many tables each changefeed names: what is named later is held against it.
    fn count_tables(&mut self, group: &GroupSweep, at: Timestamp) {
        let owner_since = self.owner_since;
        self.bare_since.retain(|id, since| {
            matches!(group.placement.get(id), Some(Ok(_))) && owner_since.is_some_and(|owner| *since >= owner)
        });
        for (id, placement) in group.placement.iter() {
            let Ok(placement) = placement else { continue };
            let total = placement.all;
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

    fn is_moving(&self) -> bool {
        self.is_leaving || self.has_moved || self.owner.last() == Some(&None)
    }

    /// Works out what is asked of the listed captures at every step: only where the list or a node says something else.
    fn look_over(&mut self, statuses: &ByCapture<Observed<NodeStatus>>, sweep: &CdcSweep) {
        let listed = self.captures.known().into_iter().flatten();
        let texts = listed.filter_map(|entry| Some(&statuses.get(&entry.id)?.last()?.version_text));
        self.versions = texts.collect::<BTreeSet<_>>().into_iter().cloned().collect();
        let is_alive = |id| sweep.node_of(id).is_some_and(|(_, own)| own.liveness.meaning == Some(Liveness::Alive));
        self.is_leaving = self.captures.last().into_iter().flatten().any(|entry| !is_alive(&entry.id));
    }

    /// Keeps what each listed capture carries. Only where the list is another one are there other captures to keep it of.
    fn absorb_tables(&mut self, group: &GroupSweep, is_other_list: bool, at: Timestamp) {
        if let Ok(list) = &group.captures
            && is_other_list
        {
            let listed: BTreeSet<_> = list.iter().map(|entry| &entry.id).collect();
            self.tables.retain(|id, _| listed.contains(id));
            for id in listed {
                self.tables.entry(id.clone()).or_default();
            }
        }
        let unplaced = || group.placement.values().find_map(|reading| reading.as_ref().err());
        let unread = group.captures.as_ref().err().or_else(unplaced).or_else(|| group.changefeeds.as_ref().err());
        if let Some(why) = unread {
            for carrier in self.tables.values_mut() {
                carrier.seen.absorb(Err(why.clone()), at);
            }
            if is_other_list {
                self.distinct = self.count_distinct();
            }
            return;
        }
        let named = group.placement.by_capture();
        let mut listed = 0;
        for (id, carrier) in &mut self.tables {
            let tables = named.get(id);
            listed += usize::from(tables.is_some());
            let tables = tables.cloned().unwrap_or_default();
            push(&mut carrier.counts, (at, tables.count()));
            carrier.seen.absorb(Ok(tables), at);
        }
        // What a changefeed names at captures that are gone from the list is not there any more.
        let is_all_listed = listed == named.len();
        self.distinct = if is_all_listed { Some(distinct_of(&group.placement)) } else { self.count_distinct() };
    }

    /// Counts the tables of each changefeed over the listed captures.
    fn count_distinct(&self) -> Option<BTreeMap<ChangefeedId, u64>> {
        let mut lists: BTreeMap<&ChangefeedId, Vec<&TableIds>> = BTreeMap::new();
        for carrier in self.tables.values() {
            for (id, ids) in &**carrier.seen.last()?.by_changefeed() {
                lists.entry(id).or_default().push(ids);
            }
        }
        Some(lists.into_iter().map(|(id, lists)| (id.clone(), distinct(lists))).collect())
    }

    fn sample_lags(&mut self) {
        if let (Some(rows), Some(now)) = (self.changefeeds.known(), self.cluster_time.known()) {
            for row in rows {
                if let Some(checkpoint) = row.checkpoint {
                    let lag = u64::try_from(checkpoint.lag_behind(*now).as_millis()).unwrap_or(u64::MAX);
                    push(self.lags.entry(row.id.clone()).or_default(), lag);
                }
            }
        }
    }

    /// The lag of a changefeed by the newest reading of both its checkpoint and the cluster's clock.
    pub fn lag(&self, row: &ChangefeedRow) -> Option<Duration> {
        let now = self.cluster_time.last()?;
        row.checkpoint.map(|checkpoint| checkpoint.lag_behind(*now))
    }
}

impl Carrier {
    /// Whether the newest count is another one than before.
    fn has_moved(&self) -> bool {
        let mut last = self.counts.iter().rev().map(|(_, count)| count);
        matches!((last.next(), last.next()), (Some(now), Some(before)) if now != before)
    }
}

/// The same as each changefeed counted it when it was read.
fn distinct_of(placement: &Placements) -> BTreeMap<ChangefeedId, u64> {
    let read = placement.iter().filter_map(|(id, reading)| Some((id, reading.as_ref().ok()?)));
    read.map(|(id, named)| (id.clone(), named.distinct)).collect()
}

fn push<T>(history: &mut VecDeque<T>, sample: T) {
    if history.len() >= HISTORY {
        history.pop_front();
    }
    history.push_back(sample);
}

#[cfg(test)]
#[path = "picture_tests.rs"]
mod tests;
