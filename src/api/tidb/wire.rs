//! The JSON of `TiDB`'s status port as recorded.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::super::wire::whole;
use crate::cluster::tidb::TidbAll;
use crate::cluster::{Address, TidbInfo, TidbStatus, UpgradeState, Version};

/// `/status` when healthy.
#[derive(Deserialize)]
pub(super) struct Status {
    #[serde(deserialize_with = "whole")]
    connections: i64,
    version: String,
}

impl Status {
    pub(super) fn into_cluster(self) -> Result<TidbStatus, String> {
        Ok(TidbStatus { version: version(&self.version)?, connections: self.connections })
    }
}

fn version(text: &str) -> Result<Version, String> {
    Version::parse(text).map_err(|e| e.to_string())
}

/// `/info`, and a value of `/info/all`, which lacks the owner flag.
#[derive(Deserialize)]
pub(super) struct Info {
    is_owner: Option<bool>,
    version: String,
    #[serde(default)]
    git_hash: Arc<str>,
    ddl_id: Arc<str>,
    ip: String,
    listening_port: u16,
    status_port: u16,
    #[serde(default)]
    start_timestamp: i64,
}

impl Info {
    pub(super) fn into_cluster(self) -> Result<TidbInfo, String> {
        Ok(TidbInfo {
            ddl_id: self.ddl_id,
            version: version(&self.version)?,
            git_hash: self.git_hash,
            sql_address: Address::new(&self.ip, self.listening_port),
            status_address: Address::new(&self.ip, self.status_port),
            start_timestamp: self.start_timestamp,
            is_ddl_owner: self.is_owner,
        })
    }
}

/// `/info/all`; everything but the owner is left out when empty.
#[derive(Deserialize)]
pub(super) struct All {
    owner_id: Arc<str>,
    all_servers_info: BTreeMap<String, Info>,
}

impl All {
    pub(super) fn into_cluster(self) -> Result<TidbAll, String> {
        let servers = self.all_servers_info.into_values().map(Info::into_cluster);
        let mut servers = servers.collect::<Result<Vec<_>, _>>()?;
        servers.sort_by(|a, b| (&a.status_address, &a.ddl_id).cmp(&(&b.status_address, &b.ddl_id)));
        Ok(TidbAll { owner_id: self.owner_id, servers })
    }
}

/// The first value of `/upgrade/show`: a sentence in state normal, an object while upgrading.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Show {
    Text(String),
    Upgrading(Upgrading),
}

/// What `/upgrade/show` says while upgrading. The boolean is absent when false (field report 55).
#[derive(Deserialize)]
pub(super) struct Upgrading {
    servers_num: u64,
    #[serde(default)]
    upgraded_percent: u64,
    #[serde(default)]
    is_all_server_version_consistent: bool,
}

impl Upgrading {
    pub(super) const fn into_cluster(self) -> UpgradeState {
        UpgradeState::Upgrading {
            servers: self.servers_num,
            percent: self.upgraded_percent,
            is_consistent: self.is_all_server_version_consistent,
        }
    }
}

/// A name as it was written and in lower case; people know the first.
#[derive(Deserialize)]
pub(super) struct Name {
    #[serde(rename = "O")]
    pub(super) shown: String,
}

/// An element of `/schema`.
#[derive(Deserialize)]
pub(super) struct Database {
    pub(super) db_name: Name,
}

/// An element of `/schema/{database}?id_name_only=true`.
#[derive(Deserialize)]
pub(super) struct Table {
    #[serde(deserialize_with = "whole")]
    pub(super) id: i64,
    pub(super) name: Name,
}

/// `/db-table/{id}`.
#[derive(Deserialize)]
pub(super) struct DbTable {
    pub(super) db_info: Database,
    pub(super) table_info: TableInfo,
}

/// The table in [`DbTable`].
#[derive(Deserialize)]
pub(super) struct TableInfo {
    pub(super) name: Name,
}
