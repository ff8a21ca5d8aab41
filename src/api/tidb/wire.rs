//! The JSON shapes of `TiDB` (contract section 7). Unknown fields are ignored; absent booleans are false.

use std::collections::BTreeMap;

use serde::Deserialize;

/// `/status`.
#[derive(Debug, Deserialize)]
pub(super) struct Status {
    pub(super) version: String,
    #[serde(default)]
    pub(super) connections: i64,
}

/// `/info`, or an entry of `/info/all`.
#[derive(Debug, Deserialize)]
pub(super) struct Info {
    pub(super) version: String,
    #[serde(default)]
    pub(super) git_hash: String,
    pub(super) ddl_id: String,
    pub(super) ip: String,
    pub(super) listening_port: u16,
    pub(super) status_port: u16,
    pub(super) start_timestamp: i64,
    pub(super) is_owner: Option<bool>,
}

/// `/info/all`.
#[derive(Debug, Deserialize)]
pub(super) struct All {
    #[serde(default)]
    pub(super) owner_id: String,
    #[serde(default)]
    pub(super) all_servers_info: BTreeMap<String, Info>,
}

/// The object of `/upgrade/show` while upgrading.
#[derive(Debug, Deserialize)]
pub(super) struct Show {
    #[serde(default)]
    pub(super) servers_num: u64,
    #[serde(default)]
    pub(super) upgraded_percent: u64,
    #[serde(default)]
    pub(super) is_all_server_version_consistent: bool,
}

/// A name in both its spellings.
#[derive(Debug, Deserialize)]
pub(super) struct Name {
    #[serde(rename = "O")]
    pub(super) original: String,
    #[serde(rename = "L")]
    pub(super) lower: String,
}

/// A database in `/schema`.
#[derive(Debug, Deserialize)]
pub(super) struct Database {
    pub(super) db_name: Name,
}

/// A table in `/schema/{db}?id_name_only=true`.
#[derive(Debug, Deserialize)]
pub(super) struct Table {
    pub(super) id: i64,
    pub(super) name: Name,
}

/// `/db-table/{id}`.
#[derive(Debug, Deserialize)]
pub(super) struct DbTable {
    pub(super) db_info: Database,
    pub(super) table_info: TableInfo,
}

/// The table in `/db-table/{id}`.
#[derive(Debug, Deserialize)]
pub(super) struct TableInfo {
    pub(super) name: Name,
}
