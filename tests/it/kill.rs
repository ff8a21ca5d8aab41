//! The real program killed in the middle of things, and gone on with: what was written down before is all it has.
//!
//! `TIROLL_KILLS` says how many kills one run of the long test makes (5 unless set), `TIROLL_SEED` which ones: the seed
//! is printed, and the same seed kills after the same delays.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tiroll::sim::Running;
use tokio::io::AsyncReadExt as _;
use tokio::process::Child;
use tokio::time::{interval, timeout};

use crate::support::{addresses, assert_clean, builtin, fresh_state_dir, referee, simulator, tiroll};

/// Waits that are wall time are cut short: the cluster runs faster than life.
const SET: [&str; 4] = ["--set", "verify_deadline=1s", "--set", "resign_deadline=1s"];

fn from(state: &Path, args: &[String]) -> Child {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut command = tokio::process::Command::from(tiroll(&args));
    command.env("TIROLL_STATE_DIR", state).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    command.spawn().expect("the binary runs")
}

fn upgrade(running: &Running) -> Vec<String> {
    let mut args = vec!["upgrade".to_owned()];
    args.extend(addresses(running));
    let control = format!("sim={}", running.control);
    let more = ["--to", "v8.5.4", "--executor", &control, "--headless", "--yes", "--format", "json"];
    args.extend(more.into_iter().chain(SET).map(str::to_owned));
    args
}

fn resume() -> Vec<String> {
    ["resume", "--headless", "--yes", "--format", "json"].map(str::to_owned).to_vec()
}

/// Waits for the end; `None` if it was killed after this long, and is gone.
async fn end_or_kill(mut child: Child, after: Option<Duration>) -> Option<(i32, String)> {
    let mut out = child.stdout.take().expect("its output");
    let reading = tokio::spawn(async move {
        let mut text = String::new();
        // A killed one may end in the middle of a line.
        let _ = out.read_to_string(&mut text).await;
        text
    });
    let status = match after {
        Some(after) => timeout(after, child.wait()).await,
        None => Ok(child.wait().await),
    };
    let Ok(status) = status else {
        child.kill().await.expect("it can be killed");
        return None;
    };
    Some((status.expect("a child").code().expect("a code"), reading.await.expect("its text")))
}

/// Looks again and again until it is so.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let mut tick = interval(Duration::from_millis(2));
    let wait = async {
        while !is_so() {
            tick.tick().await;
        }
    };
    assert!(timeout(Duration::from_mins(1), wait).await.is_ok(), "{what} never came to be");
}

fn last_line(text: &str) -> Value {
    text.lines().last().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default()
}

/// xorshift: small, and the same everywhere.
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

/// Begins an upgrade, kills it again and again, and goes on until it is done; how many kills hit.
async fn killed_to_the_end(running: &Running, seed: &mut u64, kills: u32) -> u32 {
    let state = fresh_state_dir();
    let mut args = upgrade(running);
    let mut hits = 0;
    let mut tick = interval(Duration::from_millis(200));
    for _ in 0..400 {
        let has_open;
        let after = (hits < kills).then(|| Duration::from_millis(60 + next(seed) % 900));
        match end_or_kill(from(&state, &args), after).await {
            None => {
                hits += 1;
                has_open = state.join("rollouts").is_dir();
            }
            Some((0, _)) => return hits,
            // An act that may still come to something: a moment later it has, or not.
            Some((3, text)) => {
                let reason = last_line(&text)["data"]["reason"].to_string();
                // Killed before the plan was on record, or after the end was: there is nothing to go on with.
                has_open = !reason.contains("no rollout is open");
                let may_wait = [
                    "no rollout is open",
                    "not known to have arrived",
                    "was not asked",
                    "refuses",
                    "does not answer",
                    "is held by",
                ];
                assert!(may_wait.iter().any(|word| reason.contains(word)), "{reason}");
                tick.reset();
                tick.tick().await;
            }
            Some((code, text)) => panic!("exit {code}\n{text}"),
        }
        args = if has_open { resume() } else { upgrade(running) };
    }
    panic!("it never ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_again_and_again_it_ends_done_with_a_clean_referee() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let wanted: u64 = number("TIROLL_KILLS").unwrap_or(5);
    // The ports that the system chose are as good a chance as any.
    let chance = || u64::from(std::process::id()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut seed = number("TIROLL_SEED").unwrap_or_else(chance).max(1);
    let (first, mut hits, mut rounds) = (seed, 0, 0);
    eprintln!("TIROLL_SEED={first}");
    while hits < wanted {
        let name = if rounds % 2 == 0 { "small" } else { "new-arch" };
        let running = simulator(builtin(name), 50.0).await;
        let left = u32::try_from(wanted - hits).unwrap_or(u32::MAX).min(10);
        hits += u64::from(killed_to_the_end(&running, &mut seed, left).await);
        assert_clean(&running);
        rounds += 1;
    }
    eprintln!("{hits} kills in {rounds} upgrades");
}

/// What is owed outlives the program: the next start says so, and pays it.
#[tokio::test(flavor = "multi_thread")]
async fn killed_while_upgrading_the_next_start_says_that_the_finish_is_owed_and_pays_it() {
    let running = simulator(builtin("small"), 50.0).await;
    let state = fresh_state_dir();
    let mut child = from(&state, &upgrade(&running));
    let is_upgrading = || referee(&running)["tidb_upgrading"] == true;
    until("the upgrading state", is_upgrading).await;
    child.kill().await.expect("it can be killed");
    // A new one is refused with the name of the old one and what it owes.
    let (code, text) = end_or_kill(from(&state, &upgrade(&running)), None).await.expect("its end");
    let reason = last_line(&text)["data"]["reason"].as_str().unwrap_or_default().to_owned();
    assert!(code == 3 && reason.contains("user DDL hangs") && reason.contains("tiroll resume"), "{code} {text}");
    killed_to_the_end_of(&running, &state).await;
    // And nothing is left to go on with.
    let (code, text) = end_or_kill(from(&state, &resume()), None).await.expect("its end");
    assert_eq!(code, 3, "{text}");
    assert!(!is_upgrading());
    assert_clean(&running);
}

/// Goes on until it is done, without another kill.
async fn killed_to_the_end_of(running: &Running, state: &Path) {
    let mut tick = interval(Duration::from_millis(200));
    for _ in 0..50 {
        if let Some((0, _)) = end_or_kill(from(state, &resume()), None).await {
            return;
        }
        tick.tick().await;
    }
    panic!("it never ends: {:#}", referee(running));
}

/// All that the journals under this directory say.
fn journal_text(state: &Path) -> String {
    let rollouts = std::fs::read_dir(state.join("rollouts")).into_iter().flatten().flatten();
    let files = rollouts.flat_map(|rollout| std::fs::read_dir(rollout.path()).into_iter().flatten().flatten());
    files.filter_map(|file| std::fs::read_to_string(file.path()).ok()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_programs_never_act_on_the_same_servers() {
    let running = simulator(builtin("small"), 5.0).await;
    let state = fresh_state_dir();
    let mut first = from(&state, &upgrade(&running));
    let state_of_it = || {
        let list = tiroll(&["history", "--json"]).env("TIROLL_STATE_DIR", &state).output().expect("the binary runs");
        let list: Value = serde_json::from_slice(&list.stdout).expect("one document");
        list["rollouts"][0]["state"].clone()
    };
    // The directory is there a moment before the lock is, and the lock before the plan: without one there is nothing to go
    // on with.
    until("the first to have a plan", || journal_text(&state).contains("rollout_started")).await;
    let (code, text) = end_or_kill(from(&state, &upgrade(&running)), None).await.expect("its end");
    let reason = last_line(&text)["data"]["reason"].as_str().unwrap_or_default().to_owned();
    assert!(code == 3 && reason.contains("is held by"), "{code} {text}");
    assert_eq!(state_of_it(), "running");
    first.kill().await.expect("it can be killed");
    assert_eq!(state_of_it(), "open");
}
