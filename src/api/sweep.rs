//! One sweep over all `TiCDC` nodes and what their owners say.

mod maintainers;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use super::cdc::ApiVersion::{V1, V2};
use super::clients::{Clients, SweepAsk, first_that_answers, in_order};
use maintainers::{architecture_of, no_processors, tables_of, unplaced};

use crate::cluster::{
    Address, Architecture, CaptureEntry, CaptureId, CdcSweep, ChangefeedId, ChangefeedRow, ChangefeedState, Clock,
    ClusterId, Failure, FailureKind, GroupSweep, NodeReading, Placement, Processors, Reading, TableId, TargetTables,
};

impl Clients {
    /// Asks every `TiCDC` node for itself, groups them by cluster id, and asks the owner of each group for the rest.
    /// Nothing here fails as a whole: each part carries its own failure.
    pub async fn sweep_cdc(&self, ask: &SweepAsk, clock: &dyn Clock) -> CdcSweep {
        let begun = clock.now();
        let configured = self.endpoints.cdc.iter().cloned();
        let mut nodes = futures::future::join_all(configured.map(|at| self.node(at, true, clock))).await;
        let plan = self.plan_groups(&nodes);
        let asked = plan.into_iter().map(|(id, members)| self.group(id, members, &nodes, ask));
        let mut groups = futures::future::join_all(asked).await;
        groups.sort_by(|a, b| a.cluster_id.cmp(&b.cluster_id));
        let strangers = strangers(&nodes, &groups);
        nodes.extend(futures::future::join_all(strangers.into_iter().map(|at| self.stranger(at, clock))).await);
        nodes.sort_by(|a, b| a.address.cmp(&b.address));
        // A listed capture that nobody configured has answered only now, and may contradict the others.
        for group in &mut groups {
            group.architecture = group.captures.as_ref().ok().and_then(|list| architecture_of(list, &nodes));
        }
        CdcSweep { begun, ended: clock.now(), nodes: nodes.into(), groups }
    }

    async fn node(&self, address: Address, is_configured: bool, clock: &dyn Clock) -> NodeReading {
        let at = clock.now();
        let status = self.cdc.status(&address, V1).await;
        NodeReading { address, is_configured, status, at }
    }

    /// A node that only the list names, asked where it says it listens.
    async fn stranger(&self, address: Address, clock: &dyn Clock) -> NodeReading {
        // An advertised loopback address means the machine that advertises it. Asking it from elsewhere would reach
        // some other process, or nothing (field report 42).
        if address.is_local() && !self.endpoints.cdc.iter().any(Address::is_local) {
            let why = "advertises an address that means its own machine; name it by an address reachable from here";
            let status = Err(Failure::local(FailureKind::Network, why).of(format!("GET http://{address}/")));
            return NodeReading { address, is_configured: false, status, at: clock.now() };
        }
        self.node(address, false, clock).await
    }

    /// Who belongs to which cluster and answers now. A cluster known from before stays even if all its nodes are
    /// silent, so that it does not vanish from the screen when it breaks.
    fn plan_groups(&self, nodes: &[NodeReading]) -> BTreeMap<ClusterId, Members> {
        let mut memory = self.memory();
        for node in nodes {
            if let Ok(status) = &node.status {
                memory.groups.insert(node.address.clone(), status.cluster());
            }
        }
        let mut plan: BTreeMap<ClusterId, Members> = BTreeMap::new();
        for node in nodes {
            let Some(id) = memory.groups.get(&node.address) else { continue };
            let members = plan.entry(id.clone()).or_default();
            match &node.status {
                Ok(status) => {
                    members.speakers.push(node.address.clone());
                    if status.architecture == Architecture::New {
                        members.new_architecture.insert(node.address.clone());
                    }
                }
                Err(failure) => members.silence = members.silence.take().or_else(|| Some(failure.clone())),
            }
        }
        if plan.is_empty() {
            let silence = nodes.iter().find_map(|node| node.status.as_ref().err().cloned());
            plan.insert(ClusterId::default(), Members { silence, ..Members::default() });
        }
        for (id, members) in &mut plan {
            if let Some(speaker) = memory.speakers.get(id) {
                members.speakers.sort_by_key(|address| address != speaker);
            }
        }
        plan
    }

    async fn group(
        &self,
        cluster_id: ClusterId,
        members: Members,
        nodes: &[NodeReading],
        ask: &SweepAsk,
    ) -> GroupSweep {
        let owner = Owner { clients: self, cluster: &cluster_id, speakers: &members.speakers };
        // What only one architecture can answer is asked of its own nodes: one of the other kind that waits for its
        // turn may answer by itself what it should pass on.
        let (of_new, of_classic): (Vec<_>, Vec<_>) =
            members.speakers.iter().cloned().partition(|at| members.new_architecture.contains(at));
        let classic = Owner { speakers: &of_classic, ..owner };
        let maintainers = Owner { speakers: &of_new, ..owner };
        if members.speakers.is_empty() {
            let nobody = || Failure::local(FailureKind::Network, "no TiCDC address was named");
            return GroupSweep::unread(cluster_id, &members.silence.unwrap_or_else(nobody));
        }
        let cdc = &self.cdc;
        let (captures, health, changefeeds, processors, cluster_time) = futures::join!(
            owner.ask(|at| cdc.captures(at, V1)),
            owner.ask(|at| cdc.health(at, V1)),
            owner.ask(|at| cdc.changefeeds(at, V1, "default")),
            async {
                if of_classic.is_empty() {
                    Err(no_processors())
                } else {
                    classic.ask(|at| cdc.processors(at, V1)).await
                }
            },
            owner.ask(|at| cdc.tso(at)),
        );
        let listed = captures.as_deref().unwrap_or_default();
        let architecture = architecture_of(listed, nodes);
        let (placement, target) = match architecture {
            Some(Architecture::Classic) => {
                let lists = Lists { captures: &captures, changefeeds: &changefeeds, processors: &processors };
                futures::join!(
                    async { if ask.placement { classic.placement(&lists).await } else { BTreeMap::new() } },
                    async {
                        match &ask.target {
                            Some(target) => classic.tables_of(target, &lists).await,
                            None => None,
                        }
                    },
                )
            }
            Some(Architecture::New) if ask.placement || ask.target.is_some() => {
                let placement = maintainers.placement_by_maintainers(&changefeeds).await;
                let of = |capture| tables_of(capture, listed, &changefeeds, &placement);
                let target = ask.target.as_ref().and_then(of);
                (placement, target)
            }
            None if ask.placement => (unplaced(&changefeeds), None),
            Some(Architecture::New) | None => (BTreeMap::new(), None),
        };
        let processors = if architecture == Some(Architecture::New) { Err(no_processors()) } else { processors };
        GroupSweep {
            cluster_id,
            architecture,
            captures,
            health,
            changefeeds,
            processors,
            placement: placement.into_iter().collect(),
            target,
            cluster_time,
        }
    }
}

/// The nodes of one cluster in this sweep.
#[derive(Debug, Default)]
struct Members {
    /// Those that answered, the last good one first.
    speakers: Vec<Address>,
    /// Why the first of the others did not.
    silence: Option<Failure>,
    /// Which of the speakers are of the new architecture.
    new_architecture: BTreeSet<Address>,
}

/// The lists of one cluster, as read at the beginning of the sweep.
struct Lists<'a> {
    captures: &'a Reading<Vec<CaptureEntry>>,
    changefeeds: &'a Reading<Vec<ChangefeedRow>>,
    processors: &'a Reading<Processors>,
}

impl Lists<'_> {
    /// Whether the processors list was read and has no processor of this changefeed: what proves that a changefeed
    /// said to be at rest carries no table. By itself the state is only a word.
    fn witness_rest(&self, row: &ChangefeedRow) -> Result<(), Failure> {
        let processors = self.processors.as_ref().map_err(Clone::clone)?;
        if row.state.is_at_rest() && !processors.contains_key(&row.id) {
            return Ok(());
        }
        let message = format!("changefeed {} is {} and has processors all the same", row.id, row.state);
        Err(Failure::local(FailureKind::Unexpected, message))
    }

    /// Every capture that may carry tables of this changefeed.
    fn carriers(&self, id: &ChangefeedId) -> Reading<BTreeSet<CaptureId>> {
        let listed = self.captures.as_ref().map_err(Clone::clone)?.iter().map(|entry| entry.id.clone());
        let working = self.processors.iter().filter_map(|processors| processors.get(id)).flatten();
        Ok(listed.chain(working.cloned()).collect())
    }
}

/// How to ask the owner of one cluster: through any node that answers.
#[derive(Clone, Copy)]
struct Owner<'a> {
    clients: &'a Clients,
    cluster: &'a ClusterId,
    speakers: &'a [Address],
}

impl Owner<'_> {
    async fn ask<'s, T, F>(&'s self, ask: impl Fn(&'s Address) -> F) -> Reading<T>
    where
        F: Future<Output = Reading<T>>,
    {
        let ask = &ask;
        first_that_answers(self.speakers, |at| async move {
            let outcome = ask(at).await;
            if outcome.is_ok() {
                self.clients.memory().speakers.insert(self.cluster.clone(), at.clone());
            }
            outcome
        })
        .await
    }

    /// The tables of every changefeed that may carry some, over all captures.
    async fn placement(&self, lists: &Lists<'_>) -> BTreeMap<ChangefeedId, Reading<Placement>> {
        let Ok(rows) = lists.changefeeds else { return BTreeMap::new() };
        let mut placement: BTreeMap<_, _> = in_order(rows, |row| async move {
            match lists.witness_rest(row) {
                Ok(()) => None,
                Err(contradiction) if row.state.is_at_rest() => Some((row.id.clone(), Err(contradiction))),
                Err(_) => Some((row.id.clone(), self.placement_of(row, lists).await)),
            }
        })
        .await
        .into_iter()
        .flatten()
        .collect();
        // In the first second of a new owner some changefeeds are missing from a list (recorded/README 31): those
        // that only the other list has are unknown, not absent.
        for id in lists.processors.iter().flat_map(|processors| processors.keys()) {
            if !rows.iter().any(|row| row.id == *id) {
                placement.entry(id.clone()).or_insert_with(|| {
                    let message = format!("changefeed {id} has processors and is in no list of changefeeds");
                    Err(Failure::local(FailureKind::Unexpected, message))
                });
            }
        }
        placement
    }

    async fn placement_of(&self, row: &ChangefeedRow, lists: &Lists<'_>) -> Reading<Placement> {
        if row.state == ChangefeedState::Normal {
            let detail = self.ask(|at| self.clients.cdc.changefeed(at, V2, &row.id)).await?;
            match detail.placement {
                Some(placement) if !placement.is_empty() => return Ok(placement),
                _ if detail.state == ChangefeedState::Normal => {
                    let message = format!("changefeed {} is normal and its tables are not placed yet", row.id);
                    return Err(Failure::local(FailureKind::NotInitialized, message));
                }
                _ => {}
            }
        }
        // Only a normal changefeed has a task status; the tables of the others are asked for one capture at a time.
        let carriers = lists.carriers(&row.id)?;
        let tables = in_order(carriers, |capture| async move {
            self.tables(&row.id, &capture).await.map(|tables| (capture, tables))
        })
        .await;
        tables.into_iter().collect()
    }

    async fn tables(&self, id: &ChangefeedId, capture: &CaptureId) -> Reading<Vec<TableId>> {
        self.ask(|at| self.clients.cdc.processor_tables(at, V2, id, capture)).await
    }

    /// The tables of one capture, changefeed by changefeed. `None` where the changefeeds are unknown or the capture
    /// is not in the list of this cluster: an empty map would look like an empty capture.
    async fn tables_of(&self, capture: &CaptureId, lists: &Lists<'_>) -> Option<TargetTables> {
        let rows = lists.changefeeds.as_ref().ok()?;
        if lists.captures.as_ref().is_ok_and(|list| !list.iter().any(|entry| entry.id == *capture)) {
            return None;
        }
        let by_changefeed = in_order(rows, |row| async move {
            let tables = match lists.witness_rest(row) {
                Ok(()) => Ok(Vec::new()),
                Err(_) => self.tables(&row.id, capture).await,
            };
            (row.id.clone(), tables)
        })
        .await;
        Some(TargetTables { capture: capture.clone(), by_changefeed: by_changefeed.into_iter().collect() })
    }
}

/// The listed addresses that nobody configured, of captures that no configured node says it is.
fn strangers(nodes: &[NodeReading], groups: &[GroupSweep]) -> BTreeSet<Address> {
    let seen: BTreeSet<_> = nodes.iter().filter_map(|node| node.status.as_ref().ok()?.id.as_ref()).collect();
    let entries = groups.iter().flat_map(|group| group.captures.iter().flatten());
    entries
        .filter(|entry| !seen.contains(&entry.id) && !nodes.iter().any(|node| node.address == entry.address))
        .map(|entry| entry.address.clone())
        .collect()
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "sweep_new_tests.rs"]
mod new_tests;
