//! All clients together: which server is asked for what, and who answers for whom.
//!
//! What is local to a node (status, version, liveness) is asked of that node at its configured address. What the
//! owner says is asked of any node of the cluster, which forwards it, and the next is tried when one fails by itself.
//! Calls that change something are sent once.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::StreamExt as _;
use futures::stream;

use super::cdc::{ApiVersion, Cdc};
use super::http::{Http, Options};
use super::pd;
use super::tidb::Tidb;
use crate::cluster::{
    Address, CaptureId, Clock, ClusterId, Failure, FailureKind, FinishAnswer, PdReading, PdSweep, Reading, StartAnswer,
    TableId, TidbReading, TidbSweep,
};

/// How many questions of one sweep are open at a time in one cluster. Owner calls queue at the owner anyway.
pub(super) const AT_ONCE: usize = 8;

/// The servers as the operator named them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// `TiCDC` captures.
    pub cdc: Vec<Address>,
    /// `TiDB` status ports.
    pub tidb: Vec<Address>,
    /// PD client ports.
    pub pd: Vec<Address>,
}

/// What a sweep over `TiCDC` should look at beyond the lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepAsk {
    /// A capture whose tables are wanted, changefeed by changefeed.
    pub target: Option<CaptureId>,
    /// Whether the placement of all tables is wanted. In the new architecture it costs nothing beside a target: the
    /// maintainers name all nodes at once.
    pub placement: bool,
}

/// Clients for all servers.
#[derive(Debug)]
pub struct Clients {
    pub(super) endpoints: Endpoints,
    http: Http,
    pub(super) cdc: Cdc,
    tidb: Tidb,
    memory: Mutex<Memory>,
}

/// What earlier answers taught.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The cluster each capture's address last said it belongs to.
    pub(super) groups: BTreeMap<Address, ClusterId>,
    /// The address that last answered for each cluster.
    pub(super) speakers: BTreeMap<ClusterId, Address>,
    /// The `TiDB` servers that answered `/status` in the last sweep.
    healthy_tidb: Vec<Address>,
}

impl Clients {
    /// Clients for these servers. Fails only if the http layer cannot be built.
    pub fn new(mut endpoints: Endpoints, options: &Options) -> Reading<Self> {
        for list in [&mut endpoints.cdc, &mut endpoints.tidb, &mut endpoints.pd] {
            list.sort();
            list.dedup();
        }
        let http = Http::new(options)?;
        let (cdc, tidb) = (Cdc::new(http.clone()), Tidb::new(http.clone()));
        Ok(Self { endpoints, http, cdc, tidb, memory: Mutex::new(Memory::default()) })
    }

    /// The servers, ordered and each once.
    pub const fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a drain of a capture, at the owner's address if it is known. Only if that one cannot be reached is
    /// it sent once more, through another capture of the cluster: repeating a drain is harmless (recorded/README 1).
    pub async fn drain(&self, cluster: &ClusterId, capture: &CaptureId, owner: Option<&Address>) -> Reading<u64> {
        let mut candidates = self.members(cluster);
        if let Some(owner) = owner {
            candidates.retain(|address| address != owner);
            candidates.insert(0, owner.clone());
        }
        let mut candidates = candidates.iter();
        let first = candidates.next().ok_or_else(|| nobody(cluster))?;
        match (self.cdc.drain(first, ApiVersion::V1, capture).await, candidates.next()) {
            (Err(failure), Some(second)) if is_unreachable(failure.kind) => {
                self.cdc.drain(second, ApiVersion::V1, capture).await
            }
            (outcome, _) => outcome,
        }
    }

    /// Asks the owner of a cluster to resign, once and at its own address: a resign that is forwarded after a change
    /// of owners would make the next one resign.
    pub async fn resign(&self, _cluster: &ClusterId, owner: &Address) -> Reading<()> {
        self.cdc.resign(owner, ApiVersion::V2).await
    }

    /// The addresses of a cluster, the one that answered last first.
    pub(super) fn members(&self, cluster: &ClusterId) -> Vec<Address> {
        let memory = self.memory();
        let members = memory.groups.iter().filter(|(_, group)| *group == cluster);
        let mut members: Vec<_> = members.map(|(address, _)| address.clone()).collect();
        // Before the first sweep nothing is known; after it, an address of another cluster must not be taken for one.
        if memory.groups.is_empty() {
            members.clone_from(&self.endpoints.cdc);
        }
        if let Some(speaker) = memory.speakers.get(cluster) {
            members.sort_by_key(|address| address != speaker);
        }
        members
    }

    /// Asks every `TiDB` server for itself, and one of them for the cluster.
    pub async fn sweep_tidb(&self, clock: &dyn Clock) -> TidbSweep {
        let begun = clock.now();
        let ask = |address: Address| async move {
            let (status, info) = futures::join!(self.tidb.status(&address), self.tidb.info(&address));
            TidbReading { address, status, info }
        };
        let servers = in_order(self.endpoints.tidb.clone(), ask).await;
        let healthy = servers.iter().filter(|server| server.status.is_ok());
        self.memory().healthy_tidb = healthy.map(|server| server.address.clone()).collect();
        // One that gave any answer at all may still speak for the cluster while it is shutting down.
        let mut speakers = self.tidb_speakers();
        let silent = |a: &Address| servers.iter().any(|s| s.address == *a && s.info.is_err() && s.status.is_err());
        speakers.sort_by_key(silent);
        let (all, state) = futures::join!(
            first_that_answers(&speakers, |at| self.tidb.info_all(at)),
            first_that_answers(&speakers, |at| self.tidb.upgrade_show(at)),
        );
        TidbSweep { begun, ended: clock.now(), servers, all, state }
    }

    /// The configured `TiDB` servers, those that answered `/status` last first.
    fn tidb_speakers(&self) -> Vec<Address> {
        let memory = self.memory();
        let mut speakers = self.endpoints.tidb.clone();
        speakers.sort_by_key(|address| !memory.healthy_tidb.contains(address));
        speakers
    }

    fn tidb_speaker(&self) -> Reading<Address> {
        self.tidb_speakers().into_iter().next().ok_or_else(no_tidb)
    }

    /// Sets the state of the `TiDB` cluster to upgrading, once, at one server.
    pub async fn upgrade_start(&self) -> Reading<StartAnswer> {
        self.tidb.upgrade_start(&self.tidb_speaker()?).await
    }

    /// Sets the state of the `TiDB` cluster back to normal, once, at one server.
    pub async fn upgrade_finish(&self) -> Reading<FinishAnswer> {
        self.tidb.upgrade_finish(&self.tidb_speaker()?).await
    }

    /// The names of all tables that can be replicated, as `database.table`.
    pub async fn table_names(&self) -> Reading<BTreeMap<TableId, String>> {
        let speakers = self.tidb_speakers();
        if speakers.is_empty() {
            return Err(no_tidb());
        }
        let databases = first_that_answers(&speakers, |at| self.tidb.databases(at)).await?;
        let ask = |database: String| {
            let speakers = &speakers;
            async move { first_that_answers(speakers, |at| self.tidb.tables_of(at, &database)).await }
        };
        let mut names = BTreeMap::new();
        for tables in in_order(databases, ask).await {
            match tables {
                Ok(tables) => names.extend(tables),
                // Dropped since the list was read: `TiDB` answers 400 (recorded tidb 85).
                Err(failure) if failure.kind == FailureKind::TidbRefused => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(names)
    }

    /// The names of these tables, each asked for by itself: for the partitions that no list has. A table that
    /// nothing is known of is left out.
    pub async fn tables_named(&self, ids: &[TableId]) -> Reading<BTreeMap<TableId, String>> {
        let speakers = self.tidb_speakers();
        if speakers.is_empty() {
            return Err(no_tidb());
        }
        let ask = |id: TableId| {
            let speakers = &speakers;
            async move { (id, first_that_answers(speakers, |at| self.tidb.table(at, id)).await) }
        };
        let mut names = BTreeMap::new();
        for (id, name) in in_order(ids.to_vec(), ask).await {
            match name {
                Ok(name) => {
                    names.insert(id, name);
                }
                Err(failure) if failure.kind == FailureKind::TidbRefused => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(names)
    }

    /// Asks every PD server for its version.
    pub async fn sweep_pd(&self, clock: &dyn Clock) -> PdSweep {
        let begun = clock.now();
        let ask = |address: Address| async move {
            let version = pd::version(&self.http, &address).await;
            PdReading { address, version }
        };
        let servers = in_order(self.endpoints.pd.clone(), ask).await;
        PdSweep { begun, ended: clock.now(), servers }
    }
}

/// Asks about every item, a few at a time, and keeps their order.
pub(super) fn in_order<T, O, F: Future<Output = O>>(
    items: impl IntoIterator<Item = T>,
    ask: impl FnMut(T) -> F,
) -> impl Future<Output = Vec<O>> {
    // The futures are made before the first one runs: a closure kept inside a stream could not be spawned.
    let questions: Vec<F> = items.into_iter().map(ask).collect();
    stream::iter(questions).buffered(AT_ONCE).collect()
}

/// The first answer that is not a fault of the server asked. With all at fault, the first fault.
pub(super) async fn first_that_answers<'a, T, F>(
    servers: &'a [Address],
    mut ask: impl FnMut(&'a Address) -> F,
) -> Reading<T>
where
    F: Future<Output = Reading<T>>,
{
    let mut first = None;
    for server in servers {
        match ask(server).await {
            Err(failure) if is_fault_of_one(failure.kind) => {
                first.get_or_insert(failure);
            }
            outcome => return outcome,
        }
    }
    Err(first.unwrap_or_else(no_tidb))
}

/// Whether another server may well answer what this one did not. The owner's own refusals are the same everywhere.
pub(super) const fn is_fault_of_one(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Refused
            | FailureKind::Timeout
            | FailureKind::Network
            | FailureKind::Tls
            | FailureKind::Malformed
            | FailureKind::NotReady
            // It looks the maintainer up at the very address it was asked at, which may mean nothing to itself; the
            // next one is asked at another address (contract section 1.13).
            | FailureKind::NoMaintainer
            | FailureKind::Empty500
            | FailureKind::NoRoute
            | FailureKind::Unexpected
    )
}

const fn is_unreachable(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Refused | FailureKind::Timeout | FailureKind::Network)
}

fn nobody(cluster: &ClusterId) -> Failure {
    Failure::local(FailureKind::Network, format!("no address of TiCDC cluster {cluster} is known"))
}

fn no_tidb() -> Failure {
    Failure::local(FailureKind::Network, "no TiDB server was named")
}

#[cfg(test)]
#[path = "clients_tests.rs"]
mod tests;
