//! What [`super::model`]'s cluster shows when it is read.

use tiroll::cluster::tidb::TidbAll;
use tiroll::cluster::{
    Architecture, CaptureEntry, CaptureId, CdcSweep, ChangefeedId, ChangefeedRow, ChangefeedState, ClusterId, Failure,
    FailureKind, GroupSweep, LivenessReading, NodeReading, NodeStatus, Placements, Processors, TableId, TargetTables,
    TidbInfo, TidbReading, TidbStatus, TidbSweep, Tso, UpgradeState, Version,
};

use super::model::{Capture, Course, Spoil, version};

impl Course {
    fn feeds() -> [ChangefeedId; 2] {
        [ChangefeedId::new("default", "orders"), ChangefeedId::new("default", "dwh")]
    }

    fn architecture_at(&self, n: usize) -> Architecture {
        match (self.architecture, self.captures[n].is_other) {
            (Architecture::Classic, false) | (Architecture::New, true) => Architecture::Classic,
            (Architecture::New, false) | (Architecture::Classic, true) => Architecture::New,
        }
    }

    pub(crate) fn cdc(&self, spoil: Spoil) -> CdcSweep {
        let spoilt = || Failure::local(FailureKind::Timeout, "spoilt by the test");
        let at = self.at();
        let cluster = ClusterId::default();
        let nodes = self
            .captures
            .iter()
            .map(|c| NodeReading {
                address: c.address.clone(),
                is_configured: true,
                at,
                status: if c.down_until.is_some() {
                    Err(Failure::local(FailureKind::Refused, "refused"))
                } else if spoil.node == Some(c.n) {
                    Err(spoilt())
                } else {
                    Ok(NodeStatus {
                        id: Some(c.id()),
                        version: Version::parse(c.version).ok(),
                        version_text: c.version.into(),
                        git_hash: "".into(),
                        cluster_id: Some(cluster.clone()),
                        pid: Some(i64::from(c.generation) + 100),
                        is_owner: c.n == self.owner,
                        liveness: LivenessReading::new(Some(c.liveness()), self.architecture_at(c.n)),
                        architecture: self.architecture_at(c.n),
                    })
                },
            })
            .collect::<Vec<_>>();
        let entry = |id: CaptureId, n: usize| CaptureEntry {
            is_owner: (n == self.owner || self.has_two_owners) && id == self.captures[n].id(),
            address: self.captures[n].address.clone(),
            cluster_id: Some(cluster.clone()),
            id,
        };
        let mut list: Vec<_> = self
            .captures
            .iter()
            .filter(|c| c.down_until.is_none() && !c.is_other)
            .map(|c| entry(c.id(), c.n))
            .collect();
        list.extend(self.ghosts.iter().map(|(n, id, _)| entry(id.clone(), *n)));
        let clock = u64::try_from(at.wall_ms).unwrap();
        let row = |n: usize| ChangefeedRow {
            id: Self::feeds()[n].clone(),
            state: if n == 1 && self.has_second_failed {
                ChangefeedState::Failed
            } else if n == 1 && self.is_second_paused {
                ChangefeedState::Stopped
            } else if n == 1 && self.warning {
                ChangefeedState::Warning
            } else {
                ChangefeedState::Normal
            },
            checkpoint: Tso::new((self.frozen_at.filter(|_| n == 1).unwrap_or(clock) - 2_000) << 18),
            error: None,
        };
        let (placement, target) = (self.placement(), self.target(spoil));
        let group = GroupSweep {
            cluster_id: cluster.clone(),
            architecture: Some(self.architecture),
            captures: if spoil.captures {
                Err(spoilt())
            } else if self.now < self.no_owner_until {
                Err(Failure::local(FailureKind::NoOwner, "nobody owns"))
            } else {
                Ok(list)
            },
            health: if self.is_unhealthy {
                Err(Failure::local(FailureKind::Unhealthy, "as the test wants it"))
            } else {
                Ok(())
            },
            changefeeds: if spoil.changefeeds { Err(spoilt()) } else { Ok(vec![row(1), row(0)]) },
            processors: match self.architecture {
                Architecture::Classic => Ok(Processors::default()),
                Architecture::New => Err(Failure::local(FailureKind::NotAsked, "the list is always empty")),
            },
            placement,
            target,
            cluster_time: Tso::new(clock << 18).ok_or_else(spoilt),
        };
        CdcSweep { begun: at, ended: at, nodes: nodes.into(), groups: vec![group] }
    }

    /// The tables of a changefeed there, as the servers show them.
    fn shown(&self, c: &Capture, feed: usize) -> Vec<TableId> {
        let is_new = self.architecture == Architecture::New;
        let is_none = (is_new && self.now < self.coordinator.names_nothing_until)
            || (feed == 1 && (self.is_second_paused || self.has_second_failed));
        let count = if is_none { 0 } else { i64::try_from(c.tables[feed]).unwrap() };
        // What it names is on the other captures; what it leaves out is on the one that matters.
        let is_left_out = is_new && self.coordinator.names_half && c.stopping;
        let count = if is_left_out { 0 } else { count };
        (0..count).map(|k| TableId(k + 1_000 * i64::try_from(c.n).unwrap())).collect()
    }

    fn placement(&self) -> Placements {
        let of = |feed: usize| {
            if self.are_maintainers_gone() {
                return Err(Failure::local(FailureKind::NoMaintainer, "its node is dead"));
            }
            let all = self.captures.iter().filter(|c| c.down_until.is_none());
            let is_new = self.architecture == Architecture::New;
            let named = all.map(|c| (c.id(), self.shown(c, feed)));
            // The maintainer's own node is named for its dispatcher, which is no table.
            let is_there = |id: &CaptureId| self.coordinator.maintainer_stays_at.as_ref() == Some(id);
            Ok(named.filter(|(id, ids)| !is_new || !ids.is_empty() || is_there(id)).collect())
        };
        (0..2).map(|feed| (Self::feeds()[feed].clone(), of(feed))).collect()
    }

    fn target(&self, spoil: Spoil) -> Option<TargetTables> {
        let capture = self.watched.clone()?;
        let of = |feed: usize| {
            if spoil.target {
                return Err(Failure::local(FailureKind::Timeout, "spoilt by the test"));
            }
            if self.are_maintainers_gone() {
                return Err(Failure::local(FailureKind::NoMaintainer, "its node is dead"));
            }
            let found = self.captures.iter().find(|c| c.id() == capture && c.down_until.is_none());
            let gone = || Failure::local(FailureKind::NoSuchCapture, "gone");
            found.map(|c| self.shown(c, feed)).ok_or_else(gone)
        };
        let by_changefeed = (0..2).map(|feed| (Self::feeds()[feed].clone(), of(feed))).collect();
        Some(TargetTables { capture, by_changefeed })
    }

    pub(crate) fn tidb_sweep(&self, spoil: Spoil) -> TidbSweep {
        let at = self.at();
        let refused = || Failure::local(FailureKind::Refused, "refused");
        let servers = self
            .tidb
            .iter()
            .map(|t| TidbReading {
                address: t.address.clone(),
                status: t
                    .down_until
                    .map_or_else(|| Ok(TidbStatus { version: version(t.version), connections: 0 }), |_| Err(refused())),
                info: t.down_until.map_or_else(
                    || {
                        Ok(TidbInfo {
                            ddl_id: format!("ddl-{}-{}", t.address.port(), t.start).into(),
                            version: version(t.version),
                            git_hash: "".into(),
                            sql_address: t.address.clone(),
                            status_address: t.address.clone(),
                            start_timestamp: t.start,
                            is_ddl_owner: Some(t.address.port() == 10_080),
                        })
                    },
                    |_| Err(refused()),
                ),
            })
            .collect();
        let state = if self.upgrading {
            UpgradeState::Upgrading { servers: 2, percent: 100, is_consistent: true }
        } else {
            UpgradeState::Normal
        };
        TidbSweep {
            begun: at,
            ended: at,
            servers,
            all: Ok(TidbAll { owner_id: "".into(), servers: Vec::new() }),
            state: if spoil.tidb { Err(refused()) } else { Ok(state) },
        }
    }
}
