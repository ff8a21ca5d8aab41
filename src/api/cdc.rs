//! `TiCDC`, call by call, in both versions of its API.
//!
//! Owns the paths and what counts as success of each call. Which node to ask, and when, is decided in
//! [`Clients`](super::Clients).

mod wire;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use super::error::cdc_failure;
use super::http::{Answer, Call, Http, Kind, Method};
use super::wire as json;
use crate::cluster::{
    Address, Architecture, CaptureEntry, CaptureId, ChangefeedError, ChangefeedId, ChangefeedRow, ChangefeedState,
    FailureKind, LivenessReading, NodeStatus, Placement, Processors, Reading, TableId, Tso, Version,
};

/// Which of the two APIs a call goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiVersion {
    /// `/api/v1`: bare arrays, all namespaces in one list, drain by `PUT`.
    V1,
    /// `/api/v2`: `{"total", "items"}`, one namespace a call, drain by `POST` (classic only).
    V2,
}

impl ApiVersion {
    const fn word(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }
}

/// One changefeed by its own call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangefeedDetail {
    /// Its state.
    pub state: ChangefeedState,
    /// Its checkpoint; `None` if it has none yet. `checkpoint_tso` in v1, `checkpoint_ts` in v2.
    pub checkpoint: Option<Tso>,
    /// Its error, where it carries one.
    pub error: Option<ChangefeedError>,
    /// Where its tables are; `None` where the answer has no task status, as for any state but `normal`.
    pub placement: Option<Placement>,
}

/// The calls of `TiCDC`.
#[derive(Debug)]
pub struct Cdc {
    http: Http,
    /// The architecture of a process never changes while it lives, so it is asked once for each capture id.
    architectures: Mutex<HashMap<CaptureId, Architecture>>,
}

impl Cdc {
    /// The calls, over this http layer.
    pub fn new(http: Http) -> Self {
        Self { http, architectures: Mutex::new(HashMap::new()) }
    }

    /// A node's own status: the only place where version and liveness are visible (contract section 1.3). Asks the
    /// node for its architecture too when the process is a new one.
    pub async fn status(&self, at: &Address, api: ApiVersion) -> Reading<NodeStatus> {
        let answer = self.get(at, &path(api, &["status"])).await?;
        let status: wire::Status = json::object(&answer)?;
        let id = (!status.id.is_empty()).then(|| CaptureId::new(&status.id));
        let known = id.as_ref().and_then(|id| self.architectures().get(id).copied());
        let architecture = match known {
            Some(architecture) => architecture,
            None => self.architecture(at, &status.id).await?,
        };
        if let Some(id) = &id {
            self.architectures().insert(id.clone(), architecture);
        }
        Ok(status.into_cluster(id, architecture))
    }

    /// Two signals have to agree (contract section 0): the shape of the root status, and the configuration. The
    /// version says nothing, since one binary can be either.
    async fn architecture(&self, at: &Address, id: &str) -> Reading<Architecture> {
        let (status, config) = (Call::get("/status"), Call::get("/config"));
        let (root, config) = futures::join!(self.get(at, &status), self.get(at, &config));
        let answer = root?;
        let root: wire::RootStatus = json::object(&answer)?;
        if root.id.as_deref().is_some_and(|other| other != id) {
            return Err(answer.failure(FailureKind::NotReady, "the process changed between two questions"));
        }
        let by_root = if root.is_full() { Architecture::New } else { Architecture::Classic };
        let by_config = match config {
            Ok(answer) => json::object::<wire::Config>(&answer)?.architecture(),
            // Releases before the new architecture may not have the call at all.
            Err(failure) if failure.kind == FailureKind::NoRoute => by_root,
            Err(failure) => return Err(failure),
        };
        if by_root == by_config {
            Ok(by_root)
        } else {
            Err(answer.malformed(format!(
                "the status looks {} and the configuration {}: which architecture runs there is unknown",
                by_root.word(),
                by_config.word()
            )))
        }
    }

    fn architectures(&self) -> std::sync::MutexGuard<'_, HashMap<CaptureId, Architecture>> {
        self.architectures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner's word on its cluster. v1 answers 200 with an empty body, v2 with `{}` (recorded/README 13).
    pub async fn health(&self, at: &Address, api: ApiVersion) -> Reading<()> {
        json::nothing(&self.get(at, &path(api, &["health"])).await?)
    }

    /// The owner's list of captures, in the order of address and id.
    pub async fn captures(&self, at: &Address, api: ApiVersion) -> Reading<Vec<CaptureEntry>> {
        let answer = self.get(at, &path(api, &["captures"])).await?;
        read_captures(&answer)
    }

    /// The changefeeds in every state, ordered by id. v1 lists all namespaces, v2 the one named here. Without
    /// `state=all` the server hides some of them (field report 26).
    pub async fn changefeeds(&self, at: &Address, api: ApiVersion, namespace: &str) -> Reading<Vec<ChangefeedRow>> {
        let call = path(api, &["changefeeds"]).with_query("state", "all");
        let call = if api == ApiVersion::V2 { call.with_query("namespace", namespace) } else { call };
        let answer = self.get(at, &call).await?;
        let rows: Vec<wire::Changefeed> = json::list(&answer)?;
        let mut rows: Vec<_> = rows.into_iter().map(wire::Changefeed::into_cluster).collect();
        rows.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(rows)
    }

    /// One changefeed with the placement of its tables.
    pub async fn changefeed(&self, at: &Address, api: ApiVersion, id: &ChangefeedId) -> Reading<ChangefeedDetail> {
        let call = path(api, &["changefeeds", &id.name]).with_query("namespace", &id.namespace).of_kind(Kind::Tables);
        let answer = self.get(at, &call).await?;
        Ok(json::object::<wire::ChangefeedDetail>(&answer)?.into_cluster())
    }

    /// State and checkpoint of one changefeed without its configuration and tables: the cheap way to watch one.
    pub async fn changefeed_status(&self, at: &Address, id: &ChangefeedId) -> Reading<ChangefeedDetail> {
        let call = path(ApiVersion::V2, &["changefeeds", &id.name, "status"]).with_query("namespace", &id.namespace);
        let answer = self.get(at, &call).await?;
        Ok(json::object::<wire::ChangefeedDetail>(&answer)?.into_cluster())
    }

    /// Which changefeeds have processors, and at which captures, those without tables included (contract 1.7).
    pub async fn processors(&self, at: &Address, api: ApiVersion) -> Reading<Processors> {
        let answer = self.get(at, &path(api, &["processors"]).of_kind(Kind::Tables)).await?;
        let rows: Vec<wire::Processor> = json::list(&answer)?;
        let mut processors: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (id, capture) in rows.into_iter().map(wire::Processor::into_cluster) {
            processors.entry(id).or_default().insert(capture);
        }
        Ok(processors.into())
    }

    /// The tables of one changefeed at one capture, in the order of their ids. `null` is no list: the classic
    /// architecture writes `[]` where a capture has none (contract section 11).
    pub async fn processor_tables(
        &self,
        at: &Address,
        api: ApiVersion,
        id: &ChangefeedId,
        capture: &CaptureId,
    ) -> Reading<Vec<TableId>> {
        let call = path(api, &["processors", &id.name, capture.as_str()])
            .with_query("namespace", &id.namespace)
            .of_kind(Kind::Tables);
        let answer = self.get(at, &call).await?;
        match json::object::<wire::ProcessorDetail>(&answer)?.table_ids {
            Some(ids) => Ok(wire::table_ids(ids)),
            None => Err(answer.malformed("the tables are null, which is not an empty list")),
        }
    }

    /// Where the tables of one changefeed are in the new architecture, by its maintainer; any node of the cluster
    /// passes the question on (contract section 1.13). A node that carries none is not named, or named with an empty
    /// list where the DDL dispatcher is; a node that is gone from the list of captures may still be named.
    ///
    /// The DDL dispatcher is always somewhere, so an answer that names no node at all comes from a maintainer that has
    /// placed nothing yet. An answer with the DDL dispatcher alone is read as it is (recorded cdc-new 113): a
    /// changefeed without a table looks the same, and only a caller who knows its tables can tell.
    ///
    /// How many dispatchers there are (recorded cdc-new 40) is not asked beside it: the same maintainer counts the same
    /// set it lists here, and `total` tells already whether the list is whole.
    pub async fn tables(&self, at: &Address, id: &ChangefeedId) -> Reading<Placement> {
        let call = path(ApiVersion::V2, &["changefeeds", &id.name, "tables"]).of_kind(Kind::Tables);
        // Recorded without it; servers of one keyspace ignore it, others want to be told (contract section 1.0b).
        let is_default = &*id.namespace == "default";
        let call = if is_default { call } else { call.with_query("keyspace", &id.namespace) };
        let answer = self.get(at, &call).await?;
        let nodes: Vec<wire::NodeTables> = json::counted_list(&answer)?;
        if nodes.is_empty() {
            let message =
                format!("the maintainer of changefeed {id} has placed nothing yet, not even its DDL dispatcher");
            return Err(answer.failure(FailureKind::NotInitialized, message));
        }
        let mut placement = Placement::new();
        for node in nodes {
            let (node, tables) = node.into_cluster().map_err(|why| answer.malformed(why))?;
            if placement.insert(node, tables).is_some() {
                return Err(answer.malformed("a node is listed twice"));
            }
        }
        Ok(placement)
    }

    /// Asks for a drain, once. The number is the server's own count of what is left, which may rise and is no count
    /// of tables (field report 5). Only 202 with a whole number is an answer (contract section 1.6).
    pub async fn drain(&self, at: &Address, api: ApiVersion, capture: &CaptureId) -> Reading<u64> {
        let call = match api {
            ApiVersion::V1 => Call::fixed(Method::Put, Kind::Owner, "/api/v1/captures/drain")
                .with_json(&BTreeMap::from([("capture_id", capture.as_str())])),
            ApiVersion::V2 => {
                Call::new(Method::Post, Kind::Owner, ["api", "v2", "captures", capture.as_str(), "drain"])
            }
        };
        let answer = self.success(at, &call).await?;
        if answer.status != 202 {
            return Err(answer.malformed("only 202 answers a drain"));
        }
        Ok(json::object::<wire::Drained>(&answer)?.current_table_count)
    }

    /// Asks the owner to resign, once. Success says only that it was heard (contract 10.22): v1 202 with an empty
    /// body, v2 200 `{}`.
    pub async fn resign(&self, at: &Address, api: ApiVersion) -> Reading<()> {
        let call = Call::new(Method::Post, Kind::Owner, ["api", api.word(), "owner", "resign"]);
        let answer = self.success(at, &call).await?;
        match answer.status {
            200 | 202 => json::nothing(&answer),
            _ => Err(answer.malformed("only 200 and 202 answer a resign")),
        }
    }

    /// The cluster's own clock, from PD through this node. The call wants a JSON body (contract section 1.1).
    pub async fn tso(&self, at: &Address) -> Reading<Tso> {
        let call = Call::fixed(Method::Post, Kind::Read, "/api/v2/tso").with_json(&BTreeMap::<&str, &str>::new());
        let answer = self.success(at, &call).await?;
        let time: wire::Time = json::object(&answer)?;
        time.into_tso().ok_or_else(|| answer.malformed("the time is no timestamp"))
    }

    async fn get(&self, at: &Address, call: &Call) -> Reading<Answer> {
        self.success(at, call).await.and_then(|answer| match answer.status {
            200 => Ok(answer),
            // Another success is not this one: nothing of what it carries was promised.
            _ => Err(answer.malformed("only 200 answers a read")),
        })
    }

    async fn success(&self, at: &Address, call: &Call) -> Reading<Answer> {
        let answer = self.http.send(at, call).await?;
        if (200..300).contains(&answer.status) { Ok(answer) } else { Err(cdc_failure(&answer)) }
    }
}

fn path(api: ApiVersion, rest: &[&str]) -> Call {
    Call::new(Method::Get, Kind::Read, ["api", api.word()].iter().chain(rest))
}

fn read_captures(answer: &Answer) -> Reading<Vec<CaptureEntry>> {
    let rows: Vec<wire::Capture> = json::list(answer)?;
    let mut rows = rows
        .into_iter()
        .map(wire::Capture::into_cluster)
        .collect::<Result<Vec<_>, String>>()
        .map_err(|why| answer.malformed(why))?;
    rows.sort_by(|a, b| (&a.address, &a.id).cmp(&(&b.address, &b.id)));
    Ok(rows)
}

impl wire::Status {
    fn into_cluster(self, id: Option<CaptureId>, architecture: Architecture) -> NodeStatus {
        NodeStatus {
            id,
            version: Version::parse(&self.version).ok(),
            version_text: self.version.into(),
            git_hash: self.git_hash.into(),
            cluster_id: self.cluster_id.filter(|id| !id.is_empty()).map(|id| (*id).into()),
            pid: self.pid,
            is_owner: self.is_owner,
            // A word instead of a number may come one day; it is then as unknown as an absent one (field report 36).
            liveness: LivenessReading::new(self.liveness.and_then(|value| value.as_i64()), architecture),
            architecture,
        }
    }
}

#[cfg(test)]
#[path = "cdc_tests.rs"]
mod tests;
