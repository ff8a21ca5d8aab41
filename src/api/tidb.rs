//! `TiDB` by its status port (contract section 7).
//!
//! Owns the paths and what the answers mean; which server is asked is decided in [`Clients`](super::Clients).

mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::tidb_failure;
use super::http::{Answer, Call, Http, Kind, Method};
use super::wire::{first_value, object, only_value};
use crate::cluster::tidb::TidbAll;
use crate::cluster::{Address, FinishAnswer, Reading, StartAnswer, TableId, TidbInfo, TidbStatus, UpgradeState};

/// Databases that no changefeed replicates.
const SYSTEM_DATABASES: [&str; 5] = ["information_schema", "metrics_schema", "mysql", "performance_schema", "sys"];

/// The calls of `TiDB`.
#[derive(Clone, Debug)]
pub struct Tidb {
    http: Http,
}

impl Tidb {
    /// The calls, over this http layer.
    pub const fn new(http: Http) -> Self {
        Self { http }
    }

    /// Whether the server is in service, and its version. 500 with an empty body while it starts or stops.
    pub async fn status(&self, at: &Address) -> Reading<TidbStatus> {
        let answer = self.ask(at, &Call::get("/status")).await?;
        object::<wire::Status>(&answer)?.into_cluster().map_err(|why| answer.malformed(why))
    }

    /// What the server says of itself; it answers during shutdown too (recorded/README 26).
    pub async fn info(&self, at: &Address) -> Reading<TidbInfo> {
        let answer = self.ask(at, &Call::get("/info")).await?;
        object::<wire::Info>(&answer)?.into_cluster().map_err(|why| answer.malformed(why))
    }

    /// Every server the cluster knows, the dead ones for up to 90 s.
    pub async fn info_all(&self, at: &Address) -> Reading<TidbAll> {
        let answer = self.ask(at, &Call::get("/info/all")).await?;
        object::<wire::All>(&answer)?.into_cluster().map_err(|why| answer.malformed(why))
    }

    /// The cluster's state. The answer is two JSON values glued together; only the first counts, and a mended server
    /// that sends one is read as well (field report 54).
    pub async fn upgrade_show(&self, at: &Address) -> Reading<UpgradeState> {
        let answer = self.ask(at, &upgrade("show")).await?;
        // A derived reader would take the values of a list for the fields of the state.
        if answer.body.trim_ascii_start().first() == Some(&b'[') {
            return Err(answer.malformed("a list stands where the state is expected"));
        }
        match first_value::<wire::Show>(&answer)?.0 {
            wire::Show::Text(text) if text.contains("state is normal") => Ok(UpgradeState::Normal),
            wire::Show::Text(text) => Err(answer.malformed(text)),
            wire::Show::Upgrading(state) => Ok(state.into_cluster()),
        }
    }

    /// Sets the state to upgrading, once. A failure may leave it set (contract section 7.2).
    pub async fn upgrade_start(&self, at: &Address) -> Reading<StartAnswer> {
        Ok(match self.upgrade_word(at, "start").await? {
            Word::Success => StartAnswer::Success,
            Word::Duplicated => StartAnswer::Duplicated,
            Word::Other(text) => StartAnswer::Other(text),
        })
    }

    /// Sets the state back to normal, once.
    pub async fn upgrade_finish(&self, at: &Address) -> Reading<FinishAnswer> {
        Ok(match self.upgrade_word(at, "finish").await? {
            Word::Success => FinishAnswer::Success,
            Word::Duplicated => FinishAnswer::Duplicated,
            Word::Other(text) => FinishAnswer::Other(text),
        })
    }

    /// 200 is not enough: the text decides (field report 57).
    async fn upgrade_word(&self, at: &Address, operation: &str) -> Reading<Word> {
        let answer = self.ask(at, &upgrade(operation)).await?;
        let (text, _) = first_value::<String>(&answer)?;
        Ok(match text.as_str() {
            "success!" => Word::Success,
            text if text.contains("duplicated operation") => Word::Duplicated,
            text => Word::Other(Arc::from(text)),
        })
    }

    /// The databases that can hold replicated tables, by name.
    pub async fn databases(&self, at: &Address) -> Reading<Vec<String>> {
        let answer = self.ask(at, &Call::get("/schema").of_kind(Kind::Tables)).await?;
        let databases: Vec<wire::Database> = only_value(&answer)?;
        let mut names: Vec<_> = databases.into_iter().map(|database| database.db_name).map(|name| name.shown).collect();
        names.retain(|name| !SYSTEM_DATABASES.contains(&name.to_ascii_lowercase().as_str()));
        names.sort();
        Ok(names)
    }

    /// The tables of one database by id: the cheap way to name them, one request a database.
    pub async fn tables_of(&self, at: &Address, database: &str) -> Reading<BTreeMap<TableId, String>> {
        let call = Call::new(Method::Get, Kind::Tables, ["schema", database]).with_query("id_name_only", "true");
        let answer = self.ask(at, &call).await?;
        // A database without tables is written as null by Go.
        let tables = only_value::<Option<Vec<wire::Table>>>(&answer)?.unwrap_or_default();
        Ok(tables.into_iter().map(|table| (TableId(table.id), format!("{database}.{}", table.name.shown))).collect())
    }

    /// The name of one table by id, `database.table`. Finds partitions too, which the lists do not have.
    pub async fn table(&self, at: &Address, id: TableId) -> Reading<String> {
        let call = Call::new(Method::Get, Kind::Tables, ["db-table", &id.to_string()]);
        let answer = self.ask(at, &call).await?;
        let found: wire::DbTable = object(&answer)?;
        Ok(format!("{}.{}", found.db_info.db_name.shown, found.table_info.name.shown))
    }

    async fn ask(&self, at: &Address, call: &Call) -> Reading<Answer> {
        let answer = self.http.send(at, call).await?;
        if answer.status == 200 { Ok(answer) } else { Err(tidb_failure(&answer)) }
    }
}

enum Word {
    Success,
    Duplicated,
    Other(Arc<str>),
}

/// The API takes `POST` only, `show` included (contract section 7.1).
fn upgrade(operation: &str) -> Call {
    Call::new(Method::Post, Kind::Upgrade, ["upgrade", operation])
}

#[cfg(test)]
#[path = "tidb_tests.rs"]
mod tests;
