//! `--on-wait`: a program of the operator's that is run when a person is needed, to call one.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::cluster::units::spoken;
use crate::driver::handle::Handle;
use crate::rollout::event::{Event, Fact, Weight};
use crate::rollout::resume::RESUMED;
use crate::rollout::view::Question;

/// How long the program may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// Waits for questions, and calls somebody for each.
pub(super) struct OnWait {
    close: CancellationToken,
    task: JoinHandle<()>,
}

/// What is to be run.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The program and its arguments; no shell reads them.
    pub(super) command: Vec<String>,
    /// The rollout's id.
    pub(super) rollout: String,
    /// The question of a resumed rollout is answered by `--yes`, so that nobody is called for it.
    pub(super) goes_on: bool,
}

impl OnWait {
    /// Calls from now on.
    pub(super) fn start(call: Call, handle: Handle) -> Self {
        let close = CancellationToken::new();
        let task = tokio::spawn(listen(call, handle.events(), handle, close.clone()));
        Self { close, task }
    }

    /// Waits for the calls that are still to be made or under way.
    pub(super) async fn finish(self) {
        self.close.cancel();
        // It panics in no case; and nothing can be done about it at the end.
        let _ = self.task.await;
    }
}

async fn listen(call: Call, mut events: Receiver<Event>, handle: Handle, close: CancellationToken) {
    loop {
        let event = tokio::select! {
            biased;
            event = events.recv() => event,
            () = close.cancelled() => break,
        };
        match event {
            Ok(event) => call.about(&event, &handle).await,
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
    loop {
        match events.try_recv() {
            Ok(event) => call.about(&event, &handle).await,
            Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty | TryRecvError::Closed) => return,
        }
    }
}

impl Call {
    async fn about(&self, event: &Event, handle: &Handle) {
        let Fact::Paused(question) = &event.fact else { return };
        if self.goes_on && question.reason == RESUMED {
            return;
        }
        if let Err(why) = self.run(question, DEADLINE).await {
            handle.note(Weight::Warning, format!("--on-wait: {why}"));
        }
    }

    /// Runs the program for a question; `Err` says how it failed.
    async fn run(&self, question: &Question, deadline: Duration) -> Result<(), String> {
        let Some((program, args)) = self.command.split_first() else { return Ok(()) };
        let mut command = Command::new(program);
        command
            .args(args)
            .env("TIROLL_ROLLOUT", &self.rollout)
            .env("TIROLL_REASON", &*question.reason)
            .env("TIROLL_TARGET", &question.target)
            .env("TIROLL_MESSAGE", question.message())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A key that interrupts us is not meant for it, and what it starts ends with it.
            .process_group(0);
        let mut child = command.spawn().map_err(|error| format!("{program} could not be started: {error}"))?;
        match timeout(deadline, child.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!("{program} {}", ended(status))),
            Ok(Err(error)) => Err(format!("{program} could not be waited for: {error}")),
            Err(_) => {
                if let Some(group) = child.id() {
                    // It has not been waited for, so that the number is still its own.
                    let kill = format!("kill -KILL -{group}");
                    let _ = Command::new("sh").args(["-c", &kill]).stderr(Stdio::null()).status().await;
                }
                let _ = child.kill().await;
                Err(format!("{program} was killed: it took longer than {}", spoken(deadline)))
            }
        }
    }
}

fn ended(status: ExitStatus) -> String {
    status.code().map_or_else(|| "was ended by a signal".to_owned(), |code| format!("ended with exit code {code}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Question {
        Question {
            reason: "drain_stalled".into(),
            step: "capture/drain".to_owned(),
            target: "10.0.1.12:8300".to_owned(),
            what: "The drain has not moved; $(touch x) for 30 s.".to_owned(),
            means: String::new(),
            advice: "Look.".to_owned(),
            choices: Vec::new(),
        }
    }

    fn call(command: &[&str]) -> Call {
        let command = command.iter().map(|&word| word.to_owned()).collect();
        Call { command, rollout: "20261201-041055-7f3a".to_owned(), goes_on: false }
    }

    #[tokio::test]
    async fn the_program_learns_what_is_asked_and_no_shell_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let script = r#"printf '%s|%s|%s|%s|%s' "$1" "$TIROLL_ROLLOUT" "$TIROLL_REASON" "$TIROLL_TARGET" "$TIROLL_MESSAGE" > "$0""#;
        let call = call(&["sh", "-c", script, out.to_str().unwrap(), "a b; $HOME"]);
        assert_eq!(call.run(&question(), DEADLINE).await, Ok(()));
        assert_eq!(
            std::fs::read_to_string(out).unwrap(),
            "a b; $HOME|20261201-041055-7f3a|drain_stalled|10.0.1.12:8300|The drain has not moved; $(touch x) for 30 s. Look."
        );
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_killed_with_what_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let pid = dir.path().join("pid");
        // The one it starts outlives it, unless the whole group is killed.
        let call = call(&["sh", "-c", "sleep 1000 & echo $! > \"$0\"; wait", pid.to_str().unwrap()]);
        // Long enough for a shell on a busy machine to have written a number.
        let why = call.run(&question(), Duration::from_secs(2)).await.unwrap_err();
        assert!(why.contains("was killed") && why.contains("2 s"), "{why}");
        let pid = std::fs::read_to_string(pid).unwrap();
        let gone = async {
            let mut tick = tokio::time::interval(Duration::from_millis(10));
            // A zombie that nobody has reaped is gone as well.
            let look = format!("case $(ps -o stat= -p {}) in ''|Z*) exit 1;; esac", pid.trim());
            while Command::new("sh").args(["-c", &look]).status().await.unwrap().success() {
                tick.tick().await;
            }
        };
        assert!(timeout(Duration::from_secs(10), gone).await.is_ok(), "what it started goes on");
    }

    #[tokio::test]
    async fn a_program_that_fails_says_how() {
        let why = call(&["sh", "-c", "exit 7"]).run(&question(), DEADLINE).await.unwrap_err();
        assert_eq!(why, "sh ended with exit code 7");
        let why = call(&["/no/such/program"]).run(&question(), DEADLINE).await.unwrap_err();
        assert!(why.starts_with("/no/such/program could not be started"), "{why}");
    }
}
