//! The control server: stops, starts, restarts and kills processes, lets faults happen, and tells what is and what was.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Method, Response, Uri};
use serde::{Deserialize, Serialize};

use super::scenario::Fault;
use super::serve::response;
use super::shared::Shared;
use super::wire::{JSON, Reply, indented};
use super::world::{ActionError, Component, State as WorldState, Stop, World};

pub(super) fn app(shared: Arc<Shared>) -> Router {
    Router::new().fallback(handle).with_state(shared)
}

async fn handle(State(shared): State<Arc<Shared>>, method: Method, uri: Uri, body: Bytes) -> Response<Body> {
    let reply = match (method.as_str(), uri.path()) {
        ("GET", "/state") => state(&shared),
        ("GET", "/referee") => json(200, &report(&shared)),
        ("POST", path @ ("/stop" | "/start" | "/restart" | "/kill")) => {
            let action = path.trim_start_matches('/').to_owned();
            // An action that has begun is carried out, also when nobody waits for it any more.
            let task = tokio::spawn(async move { act(&shared, &action, &body).await });
            task.await.unwrap_or_else(|_| failed(500, "the action failed".to_owned()))
        }
        ("POST", "/fault") => fault(&shared, &body),
        (_, "/state" | "/referee" | "/stop" | "/start" | "/restart" | "/kill" | "/fault") => {
            failed(405, format!("{method} is not for {}", uri.path()))
        }
        (_, path) => failed(
            404,
            format!("no such path: {path}; there are /state, /referee, /stop, /start, /restart, /kill, /fault"),
        ),
    };
    response(reply)
}

fn json(status: u16, value: &impl Serialize) -> Reply {
    Reply::new(status, JSON, indented(value, 2))
}

#[derive(Serialize)]
struct Failed {
    error: String,
}

fn failed(status: u16, error: String) -> Reply {
    json(status, &Failed { error })
}

#[derive(Serialize)]
struct WithSpeed {
    #[serde(flatten)]
    state: WorldState,
    speed: f64,
}

fn state(shared: &Shared) -> Reply {
    let state = shared.with_world(World::state);
    json(200, &WithSpeed { state, speed: shared.clock.speed() })
}

/// What the referee has to say; the keys are fixed. Everything is in virtual milliseconds but `wall_elapsed_ms`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Every process of `TiCDC` and `TiDB` that was stopped or killed, in order.
    pub stops: Vec<Stop>,
    /// How often a process was started again, by address.
    pub restarts: BTreeMap<String, u64>,
    /// Addresses of captures that run and are stopping.
    pub left_stopping: Vec<String>,
    /// Whether the `TiDB` cluster is in the upgrading state.
    pub tidb_upgrading: bool,
    /// Whether a start changed that state and no finish has changed it back.
    pub finish_owed: bool,
    /// The longest time that a `TiCDC` cluster was without an owner that lives.
    pub max_no_owner_ms: u64,
    /// The largest checkpoint lag of a changefeed that ran.
    pub worst_lag_ms: u64,
    /// From the first request that changes something to the end of the last effect.
    pub elapsed_ms: u64,
    /// The least time that the stops that happened can take one after another.
    pub minimum_ms: u64,
    /// The elapsed time on the wall.
    pub wall_elapsed_ms: u64,
    /// Requests by method and route template.
    pub requests: BTreeMap<String, u64>,
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an elapsed time is a positive number far below 2^53"
)]
pub(super) fn report(shared: &Shared) -> Report {
    let speed = shared.clock.speed();
    shared.with_world(|world| {
        let referee = world.referee();
        let elapsed_ms = referee.elapsed_ms();
        Report {
            stops: referee.stops.clone(),
            restarts: referee.restarts.clone(),
            left_stopping: world.left_stopping(),
            tidb_upgrading: world.tidb().upgrading,
            finish_owed: world.tidb().finish_owed,
            max_no_owner_ms: world.max_no_owner_ms(),
            worst_lag_ms: referee.worst_lag_ms,
            elapsed_ms,
            minimum_ms: referee.minimum_ms,
            wall_elapsed_ms: (elapsed_ms as f64 / speed) as u64,
            requests: referee.requests.clone(),
        }
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Action {
    address: String,
    version: Option<String>,
    forced: Option<bool>,
}

#[derive(Serialize)]
struct Done {
    component: Component,
    address: String,
    /// The process that runs now, if one does: the id of a capture, the DDL id of a TiDB server.
    id: Option<String>,
    version: Option<String>,
    running: bool,
    at_ms: u64,
}

async fn act(shared: &Arc<Shared>, action: &str, body: &[u8]) -> Reply {
    let Action { address, version, forced } = match serde_json::from_slice(body) {
        Ok(action) => action,
        Err(error) => {
            return failed(
                400,
                format!("{error}; expected {{\"address\": \"host:port\", \"version\": \"v8.5.4\", \"forced\": false}}"),
            );
        }
    };
    let (version, forced) = (version.as_deref(), forced.unwrap_or(false));
    let planned = shared.with_world(|world| match action {
        "stop" => world.stop(&address, forced),
        "kill" => world.kill(&address, forced),
        "start" => world.start(&address, version),
        _ => world.restart(&address, version, forced),
    });
    match planned {
        Ok(planned) => shared.reach(planned.done_at_ms).await,
        Err(error) => {
            let status = match error {
                ActionError::Unknown(_) => 404,
                ActionError::Version(_) => 400,
                ActionError::NotRunning(_) | ActionError::AlreadyRunning(_) | ActionError::UnderWay(_) => 409,
            };
            return failed(status, error.to_string());
        }
    }
    let done = shared.with_world(|world| {
        let process = world.find(&address)?;
        let (component, address) = world.component(process);
        let (id, version) = world.instance_of(process);
        Some(Done { component, address, id, version, running: world.is_running(process), at_ms: world.now_ms() })
    });
    match done {
        Some(done) => json(200, &done),
        None => failed(404, format!("no process listens at {address}")),
    }
}

#[derive(Serialize)]
struct Taken {
    at_ms: u64,
}

fn fault(shared: &Shared, body: &[u8]) -> Reply {
    let fault: Fault = match serde_json::from_slice(body) {
        Ok(fault) => fault,
        Err(error) => return failed(400, error.to_string()),
    };
    shared.with_world(|world| {
        if let Some(name) = world.unknown_in(&fault) {
            return failed(404, format!("no process is called `{name}` or listens there"));
        }
        world.add_fault(fault);
        json(200, &Taken { at_ms: world.now_ms() })
    })
}
