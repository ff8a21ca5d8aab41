//! Whole rollouts of the simulator by the real binary, judged by the referee and by the lines that scripts read.

use serde_json::Value;

use crate::support::{addresses, assert_clean, builtin, lines, referee, run, simulator, small_with, story, upgrade};

const RUN: [&str; 4] = ["--headless", "--yes", "--format", "json"];
const PUBLIC: [&str; 8] = [
    "rollout_started",
    "phase_started",
    "drain_progress",
    "phase_ended",
    "paused",
    "obligation_incurred",
    "obligation_paid",
    "rollout_ended",
];

fn last(lines: &[Value]) -> &Value {
    lines.last().expect("at least one line")
}

#[tokio::test(flavor = "multi_thread")]
async fn small_is_upgraded_with_a_clean_referee() {
    let running = simulator(builtin("small"), 50.0).await;
    let output = run(upgrade(&running, "v8.5.4", &RUN)).await;
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    assert_clean(&running);
    let lines = lines(&output);
    for line in &lines {
        let name = line["event"].as_str().expect("a name");
        assert!(PUBLIC.contains(&name), "{line}");
        let at = line["at"].as_str().expect("a time");
        assert!(at.len() == 24 && at.ends_with('Z'), "{at}");
        assert!(line["data"].is_object(), "{line}");
    }
    assert_eq!(lines[0]["event"], "rollout_started");
    assert_eq!(last(&lines)["event"], "rollout_ended");
    assert_eq!(last(&lines)["data"]["exit_code"], 0);
    assert_eq!(last(&lines)["data"]["outcome"], "done");
    assert_eq!(last(&lines)["data"]["owed"].as_array().map(Vec::len), Some(0));
    let count = |name: &str| lines.iter().filter(|line| line["event"] == name).count();
    assert_eq!(count("phase_started"), count("phase_ended"));
    assert_eq!(count("obligation_incurred"), count("obligation_paid"));
    assert!(count("drain_progress") > 10);

    // A second run finds nothing to do and asks nothing of the cluster.
    let asked = referee(&running)["requests"]["PUT /api/v1/captures/drain"].clone();
    let again = run(upgrade(&running, "v8.5.4", &RUN)).await;
    assert_eq!(again.status.code(), Some(0), "{}", story(&again));
    assert_eq!(last(&self::lines(&again))["data"]["outcome"], "nothing_to_do");
    assert_eq!(referee(&running)["requests"]["PUT /api/v1/captures/drain"], asked);

    // And nothing is taken back.
    let older = run(upgrade(&running, "v8.5.3", &RUN)).await;
    assert_eq!(older.status.code(), Some(3), "{}", story(&older));
    assert_eq!(self::lines(&older)[0]["data"]["reason"], "target_is_older");
}

#[tokio::test(flavor = "multi_thread")]
async fn leftover_is_refused_by_name_and_no_drain_is_asked_for() {
    let running = simulator(builtin("leftover"), 50.0).await;
    let output = run(upgrade(&running, "v8.5.4", &RUN)).await;
    assert_eq!(output.status.code(), Some(3), "{}", story(&output));
    let report = referee(&running);
    assert_eq!(report["stops"].as_array().map(Vec::len), Some(0));
    let requests = report["requests"].as_object().expect("counts by route");
    assert!(!requests.keys().any(|route| route.contains("drain") || route.contains("resign")), "{report:#}");
    let left = report["left_stopping"][0].as_str().expect("the capture found drained");
    let lines = lines(&output);
    assert_eq!(lines[0]["event"], "paused");
    assert_eq!(lines[0]["data"]["reason"], "leftover");
    assert_eq!(lines[0]["data"]["target"], left);
    assert!(lines[0]["data"]["message"].as_str().is_some_and(|text| text.contains(left)), "{}", lines[0]);
    assert_eq!(last(&lines)["data"]["exit_code"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_third_version_is_refused_before_anything_is_asked() {
    let running =
        simulator(small_with(&[("    captures: 3\n", "    captures: 3\n    versions: { capture-2: v8.5.2 }\n")]), 50.0)
            .await;
    let output = run(upgrade(&running, "v8.5.4", &RUN)).await;
    assert_eq!(output.status.code(), Some(3), "{}", story(&output));
    assert_eq!(lines(&output)[0]["data"]["reason"], "third_version");
    assert_eq!(referee(&running)["elapsed_ms"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_already_at_the_target_are_skipped() {
    let running =
        simulator(small_with(&[("    captures: 3\n", "    captures: 3\n    versions: { capture-2: v8.5.4 }\n")]), 50.0)
            .await;
    let output = run(upgrade(&running, "v8.5.4", &RUN)).await;
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    assert_eq!(referee(&running)["restarts"][&running.captures[1]], Value::Null);
    assert_eq!(referee(&running)["restarts"][&running.captures[2]], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_that_cannot_end_pauses_and_names_the_changefeed() {
    let running =
        simulator(small_with(&[("faults: []", "faults:\n  - do: { stuck_table: { process: capture-2 } }")]), 50.0)
            .await;
    let mut args = RUN.to_vec();
    args.extend(["--set", "drain_stall=1s"]);
    let output = run(upgrade(&running, "v8.5.4", &args)).await;
    assert_eq!(output.status.code(), Some(3), "{}", story(&output));
    let lines = lines(&output);
    let paused = lines.iter().find(|line| line["event"] == "paused").expect("it paused");
    assert_eq!(paused["data"]["reason"], "drain_stalled");
    assert_eq!(paused["data"]["target"], running.captures[1].as_str());
    assert_eq!(paused["data"]["step"], "capture/drain");
    assert!(paused["data"]["choices"].as_array().is_some_and(|choices| choices.len() > 1));
    assert_eq!(last(&lines)["data"]["owed"][0]["target"], running.captures[1].as_str());
    // Ports are the system's choice and so is the order of the nodes: another one may have been done before.
    assert_eq!(referee(&running)["restarts"][&running.captures[1]], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_comes_back_on_the_old_binary_is_not_believed() {
    let fault = "faults:\n  - do: { wrong_version: { process: capture-2, version: v8.5.3 } }";
    let running = simulator(small_with(&[("faults: []", fault)]), 50.0).await;
    let output = run(upgrade(&running, "v8.5.4", &RUN)).await;
    assert_eq!(output.status.code(), Some(3), "{}", story(&output));
    let lines = lines(&output);
    assert!(lines.iter().any(|line| line["event"] == "paused" && line["data"]["reason"] == "wrong_version"));
    assert!(referee(&running)["restarts"].as_object().is_some_and(|all| all.len() <= 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tidb_that_does_not_come_back_pauses_with_the_finish_owed() {
    let running = simulator(small_with(&[("faults: []", "faults:\n  - do: { no_return: tidb-2 }")]), 50.0).await;
    let mut args = RUN.to_vec();
    args.extend(["--set", "verify_deadline=1s"]);
    let output = run(upgrade(&running, "v8.5.4", &args)).await;
    assert_eq!(output.status.code(), Some(3), "{}", story(&output));
    let lines = lines(&output);
    let owed = last(&lines)["data"]["owed"].as_array().expect("a list").clone();
    assert!(owed.iter().any(|owed| owed["kind"] == "finish"), "{owed:?}");
    assert!(owed.iter().any(|owed| owed["kind"] == "start"), "{owed:?}");
    assert_eq!(referee(&running)["finish_owed"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_is_shown_and_nothing_is_changed() {
    let running = simulator(builtin("small"), 50.0).await;
    let output = run(upgrade(&running, "v8.5.4", &["--dry-run", "--format", "json"])).await;
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    let lines = lines(&output);
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["event"], "plan");
    let steps = lines[0]["data"]["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), 8);
    assert_eq!(steps[0]["phases"], serde_json::json!(["drain", "restart", "verify", "settle"]));
    assert_eq!(steps[2]["target"], running.captures[0].as_str(), "the owner goes last");
    assert_eq!(steps[2]["phases"][0], "resign");
    assert_eq!(referee(&running)["elapsed_ms"], 0);
}

/// What moves while one looks: ages, lags and checkpoints; and the speed, which a real cluster has not.
fn at_rest(mut document: Value) -> Value {
    let object = document.as_object_mut().expect("an object");
    object.remove("speed");
    object.remove("v");
    for (list, keys) in [("captures", ["age_ms", "age_ms"]), ("changefeeds", ["lag_ms", "checkpoint_ts"])] {
        for item in document[list].as_array_mut().expect("a list") {
            for key in keys {
                item.as_object_mut().expect("an object").remove(key);
            }
        }
    }
    document
}

#[tokio::test(flavor = "multi_thread")]
async fn status_equals_the_state_of_the_simulator_at_rest() {
    for name in ["small", "leftover", "busy", "new-arch"] {
        let running = simulator(builtin(name), 1.0).await;
        let mut args = vec!["status".to_owned(), "--json".to_owned()];
        args.extend(addresses(&running));
        let output = run(args).await;
        assert_eq!(output.status.code(), Some(0), "{name}: {}", story(&output));
        let state = crate::sim_support::get(&running.control, "/state").await.json();
        assert_eq!(at_rest(lines(&output)[0].clone()), at_rest(state), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn status_reads_what_is_and_says_what_it_could_not_read() {
    let running = simulator(builtin("small"), 50.0).await;
    let mut args = vec!["status".to_owned(), "--json".to_owned()];
    args.extend(addresses(&running));
    let output = run(args.clone()).await;
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    let document = &lines(&output)[0];
    assert_eq!(document["captures"].as_array().map(Vec::len), Some(3));
    assert_eq!(document["tidb"]["state"], "normal");
    assert_eq!(document["pd"]["servers"][0]["version"], "v8.5.4");

    let down = running.captures[2].clone();
    running.world(|world| {
        world.kill(&down, false).expect("it runs");
    });
    let output = run(args).await;
    assert_eq!(output.status.code(), Some(1), "{}", story(&output));
    let document = &lines(&output)[0];
    let unknown = document["unknown"].as_array().expect("a list");
    assert!(unknown.iter().any(|item| item["address"] == down.as_str()), "{unknown:?}");
    let ghost = document["captures"].as_array().and_then(|all| all.iter().find(|c| c["address"] == down.as_str()));
    let ghost = ghost.expect("the list keeps the dead for a while");
    assert_eq!(ghost["version"], Value::Null);
    assert_eq!(ghost["liveness"], Value::Null);
}
