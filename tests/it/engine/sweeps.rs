//! What [`super::model`]'s cluster shows when it is read.

use std::collections::BTreeMap;

use tiroll::cluster::tidb::TidbAll;
use tiroll::cluster::{
    Architecture, CaptureEntry, CaptureId, CdcSweep, ChangefeedId, ChangefeedRow, ChangefeedState, ClusterId, Failure,
    FailureKind, GroupSweep, LivenessReading, NodeReading, NodeStatus, TableId, TargetTables, TidbInfo, TidbReading,
    TidbStatus, TidbSweep, Tso, UpgradeState, Version,
};

use super::model::{Course, Spoil, version};

impl Course {
    fn feeds() -> [ChangefeedId; 2] {
        [ChangefeedId::new("default", "orders"), ChangefeedId::new("default", "dwh")]
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
                        liveness: LivenessReading::new(Some(i64::from(c.stopping)), Architecture::Classic),
                        architecture: Architecture::Classic,
                    })
                },
            })
            .collect();
        let entry = |id: CaptureId, n: usize| CaptureEntry {
            is_owner: (n == self.owner || self.has_two_owners) && id == self.captures[n].id(),
            address: self.captures[n].address.clone(),
            cluster_id: Some(cluster.clone()),
            id,
        };
        let mut list: Vec<_> =
            self.captures.iter().filter(|c| c.down_until.is_none()).map(|c| entry(c.id(), c.n)).collect();
        list.extend(self.ghosts.iter().map(|(n, id, _)| entry(id.clone(), *n)));
        let clock = u64::try_from(at.wall_ms).unwrap();
        let row = |n: usize| ChangefeedRow {
            id: Self::feeds()[n].clone(),
            state: if n == 1 && self.warning { ChangefeedState::Warning } else { ChangefeedState::Normal },
            checkpoint: Tso::new((self.frozen_at.filter(|_| n == 1).unwrap_or(clock) - 2_000) << 18),
            error: None,
        };
        let ids = |n: usize, count: u64| -> Vec<TableId> {
            (0..count).map(|k| TableId(i64::try_from(k).unwrap() + 1_000 * i64::try_from(n).unwrap())).collect()
        };
        let placement = (0..2)
            .map(|feed| {
                let all = self.captures.iter().filter(|c| c.down_until.is_none());
                (Self::feeds()[feed].clone(), Ok(all.map(|c| (c.id(), ids(c.n, c.tables[feed]))).collect()))
            })
            .collect();
        let target = self.watched.as_ref().map(|capture| TargetTables {
            capture: capture.clone(),
            by_changefeed: (0..2)
                .map(|feed| {
                    let found = self.captures.iter().find(|c| &c.id() == capture && c.down_until.is_none());
                    let reading = match found {
                        _ if spoil.target => Err(spoilt()),
                        Some(c) => Ok(ids(c.n, c.tables[feed])),
                        None => Err(Failure::local(FailureKind::NoSuchCapture, "gone")),
                    };
                    (Self::feeds()[feed].clone(), reading)
                })
                .collect::<BTreeMap<_, _>>(),
        });
        let group = GroupSweep {
            cluster_id: cluster.clone(),
            architecture: Some(Architecture::Classic),
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
            processors: Ok(Vec::new()),
            placement,
            target,
            cluster_time: Tso::new(clock << 18).ok_or_else(spoilt),
        };
        CdcSweep { begun: at, ended: at, nodes, groups: vec![group] }
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
