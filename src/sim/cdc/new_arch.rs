//! The HTTP face of a capture of the new architecture (contract section 1.0b; recordings cdc-new).
//!
//! v1 is a thin adapter over v2: its lists are bare, its successes that change something are 202, and its elements are
//! those of v2. Nothing but statuses and errors is indented, and there is no phase in which a capture is not ready.

use serde::Serialize;

use crate::sim::wire::{JSON_UTF8, Reply, Request, Step};
use crate::sim::world::{Change, DrainAnswer, OwnerView, World};

use super::answer::{Count, List, captures, config, status, tso_now, with_feed};
use super::errors::{self, error, no_capture};
use super::route::{Call, Version};

mod feeds;
pub(super) mod route;
mod tables;

/// Takes a request in at a capture of the new architecture. One that waits beside classic ones passes what is the
/// owner's to the classic owner (recorded/README 21).
pub(super) fn receive(world: &mut World, capture: usize, request: &Request) -> Step<Call> {
    let Some((_, call)) = route::route(request) else {
        return Step::Done(super::not_found());
    };
    if is_local(&call) {
        let ms = world.jitter(1, 5);
        return Step::Wait(ms, call);
    }
    if let Some(refused) = super::no_owner(world, capture, request) {
        return Step::Done(refused);
    }
    if let Call::Drain(Err(message)) = &call {
        return Step::Done(errors::bad_parameter(message));
    }
    let ms = cost(world, capture, &call);
    Step::Wait(ms, call)
}

/// Whether the capture that is asked answers by itself, or passes the question to a maintainer by itself.
fn is_local(call: &Call) -> bool {
    call.is_local()
        || matches!(
            call,
            Call::Processors(Version::V2)
                | Call::Processor { version: Version::V2, .. }
                | Call::Tables { .. }
                | Call::DispatcherCount { .. }
        )
}

/// How long it takes: a few milliseconds, but for `synced` and a pause (recordings cdc-new 32, cdc-new-more 01).
fn cost(world: &mut World, capture: usize, call: &Call) -> u64 {
    match (world.owner_view(capture), call) {
        (OwnerView::Serving(cluster), _) if !world.coordinated(cluster) => super::cost(world, capture, call),
        (_, Call::Synced(_)) => world.jitter(201, 204),
        (_, Call::Pause { .. }) => world.jitter(1_000, 1_005),
        (_, Call::Resume { .. }) => world.jitter(8, 14),
        _ => world.jitter(1, 5),
    }
}

/// What a capture of the new architecture answers by itself. `None` for everything else.
pub(super) fn local(world: &mut World, capture: usize, call: &Call) -> Option<Reply> {
    match call {
        Call::RootStatus | Call::Status => Some(status(world, capture)),
        Call::Config => Some(config(world, capture)),
        Call::Tso(body) => Some(tso_now(world, body)),
        Call::Processors(Version::V2) => Some(processors(Version::V2)),
        Call::Processor { version: Version::V2, .. } => Some(processor()),
        Call::Tables { feed, host } => Some(tables::tables(world, feed, host)),
        Call::DispatcherCount { feed, host } => Some(tables::count(world, feed, host)),
        _ => None,
    }
}

/// What a coordinator answers.
pub(super) fn answer(world: &mut World, cluster: usize, call: &Call) -> Reply {
    match call {
        Call::Health(_) => empty_object(200),
        Call::Captures(version) => list(*version, captures(world, cluster)),
        Call::Processors(version) => processors(*version),
        Call::Processor { .. } => processor(),
        Call::Drain(id) => drain(world, cluster, id.as_deref().unwrap_or_default()),
        Call::Resign(version) => {
            world.resign(cluster);
            accepted(*version)
        }
        _ if world.is_bootstrapping(cluster) => {
            errors::plain(500, "coordinator is not fully initialized, wait a moment")
        }
        Call::Changefeeds { version, state, .. } => feeds::changefeeds(world, cluster, *version, state),
        Call::Changefeed { feed, .. } => with_feed(world, cluster, feed, feeds::detail),
        Call::FeedStatus(feed) => with_feed(world, cluster, feed, feeds::status),
        Call::Synced(feed) => with_feed(world, cluster, feed, feeds::synced),
        Call::Pause { version, feed } => with_feed(world, cluster, feed, |world, index| {
            world.change_feed(index, Change::Pause);
            accepted(*version)
        }),
        Call::Resume { version, feed, .. } => with_feed(world, cluster, feed, |world, index| {
            if let Some(refused) = feeds::refusal_to_resume(world, index) {
                return refused;
            }
            world.change_feed(index, Change::Resume);
            accepted(*version)
        }),
        Call::RootStatus
        | Call::Config
        | Call::Status
        | Call::Tso(_)
        | Call::Tables { .. }
        | Call::DispatcherCount { .. } => Reply::empty(500),
    }
}

fn empty_object(status: u16) -> Reply {
    Reply::new(status, JSON_UTF8, "{}")
}

fn accepted(version: Version) -> Reply {
    match version {
        Version::V1 => empty_object(202),
        Version::V2 => empty_object(200),
    }
}

fn list<T: Serialize>(version: Version, items: Vec<T>) -> Reply {
    match version {
        Version::V1 => Reply::compact(200, &items),
        Version::V2 => Reply::compact(200, &List { total: items.len(), items }),
    }
}

/// There are no processors any more.
fn processors(version: Version) -> Reply {
    list::<()>(version, Vec::new())
}

/// The same for every changefeed and capture, also for ones that do not exist.
fn processor() -> Reply {
    Reply::new(200, JSON_UTF8, "{\"table_ids\":null}")
}

fn drain(world: &mut World, cluster: usize, id: &str) -> Reply {
    match world.drain(cluster, id) {
        None => error(500, "CDC:ErrNotOwner", "this capture is not a owner"),
        // There is no check for a second capture: the only one is the owner (recorded/README 19).
        Some(DrainAnswer::IsOwner | DrainAnswer::OnlyOne) => {
            error(400, "CDC:ErrSchedulerRequestFailed", "scheduler request failed, cannot drain the owner")
        }
        Some(DrainAnswer::Unknown) => no_capture(id),
        Some(DrainAnswer::Count(current_table_count)) => Reply::compact(202, &Count { current_table_count }),
    }
}
