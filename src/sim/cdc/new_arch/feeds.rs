//! Changefeeds as the coordinator shows them.

use serde::Serialize;

use crate::sim::cdc::errors::error;
use crate::sim::cdc::feeds::{CONFIG_PLACE, FeedStatus, ListError, SyncedStatus, UPSTREAM, bad_state, list_error};
use crate::sim::cdc::route::Version;
use crate::sim::rng::hex_of;
use crate::sim::scenario::FeedState;
use crate::sim::timefmt;
use crate::sim::wire::Reply;
use crate::sim::world::{World, tso};

/// The configuration of a changefeed as v8.5.4 shows it (recording cdc-new 25).
const CONFIG: &str = include_str!("config.json");

#[derive(Serialize)]
struct Changefeed {
    upstream_id: u64,
    id: String,
    keyspace: String,
    state: &'static str,
    checkpoint_tso: u64,
    checkpoint_time: String,
    error: Option<ListError>,
}

/// In random order; `pending` is shown as `warning`, and an error is always shown (contract section 1.8).
pub(super) fn changefeeds(world: &mut World, cluster: usize, version: Version, state: &str) -> Reply {
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
        if wanted {
            items.push(Changefeed {
                upstream_id: UPSTREAM,
                id: it.id.clone(),
                keyspace: it.namespace.clone(),
                state: if it.state == FeedState::Pending { FeedState::Warning } else { it.state }.as_str(),
                checkpoint_tso: tso(checkpoint),
                checkpoint_time: timefmt::local(checkpoint),
                error: list_error(it.error.as_ref()),
            });
        }
    }
    world.shuffle(&mut items);
    super::list(version, items)
}

#[derive(Serialize)]
struct Gid {
    low: u64,
    high: u64,
}

/// Two numbers that stay with a changefeed.
fn gid(id: &str) -> Gid {
    let half = |name: &str| u64::from_str_radix(&hex_of(&format!("{name}/{id}"), 16), 16).unwrap_or(1);
    Gid { low: half("low"), high: half("high") }
}

#[derive(Serialize)]
struct Detail {
    upstream_id: u64,
    id: String,
    keyspace: String,
    sink_uri: String,
    create_time: String,
    start_ts: u64,
    config: &'static str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ListError>,
    creator_version: String,
    resolved_ts: u64,
    checkpoint_ts: u64,
    checkpoint_time: String,
    gid: Gid,
    #[serde(skip_serializing_if = "Option::is_none")]
    maintainer_addr: Option<String>,
}

/// The same in v1 and v2: no tables, and the resolved timestamp is the checkpoint (recordings cdc-new 10, 25,
/// cdc-new-more 03). The error has a time of zero (contract section 1.9).
pub(super) fn detail(world: &mut World, feed: usize) -> Reply {
    let checkpoint = world.checkpoint_of(feed);
    let maintainer_addr = world.maintainer_address(feed).map(str::to_owned);
    let it = world.feed(feed);
    let shown = matches!(it.state, FeedState::Warning | FeedState::Pending | FeedState::Failed);
    let mut error = list_error(it.error.as_ref().filter(|_| shown));
    if let Some(error) = &mut error {
        "0001-01-01T00:00:00Z".clone_into(&mut error.time);
    }
    let mut reply = Reply::compact(
        200,
        &Detail {
            upstream_id: UPSTREAM,
            id: it.id.clone(),
            keyspace: it.namespace.clone(),
            sink_uri: it.sink_uri.clone(),
            create_time: timefmt::rfc3339(it.create_ms),
            start_ts: tso(it.create_ms),
            config: "@config@",
            state: it.state.as_str(),
            error,
            creator_version: it.creator_version.clone(),
            resolved_ts: tso(checkpoint),
            checkpoint_ts: tso(checkpoint),
            checkpoint_time: timefmt::local(checkpoint),
            gid: gid(&it.id),
            maintainer_addr,
        },
    );
    reply.body = reply.body.replacen(CONFIG_PLACE, CONFIG.trim_end(), 1);
    reply
}

/// As of a changefeed that no row ever went through: none does here (recording cdc-new 32).
pub(super) fn synced(world: &mut World, feed: usize) -> Reply {
    let checkpoint = world.checkpoint_of(feed);
    Reply::compact(
        200,
        &SyncedStatus {
            synced: true,
            sink_checkpoint_ts: timefmt::local(checkpoint),
            puller_resolved_ts: timefmt::local(checkpoint + 499),
            last_synced_ts: timefmt::local(0),
            now_ts: timefmt::local(world.clock_ms() / 1_000 * 1_000),
            info: "The data syncing is finished",
        },
    )
}

/// An error only in `failed`, a warning only in `warning` (contract section 1.10; recording cdc-new 31).
pub(super) fn status(world: &mut World, feed: usize) -> Reply {
    let checkpoint = world.checkpoint_of(feed);
    let it = world.feed(feed);
    let (error, warning) = match it.state {
        FeedState::Failed => (it.error.as_ref(), None),
        FeedState::Warning => (None, it.error.as_ref()),
        _ => (None, None),
    };
    Reply::compact(
        200,
        &FeedStatus {
            state: it.state.as_str(),
            resolved_ts: tso(checkpoint),
            checkpoint_ts: tso(checkpoint),
            last_error: list_error(error),
            last_warning: list_error(warning),
        },
    )
}

/// A changefeed that runs cannot be resumed, and here that is said (contract section 1.12; the words are inferred).
pub(super) fn refusal_to_resume(world: &World, feed: usize) -> Option<Reply> {
    let state = world.feed(feed).state;
    let resumable = matches!(state, FeedState::Failed | FeedState::Stopped | FeedState::Finished);
    let message = format!("changefeed update error: can not resume changefeed in state {}", state.as_str());
    (!resumable).then(|| error(400, "CDC:ErrChangefeedUpdateRefused", &message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_json() {
        assert!(serde_json::from_str::<serde_json::Value>(CONFIG).unwrap().is_object());
    }

    #[test]
    fn two_changefeeds_have_two_gids() {
        assert_ne!(gid("a").low, gid("b").low);
        assert_ne!(gid("a").low, gid("a").high);
    }
}
