//! The routes of a capture of the new architecture, where they differ from classic: no v2 drain, and tables per node.

use crate::sim::cdc::body;
use crate::sim::cdc::route::{Call, FeedName, Version, route as classic};
use crate::sim::wire::Request;

pub(crate) fn route(request: &Request) -> Option<(&'static str, Call)> {
    let parts = request.parts();
    let feed = |id: &str| FeedName { namespace: "default".to_owned(), id: id.to_owned() };
    match (request.method.as_str(), parts.as_slice()) {
        ("GET", ["api", "v2", "changefeeds", id, "tables"]) => {
            Some(("/api/v2/changefeeds/{id}/tables", Call::Tables { feed: feed(id), host: request.host.clone() }))
        }
        ("GET", ["api", "v2", "changefeeds", id, "get_dispatcher_count"]) => Some((
            "/api/v2/changefeeds/{id}/get_dispatcher_count",
            Call::DispatcherCount { feed: feed(id), host: request.host.clone() },
        )),
        (_, ["api", "v2", "captures", _, "drain"]) => None,
        _ => classic(request).map(|(template, call)| (template, as_here(request, call))),
    }
}

/// What the same request means here. `keyspace` and `namespace` are ignored: there is the default one only.
fn as_here(request: &Request, call: Call) -> Call {
    let here = |feed: FeedName| FeedName { namespace: "default".to_owned(), id: feed.id };
    match call {
        Call::Drain(_) => Call::Drain(body::drain(&request.body, body::NEW_DRAIN)),
        // No body is needed (contract section 1.12).
        Call::Resume { version, feed, .. } => Call::Resume { version, feed: here(feed), body: Ok(()) },
        Call::Pause { version, feed } => Call::Pause { version, feed: here(feed) },
        Call::Changefeed { version, feed } => Call::Changefeed { version, feed: here(feed) },
        Call::FeedStatus(feed) => Call::FeedStatus(here(feed)),
        Call::Synced(feed) => Call::Synced(here(feed)),
        Call::Changefeeds { version, state, .. } => {
            let namespace = (version == Version::V2).then(|| "default".to_owned());
            Call::Changefeeds { version, state, namespace }
        }
        other => other,
    }
}
