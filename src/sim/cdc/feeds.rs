//! Changefeeds and processors as a capture shows them.

use serde::Serialize;

use crate::sim::scenario::FeedState;
use crate::sim::timefmt;
use crate::sim::wire::{JSON_UTF8, Reply, indented};
use crate::sim::world::{Carrying, FeedError, World, tso};

use super::answer::{list, object};
use super::errors::{error, no_capture};
use super::route::Version;

/// The configuration of a changefeed as v8.5.3 shows it.
const CONFIG: &str = include_str!("config.json");
pub(super) const CONFIG_PLACE: &str = "\"@config@\"";

#[derive(Serialize)]
pub(super) struct ListError {
    pub(super) time: String,
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

pub(super) fn list_error(error: Option<&FeedError>) -> Option<ListError> {
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
pub(super) const UPSTREAM: u64 = 7_714_072_216_496_889_030;

/// What a list with a wish for a state that does not exist is answered with.
pub(super) fn bad_state(state: &str) -> Option<Reply> {
    let known = ["", "all", "normal", "stopped", "failed", "warning", "pending", "finished", "removed"];
    let message = format!("invalid api parameter: invalid changefeed state: {state}");
    (!known.contains(&state)).then(|| error(400, "CDC:ErrAPIInvalidParam", &message))
}

pub(super) fn changefeeds(
    world: &mut World,
    cluster: usize,
    version: Version,
    state: &str,
    namespace: Option<&str>,
) -> Reply {
    if let Some(refused) = bad_state(state) {
        return refused;
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
            Version::V2 => matches!(it.state, FeedState::Normal | FeedState::Stopped | FeedState::Finished),
        };
        items.push(Changefeed {
            upstream_id: UPSTREAM,
            namespace: it.namespace.clone(),
            id: it.id.clone(),
            state: it.state.as_str(),
            checkpoint_tso: tso(checkpoint),
            checkpoint_time: timefmt::local(checkpoint),
            error: if hidden { None } else { list_error(it.error.as_ref()) },
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
        .map(|Carrying { capture_id, table_ids }| Task { capture_id, table_ids })
        .collect();
    tasks.sort_by(|a, b| a.capture_id.cmp(&b.capture_id));
    tasks
}

/// A changefeed that does not run has no resolved timestamp; one that runs is half a second ahead with it.
fn resolved(state: FeedState, checkpoint: u64) -> u64 {
    if state.runs() { tso(checkpoint + 500) } else { 0 }
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

pub(super) fn detail_v1(world: &mut World, feed: usize) -> Reply {
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

pub(super) fn detail_v2(world: &mut World, feed: usize) -> Reply {
    let checkpoint = world.checkpoint_of(feed);
    let task_status = tasks(world, feed);
    let it = world.feed(feed);
    let shown = matches!(it.state, FeedState::Warning | FeedState::Pending | FeedState::Failed);
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

/// Both architectures answer with these keys.
#[derive(Serialize)]
pub(super) struct FeedStatus {
    pub(super) state: &'static str,
    pub(super) resolved_ts: u64,
    pub(super) checkpoint_ts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_error: Option<ListError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_warning: Option<ListError>,
}

pub(super) fn feed_status(world: &mut World, feed: usize) -> Reply {
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

/// Both architectures answer with these keys.
#[derive(Serialize)]
pub(super) struct SyncedStatus {
    pub(super) synced: bool,
    pub(super) sink_checkpoint_ts: String,
    pub(super) puller_resolved_ts: String,
    pub(super) last_synced_ts: String,
    pub(super) now_ts: String,
    pub(super) info: &'static str,
}

pub(super) fn synced(world: &mut World, feed: usize) -> Reply {
    let checkpoint = world.checkpoint_of(feed);
    let now = world.clock_ms();
    Reply::compact(
        200,
        &SyncedStatus {
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
pub(super) struct Processor {
    namespace: String,
    #[serde(rename = "changefeed_id")]
    feed_id: String,
    capture_id: String,
}

pub(super) fn processors(world: &mut World, cluster: usize) -> Vec<Processor> {
    let list = world.processors_of(cluster);
    list.into_iter()
        .map(|(feed, capture_id)| {
            let it = world.feed(feed);
            Processor { namespace: it.namespace.clone(), feed_id: it.id.clone(), capture_id }
        })
        .collect()
}

#[derive(Serialize)]
struct TableIds {
    table_ids: Option<Vec<u64>>,
}

pub(super) fn processor(world: &mut World, cluster: usize, version: Version, feed: usize, capture: &str) -> Reply {
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
        return Reply::new(200, JSON_UTF8, first + &second.body);
    }
    match found {
        None => no_capture(capture),
        Some(ids) => object(version, &TableIds { table_ids: Some(ids) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_json() {
        assert!(serde_json::from_str::<serde_json::Value>(CONFIG).unwrap().is_object());
        assert_eq!(crate::sim::wire::compact(&"@config@"), CONFIG_PLACE);
    }
}
