//! A large classic cluster as plain data: what a sweep over it shows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tiroll::cluster::{
    Address, Architecture, CaptureEntry, CaptureId, CdcSweep, ChangefeedId, ChangefeedRow, ChangefeedState, ClusterId,
    GroupSweep, LivenessReading, NodeReading, NodeStatus, TableId, TargetTables, Timestamp, Tso, Version,
};
use tiroll::rollout::Request;

/// How many changefeeds there are.
const FEEDS: usize = 10;

pub(crate) fn request(is_watch: bool) -> Request {
    Request {
        target: Version::parse("v8.5.4").unwrap(),
        is_watch,
        has_tidb: false,
        has_pd: false,
        executor: "manual",
        hand_over_passes: false,
        is_simulated: false,
        speed: 1.0,
        is_auto: true,
    }
}

/// The cluster.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) now: Timestamp,
    /// The capture whose tables are asked for by name. Tables leave it.
    pub(crate) target: Option<CaptureId>,
    captures: usize,
    /// The tables by changefeed and capture.
    tables: Vec<Vec<Vec<i64>>>,
    turn: usize,
}

fn capture(n: usize) -> CaptureId {
    CaptureId::new(format!("{n:08x}-7995-43c6-9372-51d69d484aff"))
}

fn address(n: usize) -> Address {
    Address::new(&format!("10.0.1.{n}"), 8300)
}

fn feed(n: usize) -> ChangefeedId {
    ChangefeedId::new("default", format!("feed-{n}"))
}

impl Cluster {
    /// Tables spread evenly.
    pub(crate) fn new(captures: usize, tables: usize) -> Self {
        let mut by_feed = vec![vec![Vec::new(); captures]; FEEDS];
        for table in 0..tables {
            by_feed[table % FEEDS][table / FEEDS % captures].push(i64::try_from(table).unwrap());
        }
        let now = Timestamp::new(1_796_072_632_050, 1_000);
        Self { now, target: None, captures, tables: by_feed, turn: 0 }
    }

    /// Time passes, and a table of each changefeed may move: first it is listed at both places, then only at the new one.
    pub(crate) fn pass(&mut self, time: Duration, has_moved: bool) {
        self.now = self.now.plus(time);
        if !has_moved {
            return;
        }
        self.turn += 1;
        let from = self.targeted().unwrap_or(self.turn / 2 % self.captures);
        let to = (from + 1 + self.turn / 2 % (self.captures - 1)) % self.captures;
        for by_capture in &mut self.tables {
            if self.turn.is_multiple_of(2) {
                let moving = by_capture[from].first().copied();
                by_capture[to].extend(moving);
                by_capture[to].sort_unstable();
            } else if !by_capture[from].is_empty() {
                by_capture[from].remove(0);
            }
        }
    }

    fn targeted(&self) -> Option<usize> {
        (0..self.captures).find(|n| Some(capture(*n)) == self.target)
    }

    /// What the drain call counts.
    pub(crate) fn on_target(&self) -> u64 {
        let count = |n: usize| self.tables.iter().map(|by_capture| by_capture[n].len()).sum::<usize>();
        u64::try_from(self.targeted().map_or(0, count)).unwrap()
    }

    pub(crate) fn sweep(&self) -> CdcSweep {
        let cluster = ClusterId::default();
        let now = self.now;
        let nodes = (0..self.captures)
            .map(|n| NodeReading {
                address: address(n),
                is_configured: true,
                at: now,
                status: Ok(NodeStatus {
                    id: Some(capture(n)),
                    version: Version::parse("v8.5.3").ok(),
                    version_text: "v8.5.3".into(),
                    git_hash: "c7b2588".into(),
                    cluster_id: Some(cluster.clone()),
                    pid: Some(1),
                    is_owner: n == 0,
                    liveness: LivenessReading::new(
                        Some(i64::from(Some(capture(n)) == self.target)),
                        Architecture::Classic,
                    ),
                    architecture: Architecture::Classic,
                }),
            })
            .collect::<Vec<_>>();
        let list: Vec<_> = (0..self.captures)
            .map(|n| CaptureEntry {
                id: capture(n),
                address: address(n),
                cluster_id: Some(cluster.clone()),
                is_owner: n == 0,
            })
            .collect();
        let rows = (0..FEEDS)
            .map(|n| ChangefeedRow {
                id: feed(n),
                state: ChangefeedState::Normal,
                checkpoint: Tso::new(u64::try_from(now.wall_ms - 2_000).unwrap() << 18),
                error: None,
            })
            .collect();
        let ids = |ids: &[i64]| ids.iter().copied().map(TableId).collect::<Vec<_>>();
        let placement = self.tables.iter().enumerate().map(|(n, by_capture)| {
            let placement = by_capture.iter().enumerate().map(|(n, tables)| (capture(n), ids(tables)));
            (feed(n), Ok(placement.collect()))
        });
        let target = self.targeted().map(|n| TargetTables {
            capture: capture(n),
            by_changefeed: self.tables.iter().enumerate().map(|(f, tables)| (feed(f), Ok(ids(&tables[n])))).collect(),
        });
        let processors = (0..FEEDS).map(|f| (feed(f), (0..self.captures).map(capture).collect()));
        let group = GroupSweep {
            cluster_id: cluster,
            architecture: Some(Architecture::Classic),
            captures: Ok(list),
            health: Ok(()),
            changefeeds: Ok(rows),
            processors: Ok(Arc::new(processors.collect())),
            placement: placement.collect(),
            target,
            cluster_time: Ok(Tso::new(u64::try_from(now.wall_ms).unwrap() << 18).unwrap()),
        };
        CdcSweep { begun: now, ended: now, nodes: nodes.into(), groups: vec![group] }
    }
}

/// All ids of a sweep once more, by capture.
pub(crate) fn copied(sweep: &CdcSweep) -> BTreeMap<CaptureId, BTreeMap<ChangefeedId, Vec<TableId>>> {
    let mut all: BTreeMap<CaptureId, BTreeMap<ChangefeedId, Vec<TableId>>> = BTreeMap::new();
    for (capture, tables) in sweep.groups[0].placement.by_capture() {
        for (feed, ids) in &**tables.by_changefeed() {
            all.entry(capture.clone()).or_default().insert(feed.clone(), ids.to_vec());
        }
    }
    all
}
