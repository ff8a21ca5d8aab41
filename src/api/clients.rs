//! The clients of one cluster: its addresses, the http layer, and what was learnt about which node answers.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use super::cdc::{self, Api};
use super::http::{BuildError, Http, Options};
use super::tidb;
use crate::cluster::{
    Address, Architecture, CaptureId, ClusterId, Failure, FailureKind, FinishAnswer, Reading, StartAnswer, TableId,
};

/// The addresses an operator named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// Captures.
    pub cdc: Vec<Address>,
    /// Status ports of `TiDB` servers.
    pub tidb: Vec<Address>,
    /// PD.
    pub pd: Vec<Address>,
}

/// The clients.
#[derive(Debug)]
pub struct Clients {
    pub(super) http: Http,
    pub(super) endpoints: Endpoints,
    pub(super) learnt: Mutex<Learnt>,
}

/// What was learnt from answers: which node to ask first, and what never changes while a process lives.
#[derive(Debug, Default)]
pub(super) struct Learnt {
    /// By capture id, since it is fresh at every start.
    pub(super) architectures: HashMap<CaptureId, Architecture>,
    /// The addresses of each `TiCDC` cluster; the one that answered last is first.
    pub(super) groups: BTreeMap<ClusterId, Vec<Address>>,
    /// The `TiDB` server that answered last.
    pub(super) tidb: Option<Address>,
}

/// Whether another node might answer where this one did not: the node is at fault, not the question.
pub(super) const fn is_nodes_fault(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Refused
            | FailureKind::Timeout
            | FailureKind::Network
            | FailureKind::Tls
            | FailureKind::NotReady
            | FailureKind::Empty500
            | FailureKind::Malformed
            | FailureKind::TooLarge
            | FailureKind::NoRoute
    )
}

impl Clients {
    /// Clients for these addresses; each named once is asked once.
    pub fn new(mut endpoints: Endpoints, options: Options) -> Result<Self, BuildError> {
        for list in [&mut endpoints.cdc, &mut endpoints.tidb, &mut endpoints.pd] {
            list.sort();
            list.dedup();
        }
        Ok(Self { http: Http::new(options)?, endpoints, learnt: Mutex::default() })
    }

    pub(super) fn learn<T>(&self, note: impl FnOnce(&mut Learnt) -> T) -> T {
        // What is learnt is only ever a hint, so a panic elsewhere cannot have broken it.
        note(&mut self.learnt.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The addresses of a `TiCDC` cluster, best first.
    pub(super) fn addresses(&self, cluster: &ClusterId) -> Vec<Address> {
        let known = self.learn(|learnt| learnt.groups.get(cluster).cloned()).unwrap_or_default();
        if known.is_empty() { self.endpoints.cdc.clone() } else { known }
    }

    /// Asks for a drain: at the owner's configured address, or, if that cannot be reached, once through another capture.
    /// This is the one mutating call that may be repeated.
    pub async fn drain(&self, cluster: &ClusterId, capture: &CaptureId, owner: Option<&Address>) -> Reading<u64> {
        let mut last = Failure::local(FailureKind::Refused, "no capture of this cluster is known");
        let others = self.addresses(cluster).into_iter().filter(|address| Some(address) != owner);
        for address in owner.cloned().into_iter().chain(others).take(2) {
            match cdc::drain(&self.http, &address, Api::V1, capture).await {
                Err(why) if matches!(why.kind, FailureKind::Refused | FailureKind::Timeout | FailureKind::Network) => {
                    last = why;
                }
                answer => return answer,
            }
        }
        Err(last)
    }

    /// Asks the owner to resign, once, at its own address.
    pub async fn resign(&self, _cluster: &ClusterId, owner: &Address) -> Reading<()> {
        cdc::resign(&self.http, owner, Api::V1).await
    }

    fn tidb_first(&self) -> Reading<Address> {
        let last = self.learn(|learnt| learnt.tidb.clone());
        last.or_else(|| self.endpoints.tidb.first().cloned())
            .ok_or_else(|| Failure::local(FailureKind::Refused, "no TiDB server was named"))
    }

    /// `/upgrade/start`, once, at the server that answered last.
    pub async fn upgrade_start(&self) -> Reading<StartAnswer> {
        tidb::start(&self.http, &self.tidb_first()?).await
    }

    /// `/upgrade/finish`, once, at the server that answered last.
    pub async fn upgrade_finish(&self) -> Reading<FinishAnswer> {
        tidb::finish(&self.http, &self.tidb_first()?).await
    }

    /// The names of all user tables, `database.table` by id.
    pub async fn table_names(&self) -> Reading<BTreeMap<TableId, String>> {
        let at = self.tidb_first()?;
        let mut names = BTreeMap::new();
        for database in tidb::databases(&self.http, &at).await? {
            names.extend(tidb::tables(&self.http, &at, &database).await?);
        }
        Ok(names)
    }

    /// The name of one table: for those that [`Clients::table_names`] leaves out, as partitions.
    pub async fn table_name(&self, id: TableId) -> Reading<String> {
        tidb::table(&self.http, &self.tidb_first()?, id).await
    }
}
