//! The JSON shapes of `TiCDC`, v1 and v2 (contract sections 1.3 to 1.9). Unknown fields are ignored.

use serde::Deserialize;

use crate::api::json::number;

/// `/api/v{1,2}/status`.
#[derive(Debug, Deserialize)]
pub(super) struct Status {
    pub(super) version: String,
    #[serde(default)]
    pub(super) git_hash: String,
    #[serde(default)]
    pub(super) id: String,
    pub(super) cluster_id: Option<String>,
    pub(super) pid: Option<i64>,
    pub(super) is_owner: bool,
    pub(super) liveness: Option<serde_json::Value>,
}

/// An entry of the captures list.
#[derive(Debug, Deserialize)]
pub(super) struct Capture {
    pub(super) id: String,
    #[serde(alias = "is-owner")]
    pub(super) is_owner: bool,
    pub(super) address: String,
    pub(super) cluster_id: Option<String>,
}

/// An entry of the changefeed list, or a detail.
#[derive(Debug, Deserialize)]
pub(super) struct Changefeed {
    #[serde(alias = "keyspace")]
    pub(super) namespace: Option<String>,
    pub(super) id: String,
    #[serde(default)]
    pub(super) state: String,
    #[serde(default, alias = "checkpoint_ts", deserialize_with = "number")]
    pub(super) checkpoint_tso: u64,
    pub(super) error: Option<ChangefeedError>,
    pub(super) task_status: Option<Vec<TaskStatus>>,
}

/// The error of a changefeed.
#[derive(Debug, Deserialize)]
pub(super) struct ChangefeedError {
    #[serde(default)]
    pub(super) code: String,
    #[serde(default)]
    pub(super) message: String,
}

/// Tables of one capture in a changefeed's detail; `table_ids` is omitted when empty.
#[derive(Debug, Deserialize)]
pub(super) struct TaskStatus {
    pub(super) capture_id: String,
    #[serde(default)]
    pub(super) table_ids: Option<Vec<i64>>,
}

/// An entry of the processors list.
#[derive(Debug, Deserialize)]
pub(super) struct Processor {
    #[serde(alias = "keyspace")]
    pub(super) namespace: Option<String>,
    pub(super) changefeed_id: String,
    pub(super) capture_id: String,
}

/// A processor's detail; null where the capture has no entry for the changefeed.
#[derive(Debug, Deserialize)]
pub(super) struct ProcessorDetail {
    pub(super) table_ids: Option<Vec<i64>>,
}

/// The answer to a drain.
#[derive(Debug, Deserialize)]
pub(super) struct DrainCount {
    pub(super) current_table_count: u64,
}

/// `POST /api/v2/tso`.
#[derive(Debug, Deserialize)]
pub(super) struct Tso {
    pub(super) timestamp: u64,
    pub(super) logic_time: u64,
}
