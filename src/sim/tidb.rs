//! The HTTP face of a `TiDB` server's status port (contract section 7; recordings tidb).

use serde::Serialize;

use super::wire::{JSON, Reply, Request, Step, TEXT_UTF8, compact, indented};
use super::world::{Health, StartOutcome, TidbInstance, World};

mod schema;

/// What is answered later.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Started,
    Unconfirmed,
    Ready(Reply),
}

const UPGRADING_TWICE: &str = "It's a duplicated operation and the cluster is already in upgrading state.";
const NORMAL_TWICE: &str = "It's a duplicated operation and the cluster is already in normal state.";

/// The template of a request's route, for counting.
pub(crate) fn template(request: &Request) -> &'static str {
    match request.parts().as_slice() {
        ["status"] => "/status",
        ["info"] => "/info",
        ["info", "all"] => "/info/all",
        ["upgrade", "start"] => "/upgrade/start",
        ["upgrade", "finish"] => "/upgrade/finish",
        ["upgrade", "show"] => "/upgrade/show",
        ["upgrade", _] => "/upgrade/{op}",
        ["ddl", "owner", "resign"] => "/ddl/owner/resign",
        ["schema"] => "/schema",
        ["schema", _] => "/schema/{db}",
        ["db-table", _] => "/db-table/{id}",
        _ => "(no route)",
    }
}

/// Takes a request in.
pub(crate) fn receive(world: &mut World, server: usize, request: &Request) -> Step<Call> {
    let method = request.method.as_str();
    Step::Done(match request.parts().as_slice() {
        ["status"] => status(world, server),
        ["info"] => info(world, server),
        ["info", "all"] => info_all(world),
        ["upgrade", operation] => return upgrade(world, method, operation),
        ["ddl", "owner", "resign"] if method == "POST" => resign(world, server),
        ["schema"] => schema::schema(world, request.parameter("table_ids")),
        ["schema", database] => {
            let names_only = request.parameter("id_name_only").as_deref() == Some("true");
            schema::tables(world, database, names_only)
        }
        ["db-table", id] => schema::by_id(world, id),
        _ => not_found(),
    })
}

/// Answers what was put off.
pub(crate) fn answer(call: &Call) -> Reply {
    match call {
        Call::Started => word("success!"),
        Call::Unconfirmed => text(400, "context deadline exceeded"),
        Call::Ready(reply) => reply.clone(),
    }
}

fn not_found() -> Reply {
    Reply { nosniff: true, ..Reply::new(404, TEXT_UTF8, "404 page not found\n") }
}

fn text(status: u16, body: &str) -> Reply {
    Reply::new(status, TEXT_UTF8, body)
}

fn json(value: &impl Serialize) -> Reply {
    Reply::new(200, JSON, indented(value, 1))
}

fn word(body: &str) -> Reply {
    Reply::new(200, JSON, compact(&body))
}

#[derive(Serialize)]
struct StatusAnswer<'a> {
    connections: u64,
    version: &'a str,
    git_hash: &'a str,
    status: InitStats,
}

#[derive(Serialize)]
struct InitStats {
    init_stats_percentage: u64,
}

/// `/status` is the health check: 500 without a body while the server is not ready, or not any more.
fn status(world: &World, server: usize) -> Reply {
    let Some(instance) = world.tidb().current(server) else {
        return Reply::dropped();
    };
    if instance.health != Health::Serving {
        return Reply::new(500, JSON, "");
    }
    Reply::new(
        200,
        JSON,
        compact(&StatusAnswer {
            connections: 0,
            version: &full(instance),
            git_hash: &instance.git_hash,
            status: InitStats { init_stats_percentage: 0 },
        }),
    )
}

/// The version as clients of `MySQL` see it.
fn full(instance: &TidbInstance) -> String {
    format!("8.0.11-TiDB-{}", instance.version)
}

fn split(address: &str) -> (&str, u64) {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    (host, port.parse().unwrap_or(0))
}

#[derive(Serialize)]
struct Info {
    is_owner: bool,
    max_procs: u64,
    gogc: u64,
    #[serde(flatten)]
    server: ServerInfo,
}

#[derive(Serialize)]
struct ServerInfo {
    version: String,
    git_hash: String,
    ddl_id: String,
    ip: String,
    listening_port: u64,
    status_port: u64,
    lease: &'static str,
    start_timestamp: u64,
    server_id: u64,
    labels: Labels,
}

#[derive(Serialize)]
struct Labels {}

fn server_info(world: &World, instance: &TidbInstance) -> ServerInfo {
    let server = &world.tidb().servers[instance.server];
    ServerInfo {
        version: full(instance),
        git_hash: instance.git_hash.clone(),
        ddl_id: instance.ddl_id.clone(),
        ip: split(&server.status).0.to_owned(),
        listening_port: split(&server.sql).1,
        status_port: split(&server.status).1,
        lease: "1s",
        start_timestamp: instance.start_timestamp,
        server_id: instance.server_id,
        labels: Labels {},
    }
}

fn info(world: &World, server: usize) -> Reply {
    let Some(instance) = world.tidb().current(server) else {
        return Reply::dropped();
    };
    json(&Info {
        is_owner: world.tidb().owner_id() == instance.ddl_id,
        max_procs: 2,
        gogc: 500,
        server: server_info(world, instance),
    })
}

#[derive(Serialize, Clone, PartialEq, Eq)]
struct OneVersion {
    version: String,
    git_hash: String,
}

#[derive(Serialize)]
struct InfoAll {
    servers_num: usize,
    owner_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_all_server_version_consistent: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    all_servers_diff_versions: Vec<OneVersion>,
    all_servers_info: std::collections::BTreeMap<String, ServerInfo>,
}

fn versions(world: &World) -> Vec<OneVersion> {
    let mut versions: Vec<OneVersion> = Vec::new();
    for instance in world.tidb().known() {
        let one = OneVersion { version: full(instance), git_hash: instance.git_hash.clone() };
        if !versions.contains(&one) {
            versions.push(one);
        }
    }
    versions
}

fn info_all(world: &World) -> Reply {
    let versions = versions(world);
    let consistent = versions.len() <= 1;
    let all_servers_info: std::collections::BTreeMap<String, ServerInfo> =
        world.tidb().known().map(|instance| (instance.ddl_id.clone(), server_info(world, instance))).collect();
    json(&InfoAll {
        servers_num: all_servers_info.len(),
        owner_id: world.tidb().owner_id(),
        is_all_server_version_consistent: consistent.then_some(true),
        all_servers_diff_versions: if consistent { Vec::new() } else { versions },
        all_servers_info,
    })
}

/// Any server may be asked; only POST, also to look.
fn upgrade(world: &mut World, method: &str, operation: &str) -> Step<Call> {
    if method != "POST" {
        return Step::Done(text(400, "This API only support POST method"));
    }
    match operation {
        "start" => match world.start_upgrading() {
            StartOutcome::Started(ms) => Step::Wait(ms, Call::Started),
            StartOutcome::Duplicated => Step::Done(word(UPGRADING_TWICE)),
            StartOutcome::Unconfirmed(ms) => Step::Wait(ms, Call::Unconfirmed),
        },
        "finish" if world.finish_upgrading() => Step::Wait(world.jitter(3, 11), Call::Ready(word("success!"))),
        "finish" => Step::Done(word(NORMAL_TWICE)),
        "show" => Step::Done(show(world)),
        other => Step::Done(text(400, &format!("wrong operation:{other}"))),
    }
}

#[derive(Serialize)]
struct Show {
    servers_num: usize,
    owner_id: String,
    upgraded_percent: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_all_server_version_consistent: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    all_servers_diff_info: Vec<DiffInfo>,
}

#[derive(Serialize)]
struct DiffInfo {
    version: String,
    git_hash: String,
    ddl_id: String,
    ip: String,
    listening_port: u64,
    server_id: u64,
}

/// Two JSON documents, glued together (recorded).
fn show(world: &mut World) -> Reply {
    if !world.tidb().upgrading {
        return Reply::new(200, JSON, "\"The cluster state is normal.\"\"success!\"");
    }
    let versions = versions(world);
    let consistent = versions.len() <= 1;
    let mut all: Vec<DiffInfo> = world
        .tidb()
        .known()
        .map(|instance| {
            let info = server_info(world, instance);
            DiffInfo {
                version: info.version,
                git_hash: info.git_hash,
                ddl_id: info.ddl_id,
                ip: info.ip,
                listening_port: info.listening_port,
                server_id: info.server_id,
            }
        })
        .collect();
    world.shuffle(&mut all);
    // The greatest version by comparing texts, with one of its hashes: 100 before anything was upgraded.
    let greatest = versions.iter().max_by(|a, b| a.version.cmp(&b.version));
    let upgraded = all
        .iter()
        .filter(|it| greatest.is_some_and(|top| top.version == it.version && top.git_hash == it.git_hash))
        .count();
    let body = Show {
        servers_num: all.len(),
        owner_id: world.tidb().owner_id(),
        upgraded_percent: upgraded * 100 / all.len().max(1),
        is_all_server_version_consistent: consistent.then_some(true),
        all_servers_diff_info: if consistent { Vec::new() } else { all },
    };
    Reply::new(200, JSON, indented(&body, 1) + "\"success!\"")
}

fn resign(world: &mut World, server: usize) -> Reply {
    if world.resign_ddl(server) { word("success!") } else { text(400, "This node is not a owner, can't be resigned") }
}
