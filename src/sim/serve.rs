//! From HTTP to the world and back, for the simulated processes.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri, header};

use super::cdc;
use super::cut::Connection;
use super::pd;
use super::shared::Shared;
use super::tidb;
use super::wire::{JSON_UTF8, Reply, Request, Step, TEXT_UTF8};
use super::world::{Altered, ProcessRef};

/// Longer bodies go in chunks and without a length, as Go's server does (recorded).
const CHUNKED_FROM: usize = 2_048;

#[derive(Clone)]
struct Process {
    shared: Arc<Shared>,
    process: ProcessRef,
}

/// What answers at a process's port.
pub(super) fn app(shared: Arc<Shared>, process: ProcessRef) -> Router {
    Router::new().fallback(handle).with_state(Process { shared, process })
}

async fn handle(
    State(it): State<Process>,
    ConnectInfo(connection): ConnectInfo<Connection>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let request = Request {
        method: method.as_str().to_owned(),
        path: uri.path().to_owned(),
        query: uri.query().unwrap_or_default().to_owned(),
        host: headers.get(header::HOST).and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned(),
        body: body.to_vec(),
    };
    let reply = reply(&it, &request).await;
    if reply.drop {
        connection.0.cancel();
        // The connection ends, and this with it.
        std::future::pending::<()>().await;
    }
    response(reply)
}

/// What comes of a request that has arrived, whichever kind of process it came to.
enum Arrived {
    Done(Reply),
    Capture(u64, cdc::Call),
    Tidb(u64, tidb::Call),
}

async fn reply(it: &Process, request: &Request) -> Reply {
    let template = match it.process {
        ProcessRef::Capture(_) => cdc::template(request),
        ProcessRef::Tidb(_) => tidb::template(request),
        ProcessRef::Pd(_) => pd::template(request),
    };
    let altered = it.shared.with_world(|world| {
        world.count_request(&format!("{} {template}", request.method));
        world.alter(it.process, &request.method, template)
    });
    if let Some(Altered { answer }) = altered {
        if let Some(ms) = answer.slow_ms {
            it.shared.pass(ms).await;
        }
        if answer.acts {
            let truth = carry_out(it, request).await;
            return changed(&answer).unwrap_or(truth);
        }
        if let Some(reply) = changed(&answer) {
            return reply;
        }
    }
    carry_out(it, request).await
}

/// What a fault makes of an answer, if it does more than delay it.
fn changed(answer: &super::scenario::Answer) -> Option<Reply> {
    if answer.drop {
        return Some(Reply::dropped());
    }
    (answer.status.is_some() || answer.code.is_some() || answer.message.is_some()).then(|| instead(answer))
}

/// What the process truly does and answers.
async fn carry_out(it: &Process, request: &Request) -> Reply {
    let arrived = it.shared.with_world(|world| match it.process {
        ProcessRef::Capture(slot) => match cdc::receive(world, slot, request) {
            Step::Done(reply) => Arrived::Done(reply),
            Step::Wait(ms, call) => Arrived::Capture(ms, call),
        },
        ProcessRef::Tidb(server) => match tidb::receive(world, server, request) {
            Step::Done(reply) => Arrived::Done(reply),
            Step::Wait(ms, call) => Arrived::Tidb(ms, call),
        },
        ProcessRef::Pd(server) => Arrived::Done(pd::receive(world, server, request)),
    });
    match (arrived, it.process) {
        (Arrived::Capture(ms, call), ProcessRef::Capture(slot)) => {
            it.shared.pass(ms).await;
            it.shared.with_world(|world| cdc::answer(world, slot, &call))
        }
        (Arrived::Tidb(ms, call), _) => {
            it.shared.pass(ms).await;
            tidb::answer(&call)
        }
        (Arrived::Done(reply), _) => reply,
        (Arrived::Capture(..), _) => Reply::empty(500),
    }
}

/// The answer that a fault gives.
fn instead(answer: &super::scenario::Answer) -> Reply {
    let status = answer.status.unwrap_or(500);
    let message = answer.message.as_deref().unwrap_or_default();
    let mut reply = match &answer.code {
        Some(code) => Reply { content_type: Some(JSON_UTF8.to_owned()), ..cdc::error(status, code, message) },
        None if message.is_empty() => Reply::empty(status),
        None => Reply::new(status, TEXT_UTF8, message),
    };
    if let Some(content_type) = &answer.content_type {
        reply.content_type = Some(content_type.clone());
    }
    reply
}

/// Puts an answer on the wire.
pub(super) fn response(reply: Reply) -> Response<Body> {
    let body = if reply.body.len() > CHUNKED_FROM {
        let whole = futures::stream::once(async move { Ok::<_, std::convert::Infallible>(Bytes::from(reply.body)) });
        Body::from_stream(whole)
    } else {
        Body::from(reply.body)
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Some(content_type) = reply.content_type.and_then(|it| HeaderValue::try_from(it).ok()) {
        response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    }
    if reply.nosniff {
        let nosniff = HeaderValue::from_static("nosniff");
        response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    }
    response
}
