//! The routes of a capture. An unknown path and a wrong method are the same to it: 404.

use crate::sim::wire::Request;

use super::body;

/// Which of the two interfaces was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

/// Namespace and id of a changefeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FeedName {
    pub(crate) namespace: String,
    pub(crate) id: String,
}

/// What a request asks for.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    RootStatus,
    Config,
    Status,
    Tso(Result<(), String>),
    Health(Version),
    Captures(Version),
    /// With the wanted state and, in v2, the namespace.
    Changefeeds {
        version: Version,
        state: String,
        namespace: Option<String>,
    },
    Changefeed {
        version: Version,
        feed: FeedName,
    },
    FeedStatus(FeedName),
    Synced(FeedName),
    Processors(Version),
    Processor {
        version: Version,
        feed: FeedName,
        capture: String,
    },
    /// With the capture's id, or what is wrong with the body.
    Drain(Result<String, String>),
    Resign(Version),
    Pause {
        version: Version,
        feed: FeedName,
    },
    Resume {
        version: Version,
        feed: FeedName,
        body: Result<(), String>,
    },
    /// Tables per node, with the `Host` header (new architecture).
    Tables {
        feed: FeedName,
        host: String,
    },
    /// With the `Host` header (new architecture).
    DispatcherCount {
        feed: FeedName,
        host: String,
    },
}

impl Call {
    /// Whether the capture that is asked answers by itself.
    pub(super) fn is_local(&self) -> bool {
        matches!(self, Self::RootStatus | Self::Config | Self::Status | Self::Tso(_))
    }
}

pub(super) fn route(request: &Request) -> Option<(&'static str, Call)> {
    let parts = request.parts();
    let method = request.method.as_str();
    match (method, parts.as_slice()) {
        ("GET", ["status"]) => Some(("/status", Call::RootStatus)),
        ("GET", ["config"]) => Some(("/config", Call::Config)),
        (_, ["api", "v1", rest @ ..]) => v1(request, method, rest),
        (_, ["api", "v2", rest @ ..]) => v2(request, method, rest),
        _ => None,
    }
}

fn v1(request: &Request, method: &str, rest: &[&str]) -> Option<(&'static str, Call)> {
    let version = Version::V1;
    // v1 knows the default namespace only.
    let feed = |id: &str| FeedName { namespace: "default".to_owned(), id: id.to_owned() };
    Some(match (method, rest) {
        ("GET", ["status"]) => ("/api/v1/status", Call::Status),
        ("GET", ["health"]) => ("/api/v1/health", Call::Health(version)),
        ("GET", ["captures"]) => ("/api/v1/captures", Call::Captures(version)),
        ("PUT", ["captures", "drain"]) => {
            ("/api/v1/captures/drain", Call::Drain(body::drain(&request.body, body::CLASSIC_DRAIN)))
        }
        ("GET", ["changefeeds"]) => (
            "/api/v1/changefeeds",
            Call::Changefeeds { version, state: request.parameter("state").unwrap_or_default(), namespace: None },
        ),
        ("GET", ["changefeeds", id]) => ("/api/v1/changefeeds/{id}", Call::Changefeed { version, feed: feed(id) }),
        ("POST", ["changefeeds", id, "pause"]) => {
            ("/api/v1/changefeeds/{id}/pause", Call::Pause { version, feed: feed(id) })
        }
        ("POST", ["changefeeds", id, "resume"]) => {
            ("/api/v1/changefeeds/{id}/resume", Call::Resume { version, feed: feed(id), body: Ok(()) })
        }
        ("GET", ["processors"]) => ("/api/v1/processors", Call::Processors(version)),
        ("GET", ["processors", id, capture]) => (
            "/api/v1/processors/{id}/{capture}",
            Call::Processor { version, feed: feed(id), capture: (*capture).to_owned() },
        ),
        ("POST", ["owner", "resign"]) => ("/api/v1/owner/resign", Call::Resign(version)),
        _ => return None,
    })
}

fn v2(request: &Request, method: &str, rest: &[&str]) -> Option<(&'static str, Call)> {
    let version = Version::V2;
    let namespace = request.parameter("namespace").unwrap_or_else(|| "default".to_owned());
    let feed = |id: &str| FeedName { namespace: namespace.clone(), id: id.to_owned() };
    Some(match (method, rest) {
        ("GET", ["status"]) => ("/api/v2/status", Call::Status),
        ("GET", ["health"]) => ("/api/v2/health", Call::Health(version)),
        ("GET", ["captures"]) => ("/api/v2/captures", Call::Captures(version)),
        ("POST", ["captures", id, "drain"]) => ("/api/v2/captures/{id}/drain", Call::Drain(Ok((*id).to_owned()))),
        ("GET", ["changefeeds"]) => (
            "/api/v2/changefeeds",
            Call::Changefeeds {
                version,
                state: request.parameter("state").unwrap_or_default(),
                namespace: Some(namespace),
            },
        ),
        ("GET", ["changefeeds", id]) => ("/api/v2/changefeeds/{id}", Call::Changefeed { version, feed: feed(id) }),
        ("GET", ["changefeeds", id, "status"]) => ("/api/v2/changefeeds/{id}/status", Call::FeedStatus(feed(id))),
        ("GET", ["changefeeds", id, "synced"]) => ("/api/v2/changefeeds/{id}/synced", Call::Synced(feed(id))),
        ("POST", ["changefeeds", id, "pause"]) => {
            ("/api/v2/changefeeds/{id}/pause", Call::Pause { version, feed: feed(id) })
        }
        ("POST", ["changefeeds", id, "resume"]) => (
            "/api/v2/changefeeds/{id}/resume",
            Call::Resume { version, feed: feed(id), body: body::object(&request.body) },
        ),
        ("GET", ["processors"]) => ("/api/v2/processors", Call::Processors(version)),
        ("GET", ["processors", id, capture]) => (
            "/api/v2/processors/{id}/{capture}",
            Call::Processor { version, feed: feed(id), capture: (*capture).to_owned() },
        ),
        ("POST", ["owner", "resign"]) => ("/api/v2/owner/resign", Call::Resign(version)),
        ("POST", ["tso"]) => ("/api/v2/tso", Call::Tso(body::object(&request.body))),
        _ => return None,
    })
}
