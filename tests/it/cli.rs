//! Exit codes and messages of the binary where no cluster is needed.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::{addresses, builtin, referee, simulator, story, tiroll, upgrade};

fn said(args: &[&str]) -> (Option<i32>, String) {
    let output = tiroll(args).output().expect("the binary runs");
    (output.status.code(), story(&output))
}

const UPGRADE: [&str; 7] = ["upgrade", "--cdc", "127.0.0.1:1", "--to", "v8.5.4", "--executor", "manual"];

fn upgrade_with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    UPGRADE.iter().copied().chain(more.iter().copied()).collect()
}

#[test]
fn usage_errors_exit_2_and_say_what_would_do() {
    let cases: &[(Vec<&str>, &str)] = &[
        (vec!["nonsense"], "unrecognized subcommand"),
        (vec!["status"], "--cdc"),
        (vec!["status", "--cdc", "10.0.0.1"], "the port is missing"),
        (upgrade_with(&["--headless"]), "--yes"),
        (upgrade_with(&["--headless", "--yes", "--set", "drain_dedline=1m"]), "drain_deadline"),
        (upgrade_with(&["--headless", "--yes", "--set", "drain_deadline=soon"]), "expected a duration"),
        (vec!["upgrade", "--cdc", "h:1", "--to", "latest", "--executor", "manual"], "v8.5.4"),
        (vec!["upgrade", "--cdc", "h:1", "--to", "v8.5.4", "--executor", "magic"], "sim=URL"),
        (vec!["demo", "--speed", "0"], "above 0"),
    ];
    for (args, text) in cases {
        let (code, story) = said(args);
        assert_eq!(code, Some(2), "{args:?}: {story}");
        assert!(story.contains(text), "{args:?}: {story}");
    }
}

#[test]
fn without_a_terminal_the_screen_says_so_and_offers_text() {
    for (args, offer) in [
        (vec!["demo"], "tiroll demo --headless"),
        (vec!["watch", "--cdc", "127.0.0.1:1"], "tiroll status"),
        (UPGRADE.to_vec(), "--headless --yes"),
    ] {
        let (code, story) = said(&args);
        assert_eq!(code, Some(2), "{story}");
        assert!(story.contains(offer), "{story}");
    }
}

#[test]
fn help_and_no_command_exit_0() {
    for args in [vec![], vec!["--help"], vec!["upgrade", "--help"], vec!["--version"]] {
        assert_eq!(said(&args).0, Some(0), "{args:?}");
    }
}

#[test]
fn a_cluster_that_does_not_answer_is_an_error_that_names_it() {
    let (code, story) = said(&["status", "--cdc", "127.0.0.1:1", "--json"]);
    assert_eq!(code, Some(1), "{story}");
    assert!(story.contains("127.0.0.1:1") && story.contains("\"captures\":null"), "{story}");
}

#[test]
fn a_bad_scenario_file_gets_file_line_and_column() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("bad.yaml");
    std::fs::write(&path, "name: bad\nspeeed: 3\n").expect("it can be written");
    let path = path.to_string_lossy();
    let (code, story) = said(&["sim", "--scenario", &path]);
    assert_eq!(code, Some(1), "{story}");
    assert!(story.contains("bad.yaml:2:1") && story.contains("speeed"), "{story}");
    let (code, story) = said(&["sim", "--scenario", "tiny"]);
    assert_eq!(code, Some(1), "{story}");
    assert!(story.contains("small"), "{story}");
}

#[test]
fn the_simulator_prints_one_line_of_json_as_soon_as_it_listens() {
    let mut child = tiroll(&["sim", "--scenario", "small", "--format", "json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let addresses: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(addresses["captures"].as_array().map(Vec::len), Some(3));
    assert_eq!(addresses["tidb"].as_array().map(Vec::len), Some(2));
    assert!(addresses["control"].as_str().is_some_and(|url| url.starts_with("http://") && !url.ends_with('/')));
}

/// Starts a headless upgrade and waits for the first drain count.
async fn draining(more: &[&str]) -> (tiroll::sim::Running, std::process::Child, BufReader<std::process::ChildStdout>) {
    let running = simulator(builtin("small"), 4.0).await;
    let mut args = vec!["--headless", "--yes", "--format", "json"];
    args.extend(more);
    let args = upgrade(&running, "v8.5.4", &args);
    let (child, out) = tokio::task::spawn_blocking(move || {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut child = tiroll(&args).stdout(Stdio::piped()).spawn().expect("the binary runs");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        while !line.contains("drain_progress") {
            line.clear();
            assert!(out.read_line(&mut line).expect("a line") > 0, "it ended before the drain");
        }
        (child, out)
    })
    .await
    .expect("the thread ends");
    (running, child, out)
}

fn ending(
    mut child: std::process::Child,
    out: BufReader<std::process::ChildStdout>,
) -> (Option<i32>, serde_json::Value) {
    let last = out.lines().map_while(Result::ok).last().expect("a last line");
    let code = child.wait().expect("it ends").code();
    (code, serde_json::from_str(&last).expect("JSON"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_with_130_and_says_what_is_owed() {
    let (running, child, out) = draining(&[]).await;
    let killed = tiroll_signal(child.id(), "INT");
    assert!(killed);
    let (code, last) = tokio::task::spawn_blocking(move || ending(child, out)).await.expect("the thread ends");
    assert_eq!(code, Some(130));
    assert_eq!(last["event"], "rollout_ended");
    assert_eq!(last["data"]["outcome"], "interrupted");
    assert_eq!(last["data"]["owed"][0]["kind"], "restart");
    assert_eq!(referee(&running)["stops"].as_array().map(Vec::len), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_ends_with_5() {
    let (_running, child, out) = draining(&["--timeout", "4s"]).await;
    let (code, last) = tokio::task::spawn_blocking(move || ending(child, out)).await.expect("the thread ends");
    assert_eq!(code, Some(5));
    assert_eq!(last["data"]["outcome"], "timed_out");
}

/// Sends a signal with the system's own `kill`: the crate forbids the unsafe call.
fn tiroll_signal(pid: u32, name: &str) -> bool {
    std::process::Command::new("sh")
        .args(["-c", &format!("kill -{name} {pid}")])
        .status()
        .is_ok_and(|status| status.success())
}

/// Loopback and clusters are never asked through a proxy, whatever the environment of the operator says.
#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_in_the_environment_is_not_used() {
    let running = simulator(builtin("small"), 50.0).await;
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    proxy.set_nonblocking(true).expect("not blocking");
    let url = format!("http://{}", proxy.local_addr().expect("an address"));
    let args = [vec!["status".to_owned(), "--json".to_owned()], addresses(&running)].concat();
    let output = tokio::task::spawn_blocking(move || {
        let mut command = tiroll(&args.iter().map(String::as_str).collect::<Vec<_>>());
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
            command.env(name, &url);
        }
        command.env_remove("NO_PROXY").env_remove("no_proxy").env_remove("REQUEST_METHOD");
        command.output().expect("the binary runs")
    })
    .await
    .expect("the binary's thread ends");
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    let asked = proxy.accept().map(drop).map_err(|error| error.kind());
    assert_eq!(asked, Err(std::io::ErrorKind::WouldBlock), "the proxy was asked");
}
