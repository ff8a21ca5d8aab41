//! Two terminals on one rollout: it runs headless in one, a person pauses it and sits down before it in another.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::terminal::Terminal;

/// A program beside the terminal, gone with the test.
struct Beside(Child);

impl Beside {
    fn start(state: &Path, args: &[&str]) -> Self {
        let mut command = tiroll(state, args);
        Self(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program starts"))
    }

    /// The first of its lines that is so. What it writes later is read too, by nobody: a full pipe would hold it up.
    fn line(&mut self, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut lines = BufReader::new(self.0.stdout.take().expect("a pipe")).lines();
        let line = lines.find_map(|line| {
            let line = serde_json::from_str(&line.expect("text")).expect("JSON");
            is_so(&line).then_some(line)
        });
        std::thread::spawn(move || lines.for_each(drop));
        line.expect("such a line before it ends")
    }

    /// Its exit code.
    fn end(mut self) -> Option<i32> {
        self.0.wait().expect("it can be waited for").code()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn tiroll(state: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tiroll"));
    command.args(args).env("TIROLL_STATE_DIR", state).env("USER", "anna").stdin(Stdio::null());
    command
}

#[test]
fn a_headless_rollout_is_paused_from_a_second_terminal_and_gone_on_with_there() {
    let state = tempfile::tempdir().expect("a directory");
    let mut cluster = Beside::start(state.path(), &["sim", "--scenario", "small", "--speed", "20", "--format", "json"]);
    let addresses = cluster.line(|_| true);
    let list = |key: &str| {
        let all = addresses[key].as_array().expect("a list").iter();
        all.map(|at| at.as_str().expect("an address")).collect::<Vec<_>>().join(",")
    };
    let (cdc, tidb, pd) = (list("captures"), list("tidb"), list("pd"));
    let executor = format!("sim={}", addresses["control"].as_str().expect("an address"));
    let args = ["upgrade", "--cdc", &cdc, "--tidb", &tidb, "--pd", &pd, "--to", "v8.5.4", "--executor", &executor];
    let args: Vec<&str> = args.into_iter().chain(["--headless", "--yes", "--format", "json"]).collect();
    let mut rollout = Beside::start(state.path(), &args);
    rollout.line(|line| line["event"] == "drain_progress");
    let paused = tiroll(state.path(), &["pause"]).output().expect("the program runs");
    assert!(paused.status.success(), "{}", String::from_utf8_lossy(&paused.stderr));

    let directory = state.path().to_str().expect("text");
    let env = [("TIROLL_STATE_DIR", directory), ("USER", "bert")];
    let mut looks = Terminal::start(&["attach", "--read-only"], (120, 36), &env);
    looks.see("attached, looks only");
    looks.see("by anna@");
    looks.press("c");
    looks.see("attached to look only");
    let mut steers = Terminal::start(&["attach"], (80, 24), &env);
    steers.see("PAUSED");
    steers.see("attached");
    steers.press("c");
    looks.see("set going by bert@");
    looks.press("q");
    looks.see("goes on. To come back: tiroll attach");
    assert_eq!(looks.end(), 0);
    assert!(looks.is_given_back());
    steers.see("ENDED");
    steers.press("q");
    assert_eq!(steers.end(), 0);
    assert_eq!(rollout.end(), Some(0));
}
