//! From addresses and options to a running driver.

use std::sync::Arc;

use color_eyre::eyre::{Result, WrapErr};

use super::args::{Cluster, ExecutorChoice, parse_duration};
use crate::api::http::{Deadlines, Options};
use crate::api::status::StatusDocument;
use crate::api::{Clients, Endpoints, SweepAsk};
use crate::cluster::{Address, Clock, Version};
use crate::driver::clock::SystemClock;
use crate::driver::keeper::Keeper;
use crate::driver::live::Live;
use crate::driver::{Setup, Started};
use crate::exec::Executor;
use crate::exec::manual::Manual;
use crate::exec::sim::SimExecutor;
use crate::rollout::Request;
use crate::rollout::durable::Durable;
use crate::rollout::policy::{Policy, PolicyError};
use crate::sim;

/// The addresses of a simulator in this process. They are only ever spoken to over HTTP.
pub(super) fn endpoints_of_sim(running: &sim::Running) -> Result<Endpoints> {
    let parse = |list: &[String]| list.iter().map(|text| Ok(Address::parse(text)?)).collect::<Result<Vec<_>>>();
    Ok(Endpoints { cdc: parse(&running.captures)?, tidb: parse(&running.tidb)?, pd: parse(&running.pd)? })
}

impl From<&Cluster> for Endpoints {
    fn from(cluster: &Cluster) -> Self {
        Self { cdc: cluster.cdc.clone(), tidb: cluster.tidb.clone(), pd: cluster.pd.clone() }
    }
}

/// What shall be started.
pub(super) struct Plan {
    /// The cluster.
    pub(super) target: Endpoints,
    /// The version to reach; `None` only watches.
    pub(super) to: Option<Version>,
    /// How processes are restarted.
    pub(super) executor: Option<ExecutorChoice>,
    /// Changed numbers.
    pub(super) set: Vec<String>,
    /// Whether phase follows phase by itself.
    pub(super) is_auto: bool,
    /// Whether the cluster is read on after the end, for a screen.
    pub(super) lingers: bool,
    /// The speed of a simulator in this process; a remote one is asked.
    pub(super) speed: Option<f64>,
}

/// What the driver is given of the journal.
#[derive(Default)]
pub(super) struct OnRecord {
    /// Where it is kept.
    pub(super) keeper: Option<Box<dyn Keeper>>,
    /// What was kept before, where it goes on.
    pub(super) resumed: Option<Durable>,
}

impl Plan {
    /// The numbers, with what was set.
    pub(super) fn policy(&self) -> Result<Policy, PolicyError> {
        let mut policy = Policy::default();
        for text in &self.set {
            policy.set(text, |value| parse_duration(value).ok())?;
        }
        Ok(policy)
    }

    /// Starts the driver.
    pub(super) async fn start(&self, clock: SystemClock, record: OnRecord) -> Result<Started> {
        let mut policy = self.policy()?;
        let mut speed = 1.0;
        let executor: Option<Arc<dyn Executor>> = match &self.executor {
            None => None,
            Some(ExecutorChoice::Manual) => Some(Arc::new(Manual)),
            Some(ExecutorChoice::Sim(control)) => {
                let executor = SimExecutor::new(control)?;
                speed = match self.speed {
                    Some(speed) => speed,
                    None => executor.speed().await.wrap_err_with(|| {
                        format!("the simulator's control server at {control} did not answer; is `tiroll sim` running?")
                    })?,
                };
                Some(Arc::new(executor))
            }
        };
        let is_simulated = matches!(self.executor, Some(ExecutorChoice::Sim(_)));
        if is_simulated {
            policy = policy.at_speed(speed);
        }
        let clients = Clients::new(self.target.clone(), &options(&policy))?;
        let clock: Arc<dyn Clock> = Arc::new(clock);
        let (has_tidb, has_pd) = (!self.target.tidb.is_empty(), !self.target.pd.is_empty());
        let request = Request {
            target: self.to.clone().unwrap_or_else(Version::zero),
            is_watch: self.to.is_none(),
            has_tidb,
            has_pd,
            executor: executor.as_ref().map_or("", |executor| executor.name()),
            hand_over_passes: is_simulated,
            is_simulated,
            speed,
            is_auto: self.is_auto,
        };
        let servers = Arc::new(Live::new(clients, Arc::clone(&clock)));
        let lingers = self.lingers;
        let OnRecord { keeper, resumed } = record;
        Ok(crate::driver::start(Setup { request, policy, servers, executor, clock, keeper, resumed, lingers }))
    }
}

fn options(policy: &Policy) -> Options {
    let deadlines = Deadlines { upgrade: policy.call_upgrade, owner: policy.call_drain, other: policy.call_other };
    Options { deadlines, ..Options::default() }
}

/// Reads a cluster once.
pub(super) async fn read_status(cluster: &Cluster, clock: &SystemClock) -> Result<StatusDocument> {
    let target = Endpoints::from(cluster);
    let clients = Clients::new(target.clone(), &options(&Policy::default()))?;
    let ask = SweepAsk { target: None, placement: true };
    let cdc = async { clients.sweep_cdc(&ask, clock).await };
    let tidb = async { if target.tidb.is_empty() { None } else { Some(clients.sweep_tidb(clock).await) } };
    let pd = async { if target.pd.is_empty() { None } else { Some(clients.sweep_pd(clock).await) } };
    let (cdc, tidb, pd) = tokio::join!(cdc, tidb, pd);
    Ok(StatusDocument::new(&cdc, tidb.as_ref(), pd.as_ref(), clock.now()))
}
