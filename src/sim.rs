//! A cluster in a box: captures of the classic `TiCDC`, `TiDB` servers and PD, each on a loopback port of its own, with
//! answers as recorded from real servers.
//!
//! [`world::World`] is the pure model in virtual time, [`scenario`] says what is in it, and [`start`] serves it over
//! real HTTP together with a control server. The wire types here are this room's own: it shares nothing with the
//! clients, so that it is able to disagree with them.

pub mod control;
pub mod scenario;
pub mod world;

mod cdc;
mod clock;
mod cut;
mod gate;
mod pd;
mod rng;
mod serve;
mod shared;
mod tidb;
mod timefmt;
mod wire;

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use serde::Serialize;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use clock::Clock;
use control::Report;
use gate::Gate;
use scenario::Scenario;
use shared::Shared;
use world::{Addresses, ProcessRef, World};

/// How a scenario is run.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Virtual milliseconds for each real one; any positive number.
    pub speed: f64,
    /// What moves virtual time.
    pub time: Time,
}

impl Default for Options {
    fn default() -> Self {
        Self { speed: 1.0, time: Time::Running }
    }
}

/// What moves virtual time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// It runs with the machine's clock, times the speed.
    Running,
    /// It stands still until [`Running::advance`], or until an action of the control server needs it to move on. Then
    /// answers come at once, and the cluster's clock starts at a fixed date.
    Manual,
}

/// Why a simulator does not start.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The speed is not a positive number.
    #[error("speed {0} is not a positive number")]
    Speed(f64),
    /// No loopback port could be had.
    #[error("cannot listen on the loopback interface: {0}")]
    Port(#[from] io::Error),
}

/// A simulator that runs until it is stopped or dropped.
pub struct Running {
    /// `host:port` of each capture, in the order of the scenario.
    pub captures: Vec<String>,
    /// `host:port` of the status port of each `TiDB` server.
    pub tidb: Vec<String>,
    /// `host:port` of each PD server.
    pub pd: Vec<String>,
    /// URL of the control server, without a slash at its end.
    pub control: String,
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
    /// Ports of SQL: nothing listens there, but they are in the answers, so they must be nobody else's.
    _sql: Vec<Gate>,
}

/// Where a cluster's clock starts when time is moved by hand: the day the recordings were made.
const MANUAL_EPOCH_MS: u64 = 1_796_072_400_000;

/// Serves a scenario: when this returns, every process listens.
pub async fn start(scenario: Scenario, options: Options) -> Result<Running, SimError> {
    if !(options.speed.is_finite() && options.speed > 0.0) {
        return Err(SimError::Speed(options.speed));
    }
    let reserve = |count: usize| (0..count).map(|_| Gate::reserve()).collect::<io::Result<Vec<Gate>>>();
    let captures = reserve(scenario.captures())?;
    let status = reserve(scenario.tidb.servers)?;
    let sql = reserve(scenario.tidb.servers)?;
    let pd = reserve(scenario.pd.versions.len())?;
    let list = |gates: &[Gate]| gates.iter().map(Gate::address).collect::<Vec<String>>();
    let addresses = Addresses {
        captures: list(&captures),
        tidb: list(&sql).into_iter().zip(list(&status)).collect(),
        pd: list(&pd),
    };
    let (clock, epoch_ms) = match options.time {
        Time::Running => (Clock::real(options.speed), clock::unix_ms()),
        Time::Manual => (Clock::manual(), MANUAL_EPOCH_MS),
    };
    let world = World::new(&scenario, &addresses, epoch_ms);
    let mut gates = Vec::new();
    gates.extend(captures.into_iter().enumerate().map(|(i, gate)| (ProcessRef::Capture(i), gate)));
    gates.extend(status.into_iter().enumerate().map(|(i, gate)| (ProcessRef::Tidb(i), gate)));
    gates.extend(pd.into_iter().enumerate().map(|(i, gate)| (ProcessRef::Pd(i), gate)));
    let shared = Arc::new(Shared::new(clock, world, gates));
    shared.settle_ports().await;

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let control = format!("http://{}", listener.local_addr()?);
    let app = control::app(Arc::clone(&shared));
    let ended = shared.ended.clone();
    let serving = tokio::spawn(async move {
        tokio::select! {
            () = ended.cancelled() => {}
            _ = axum::serve(listener, app).into_future() => {}
        }
    });
    let keeping = tokio::spawn(Arc::clone(&shared).keep());
    Ok(Running {
        captures: addresses.captures,
        tidb: addresses.tidb.into_iter().map(|(_, status)| status).collect(),
        pd: addresses.pd,
        control,
        shared,
        tasks: vec![serving, keeping],
        _sql: sql,
    })
}

impl Running {
    /// Looks at the world as it is now, or changes it.
    pub fn world<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        self.shared.with_world(act)
    }

    /// What the referee has to say.
    pub fn referee(&self) -> Report {
        control::report(&self.shared)
    }

    /// Moves manual time on; with running time, waits until that much has passed. When this is done, the ports are
    /// open and closed as they are to be.
    pub async fn advance(&self, ms: u64) {
        self.shared.reach(self.shared.clock.now_ms() + ms).await;
    }

    /// Milliseconds on the wall since the start.
    pub fn wall_ms(&self) -> u64 {
        self.shared.clock.wall_ms()
    }

    /// Ends it; when this is done, no port is open.
    pub async fn stop(mut self) {
        self.shared.ended.cancel();
        for task in std::mem::take(&mut self.tasks) {
            // It only fails if it was aborted, and then it has ended too.
            let _ = task.await;
        }
        self.shared.close_ports().await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.ended.cancel();
    }
}

#[derive(Serialize)]
struct Announcement<'a> {
    captures: &'a [String],
    tidb: &'a [String],
    pd: &'a [String],
    control: &'a str,
}

/// What a stand-alone simulator prints once everything listens: one line of JSON, or text for people.
pub fn announce(running: &Running, json: bool) -> String {
    if json {
        return wire::compact(&Announcement {
            captures: &running.captures,
            tidb: &running.tidb,
            pd: &running.pd,
            control: &running.control,
        });
    }
    let lines = [
        ("captures", running.captures.join(",")),
        ("tidb", running.tidb.join(",")),
        ("pd", running.pd.join(",")),
        ("control", running.control.clone()),
    ];
    let lines: Vec<String> = lines.iter().map(|(name, value)| format!("  {name:<9}{value}\n")).collect();
    format!("simulated cluster, every address is on this machine:\n{}", lines.concat())
}
