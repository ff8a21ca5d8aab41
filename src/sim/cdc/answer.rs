//! What a capture says once the owner has worked it out.

use serde::Serialize;

use crate::sim::scenario::FeedState;
use crate::sim::timefmt;
use crate::sim::wire::{JSON, Reply, compact, indented};
use crate::sim::world::{Carrying, Change, DrainAnswer, FeedError, OwnerView, World, tso};

use super::errors::{self, error, no_capture, no_changefeed};
use super::route::{Call, FeedName, Version};

/// The configuration of a changefeed as v8.5.3 shows it.
const CONFIG: &str = include_str!("config.json");
const CONFIG_PLACE: &str = "\"@config@\"";

#[derive(Serialize)]
struct List<T> {
    total: usize,
    items: Vec<T>,
}

/// v1 lists are bare and indented, v2 ones wrapped and compact.
fn list<T: Serialize>(version: Version, items: Vec<T>) -> Reply {
    match version {
        Version::V1 => Reply::indented(200, &items),
        Version::V2 => Reply::compact(
            200,
            &List {
                total: items.len(),
                items,
            },
        ),
    }
}

/// v1 objects are indented, v2 ones compact.
fn object(version: Version, value: &impl Serialize) -> Reply {
    match version {
        Version::V1 => Reply::indented(200, value),
        Version::V2 => Reply::compact(200, value),
    }
}

/// v1 says that something is under way with 202 and nothing, v2 with 200 and an empty object.
fn accepted(version: Version) -> Reply {
    match version {
        Version::V1 => Reply::empty(202),
        Version::V2 => Reply::new(200, crate::sim::wire::JSON_UTF8, "{}"),
    }
}

/// Answers a call with the world as it is now.
pub(crate) fn answer(world: &mut World, capture: usize, call: &Call) -> Reply {
    match call {
        Call::RootStatus => return root_status(world, capture),
        Call::Config => return config(world, capture),
        Call::Status => return status(world, capture),
        Call::Tso(body) => return tso_now(world, body),
        _ => {}
    }
    let cluster = match world.owner_view(capture) {
        OwnerView::Serving(cluster) => cluster,
        // It was there when the question came.
        OwnerView::Dead(address) => {
            return errors::plain(
                500,
                &format!("read tcp 127.0.0.1:41234->{address}: read: connection reset by peer"),
            );
        }
        _ => return error(500, "CDC:ErrOwnerNotFound", "owner not found"),
    };
    match call {
        Call::RootStatus | Call::Config | Call::Status | Call::Tso(_) => Reply::empty(500),
        Call::Health(version) => health(world, cluster, *version),
        Call::Captures(version) => list(*version, captures(world, cluster)),
        Call::Changefeeds {
            version,
            state,
            namespace,
        } => changefeeds(world, cluster, *version, state, namespace.as_deref()),
        Call::Changefeed { version, feed } => {
            with_feed(world, cluster, feed, |world, index| match version {
                Version::V1 => detail_v1(world, index),
                Version::V2 => detail_v2(world, index),
            })
        }
        Call::FeedStatus(feed) => with_feed(world, cluster, feed, feed_status),
        Call::Synced(feed) => with_feed(world, cluster, feed, synced),
        Call::Processors(version) => list(*version, processors(world, cluster)),
        Call::Processor {
            version,
            feed,
            capture,
        } => with_feed(world, cluster, feed, |world, index| {
            processor(world, cluster, *version, index, capture)
        }),
        Call::Drain { id, .. } => drain(world, cluster, id.as_deref().unwrap_or_default()),
        Call::Resign(version) => {
            world.resign(cluster);
            accepted(*version)
        }
        Call::Pause { version, feed } => change(world, cluster, *version, feed, Change::Pause),
        Call::Resume { version, feed, .. } => {
            change(world, cluster, *version, feed, Change::Resume)
        }
    }
}

fn with_feed(
    world: &mut World,
    cluster: usize,
    feed: &FeedName,
    then: impl FnOnce(&mut World, usize) -> Reply,
) -> Reply {
    match world.feed_index(cluster, &feed.namespace, &feed.id) {
        Some(index) => then(world, index),
        None => no_changefeed(&feed.namespace, &feed.id),
    }
}

fn change(
    world: &mut World,
    cluster: usize,
    version: Version,
    feed: &FeedName,
    change: Change,
) -> Reply {
    with_feed(world, cluster, feed, |world, index| {
        world.change_feed(index, change);
        accepted(version)
    })
}

#[derive(Serialize)]
struct Status<'a> {
    version: &'a str,
    git_hash: &'a str,
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster_id: Option<&'a str>,
    pid: u64,
    is_owner: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    liveness: Option<u64>,
}

fn status(world: &World, capture: usize) -> Reply {
    let Some(instance) = world.instance_at(capture) else {
        return Reply::dropped();
    };
    Reply::indented(
        200,
        &Status {
            version: &instance.version,
            git_hash: &instance.git_hash,
            id: &instance.id,
            cluster_id: Some(world.cluster_id_at(capture)),
            pid: instance.pid,
            is_owner: world.says_owner(capture),
            liveness: Some(u64::from(instance.stopping)),
        },
    )
}

/// The old status has neither cluster id nor liveness, and one space.
fn root_status(world: &World, capture: usize) -> Reply {
    let Some(instance) = world.instance_at(capture) else {
        return Reply::dropped();
    };
    let body = Status {
        version: &instance.version,
        git_hash: &instance.git_hash,
        id: if instance.registered {
            &instance.id
        } else {
            ""
        },
        cluster_id: None,
        pid: instance.pid,
        is_owner: world.says_owner(capture),
        liveness: None,
    };
    Reply::new(200, JSON, indented(&body, 1))
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Config<'a> {
    addr: &'a str,
    advertise_addr: &'a str,
    log_level: &'a str,
    capture_session_ttl: u64,
    cluster_id: &'a str,
}

fn config(world: &World, capture: usize) -> Reply {
    let address = world.capture_address(capture);
    Reply::compact(
        200,
        &Config {
            addr: address,
            advertise_addr: address,
            log_level: "info",
            capture_session_ttl: 10,
            cluster_id: world.cluster_id_at(capture),
        },
    )
}

#[derive(Serialize)]
struct Tso {
    timestamp: u64,
    logic_time: u64,
}

fn tso_now(world: &World, body: &Result<(), String>) -> Reply {
    match body {
        Err(message) => error(
            400,
            "CDC:ErrAPIInvalidParam",
            &format!("invalid api parameter: {message}"),
        ),
        Ok(()) => Reply::compact(
            200,
            &Tso {
                timestamp: world.clock_ms(),
                logic_time: 1,
            },
        ),
    }
}

fn health(world: &World, cluster: usize, version: Version) -> Reply {
    if !world.healthy(cluster) {
        return error(
            500,
            "CDC:ErrClusterIsUnhealthy",
            "TiCDC cluster is unhealthy",
        );
    }
    match version {
        Version::V1 => Reply::empty(200),
        Version::V2 => accepted(Version::V2),
    }
}

#[derive(Serialize)]
struct Capture {
    id: String,
    is_owner: bool,
    address: String,
    cluster_id: String,
}

fn captures(world: &mut World, cluster: usize) -> Vec<Capture> {
    world
        .captures_of(cluster)
        .into_iter()
        .map(|it| Capture {
            id: it.id,
            is_owner: it.is_owner,
            address: it.address,
            cluster_id: it.cluster_id,
        })
        .collect()
}

#[derive(Serialize)]
struct Count {
    current_table_count: usize,
}

fn drain(world: &mut World, cluster: usize, id: &str) -> Reply {
    let refused = |message: &str| {
        error(
            400,
            "CDC:ErrSchedulerRequestFailed",
            &format!("scheduler request failed, {message}"),
        )
    };
    match world.drain(cluster, id) {
        None => error(500, "CDC:ErrOwnerNotFound", "owner not found"),
        Some(DrainAnswer::OnlyOne) => refused("only one capture alive"),
        Some(DrainAnswer::IsOwner) => refused("cannot drain the owner"),
        Some(DrainAnswer::Unknown) => no_capture(id),
        // The only v1 success that is not indented.
        Some(DrainAnswer::Count(current_table_count)) => Reply::compact(
            202,
            &Count {
                current_table_count,
            },
        ),
    }
}

#[derive(Serialize)]
struct ListError {
    time: String,
    addr: String,
    code: String,
    message: String,
}

#[derive(Serialize)]
struct DetailError {
    addr: String,
    code: String,
    message: String,
}

fn detail_error(error: Option<&FeedError>) -> Option<DetailError> {
    error.map(|error| DetailError {
        addr: error.addr.clone(),
        code: error.code.clone(),
        message: error.message.clone(),
    })
}

fn list_error(error: Option<&FeedError>) -> Option<ListError> {
    error.map(|error| ListError {
        time: timefmt::rfc3339(error.at_ms),
        addr: error.addr.clone(),
        code: error.code.clone(),
        message: error.message.clone(),
    })
}

#[derive(Serialize)]
struct Changefeed {
    upstream_id: u64,
    namespace: String,
    id: String,
    state: &'static str,
    checkpoint_tso: u64,
    checkpoint_time: String,
    error: Option<ListError>,
}

/// The id of the upstream cluster that every changefeed reads from.
const UPSTREAM: u64 = 7_714_072_216_496_889_030;

fn changefeeds(
    world: &mut World,
    cluster: usize,
    version: Version,
    state: &str,
    namespace: Option<&str>,
) -> Reply {
    let known = [
        "", "all", "normal", "stopped", "failed", "warning", "pending", "finished", "removed",
    ];
    if !known.contains(&state) {
        return error(
            400,
            "CDC:ErrAPIInvalidParam",
            &format!("invalid api parameter: invalid changefeed state: {state}"),
        );
    }
    let mut items = Vec::new();
    for feed in world.feeds_of(cluster).to_vec() {
        let checkpoint = world.checkpoint_of(feed);
        let it = world.feed(feed);
        let wanted = match state {
            "all" => true,
            "" => it.state != FeedState::Finished,
            other => it.state.as_str() == other,
        };
        if !wanted || namespace.is_some_and(|namespace| it.namespace != namespace) {
            continue;
        }
        let hidden = match version {
            Version::V1 => it.state == FeedState::Normal,
            Version::V2 => matches!(
                it.state,
                FeedState::Normal | FeedState::Stopped | FeedState::Finished
            ),
        };
        items.push(Changefeed {
            upstream_id: UPSTREAM,
            namespace: it.namespace.clone(),
            id: it.id.clone(),
            state: it.state.as_str(),
            checkpoint_tso: tso(checkpoint),
            checkpoint_time: timefmt::local(checkpoint),
            error: if hidden {
                None
            } else {
                list_error(it.error.as_ref())
            },
        });
    }
    items.sort_by(|a, b| (&a.namespace, &a.id).cmp(&(&b.namespace, &b.id)));
    list(version, items)
}

#[derive(Serialize)]
struct Task {
    capture_id: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    table_ids: Vec<u64>,
}

fn tasks(world: &mut World, feed: usize) -> Vec<Task> {
    if world.feed(feed).state != FeedState::Normal {
        return Vec::new();
    }
    let mut tasks: Vec<Task> = world
        .task_status(feed)
        .into_iter()
        .map(
            |Carrying {
                 capture_id,
                 table_ids,
             }| Task {
                capture_id,
                table_ids,
            },
        )
        .collect();
    tasks.sort_by(|a, b| a.capture_id.cmp(&b.capture_id));
    tasks
}

/// A changefeed that does not run has no resolved timestamp; one that runs is half a second ahead with it.
fn resolved(state: FeedState, checkpoint: u64) -> u64 {
    if state.runs() {
        tso(checkpoint + 500)
    } else {
        0
    }
}

#[derive(Serialize)]
struct DetailV1 {
    upstream_id: u64,
    namespace: String,
    id: String,
    sink_uri: String,
    create_time: String,
    start_ts: u64,
    resolved_ts: u64,
    target_ts: u64,
    checkpoint_tso: u64,
    checkpoint_time: String,
    sort_engine: &'static str,
    state: &'static str,
    error: Option<()>,
    error_history: Option<()>,
    creator_version: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    task_status: Vec<Task>,
}

fn detail_v1(world: &mut World, feed: usize) -> Reply {
    let checkpoint = world.checkpoint_of(feed);
    let task_status = tasks(world, feed);
    let it = world.feed(feed);
    Reply::indented(
        200,
        &DetailV1 {
            upstream_id: UPSTREAM,
            namespace: it.namespace.clone(),
            id: it.id.clone(),
            sink_uri: it.sink_uri.clone(),
            create_time: timefmt::local(it.create_ms),
            start_ts: tso(it.create_ms),
            resolved_ts: resolved(it.state, checkpoint),
            target_ts: 0,
            checkpoint_tso: tso(checkpoint),
            checkpoint_time: timefmt::local(checkpoint),
            sort_engine: "unified",
            state: it.state.as_str(),
            error: None,
            error_history: None,
            creator_version: it.creator_version.clone(),
            task_status,
        },
    )
}

#[derive(Serialize)]
struct DetailV2 {
    upstream_id: u64,
    namespace: String,
    id: String,
    sink_uri: String,
    create_time: String,
    start_ts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    admin_job_type: Option<u64>,
    config: &'static str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<DetailError>,
    creator_version: String,
    resolved_ts: u64,
    checkpoint_ts: u64,
    checkpoint_time: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    task_status: Vec<Task>,
}

fn detail_v2(world: &mut World, feed: usize) -> Reply {
    let checkpoint = world.checkpoint_of(feed);
    let task_status = tasks(world, feed);
    let it = world.feed(feed);
    let shown = matches!(
        it.state,
        FeedState::Warning | FeedState::Pending | FeedState::Failed
    );
    let mut reply = Reply::compact(
        200,
        &DetailV2 {
            upstream_id: UPSTREAM,
            namespace: it.namespace.clone(),
            id: it.id.clone(),
            sink_uri: it.sink_uri.clone(),
            create_time: timefmt::rfc3339(it.create_ms),
            start_ts: tso(it.create_ms),
            admin_job_type: (it.state == FeedState::Stopped).then_some(1),
            config: "@config@",
            state: it.state.as_str(),
            error: detail_error(it.error.as_ref().filter(|_| shown)),
            creator_version: it.creator_version.clone(),
            resolved_ts: resolved(it.state, checkpoint),
            checkpoint_ts: tso(checkpoint),
            checkpoint_time: timefmt::local(checkpoint),
            task_status,
        },
    );
    reply.body = reply.body.replacen(CONFIG_PLACE, CONFIG.trim_end(), 1);
    reply
}

#[derive(Serialize)]
struct FeedStatus {
    state: &'static str,
    resolved_ts: u64,
    checkpoint_ts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<ListError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_warning: Option<ListError>,
}

fn feed_status(world: &mut World, feed: usize) -> Reply {
    let checkpoint = world.checkpoint_of(feed);
    let it = world.feed(feed);
    let (error, warning) = match it.state {
        FeedState::Failed => (it.error.as_ref(), None),
        FeedState::Warning | FeedState::Pending => (None, it.error.as_ref()),
        _ => (None, None),
    };
    Reply::compact(
        200,
        &FeedStatus {
            state: it.state.as_str(),
            resolved_ts: resolved(it.state, checkpoint),
            checkpoint_ts: tso(checkpoint),
            last_error: list_error(error),
            last_warning: list_error(warning),
        },
    )
}

#[derive(Serialize)]
struct Synced {
    synced: bool,
    sink_checkpoint_ts: String,
    puller_resolved_ts: String,
    last_synced_ts: String,
    now_ts: String,
    info: &'static str,
}

fn synced(world: &mut World, feed: usize) -> Reply {
    let checkpoint = world.checkpoint_of(feed);
    let now = world.clock_ms();
    Reply::compact(
        200,
        &Synced {
            synced: false,
            sink_checkpoint_ts: timefmt::local(checkpoint),
            puller_resolved_ts: timefmt::local(checkpoint + 500),
            last_synced_ts: timefmt::local(now.saturating_sub(120_000)),
            now_ts: timefmt::local(now),
            info: "The data syncing is not finished, please wait",
        },
    )
}

#[derive(Serialize)]
struct Processor {
    namespace: String,
    changefeed_id: String,
    capture_id: String,
}

fn processors(world: &mut World, cluster: usize) -> Vec<Processor> {
    let list = world.processors_of(cluster);
    list.into_iter()
        .map(|(feed, capture_id)| {
            let it = world.feed(feed);
            Processor {
                namespace: it.namespace.clone(),
                changefeed_id: it.id.clone(),
                capture_id,
            }
        })
        .collect()
}

#[derive(Serialize)]
struct TableIds {
    table_ids: Option<Vec<u64>>,
}

fn processor(
    world: &mut World,
    cluster: usize,
    version: Version,
    feed: usize,
    capture: &str,
) -> Reply {
    let state = world.feed(feed).state;
    let abnormal = |what: &str| {
        let message = format!(
            "invalid api parameter: changefeed in abnormal state: {}, {what} of an abnormal changefeed",
            state.as_str()
        );
        error(400, "CDC:ErrAPIInvalidParam", &message)
    };
    // The words of v2 are the server's own.
    if version == Version::V2 && !state.runs() {
        return abnormal("can'duration get processor");
    }
    let found = world.carrying(feed, capture);
    if version == Version::V1 && state != FeedState::Normal {
        // v1 notes the error and goes on: two documents, one after the other, with status 200 (recording
        // cdc-classic-more 08).
        if found.is_none() && !world.knows_capture(cluster, capture) {
            return no_capture(capture);
        }
        let first = indented(&TableIds { table_ids: found }, 4);
        let second = abnormal("can't get processors");
        return Reply::new(200, crate::sim::wire::JSON_UTF8, first + &second.body);
    }
    match found {
        None => no_capture(capture),
        Some(ids) => object(
            version,
            &TableIds {
                table_ids: Some(ids),
            },
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_json() {
        assert!(
            serde_json::from_str::<serde_json::Value>(CONFIG)
                .unwrap()
                .is_object()
        );
        assert!(compact(&"@config@") == CONFIG_PLACE);
    }
}
