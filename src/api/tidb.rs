//! `TiDB` calls over the status port (contract section 7).

mod wire;

use serde_json::Value;

use super::error::{malformed, tidb_failure};
use super::http::{Answer, Deadline, Http, Method};
use super::json;
use crate::cluster::tidb::TidbAll;
use crate::cluster::{
    Address, FinishAnswer, Reading, StartAnswer, TableId, TidbInfo, TidbStatus, UpgradeState, Version,
};

fn success(answer: Answer) -> Reading<Answer> {
    if answer.status == 200 { Ok(answer) } else { Err(tidb_failure(&answer)) }
}

async fn get(http: &Http, at: &Address, path: &str) -> Reading<Answer> {
    success(http.send(Method::Get, at, path, None, Deadline::Other).await?)
}

fn parse<T>(answer: &Answer, read: impl FnOnce(Value) -> Result<T, String>) -> Reading<T> {
    json::value(&answer.body).and_then(read).map_err(|why| malformed(answer, &why))
}

/// `/status`: 200 only while it serves; a starting or stopping server answers 500 with an empty body.
pub async fn status(http: &Http, at: &Address) -> Reading<TidbStatus> {
    let answer = get(http, at, "/status").await?;
    parse(&answer, |value| {
        let wire: wire::Status = json::typed(value)?;
        let version = Version::parse(&wire.version).map_err(|error| error.to_string())?;
        Ok(TidbStatus { version, connections: wire.connections })
    })
}

fn read_info(wire: wire::Info) -> Result<TidbInfo, String> {
    Ok(TidbInfo {
        ddl_id: wire.ddl_id.into(),
        version: Version::parse(&wire.version).map_err(|error| error.to_string())?,
        git_hash: wire.git_hash.into(),
        sql_address: Address::new(&wire.ip, wire.listening_port),
        status_address: Address::new(&wire.ip, wire.status_port),
        start_timestamp: wire.start_timestamp,
        is_ddl_owner: wire.is_owner,
    })
}

/// `/info`: the server by its own word.
pub async fn info(http: &Http, at: &Address) -> Reading<TidbInfo> {
    let answer = get(http, at, "/info").await?;
    parse(&answer, |value| json::typed(value).and_then(read_info))
}

/// `/info/all`: every server the cluster knows, dead ones for up to 90 s.
pub async fn info_all(http: &Http, at: &Address) -> Reading<TidbAll> {
    let answer = get(http, at, "/info/all").await?;
    parse(&answer, |value| {
        let wire: wire::All = json::typed(value)?;
        let mut servers = wire.all_servers_info.into_values().map(read_info).collect::<Result<Vec<_>, _>>()?;
        servers.sort_by(|a, b| (&a.status_address, &a.ddl_id).cmp(&(&b.status_address, &b.ddl_id)));
        Ok(TidbAll { owner_id: wire.owner_id.into(), servers })
    })
}

async fn upgrade(http: &Http, at: &Address, operation: &str) -> Reading<(Answer, Value)> {
    let path = format!("/upgrade/{operation}");
    let answer = success(http.send(Method::Post, at, &path, None, Deadline::Upgrade).await?)?;
    // `show` glues "success!" to its answer; the first value is the one that counts (recorded tidb 05, 13).
    let mut values = json::values(&answer.body).map_err(|why| malformed(&answer, &why))?;
    let first = values.swap_remove(0);
    Ok((answer, first))
}

/// `/upgrade/show`: a text is the normal state, an object the upgrading one.
pub async fn show(http: &Http, at: &Address) -> Reading<UpgradeState> {
    let (answer, value) = upgrade(http, at, "show").await?;
    match value {
        Value::String(text) if text.contains("normal") => Ok(UpgradeState::Normal),
        object @ Value::Object(_) => {
            let wire: wire::Show = json::typed(object).map_err(|why| malformed(&answer, &why))?;
            Ok(UpgradeState::Upgrading {
                servers: wire.servers_num,
                percent: wire.upgraded_percent,
                is_consistent: wire.is_all_server_version_consistent,
            })
        }
        other => Err(malformed(&answer, &format!("neither the normal state nor an object: {other}"))),
    }
}

/// `/upgrade/start`. The status is always 200; the text tells which of the two it was.
pub async fn start(http: &Http, at: &Address) -> Reading<StartAnswer> {
    let (answer, value) = upgrade(http, at, "start").await?;
    match value.as_str() {
        Some("success!") => Ok(StartAnswer::Success),
        Some(text) if text.contains("already in upgrading state") => Ok(StartAnswer::Duplicated),
        Some(text) => Ok(StartAnswer::Other(text.into())),
        None => Err(malformed(&answer, "not a text")),
    }
}

/// `/upgrade/finish`, likewise.
pub async fn finish(http: &Http, at: &Address) -> Reading<FinishAnswer> {
    let (answer, value) = upgrade(http, at, "finish").await?;
    match value.as_str() {
        Some("success!") => Ok(FinishAnswer::Success),
        Some(text) if text.contains("already in normal state") => Ok(FinishAnswer::Duplicated),
        Some(text) => Ok(FinishAnswer::Other(text.into())),
        None => Err(malformed(&answer, "not a text")),
    }
}

/// The names of the user databases.
pub async fn databases(http: &Http, at: &Address) -> Reading<Vec<String>> {
    const SYSTEM: [&str; 5] = ["mysql", "sys", "information_schema", "performance_schema", "metrics_schema"];
    let answer = get(http, at, "/schema").await?;
    parse(&answer, |value| {
        let all: Vec<wire::Database> = json::typed(value)?;
        Ok(all
            .into_iter()
            .filter(|database| !SYSTEM.contains(&database.db_name.lower.as_str()))
            .map(|database| database.db_name.original)
            .collect())
    })
}

/// The tables of a database by id: one request a database (recorded tidb 81).
pub async fn tables(http: &Http, at: &Address, database: &str) -> Reading<Vec<(TableId, String)>> {
    let segment: String = url::form_urlencoded::byte_serialize(database.as_bytes()).collect();
    let path = format!("/schema/{}?id_name_only=true", segment.replace('+', "%20"));
    let answer = get(http, at, &path).await?;
    parse(&answer, |value| {
        // A database without tables answers null.
        let all: Option<Vec<wire::Table>> = json::typed(value)?;
        let named = |table: wire::Table| (TableId(table.id), format!("{database}.{}", table.name.original));
        Ok(all.unwrap_or_default().into_iter().map(named).collect())
    })
}

/// One table by id, partitions included.
pub async fn table(http: &Http, at: &Address, id: TableId) -> Reading<String> {
    let answer = get(http, at, &format!("/db-table/{id}")).await?;
    parse(&answer, |value| {
        let wire: wire::DbTable = json::typed(value)?;
        Ok(format!("{}.{}", wire.db_info.db_name.original, wire.table_info.name.original))
    })
}
