//! The HTTP face of a capture (contract section 1; recordings cdc-classic). What is different in the new architecture is
//! in `new_arch`.
//!
//! A request is received, answered at once if it needs no owner or there is none, and otherwise answered after the time
//! that the owner's rounds take, with the world as it is then.

use super::wire::{Reply, Request, Step};
use super::world::{OwnerView, World};

mod answer;
mod body;
mod errors;
mod feeds;
mod new_arch;
mod route;

pub(crate) use answer::answer;
pub(crate) use route::Call;

use route::Version;

pub(crate) use errors::error;

/// The template of a request's route, for counting.
pub(crate) fn template(request: &Request) -> &'static str {
    let known = route::route(request).or_else(|| new_arch::route::route(request));
    known.map_or("(no route)", |(template, _)| template)
}

/// Takes a request in.
pub(crate) fn receive(world: &mut World, capture: usize, request: &Request) -> Step<Call> {
    if world.runs_new_architecture(capture) {
        return new_arch::receive(world, capture, request);
    }
    match route::route(request) {
        Some((_, call)) => receive_call(world, capture, request, call),
        None => Step::Done(not_found()),
    }
}

fn not_found() -> Reply {
    Reply::new(404, "text/plain", "404 page not found")
}

fn receive_call(world: &mut World, capture: usize, request: &Request, call: Call) -> Step<Call> {
    let ready = world.instance_at(capture).is_some_and(|instance| instance.ready);
    if !ready && !matches!(call, Call::RootStatus | Call::Config) {
        return Step::Done(errors::not_ready());
    }
    if call.is_local() {
        let ms = world.jitter(1, 2);
        return Step::Wait(ms, call);
    }
    if let Some(refused) = no_owner(world, capture, request) {
        return Step::Done(refused);
    }
    if let Call::Drain(Err(message)) = &call {
        return Step::Done(errors::bad_parameter(message));
    }
    let ms = cost(world, capture, &call);
    Step::Wait(ms, call)
}

/// What a call that only an owner answers is answered with when there is none (contract section 1.0).
fn no_owner(world: &World, capture: usize, request: &Request) -> Option<Reply> {
    match world.owner_view(capture) {
        OwnerView::Serving(_) => None,
        OwnerView::NotFound => Some(error(500, "CDC:ErrOwnerNotFound", "owner not found")),
        OwnerView::NoLeader => Some(errors::plain(500, "election: no leader")),
        OwnerView::Dead(address) => {
            let verb = match request.method.as_str() {
                "GET" => "Get",
                "PUT" => "Put",
                "POST" => "Post",
                other => other,
            };
            let uri = request.uri();
            Some(errors::plain(
                500,
                &format!("{verb} \"http://{address}{uri}\": dial tcp {address}: connect: connection refused"),
            ))
        }
        OwnerView::Looping if world.runs_new_architecture(capture) => {
            Some(errors::plain(500, "TiCDC cluster is unavailable, please try again later"))
        }
        OwnerView::Looping => Some(error(
            500,
            "ErrRequestForwardErr",
            "request forward error, an request can only forward to owner one time",
        )),
    }
}

/// How long the owner takes: about 48 ms for each of its rounds that a call needs (recorded).
fn cost(world: &mut World, capture: usize, call: &Call) -> u64 {
    let OwnerView::Serving(cluster) = world.owner_view(capture) else {
        return 1;
    };
    let rounds = match call {
        Call::Resign(_) => return world.jitter(1, 3),
        Call::Health(_)
        | Call::Captures(_)
        | Call::Processors(_)
        | Call::Synced(_)
        | Call::Resume { body: Err(_), .. } => 1,
        Call::Changefeeds { .. } | Call::FeedStatus(_) => 2,
        Call::Changefeed { feed, .. } | Call::Pause { feed, .. } | Call::Resume { feed, .. } => {
            if world.feed_index(cluster, &feed.namespace, &feed.id).is_some() { 3 } else { 1 }
        }
        Call::Processor { version, feed, capture } => match world.feed_index(cluster, &feed.namespace, &feed.id) {
            None => 1,
            Some(index) if *version == Version::V2 && !world.feed(index).state.runs() => 1,
            Some(_) if !world.knows_capture(cluster, capture) => 2,
            Some(_) => 3,
        },
        Call::Drain(id) => match id {
            Ok(id) if world.drain_refusal(cluster, id).is_none() => 2,
            _ => 1,
        },
        Call::RootStatus
        | Call::Status
        | Call::Config
        | Call::Tso(_)
        | Call::Tables { .. }
        | Call::DispatcherCount { .. } => 0,
    };
    (0..rounds).map(|_| world.jitter(46, 50)).sum()
}
