//! The JSON of `TiCDC` as recorded from v7.5 and v8.5, both API versions. Unknown keys are ignored everywhere.

use std::sync::Arc;

use serde::Deserialize;

use super::super::wire::{Exact, whole, whole_or_null};
use super::ChangefeedDetail as Detail;
use crate::cluster::{
    Address, Architecture, CaptureEntry, CaptureId, ChangefeedError, ChangefeedId, ChangefeedRow, ChangefeedState,
    ClusterId, TableId, Tso,
};

/// `/api/v{1,2}/status`.
#[derive(Deserialize)]
pub(super) struct Status {
    pub(super) version: String,
    #[serde(default)]
    pub(super) git_hash: String,
    pub(super) id: String,
    pub(super) cluster_id: Option<Arc<str>>,
    #[serde(default, deserialize_with = "whole_or_null")]
    pub(super) pid: Option<i64>,
    pub(super) is_owner: bool,
    pub(super) liveness: Option<serde_json::Value>,
}

/// The root `/status`: five keys in the classic architecture, all seven in the new one.
#[derive(Deserialize)]
pub(super) struct RootStatus {
    pub(super) id: Option<String>,
    cluster_id: Option<serde_json::Value>,
    liveness: Option<serde_json::Value>,
}

impl RootStatus {
    pub(super) const fn is_full(&self) -> bool {
        self.cluster_id.is_some() || self.liveness.is_some()
    }
}

/// `/config`, of which one key matters.
#[derive(Deserialize)]
pub(super) struct Config {
    #[serde(default)]
    newarch: bool,
}

impl Config {
    pub(super) const fn architecture(&self) -> Architecture {
        if self.newarch { Architecture::New } else { Architecture::Classic }
    }
}

/// An element of the list of captures.
#[derive(Deserialize)]
pub(super) struct Capture {
    id: String,
    #[serde(alias = "is-owner")]
    is_owner: bool,
    address: String,
    cluster_id: Option<Arc<str>>,
}

impl Capture {
    pub(super) fn into_cluster(self) -> Result<CaptureEntry, String> {
        let address = Address::parse(&self.address).map_err(|e| format!("capture {}: {e}", self.id))?;
        Ok(CaptureEntry {
            id: CaptureId::new(&self.id),
            address,
            cluster_id: self.cluster_id.filter(|id| !id.is_empty()).map(|id| ClusterId::new(&*id)),
            is_owner: self.is_owner,
        })
    }
}

/// The error or warning of a changefeed.
#[derive(Deserialize)]
pub(super) struct RunningError {
    #[serde(default)]
    code: Arc<str>,
    #[serde(default)]
    message: Arc<str>,
}

impl RunningError {
    fn into_cluster(self) -> ChangefeedError {
        ChangefeedError { code: self.code, message: self.message }
    }
}

/// An element of the list of changefeeds; `keyspace` stands for `namespace` in the new architecture.
#[derive(Deserialize)]
pub(super) struct Changefeed {
    #[serde(alias = "keyspace")]
    namespace: Option<Arc<str>>,
    id: Arc<str>,
    state: String,
    #[serde(default, alias = "checkpoint_ts", deserialize_with = "whole_or_null")]
    checkpoint_tso: Option<u64>,
    error: Option<RunningError>,
}

impl Changefeed {
    pub(super) fn into_cluster(self) -> ChangefeedRow {
        ChangefeedRow {
            id: changefeed_id(self.namespace, &self.id),
            state: ChangefeedState::parse(&self.state),
            checkpoint: self.checkpoint_tso.and_then(Tso::new),
            error: self.error.map(RunningError::into_cluster),
        }
    }
}

fn changefeed_id(namespace: Option<Arc<str>>, name: &str) -> ChangefeedId {
    let namespace = namespace.filter(|ns| !ns.is_empty()).unwrap_or_else(|| Arc::from("default"));
    ChangefeedId { namespace, name: Arc::from(name) }
}

/// `/api/v{1,2}/changefeeds/{id}`.
#[derive(Deserialize)]
pub(super) struct ChangefeedDetail {
    state: String,
    #[serde(default, alias = "checkpoint_ts", deserialize_with = "whole_or_null")]
    checkpoint_tso: Option<u64>,
    error: Option<RunningError>,
    task_status: Option<Vec<TaskStatus>>,
}

/// The tables of one changefeed at one capture; `table_ids` is left out where there are none (contract 10.16).
#[derive(Deserialize)]
pub(super) struct TaskStatus {
    capture_id: String,
    #[serde(default)]
    table_ids: Option<Vec<Exact<i64>>>,
}

impl ChangefeedDetail {
    pub(super) fn into_cluster(self) -> Detail {
        let placement = self.task_status.map(|tasks| {
            tasks
                .into_iter()
                .map(|task| (CaptureId::new(&task.capture_id), table_ids(task.table_ids.unwrap_or_default())))
                .collect()
        });
        Detail {
            state: ChangefeedState::parse(&self.state),
            checkpoint: self.checkpoint_tso.and_then(Tso::new),
            error: self.error.map(RunningError::into_cluster),
            placement,
        }
    }
}

/// An element of the list of processors.
#[derive(Deserialize)]
pub(super) struct Processor {
    #[serde(alias = "keyspace")]
    namespace: Option<Arc<str>>,
    changefeed_id: String,
    capture_id: String,
}

impl Processor {
    pub(super) fn into_cluster(self) -> (ChangefeedId, CaptureId) {
        (changefeed_id(self.namespace, &self.changefeed_id), CaptureId::new(&self.capture_id))
    }
}

/// `/api/v{1,2}/processors/{changefeed}/{capture}`.
#[derive(Deserialize)]
pub(super) struct ProcessorDetail {
    pub(super) table_ids: Option<Vec<Exact<i64>>>,
}

/// An element of `/api/v2/changefeeds/{changefeed}/tables`: one node of the new architecture (recorded cdc-new 38).
#[derive(Deserialize)]
pub(super) struct NodeTables {
    node_id: String,
    table_ids: Vec<Exact<i64>>,
}

impl NodeTables {
    /// The node and its tables in their order, each once. Id 0 is the DDL dispatcher and no table (recorded/README
    /// 18). A table split over spans is named once for each (contract section 1.13); what is counted and compared
    /// here is tables, as in the classic architecture, where spans fall together on the server's side.
    pub(super) fn into_cluster(self) -> Result<(CaptureId, Vec<TableId>), &'static str> {
        if self.node_id.is_empty() {
            return Err("a node without an id");
        }
        let mut tables = table_ids(self.table_ids);
        tables.retain(|id| *id != DDL_DISPATCHER);
        tables.dedup();
        Ok((CaptureId::new(&self.node_id), tables))
    }
}

/// What stands among the tables of a maintainer's node and is none.
const DDL_DISPATCHER: TableId = TableId(0);

/// Ids in their order; the server's is random on every call (recorded/README 30).
pub(super) fn table_ids(ids: Vec<Exact<i64>>) -> Vec<TableId> {
    let mut ids: Vec<_> = ids.into_iter().map(|id| TableId(id.0)).collect();
    ids.sort_unstable();
    ids
}

/// The answer to a drain request.
#[derive(Deserialize)]
pub(super) struct Drained {
    #[serde(deserialize_with = "whole")]
    pub(super) current_table_count: u64,
}

/// `/api/v2/tso`: milliseconds and a counter.
#[derive(Deserialize)]
pub(super) struct Time {
    #[serde(deserialize_with = "whole")]
    timestamp: u64,
    #[serde(deserialize_with = "whole")]
    logic_time: u64,
}

impl Time {
    pub(super) fn into_tso(self) -> Option<Tso> {
        let physical = self.timestamp.checked_mul(1 << 18)?;
        Tso::new(physical.checked_add(self.logic_time)?)
    }
}
