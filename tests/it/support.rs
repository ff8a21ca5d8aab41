//! What several tests need: a simulator in this process, the real binary beside it, and the referee's word.

pub(crate) mod recording;
pub(crate) mod replay;
pub(crate) mod steered;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;
use tiroll::sim::scenario::Scenario;
use tiroll::sim::{self, Running};

/// A simulator that runs `speed` times as fast as life.
pub(crate) async fn simulator(scenario: Scenario, speed: f64) -> Running {
    sim::start(scenario, sim::Options { speed, ..sim::Options::default() }).await.expect("the simulator starts")
}

/// A built-in scenario.
pub(crate) fn builtin(name: &str) -> Scenario {
    Scenario::builtin(name).expect("there is such a scenario").expect("a built-in scenario is valid")
}

/// The built-in `small` with other text in places.
pub(crate) fn small_with(changes: &[(&str, &str)]) -> Scenario {
    let mut text = include_str!("../../assets/scenarios/small.yaml").to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "the scenario has no `{from}`");
        text = text.replacen(from, to, 1);
    }
    Scenario::from_yaml("test.yaml", &text).expect("the scenario is valid")
}

/// The binary under test.
pub(crate) fn tiroll(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tiroll"));
    command.args(args).env_remove("NO_COLOR").env("TIROLL_STATE_DIR", fresh_state_dir());
    command
}

/// A directory for journals that no other run has: ports are used again, and what one run owes is not another's.
pub(crate) fn fresh_state_dir() -> PathBuf {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("state-{}-{run}", std::process::id()))
}

/// Runs the binary to its end without blocking the simulator's runtime.
pub(crate) async fn run(args: Vec<String>) -> Output {
    tokio::task::spawn_blocking(move || {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        tiroll(&args).output().expect("the binary runs")
    })
    .await
    .expect("the binary's thread ends")
}

/// `--cdc … --tidb … --pd …` of a simulator.
pub(crate) fn addresses(running: &Running) -> Vec<String> {
    let mut args = vec!["--cdc".to_owned(), running.captures.join(",")];
    for (flag, list) in [("--tidb", &running.tidb), ("--pd", &running.pd)] {
        if !list.is_empty() {
            args.extend([flag.to_owned(), list.join(",")]);
        }
    }
    args
}

/// `upgrade` of a simulator to a version, with more arguments.
pub(crate) fn upgrade(running: &Running, to: &str, more: &[&str]) -> Vec<String> {
    let mut args = vec!["upgrade".to_owned()];
    args.extend(addresses(running));
    args.extend(["--to", to, "--executor"].map(str::to_owned));
    args.push(format!("sim={}", running.control));
    args.extend(more.iter().map(|&arg| arg.to_owned()));
    args
}

/// The JSON lines of a run.
pub(crate) fn lines(output: &Output) -> Vec<Value> {
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("`{line}` is no JSON: {error}")))
        .collect()
}

/// What went wrong, for the message of a failed assertion.
pub(crate) fn story(output: &Output) -> String {
    format!(
        "exit {:?}\n{}\n{}",
        output.status.code(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The referee's word, as other programs read it.
pub(crate) fn referee(running: &Running) -> Value {
    serde_json::to_value(running.referee()).expect("the report is JSON")
}

/// Nothing was stopped that carried tables or owned; every named process was restarted exactly once; nothing is left.
pub(crate) fn assert_clean(running: &Running) {
    let report = referee(running);
    for stop in report["stops"].as_array().expect("a list of stops") {
        assert_eq!(stop["tables"], 0, "{report:#}");
        assert_eq!(stop["was_owner"], false, "{report:#}");
        assert_eq!(stop["forced"], false, "{report:#}");
    }
    let restarts: BTreeMap<String, u64> =
        serde_json::from_value(report["restarts"].clone()).expect("counts by address");
    for address in running.captures.iter().chain(&running.tidb) {
        assert_eq!(restarts.get(address), Some(&1), "{address} in {report:#}");
    }
    assert_eq!(report["left_stopping"].as_array().map(Vec::len), Some(0), "{report:#}");
    assert_eq!(report["tidb_upgrading"], false, "{report:#}");
    assert_eq!(report["finish_owed"], false, "{report:#}");
}
