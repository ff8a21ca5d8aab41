//! A rollout in this process, steered through its handle as the screen does.

use std::sync::Arc;
use std::time::Duration;

use tiroll::api::{Clients, Deadlines, Endpoints, Options};
use tiroll::cluster::{Address, Clock, Version};
use tiroll::driver::clock::SystemClock;
use tiroll::driver::live::Live;
use tiroll::driver::{Setup, Started};
use tiroll::exec::sim::SimExecutor;
use tiroll::rollout::Request;
use tiroll::rollout::policy::Policy;
use tiroll::rollout::view::View;
use tiroll::sim::Running;

/// The default numbers, with some set in milliseconds.
fn policy(set: &[&str]) -> Policy {
    let mut policy = Policy::default();
    for text in set {
        let parse = |value: &str| value.trim_end_matches("ms").parse().ok().map(Duration::from_millis);
        policy.set(text, parse).expect("a number of the policy");
    }
    policy
}

/// A rollout to v8.5.4 that goes on by itself.
pub(crate) async fn rollout(running: &Running, set: &[&str]) -> Started {
    let list = |all: &[String]| all.iter().map(|at| Address::parse(at).expect("an address")).collect();
    let endpoints = Endpoints { cdc: list(&running.captures), tidb: list(&running.tidb), pd: list(&running.pd) };
    let (has_tidb, has_pd) = (!endpoints.tidb.is_empty(), !endpoints.pd.is_empty());
    let executor = SimExecutor::new(&running.control).expect("a control server");
    let speed = executor.speed().await.expect("its speed");
    let policy = policy(set).at_speed(speed);
    let deadlines = Deadlines { upgrade: policy.call_upgrade, owner: policy.call_drain, other: policy.call_other };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let clients = Clients::new(endpoints, &Options { deadlines, ..Options::default() }).expect("clients");
    tiroll::driver::start(Setup {
        request: Request {
            target: Version::parse("v8.5.4").expect("a version"),
            is_watch: false,
            has_tidb,
            has_pd,
            executor: "sim",
            hand_over_passes: true,
            is_simulated: true,
            speed,
            is_auto: true,
        },
        policy,
        servers: Arc::new(Live::new(clients, Arc::clone(&clock))),
        executor: Some(Arc::new(executor)),
        clock,
        keeper: None,
        resumed: None,
        lingers: false,
    })
}

/// Waits until a view is so.
pub(crate) async fn until(started: &Started, what: &str, is_so: impl FnMut(&Arc<View>) -> bool) -> Arc<View> {
    let mut view = started.handle.view();
    let found = tokio::time::timeout(Duration::from_mins(1), view.wait_for(is_so)).await;
    let Ok(Ok(found)) = found else {
        let view = started.handle.view().borrow().clone();
        panic!("{what} never came: {:?} {:?} {:?}", view.mode, view.question, view.drain);
    };
    Arc::clone(&found)
}

/// The reason of the question that is open.
pub(crate) fn reason(view: &View) -> Option<&str> {
    view.question.as_ref().map(|question| &*question.reason)
}
