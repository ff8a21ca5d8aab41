//! A second person at a running rollout, with the real program: paused, continued and aborted from outside, and what a
//! stranger on the socket can do.

use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tiroll::sim::Running;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{interval, timeout};

use crate::support::{assert_clean, builtin, fresh_state_dir, referee, simulator, tiroll, upgrade};

const PATIENCE: Duration = Duration::from_mins(1);

/// A headless upgrade under way.
struct Rollout {
    running: Running,
    state: PathBuf,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

fn command(state: &Path, args: &[&str]) -> Command {
    let mut command = Command::from(tiroll(args));
    command.env("TIROLL_STATE_DIR", state).env("USER", "anna").kill_on_drop(true);
    command
}

async fn said(state: &Path, args: &[&str]) -> (i32, String, String) {
    let output = timeout(PATIENCE, command(state, args).output()).await.expect("it ends").expect("the binary runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("a code"), text(&output.stdout), text(&output.stderr))
}

impl Rollout {
    async fn begin(speed: f64, state: PathBuf, more: &[&str]) -> Self {
        let running = simulator(builtin("small"), speed).await;
        let args = upgrade(&running, "v8.5.4", &["--headless", "--yes", "--format", "json"]);
        let args: Vec<&str> = args.iter().map(String::as_str).chain(more.iter().copied()).collect();
        Self::start(running, state, &args)
    }

    fn start(running: Running, state: PathBuf, args: &[&str]) -> Self {
        let mut child =
            command(&state, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { running, state, child, lines }
    }

    /// The next line of its output.
    async fn line(&mut self) -> Option<Value> {
        let line = timeout(PATIENCE, self.lines.next_line()).await.expect("a line comes in time").expect("text");
        line.map(|line| serde_json::from_str(&line).unwrap_or_else(|error| panic!("`{line}`: {error}")))
    }

    /// Reads on until there is such a line.
    async fn until(&mut self, event: &str) -> Value {
        loop {
            let line = self.line().await.unwrap_or_else(|| panic!("it ended before {event}"));
            if line["event"] == event {
                return line;
            }
        }
    }

    /// The exit code, the last line of its output, and what it said beside it.
    async fn end(mut self) -> (Option<i32>, Value, String, Running) {
        let mut last = Value::Null;
        while let Some(line) = self.line().await {
            last = line;
        }
        let mut beside = String::new();
        self.child.stderr.take().expect("a pipe").read_to_string(&mut beside).await.expect("text");
        let status = timeout(PATIENCE, self.child.wait()).await.expect("it ends").expect("a child");
        (status.code(), last, beside, self.running)
    }

    fn directory(&self) -> PathBuf {
        let mut all = std::fs::read_dir(self.state.join("rollouts")).expect("the rollouts");
        all.next().expect("one rollout").expect("an entry").path()
    }

    fn id(&self) -> String {
        self.directory().file_name().expect("a name").to_string_lossy().into_owned()
    }

    async fn socket(&self) -> PathBuf {
        let socket = self.directory().join("control.sock");
        until("the socket", || socket.exists()).await;
        socket
    }

    async fn connect(&self) -> UnixStream {
        let socket = self.socket().await;
        UnixStream::connect(std::fs::read_link(&socket).unwrap_or(socket)).await.expect("it listens")
    }

    /// Somebody who has said hello.
    async fn person(&self, role: &str) -> Person {
        let mut stream = self.connect().await;
        hello(&mut stream, role).await;
        Person(BufReader::new(stream).lines())
    }
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let mut tick = interval(Duration::from_millis(2));
    let wait = async {
        while !is_so() {
            tick.tick().await;
        }
    };
    assert!(timeout(PATIENCE, wait).await.is_ok(), "{what} never came to be");
}

/// Says hello on a bare connection.
async fn hello(stream: &mut UnixStream, role: &str) {
    let line = json!({ "hello": { "protocol": 1, "who": { "name": "bert\u{7}@box" }, "role": role } });
    stream.write_all(format!("{line}\n").as_bytes()).await.expect("it takes a line");
}

/// One who is attached. The reader is never taken apart: what it has read ahead would be lost.
struct Person(Lines<BufReader<UnixStream>>);

impl Person {
    /// Gives a command.
    async fn says(&mut self, id: u64, who: &str, command: &str) {
        let line = json!({ "command": { "id": id, "who": { "name": who }, "command": command } });
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).await.expect("it takes a line");
    }

    /// Reads lines until one has this key.
    async fn told(&mut self, key: &str) -> Value {
        loop {
            let line = timeout(PATIENCE, self.0.next_line()).await.expect("in time").expect("text").expect("a line");
            let line: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            if let Some(value) = line.get(key) {
                return value.clone();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_from_outside_it_stays_up_and_goes_on_when_told() {
    let mut rollout = Rollout::begin(10.0, fresh_state_dir(), &[]).await;
    rollout.until("drain_progress").await;
    let (code, text, beside) = said(&rollout.state, &["pause"]).await;
    assert_eq!(code, 0, "{text}{beside}");
    assert!(text.contains(&format!("Paused rollout {}", rollout.id())) && text.contains("anna@"), "{text}");
    assert!(text.contains("(SIMULATED)") && text.contains("the drain of 127.0.0.1:"), "{text}");
    let commanded = rollout.until("commanded").await;
    assert_eq!(commanded["data"]["command"], "pause");
    assert!(commanded["data"]["who"].as_str().is_some_and(|who| who.starts_with("anna@")), "{commanded}");
    // Refused: a reason, and no success.
    let (code, text, beside) = said(&rollout.state, &["pause", &rollout.id()]).await;
    assert_eq!((code, text.as_str()), (3, ""), "{beside}");
    assert!(beside.contains("pause refused: it is paused already"), "{beside}");
    let (code, text, _) = said(&rollout.state, &["pause", "--json"]).await;
    let document: Value = serde_json::from_str(&text).expect("one document");
    assert_eq!((code, &document["taken"], &document["mode"]), (3, &json!(false), &json!("paused")), "{document}");
    assert_eq!(document["reason"], "it is paused already");
    // A person who only looks continues nothing, one who steers does.
    let mut looker = rollout.person("looks").await;
    looker.says(1, "bert@box", "continue").await;
    assert_eq!(looker.told("answer").await["permission"]["Err"], "attached to look only");
    let mut person = rollout.person("steers").await;
    person.says(7, "bert\u{7f}@box", "continue").await;
    let answer = person.told("answer").await;
    assert_eq!((&answer["id"], &answer["permission"]), (&json!(7), &json!({ "Ok": null })));
    let commanded = rollout.until("commanded").await;
    assert_eq!(commanded["data"], json!({ "who": "bert@box", "command": "continue" }));
    drop(person);
    let (code, last, beside, running) = rollout.end().await;
    assert_eq!((code, &last["data"]["outcome"]), (Some(0), &json!("done")), "{beside}");
    assert_clean(&running);
}

#[tokio::test(flavor = "multi_thread")]
async fn aborted_from_outside_it_ends_with_4_and_the_journal_names_who() {
    let mut rollout = Rollout::begin(5.0, fresh_state_dir(), &[]).await;
    rollout.until("drain_progress").await;
    let (code, text, beside) = said(&rollout.state, &["abort", "--json"]).await;
    assert_eq!(code, 0, "{text}{beside}");
    let document: Value = serde_json::from_str(&text).expect("one document");
    assert_eq!((&document["taken"], &document["owed"][0]["kind"]), (&json!(true), &json!("restart")), "{document}");
    let (id, journal) = (rollout.id(), rollout.directory().join("journal.jsonl"));
    let state = rollout.state.clone();
    let (code, last, beside, running) = rollout.end().await;
    assert_eq!((code, &last["event"]), (Some(4), &json!("rollout_ended")), "{beside}");
    assert_eq!((&last["data"]["outcome"], &last["data"]["owed"][0]["kind"]), (&json!("aborted"), &json!("restart")));
    assert!(beside.contains(&format!("tiroll resume {id}")), "{beside}");
    let journal = std::fs::read_to_string(journal).expect("the journal");
    let is_named = |line: &str| line.contains("\"commanded\"") && line.contains("anna@") && line.contains("\"abort\"");
    assert!(journal.lines().any(is_named), "{journal}");
    assert_eq!(referee(&running)["stops"].as_array().map(Vec::len), Some(0));
    // Nobody runs it any more: what is open is named.
    let (code, _, beside) = said(&state, &["pause"]).await;
    assert_eq!(code, 3, "{beside}");
    assert!(beside.contains("no rollout is running") && beside.contains(&format!("tiroll resume {id}")), "{beside}");
    let (code, _, beside) = said(&state, &["abort", &id]).await;
    assert!(code == 3 && beside.contains("is not running"), "{code} {beside}");
    let (code, _, beside) = said(&state, &["abort", "20200101-000000-0000"]).await;
    assert!(code == 3 && beside.contains("there is no rollout 20200101-000000-0000"), "{code} {beside}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_running_rollouts_must_be_named() {
    let state = fresh_state_dir();
    let mut first = Rollout::begin(2.0, state.clone(), &[]).await;
    first.until("rollout_started").await;
    let mut second = Rollout::begin(2.0, state.clone(), &[]).await;
    second.until("rollout_started").await;
    let (code, text, beside) = said(&state, &["pause"]).await;
    assert_eq!((code, text.as_str()), (2, ""), "{beside}");
    assert_eq!(beside.matches("upgrade to v8.5.4, by anna").count(), 2, "{beside}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_socket_is_the_owners_alone_and_gone_at_the_end() {
    let mut rollout = Rollout::begin(20.0, fresh_state_dir(), &[]).await;
    rollout.until("phase_started").await;
    let socket = rollout.socket().await;
    let directory = rollout.directory();
    let mode = |path: &Path| std::fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&directory), mode(&socket)), (0o700, 0o600));
    let (code, _, beside, _) = rollout.end().await;
    assert_eq!(code, Some(0), "{beside}");
    assert!(!socket.exists() && directory.join("journal.jsonl").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_socket_of_a_killed_program_is_replaced() {
    let mut rollout = Rollout::begin(10.0, fresh_state_dir(), &[]).await;
    rollout.until("phase_started").await;
    let socket = rollout.socket().await;
    rollout.child.kill().await.expect("it can be killed");
    assert!(std::fs::symlink_metadata(&socket).expect("it stays").file_type().is_socket());
    let state = rollout.state.clone();
    // It may stop at what is not known to have arrived; that somebody could attach meanwhile is what counts.
    let resumed =
        Rollout::start(rollout.running, state.clone(), &["resume", "--headless", "--yes", "--format", "json"]);
    let mut stream = None;
    let mut tick = interval(Duration::from_millis(2));
    for _ in 0..5_000 {
        tick.tick().await;
        if let Ok(there) = UnixStream::connect(&socket).await {
            stream = Some(there);
            break;
        }
    }
    let mut stream = stream.expect("the new program listens at the same place");
    hello(&mut stream, "looks").await;
    assert_eq!(Person(BufReader::new(stream).lines()).told("welcome").await["protocol"], 1);
    assert!(matches!(resumed.end().await.0, Some(0 | 3)));
    assert!(!socket.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_state_directory_has_its_socket_elsewhere() {
    let state = fresh_state_dir().join("a-directory-with-a-name-that-is-long-enough".repeat(4));
    let mut rollout = Rollout::begin(5.0, state, &[]).await;
    rollout.until("phase_started").await;
    let socket = rollout.socket().await;
    let there = std::fs::read_link(&socket).expect("a link");
    let mode = |path: &Path| std::fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(there.parent().expect("a directory")), mode(&there)), (0o700, 0o600));
    let (code, text, beside) = said(&rollout.state, &["pause"]).await;
    assert_eq!(code, 0, "{text}{beside}");
    rollout.until("commanded").await;
    let (code, _, beside) = said(&rollout.state, &["abort"]).await;
    assert_eq!(code, 0, "{beside}");
    assert_eq!(rollout.end().await.0, Some(4));
    assert!(std::fs::symlink_metadata(&socket).is_err() && !there.parent().expect("a directory").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_long_lines_and_readers_who_do_not_read_do_no_harm() {
    let mut rollout = Rollout::begin(10.0, fresh_state_dir(), &[]).await;
    rollout.until("phase_started").await;
    // No hello at all, and nobody who reads what comes.
    let silent = rollout.connect().await;
    let mut deaf = rollout.connect().await;
    hello(&mut deaf, "steers").await;
    let cases: [(Vec<u8>, &str); 5] = [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "no line of this protocol"),
        (b"\xff\xfe\n".to_vec(), ""),
        (vec![b'x'; 1 << 20], "max line length exceeded"),
        (
            b"{\"hello\":{\"protocol\":99,\"who\":{\"name\":\"x\"},\"role\":\"looks\"}}\n".to_vec(),
            "protocol 1 and not 99",
        ),
        (b"{\"command\":{\"id\":1,\"who\":{\"name\":\"x\"},\"command\":\"abort\"}}\n".to_vec(), "a hello comes first"),
    ];
    for (bytes, why) in cases {
        let mut stream = rollout.connect().await;
        // It may be turned away before all of it was taken.
        let _ = stream.write_all(&bytes).await;
        let mut answer = Vec::new();
        let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("the connection ends");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        // What was not read when the other side closed may take the answer with it.
        assert!(answer.is_empty() || (answer.contains("refused") && answer.contains(why)), "{why}: {answer}");
    }
    // A command that is none, from somebody who was welcome.
    let mut person = rollout.person("steers").await;
    person.says(1, "x", "format").await;
    let refused = person.told("refused").await;
    assert!(refused["why"].as_str().is_some_and(|why| why.contains("unknown variant")), "{refused}");
    let (code, last, beside, running) = rollout.end().await;
    assert_eq!((code, &last["data"]["outcome"]), (Some(0), &json!("done")), "{beside}");
    assert_clean(&running);
    drop((silent, deaf));
}

#[tokio::test(flavor = "multi_thread")]
async fn at_a_question_a_headless_run_waits_while_somebody_is_attached_who_can_answer() {
    let mut rollout = Rollout::begin(5.0, fresh_state_dir(), &["--set", "drain_deadline=300ms"]).await;
    rollout.until("phase_started").await;
    let mut person = rollout.person("steers").await;
    person.told("view").await;
    rollout.until("paused").await;
    person.says(1, "bert@box", "wait").await;
    assert_eq!(person.told("answer").await["permission"], json!({ "Ok": null }));
    assert_eq!(rollout.until("commanded").await["data"], json!({ "who": "bert@box", "command": "wait" }));
    rollout.until("paused").await;
    // The last one who could answer leaves: it ends as it does alone.
    drop(person);
    let (code, last, beside, _) = rollout.end().await;
    assert_eq!((code, &last["data"]["outcome"]), (Some(3), &json!("paused")), "{beside}");
    assert!(beside.contains("bert@box") || beside.contains("somebody is attached"), "{beside}");
}

#[tokio::test(flavor = "multi_thread")]
async fn on_wait_runs_once_with_the_question_in_its_environment() {
    let state = fresh_state_dir();
    std::fs::create_dir_all(&state).expect("a directory");
    let out = state.join("called");
    let script = r#"printf '%s|%s|%s|%s\n' "$TIROLL_ROLLOUT" "$TIROLL_REASON" "$TIROLL_TARGET" "$TIROLL_MESSAGE" >> "$0"; exit 9"#;
    let called = out.to_string_lossy().into_owned();
    let more = ["--on-wait", "sh", "-c", script, &called, ";", "--set", "drain_deadline=300ms"];
    let mut rollout = Rollout::begin(5.0, state, &more).await;
    let paused = rollout.until("paused").await["data"].clone();
    let id = rollout.id();
    let (code, _, beside, _) = rollout.end().await;
    assert_eq!(code, Some(3), "{beside}");
    let text = |key: &str| paused[key].as_str().expect("a text").to_owned();
    let wanted = format!("{id}|{}|{}|{}\n", text("reason"), text("target"), text("message"));
    assert_eq!(std::fs::read_to_string(out).expect("it was called"), wanted);
    assert!(beside.contains("--on-wait: sh ended with exit code 9"), "{beside}");
}
