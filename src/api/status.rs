//! The document of `tiroll status --json`: a pure function of what was read.
//!
//! Its keys are fixed, scripts rely on them. What could not be read is null, never empty, and is named in `unknown`
//! with the reason; a document that has such an entry is not complete and leads to exit code 1.

mod build;
mod text;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cluster::{
    Address, Architecture, CaptureId, CdcSweep, ChangefeedError, ClusterId, Liveness, PdSweep, TidbSweep, Timestamp,
    Tso, Version,
};

/// Everything that one look at the cluster gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StatusDocument {
    /// The captures, by address, then id; null if nothing at all is known of them.
    pub captures: Option<Vec<CaptureRow>>,
    /// The changefeeds, by namespace and id; null if no list could be read.
    pub changefeeds: Option<Vec<ChangefeedStatus>>,
    /// `TiDB`; null when not asked for.
    pub tidb: Option<TidbSection>,
    /// PD; null when not asked for.
    pub pd: Option<PdSection>,
    /// What could not be read.
    pub unknown: Vec<Unknown>,
}

/// One capture: an entry of the owner's list, or a node that answers and is in no list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaptureRow {
    /// Its id; null while the process has not registered.
    pub id: Option<CaptureId>,
    /// The configured address where there is one, else the advertised one.
    pub address: Address,
    /// Its `TiCDC` cluster.
    pub cluster_id: ClusterId,
    /// Whether it is the owner, by the owner's list; null if that could not be read.
    pub is_owner: Option<bool>,
    /// Its version, by its own word; null for a ghost.
    pub version: Option<Version>,
    /// Its liveness, by its own word; null where it gave none.
    pub liveness: Option<Liveness>,
    /// The number as it came.
    pub liveness_raw: Option<i64>,
    /// Its architecture.
    pub architecture: Option<Architecture>,
    /// Its tables over all changefeeds; null if those of one could not be read.
    pub tables: Option<u64>,
    /// Its tables, changefeed by changefeed, of those that run. A table that moves counts at both captures.
    pub tables_by_changefeed: Option<BTreeMap<String, Option<u64>>>,
    /// How old its status is, in milliseconds, from the moment it was asked for.
    pub age_ms: Option<u64>,
}

/// One changefeed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangefeedStatus {
    /// Its name.
    pub id: String,
    /// Its namespace (classic architecture).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its keyspace (new architecture).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyspace: Option<String>,
    /// Its `TiCDC` cluster.
    pub cluster_id: ClusterId,
    /// Its state, by the server's word.
    pub state: String,
    /// Its checkpoint; null if it has none yet.
    pub checkpoint_ts: Option<Tso>,
    /// How far the checkpoint is behind the cluster's clock.
    pub lag_ms: Option<u64>,
    /// Its error or warning.
    pub error: Option<ChangefeedError>,
}

/// `TiDB` and its upgrading state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TidbSection {
    /// `normal` or `upgrading`.
    pub state: Option<&'static str>,
    /// The servers, by address.
    pub servers: Vec<TidbServer>,
}

/// One `TiDB` server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TidbServer {
    /// Host and status port.
    pub address: Address,
    /// Its version, without the prefix for `MySQL` clients.
    pub version: Option<Version>,
    /// Whether it owns DDL.
    pub is_ddl_owner: Option<bool>,
}

/// PD.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PdSection {
    /// The servers, by address.
    pub servers: Vec<PdServer>,
}

/// One PD server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PdServer {
    /// Its client address.
    pub address: Address,
    /// Its version.
    pub version: Option<Version>,
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Unknown {
    /// Where it was asked; null for what a whole cluster did not say.
    pub address: Option<Address>,
    /// What is unknown.
    pub what: String,
    /// Why.
    pub why: String,
}

impl StatusDocument {
    /// The document of one look at the cluster; `now` is for the ages.
    pub fn new(cdc: &CdcSweep, tidb: Option<&TidbSweep>, pd: Option<&PdSweep>, now: Timestamp) -> Self {
        build::document(cdc, tidb, pd, now)
    }

    /// Whether everything that was asked for could be read.
    pub const fn is_complete(&self) -> bool {
        self.unknown.is_empty()
    }

    /// The document for people.
    pub fn render_text(&self) -> String {
        text::render(self)
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
