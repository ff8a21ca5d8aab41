//! What `TiDB` says of itself and of a smooth upgrade (contract section 7).

use std::sync::Arc;

use super::ids::Address;
use super::version::Version;

/// A `TiDB` server's `/status` when healthy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TidbStatus {
    /// Its version, without the prefix for `MySQL` clients.
    pub version: Version,
    /// Client connections.
    pub connections: i64,
}

/// A `TiDB` server by its own `/info`, or one entry of `/info/all`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TidbInfo {
    /// Its DDL id, fresh at every start.
    pub ddl_id: Arc<str>,
    /// Its version, without the prefix for `MySQL` clients.
    pub version: Version,
    /// The commit it was built from.
    pub git_hash: Arc<str>,
    /// The address clients connect to.
    pub sql_address: Address,
    /// The address of its status port.
    pub status_address: Address,
    /// When the process started, in seconds since the epoch.
    pub start_timestamp: i64,
    /// Whether it owns DDL; `None` in `/info/all`, which names the owner beside the list.
    pub is_ddl_owner: Option<bool>,
}

/// `/info/all`: every server that the cluster knows, dead ones for up to 90 s (contract section 7.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TidbAll {
    /// DDL id of the DDL owner.
    pub owner_id: Arc<str>,
    /// The servers, ordered by status address.
    pub servers: Vec<TidbInfo>,
}

/// The cluster's state by `/upgrade/show`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpgradeState {
    /// User DDL runs.
    Normal,
    /// User DDL is paused and hangs until `finish`.
    Upgrading {
        /// Servers the cluster counts.
        servers: u64,
        /// The cluster's own percentage. It is 100 before anything was upgraded and compares versions as text, so
        /// nothing decides on it (contract section 7.1).
        percent: u64,
        /// Whether the server said that all versions agree; the field is absent, not false, when they do not.
        is_consistent: bool,
    },
}

/// What `/upgrade/start` said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartAnswer {
    /// The state was normal and is upgrading now.
    Success,
    /// It was upgrading already: our own lost answer, or somebody else's upgrade.
    Duplicated,
    /// A 200 with another text.
    Other(Arc<str>),
}

/// What `/upgrade/finish` said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishAnswer {
    /// The state was upgrading and is normal now.
    Success,
    /// It was normal already.
    Duplicated,
    /// A 200 with another text.
    Other(Arc<str>),
}
