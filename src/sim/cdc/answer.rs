//! What a capture says once the owner has worked it out.

use serde::Serialize;

use crate::sim::wire::{JSON, JSON_UTF8, Reply, TEXT_UTF8, indented};
use crate::sim::world::{Change, DrainAnswer, OwnerView, World};

use super::errors::{self, error, no_capture, no_changefeed};
use super::feeds;
use super::new_arch;
use super::route::{Call, FeedName, Version};

#[derive(Serialize)]
pub(super) struct List<T> {
    pub(super) total: usize,
    pub(super) items: Vec<T>,
}

/// v1 lists are bare and indented, v2 ones wrapped and compact.
pub(super) fn list<T: Serialize>(version: Version, items: Vec<T>) -> Reply {
    match version {
        Version::V1 => Reply::indented(200, &items),
        Version::V2 => Reply::compact(200, &List { total: items.len(), items }),
    }
}

/// v1 objects are indented, v2 ones compact.
pub(super) fn object(version: Version, value: &impl Serialize) -> Reply {
    match version {
        Version::V1 => Reply::indented(200, value),
        Version::V2 => Reply::compact(200, value),
    }
}

/// v1 says that something is under way with 202 and nothing, v2 with 200 and an empty object.
fn accepted(version: Version) -> Reply {
    match version {
        Version::V1 => Reply::empty(202),
        Version::V2 => Reply::new(200, JSON_UTF8, "{}"),
    }
}

/// Answers a call with the world as it is now.
pub(crate) fn answer(world: &mut World, capture: usize, call: &Call) -> Reply {
    if world.runs_new_architecture(capture)
        && let Some(reply) = new_arch::local(world, capture, call)
    {
        return reply;
    }
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
            return errors::plain(500, &format!("read tcp 127.0.0.1:41234->{address}: read: connection reset by peer"));
        }
        _ => return error(500, "CDC:ErrOwnerNotFound", "owner not found"),
    };
    if world.coordinated(cluster) {
        return new_arch::answer(world, cluster, call);
    }
    match call {
        Call::RootStatus
        | Call::Config
        | Call::Status
        | Call::Tso(_)
        | Call::Tables { .. }
        | Call::DispatcherCount { .. } => Reply::empty(500),
        Call::Health(version) => health(world, cluster, *version),
        Call::Captures(version) => list(*version, captures(world, cluster)),
        Call::Changefeeds { version, state, namespace } => {
            feeds::changefeeds(world, cluster, *version, state, namespace.as_deref())
        }
        Call::Changefeed { version, feed } => with_feed(world, cluster, feed, |world, index| match version {
            Version::V1 => feeds::detail_v1(world, index),
            Version::V2 => feeds::detail_v2(world, index),
        }),
        Call::FeedStatus(feed) => with_feed(world, cluster, feed, feeds::feed_status),
        Call::Synced(feed) => with_feed(world, cluster, feed, feeds::synced),
        Call::Processors(version) => list(*version, feeds::processors(world, cluster)),
        Call::Processor { version, feed, capture } => {
            with_feed(world, cluster, feed, |world, index| feeds::processor(world, cluster, *version, index, capture))
        }
        Call::Drain(id) => drain(world, cluster, id.as_deref().unwrap_or_default()),
        Call::Resign(version) => {
            world.resign(cluster);
            accepted(*version)
        }
        Call::Pause { version, feed } => change(world, cluster, *version, feed, Change::Pause),
        Call::Resume { body: Err(message), .. } => Reply {
            // The header is flushed before the body is rendered, so its type is guessed (recording cdc-classic-more 12).
            content_type: Some(TEXT_UTF8.to_owned()),
            ..errors::bad_parameter(message)
        },
        Call::Resume { version, feed, .. } => change(world, cluster, *version, feed, Change::Resume),
    }
}

/// The answer about a changefeed, or the one of the cluster's architecture that there is no such changefeed.
pub(super) fn with_feed(
    world: &mut World,
    cluster: usize,
    feed: &FeedName,
    then: impl FnOnce(&mut World, usize) -> Reply,
) -> Reply {
    match world.feed_index(cluster, &feed.namespace, &feed.id) {
        Some(index) => then(world, index),
        None if world.coordinated(cluster) => {
            error(400, "CDC:ErrChangeFeedNotExists", &format!("changefeed not exists, {}", feed.id))
        }
        None => no_changefeed(&feed.namespace, &feed.id),
    }
}

fn change(world: &mut World, cluster: usize, version: Version, feed: &FeedName, change: Change) -> Reply {
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

pub(super) fn status(world: &World, capture: usize) -> Reply {
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
            liveness: Some(instance.liveness_raw()),
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
        id: if instance.registered { &instance.id } else { "" },
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
    #[serde(skip_serializing_if = "Option::is_none")]
    newarch: Option<bool>,
    addr: &'a str,
    advertise_addr: &'a str,
    log_level: &'a str,
    capture_session_ttl: u64,
    cluster_id: &'a str,
}

/// Only the key `newarch` is known of the one of the new architecture (contract section 0); the rest is like classic.
pub(super) fn config(world: &World, capture: usize) -> Reply {
    let address = world.capture_address(capture);
    Reply::compact(
        200,
        &Config {
            newarch: world.runs_new_architecture(capture).then_some(true),
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

pub(super) fn tso_now(world: &World, body: &Result<(), String>) -> Reply {
    match body {
        Err(message) => errors::bad_parameter(message),
        Ok(()) => Reply::compact(200, &Tso { timestamp: world.clock_ms(), logic_time: 1 }),
    }
}

fn health(world: &World, cluster: usize, version: Version) -> Reply {
    if !world.healthy(cluster) {
        return error(500, "CDC:ErrClusterIsUnhealthy", "TiCDC cluster is unhealthy");
    }
    match version {
        Version::V1 => Reply::empty(200),
        Version::V2 => accepted(Version::V2),
    }
}

#[derive(Serialize)]
pub(super) struct Capture {
    id: String,
    is_owner: bool,
    address: String,
    cluster_id: String,
}

pub(super) fn captures(world: &mut World, cluster: usize) -> Vec<Capture> {
    world
        .captures_of(cluster)
        .into_iter()
        .map(|it| Capture { id: it.id, is_owner: it.is_owner, address: it.address, cluster_id: it.cluster_id })
        .collect()
}

#[derive(Serialize)]
pub(super) struct Count {
    pub(super) current_table_count: usize,
}

fn drain(world: &mut World, cluster: usize, id: &str) -> Reply {
    let refused =
        |message: &str| error(400, "CDC:ErrSchedulerRequestFailed", &format!("scheduler request failed, {message}"));
    match world.drain(cluster, id) {
        None => error(500, "CDC:ErrOwnerNotFound", "owner not found"),
        Some(DrainAnswer::OnlyOne) => refused("only one capture alive"),
        Some(DrainAnswer::IsOwner) => refused("cannot drain the owner"),
        Some(DrainAnswer::Unknown) => no_capture(id),
        // The only v1 success that is not indented.
        Some(DrainAnswer::Count(current_table_count)) => Reply::compact(202, &Count { current_table_count }),
    }
}
