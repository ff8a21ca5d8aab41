//! Whole rollouts of the new architecture by the real binary and by the driver, judged by the referee.

use std::sync::Arc;

use serde_json::{Value, json};
use tiroll::cluster::Liveness;
use tiroll::rollout::command::{Command, Who};
use tiroll::rollout::view::{Mode, Outcome, View};
use tiroll::sim::scenario::{Effect, Fault, Scenario, Trigger};

use crate::support::steered::{reason, rollout, until};
use crate::support::{assert_clean, builtin, lines, referee, run, simulator, story, upgrade};

const RUN: [&str; 4] = ["--headless", "--yes", "--format", "json"];

/// The built-in scenario with other text in places.
fn new_arch_with(changes: &[(&str, &str)]) -> Scenario {
    let mut text = include_str!("../../assets/scenarios/new-arch.yaml").to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "the scenario has no `{from}`");
        text = text.replacen(from, to, 1);
    }
    Scenario::from_yaml("test.yaml", &text).expect("the scenario is valid")
}

fn paused(lines: &[Value]) -> &Value {
    lines.iter().find(|line| line["event"] == "paused").expect("it paused")
}

#[tokio::test(flavor = "multi_thread")]
async fn new_arch_is_upgraded_with_a_clean_referee() {
    let running = simulator(builtin("new-arch"), 50.0).await;
    let output = run(upgrade(&running, "v8.5.4", &RUN)).await;
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    assert_clean(&running);
    let lines = lines(&output);
    let drains: Vec<_> = lines.iter().filter(|line| line["event"] == "drain_progress").collect();
    let told = |line: &&&Value| line["data"]["work"].is_u64() && line["data"]["count"].is_u64();
    assert!(drains.iter().filter(told).count() > 10, "remaining work beside the tables");
    // The number that the call gives is at least 1 while no table is left, and is no count of tables.
    assert!(drains.iter().any(|line| line["data"]["count"] == 0 && line["data"]["work"].as_u64() > Some(0)));
    let owner_last = lines.iter().rfind(|line| line["event"] == "phase_started" && line["data"]["phase"] == "resign");
    assert_eq!(owner_last.expect("a resign")["data"]["target"], running.captures[0].as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn mixed_is_refused_with_the_way_to_do_it() {
    let running = simulator(builtin("mixed"), 50.0).await;
    let output = run(upgrade(&running, "v8.5.4", &RUN)).await;
    assert_eq!(output.status.code(), Some(3), "{}", story(&output));
    let lines = lines(&output);
    assert_eq!(paused(&lines)["data"]["reason"], "mixed_architectures");
    assert_eq!(paused(&lines)["data"]["target"], running.captures[3].as_str());
    let message = paused(&lines)["data"]["message"].as_str().expect("a message");
    assert!(message.contains("pause every changefeed") && message.contains("resume"), "{message}");
    let requests = referee(&running)["requests"].clone();
    let routes = requests.as_object().expect("counts by route");
    assert!(!routes.keys().any(|route| route.contains("drain") || route.contains("resign")), "{requests:#}");
}

/// A drain that is answered and does nothing: both kinds of early builds, and the recorded false zero.
#[tokio::test(flavor = "multi_thread")]
async fn a_zero_that_is_no_proof_restarts_nothing() {
    let captures = "    captures: 3\n";
    let cases = [
        ("drain_does_nothing", (captures, "    captures: 3\n    legacy: [capture-3]\n")),
        ("drain_does_nothing", (captures, "    captures: 3\n    fake_drain: true\n")),
        (
            "false_zero",
            (
                "faults: []",
                "faults:\n  - do: { false_zero: { process: capture-2 } }\n  - do: { false_zero: { process: capture-3 } }",
            ),
        ),
    ];
    for (reason, change) in cases {
        let running = simulator(new_arch_with(&[change]), 50.0).await;
        let mut args = RUN.to_vec();
        args.extend(["--set", "drain_stall=1s"]);
        let output = run(upgrade(&running, "v8.5.4", &args)).await;
        assert_eq!(output.status.code(), Some(3), "{reason}: {}", story(&output));
        let lines = lines(&output);
        assert_eq!(paused(&lines)["data"]["reason"], reason, "{}", paused(&lines));
        let message = paused(&lines)["data"]["message"].as_str().expect("a message");
        assert!(message.contains("orders (18)"), "{message}");
        let report = referee(&running);
        assert_eq!(report["stops"], json!([]), "{reason}");
    }
}

/// The coordinator is killed when half of a drain is done, and comes back by itself only after a guard has paused.
#[tokio::test(flavor = "multi_thread")]
async fn a_drain_lost_with_its_coordinator_goes_on_while_a_guard_holds() {
    let running = simulator(builtin("new-arch"), 20.0).await;
    // Guards are wall time: 9 s without a coordinator are less than half a second here.
    let started = rollout(&running, &["no_owner_guard=200ms", "stale_after=200ms"]).await;
    let who = Who::new("test");
    let is_half = |view: &Arc<View>| view.drain.as_ref().is_some_and(|d| d.count.is_some_and(|n| n > 5 && n < 25));
    until(&started, "half of a drain", is_half).await;
    // A fault is nobody's order, so it is none of the rollout's stops.
    running.world(|world| world.add_fault(Fault { when: Trigger::Now, effect: Effect::Kill("capture-1".to_owned()) }));
    let asked = until(&started, "the guard", |view| reason(view) == Some("no_owner")).await;
    let target = asked.drain.as_ref().expect("a drain").clone();
    assert!(!target.is_done && target.count.is_some_and(|count| count > 0), "{target:?}");
    let is_stopping = |view: &Arc<View>| {
        let liveness = view.capture(&target.capture).and_then(|capture| capture.liveness.meaning);
        liveness == Some(Liveness::Stopping) && view.drain.as_ref().is_some_and(|drain| drain.count == Some(0))
    };
    let drained = until(&started, "the end of the drain", is_stopping).await;
    assert_eq!(reason(&drained), Some("no_owner"), "no person has answered");
    assert_eq!(referee(&running)["stops"], json!([]), "nothing was stopped meanwhile");
    // The dead one is brought back; then a person lets it go on.
    running.world(|world| world.start("capture-1", None).expect("it is down"));
    until(&started, "its return", |view| view.unread.is_empty()).await;
    assert_eq!(started.handle.command(&who, Command::Continue).await, Ok(()));
    let ended = until(&started, "the end", |view| matches!(view.mode, Mode::Ended(_)) || view.question.is_some()).await;
    let Mode::Ended(ending) = &ended.mode else { panic!("{:?}", ended.question) };
    assert_eq!(ending.outcome, Outcome::Done, "{}", ending.reason);
    let report = referee(&running);
    for stop in report["stops"].as_array().expect("stops") {
        assert_eq!((&stop["tables"], &stop["was_owner"]), (&json!(0), &json!(false)), "{report:#}");
    }
    assert_eq!(report["left_stopping"], json!([]));
}

/// A person paused, the coordinator resigned: nothing moves until it is asked for by name.
#[tokio::test(flavor = "multi_thread")]
async fn in_a_pause_a_lost_drain_is_asked_for_on_order_only() {
    let running = simulator(builtin("new-arch"), 20.0).await;
    let started = rollout(&running, &[]).await;
    let who = Who::new("test");
    let is_half = |view: &Arc<View>| view.drain.as_ref().is_some_and(|d| d.count.is_some_and(|n| n > 5 && n < 30));
    until(&started, "half of a drain", is_half).await;
    assert_eq!(started.handle.command(&who, Command::Pause).await, Ok(()));
    assert!(started.handle.command(&who, Command::AskAgain).await.is_err());
    running.world(|world| world.resign(0));
    let is_lost = |view: &Arc<View>| view.drain.as_ref().is_some_and(|d| d.waiting_for.contains("asked again"));
    until(&started, "the word on it", is_lost).await;
    let asked = || referee(&running)["requests"]["PUT /api/v1/captures/drain"].as_u64();
    let before = asked();
    // Orders are only taken once the new coordinator has stood a while.
    assert_eq!(started.handle.command(&who, Command::AskAgain).await, Ok(()));
    let is_empty = |view: &Arc<View>| view.drain.as_ref().is_some_and(|drain| drain.count == Some(0));
    let view = until(&started, "the last table", is_empty).await;
    assert_eq!(view.mode, Mode::Paused);
    assert_eq!(asked(), before.map(|before| before + 1));
    assert_eq!(started.handle.command(&who, Command::Continue).await, Ok(()));
    until(&started, "the end", |view| matches!(view.mode, Mode::Ended(_))).await;
    assert_clean(&running);
}
