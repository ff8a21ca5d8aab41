//! Sweeps: everything there is to read of a cluster, asked together.
//!
//! What is local to a node is asked of that node; what the owner knows is asked through whichever node of the cluster
//! answers. Each part keeps its own failure.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use futures::StreamExt;
use futures::stream;

use super::cdc::{self, Api};
use super::clients::{Clients, is_nodes_fault};
use super::{pd, tidb};
use crate::cluster::pd::PdReading;
use crate::cluster::reading::Placement;
use crate::cluster::{
    Address, CaptureEntry, CaptureId, CdcSweep, ChangefeedId, ChangefeedRow, ChangefeedState, Clock, ClusterId,
    Failure, FailureKind, GroupSweep, NodeReading, NodeStatus, PdSweep, Reading, TableId, TargetTables, TidbReading,
    TidbSweep,
};

/// Requests of one sweep under way at once.
const AT_ONCE: usize = 8;

/// What a sweep of `TiCDC` shall read beside the usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepAsk {
    /// The capture whose tables are wanted by name.
    pub target: Option<CaptureId>,
    /// Whether the tables of every capture are wanted.
    pub placement: bool,
}

impl Clients {
    /// Reads all of `TiCDC`.
    pub async fn sweep_cdc(&self, ask: &SweepAsk, clock: &dyn Clock) -> CdcSweep {
        let begun = clock.now();
        let mut nodes: Vec<NodeReading> = stream::iter(self.endpoints.cdc.iter().cloned())
            .map(|address| self.node(address, true, clock))
            .buffered(AT_ONCE)
            .collect()
            .await;
        let mut groups: BTreeMap<ClusterId, Vec<Address>> = BTreeMap::new();
        for node in &nodes {
            if let Ok(status) = &node.status {
                groups.entry(status.cluster_id.clone().unwrap_or_default()).or_default().push(node.address.clone());
            }
        }
        self.remember(&mut groups);
        let mut sweeps = Vec::new();
        for cluster in groups.into_keys() {
            sweeps.push(self.group(cluster, ask).await);
        }
        if sweeps.is_empty() {
            let why = nodes.iter().find_map(|node| node.status.as_ref().err().cloned());
            let why = why.unwrap_or_else(|| Failure::local(FailureKind::Refused, "no capture was named"));
            sweeps.push(GroupSweep::unread(ClusterId::default(), &why));
        }
        nodes.extend(self.unnamed(&nodes, &sweeps, clock).await);
        nodes.sort_by(|a, b| a.address.cmp(&b.address));
        CdcSweep { begun, ended: clock.now(), nodes, groups: sweeps }
    }

    /// Keeps the node that answered last in front, and nodes that are silent now in the list: they may be back.
    fn remember(&self, groups: &mut BTreeMap<ClusterId, Vec<Address>>) {
        self.learn(|learnt| {
            for (cluster, silent) in &learnt.groups {
                groups.entry(cluster.clone()).or_default().extend(silent.iter().cloned());
            }
            for (cluster, addresses) in &mut *groups {
                let mut seen = BTreeSet::new();
                addresses.retain(|address| seen.insert(address.clone()));
                if let Some(first) = learnt.groups.get(cluster).and_then(|known| known.first())
                    && let Some(at) = addresses.iter().position(|address| address == first)
                {
                    addresses.swap(0, at);
                }
            }
            learnt.groups.clone_from(groups);
        });
    }

    async fn node(&self, address: Address, is_configured: bool, clock: &dyn Clock) -> NodeReading {
        let at = clock.now();
        let status = self.status(&address).await;
        NodeReading { address, is_configured, status, at }
    }

    async fn status(&self, address: &Address) -> Reading<NodeStatus> {
        // The architecture is asked for once a process; until it is known the number says nothing.
        let first = cdc::status(&self.http, address, Api::V1, crate::cluster::Architecture::Classic).await?;
        let known = first.id.as_ref().and_then(|id| self.learn(|learnt| learnt.architectures.get(id).copied()));
        let architecture = match known {
            Some(architecture) => architecture,
            None => cdc::architecture(&self.http, address).await?,
        };
        if let Some(id) = &first.id {
            self.learn(|learnt| learnt.architectures.insert(id.clone(), architecture));
        }
        let liveness = crate::cluster::LivenessReading::new(first.liveness.raw, architecture);
        Ok(NodeStatus { liveness, architecture, ..first })
    }

    /// Captures that are listed at an address nobody named: asked where they say they are.
    async fn unnamed(&self, nodes: &[NodeReading], groups: &[GroupSweep], clock: &dyn Clock) -> Vec<NodeReading> {
        let asked: BTreeSet<&Address> = nodes.iter().map(|node| &node.address).collect();
        let known: BTreeSet<&CaptureId> =
            nodes.iter().filter_map(|node| node.status.as_ref().ok()?.id.as_ref()).collect();
        let more: BTreeSet<Address> = groups
            .iter()
            .filter_map(|group| group.captures.as_ref().ok())
            .flatten()
            .filter(|entry| !asked.contains(&entry.address) && !known.contains(&entry.id))
            .map(|entry| entry.address.clone())
            .collect();
        stream::iter(more).map(|address| self.node(address, false, clock)).buffered(AT_ONCE).collect().await
    }

    /// Asks one node after another until one answers; a question that every node would answer the same is asked once.
    async fn any<T, F>(&self, cluster: &ClusterId, question: impl Fn(Address) -> F) -> Reading<T>
    where
        F: Future<Output = Reading<T>>,
    {
        let mut last = Failure::local(FailureKind::Refused, "no capture of this cluster is known");
        for address in self.addresses(cluster) {
            match question(address.clone()).await {
                Err(why) if is_nodes_fault(why.kind) => last = why,
                answer => {
                    self.learn(|learnt| {
                        if let Some(known) = learnt.groups.get_mut(cluster)
                            && let Some(at) = known.iter().position(|known| known == &address)
                        {
                            known.swap(0, at);
                        }
                    });
                    return answer;
                }
            }
        }
        Err(last)
    }

    async fn group(&self, cluster: ClusterId, ask: &SweepAsk) -> GroupSweep {
        let http = &self.http;
        let captures = self.any(&cluster, |at| async move { cdc::captures(http, &at, Api::V1).await }).await;
        let health = self.any(&cluster, |at| async move { cdc::health(http, &at, Api::V1).await });
        let changefeeds = self.any(&cluster, |at| async move { cdc::changefeeds(http, &at, Api::V1, None).await });
        let processors = self.any(&cluster, |at| async move { cdc::processors(http, &at, Api::V1).await });
        let cluster_time = self.any(&cluster, |at| async move { cdc::tso(http, &at).await });
        let (health, changefeeds, processors) = tokio::join!(health, changefeeds, processors);
        let rows: &[ChangefeedRow] = changefeeds.as_deref().unwrap_or_default();
        let list: &[CaptureEntry] = captures.as_deref().unwrap_or_default();
        let placement =
            async { if ask.placement { self.placement(&cluster, rows, list).await } else { BTreeMap::new() } };
        let target = async {
            match &ask.target {
                Some(capture) => Some(self.target(&cluster, rows, &processors, capture).await),
                None => None,
            }
        };
        let (placement, target, cluster_time) = tokio::join!(placement, target, cluster_time);
        GroupSweep { cluster_id: cluster, captures, health, changefeeds, processors, placement, target, cluster_time }
    }

    /// Where the tables of each running changefeed are.
    async fn placement(
        &self,
        cluster: &ClusterId,
        rows: &[ChangefeedRow],
        captures: &[CaptureEntry],
    ) -> BTreeMap<ChangefeedId, Reading<Placement>> {
        let running: Vec<ChangefeedRow> = rows.iter().filter(|row| row.state.is_running()).cloned().collect();
        stream::iter(running)
            .map(|row| async move {
                let reading = match row.state {
                    ChangefeedState::Normal => self.placement_of_normal(cluster, &row.id).await,
                    _ => self.placement_by_capture(cluster, &row.id, captures).await,
                };
                (row.id, reading)
            })
            .buffered(AT_ONCE)
            .collect()
            .await
    }

    /// One request: the detail of a `normal` changefeed carries the tables of every capture.
    async fn placement_of_normal(&self, cluster: &ClusterId, feed: &ChangefeedId) -> Reading<Placement> {
        let http = &self.http;
        let detail = self.any(cluster, |at| async move { cdc::changefeed(http, &at, Api::V2, feed).await }).await?;
        detail.tables.ok_or_else(|| {
            let state = detail.row.state;
            Failure::local(FailureKind::Unexpected, format!("the detail of {} ({state}) names no tables", feed.label()))
        })
    }

    /// A request for each capture: the detail of a `warning` changefeed carries no tables.
    async fn placement_by_capture(
        &self,
        cluster: &ClusterId,
        feed: &ChangefeedId,
        captures: &[CaptureEntry],
    ) -> Reading<Placement> {
        let mut placement = Placement::new();
        for entry in captures {
            placement.insert(entry.id.clone(), self.tables_on(cluster, feed, &entry.id).await?);
        }
        Ok(placement)
    }

    async fn tables_on(&self, cluster: &ClusterId, feed: &ChangefeedId, capture: &CaptureId) -> Reading<Vec<TableId>> {
        let http = &self.http;
        self.any(cluster, |at| async move { cdc::processor(http, &at, Api::V2, feed, capture).await }).await
    }

    /// The tables of one capture, changefeed by changefeed.
    async fn target(
        &self,
        cluster: &ClusterId,
        rows: &[ChangefeedRow],
        processors: &Reading<Vec<(ChangefeedId, CaptureId)>>,
        capture: &CaptureId,
    ) -> TargetTables {
        let by_changefeed = stream::iter(rows.to_vec())
            .map(|row| async move {
                let reading = match (row.state.is_at_rest(), processors) {
                    // A changefeed at rest has no processor anywhere (recorded cdc-classic-more 06); the call for its
                    // tables is an error by design, so the list of processors is the witness.
                    (true, Ok(list)) if !list.iter().any(|(feed, _)| feed == &row.id) => Ok(Vec::new()),
                    (true, Err(why)) => Err(why.clone()),
                    _ => self.tables_on(cluster, &row.id, capture).await,
                };
                (row.id, reading)
            })
            .buffered(AT_ONCE)
            .collect()
            .await;
        TargetTables { capture: capture.clone(), by_changefeed }
    }

    /// Reads all of `TiDB`.
    pub async fn sweep_tidb(&self, clock: &dyn Clock) -> TidbSweep {
        let begun = clock.now();
        let http = &self.http;
        let servers: Vec<TidbReading> = stream::iter(self.endpoints.tidb.iter().cloned())
            .map(|address| async move {
                let (status, info) = tokio::join!(tidb::status(http, &address), tidb::info(http, &address));
                TidbReading { address, status, info }
            })
            .buffered(AT_ONCE)
            .collect()
            .await;
        let serving = servers.iter().filter(|server| server.status.is_ok()).map(|server| server.address.clone());
        let others = servers.iter().filter(|server| server.status.is_err()).map(|server| server.address.clone());
        let ordered: Vec<Address> = serving.chain(others).collect();
        let mut all = Err(Failure::local(FailureKind::Refused, "no TiDB server was named"));
        let mut state = Err(Failure::local(FailureKind::Refused, "no TiDB server was named"));
        for address in &ordered {
            if all.is_err() {
                all = tidb::info_all(http, address).await;
            }
            if state.is_err() {
                state = tidb::show(http, address).await;
                if state.is_ok() {
                    self.learn(|learnt| learnt.tidb = Some(address.clone()));
                }
            }
        }
        TidbSweep { begun, ended: clock.now(), servers, all, state }
    }

    /// Reads all of PD.
    pub async fn sweep_pd(&self, clock: &dyn Clock) -> PdSweep {
        let begun = clock.now();
        let servers = stream::iter(self.endpoints.pd.iter().cloned())
            .map(|address| async move {
                let version = pd::version(&self.http, &address).await;
                PdReading { address, version }
            })
            .buffered(AT_ONCE)
            .collect()
            .await;
        PdSweep { begun, ended: clock.now(), servers }
    }
}
