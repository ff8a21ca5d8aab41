//! A rollout without a screen: what changes is written, line by line, as text or JSON.

use std::time::Duration;

use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use super::args::Format;
use super::company::Company;
use super::output::{say, warn};
use super::signals::Signals;
use crate::cluster::units::spoken;
use crate::cluster::{Clock, Timestamp};
use crate::driver::clock::SystemClock;
use crate::driver::handle::Handle;
use crate::driver::{LAST_CALLS, Started};
use crate::rollout::after_abort::ABORTED;
use crate::rollout::command::{Command, Who};
use crate::rollout::effect::Cut;
use crate::rollout::event::{Event, Fact, PlannedStep, Weight};
use crate::rollout::resume::RESUMED;
use crate::rollout::view::{OwedView, Question};

/// Runs it to its end; the exit code.
/// `goes_on`: a rollout that was resumed goes on by itself where nothing is unsettled.
pub(super) async fn run(
    mut started: Started,
    format: Format,
    timeout: Option<Duration>,
    goes_on: bool,
    company: Option<Company>,
) -> u8 {
    let code = follow(&mut started, format, timeout, goes_on, company.as_ref()).await;
    if let Some(company) = company {
        company.part().await;
    }
    // The last line has been written; what went wrong since is said beside it.
    while let Ok(event) = started.events.try_recv() {
        if event.fact.weight() == Weight::Warning {
            warn(&event.fact.line());
        }
    }
    code
}

async fn follow(
    started: &mut Started,
    format: Format,
    timeout: Option<Duration>,
    goes_on: bool,
    company: Option<&Company>,
) -> u8 {
    let mut signals = Signals::new();
    let deadline = async {
        match timeout {
            Some(after) => tokio::time::sleep(after).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(deadline);
    let mut is_late = false;
    let mut is_aborted = false;
    let mut attached = Attached(company.map(Company::steering));
    loop {
        tokio::select! {
            event = started.events.recv() => match event {
                Ok(event) => {
                    write(&event, format);
                    match event.fact {
                        Fact::Paused(question) if goes_on && question.reason == RESUMED => {
                            let who = Who::new("headless --yes");
                            if let Err(why) = started.handle.command(&who, Command::Continue).await {
                                warn(&format!("could not go on: {why}"));
                            }
                        }
                        Fact::Paused(_) if attached.is_somebody() => {
                            warn("somebody is attached who can answer; this program waits for them");
                        }
                        Fact::Paused(question) => end_at(&question, &started.handle, is_aborted),
                        Fact::Commanded { command: Command::Abort, .. } => is_aborted = true,
                        Fact::RolloutEnded { ending, owed } => {
                            if let (Some(company), false) = (company, owed.is_empty()) {
                                warn(&format!("to pay what is owed with care: tiroll resume {}", company.id()));
                            }
                            return ending.exit_code;
                        }
                        _ => {}
                    }
                }
                Err(RecvError::Lagged(missed)) => warn(&format!("{missed} events were not shown")),
                Err(RecvError::Closed) => return 1,
            },
            () = attached.all_left() => {
                let question = started.handle.view().borrow().question.clone();
                if let Some(question) = question {
                    end_at(&question, &started.handle, is_aborted);
                }
            }
            () = &mut deadline, if !is_late => {
                is_late = true;
                let after = timeout.unwrap_or_default();
                started.handle.end(Cut::TimedOut, format!("Timed out after {}.", spoken(after)));
            }
            name = signals.next() => {
                if signals.count() > 1 {
                    return 130;
                }
                let reason = format!("Interrupted ({name}); nothing new was started.");
                started.handle.end(Cut::Interrupted, reason);
            }
        }
    }
}

/// People who are attached and could answer.
struct Attached(Option<watch::Receiver<usize>>);

impl Attached {
    fn is_somebody(&self) -> bool {
        self.0.as_ref().is_some_and(|count| *count.borrow() > 0)
    }

    /// Resolves each time the last of them has left.
    async fn all_left(&mut self) {
        let Some(count) = &mut self.0 else { return std::future::pending().await };
        loop {
            if count.changed().await.is_err() {
                return std::future::pending().await;
            }
            if *count.borrow_and_update() == 0 {
                return;
            }
        }
    }
}

/// Nobody is here to answer: an abort is closed with what it leaves, anything else is for the next start.
fn end_at(question: &Question, handle: &Handle, is_aborted: bool) {
    if is_aborted && question.reason == ABORTED {
        tokio::spawn(close(handle.clone()));
    } else {
        handle.end(Cut::Paused, format!("Paused, waiting for a person: {}", question.message()));
    }
}

/// Ends an aborted rollout; what was asked of a server last is waited for.
async fn close(handle: Handle) {
    let mut idle = handle.idle();
    // Whatever does not come to its end stays owed.
    let _ = tokio::time::timeout(LAST_CALLS, idle.wait_for(|is_idle| *is_idle)).await;
    if let Err(why) = handle.command(&Who::new("headless"), Command::Close).await {
        warn(&format!("could not end after the abort: {why}"));
    }
}

/// The last line of a run that was refused before anything was read.
pub(super) fn refusal(reason: &str, exit_code: u8, clock: &SystemClock) -> String {
    let data = json!({ "outcome": "refused", "exit_code": exit_code, "reason": reason, "owed": [] });
    json!({ "at": rfc3339(clock.now()), "event": "rollout_ended", "data": data }).to_string()
}

fn write(event: &Event, format: Format) {
    match format {
        Format::Json if event.fact.is_public() => say(&json_line(event)),
        // What a person has to do or know does not belong among the lines that scripts read.
        Format::Json if event.fact.weight() == Weight::Warning => warn(&event.fact.line()),
        Format::Json => {}
        Format::Text => {
            if event.fact.weight() != Weight::Detail || matches!(event.fact, Fact::DrainProgress { .. }) {
                say(&format!("{}  {}", rfc3339(event.at), event.fact.line()));
            }
            if let Fact::RolloutEnded { owed, .. } = &event.fact {
                for line in owed_lines(owed) {
                    say(&line);
                }
            }
        }
    }
}

/// One event as a JSON line.
pub(super) fn json_line(event: &Event) -> String {
    json!({ "at": rfc3339(event.at), "event": event.fact.name(), "data": event.fact.data() }).to_string()
}

/// What is left behind, for people; nothing if nothing is.
pub(super) fn owed_lines(owed: &[OwedView]) -> Vec<String> {
    let mut lines = Vec::new();
    for owed in owed {
        lines.push(format!("  still owed: {}", owed.what));
        lines.push(format!("     to pay it: {}", owed.how));
    }
    lines
}

/// RFC 3339 in UTC with milliseconds.
pub(super) fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.wall_ms).map_or_else(|_| String::new(), |at| format!("{at:.3}"))
}

/// Waits for the plan, or for the reason why there is none, and prints it; the exit code.
pub(super) async fn dry_run(mut started: Started, format: Format) -> u8 {
    let mut signals = Signals::new();
    let code = loop {
        let event = tokio::select! {
            event = started.events.recv() => event,
            _ = signals.next() => break 130,
        };
        let event = match event {
            Ok(event) => event,
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => break 1,
        };
        match &event.fact {
            Fact::RolloutStarted { steps, from, to, .. } => {
                match format {
                    Format::Json => say(&plan_line(&event, steps)),
                    Format::Text => plan_text(steps, from.as_deref().unwrap_or("?"), to),
                }
                break 0;
            }
            Fact::RolloutEnded { ending, .. } => {
                match format {
                    Format::Json if ending.exit_code == 0 => say(&plan_line(&event, &[])),
                    Format::Json => say(&json_line(&event)),
                    Format::Text => say(&ending.reason),
                }
                break ending.exit_code;
            }
            _ => {}
        }
    };
    started.handle.stop();
    code
}

/// The plan as a JSON line, in the form of every other one.
fn plan_line(event: &Event, steps: &[PlannedStep]) -> String {
    json!({ "at": rfc3339(event.at), "event": "plan", "data": { "steps": steps } }).to_string()
}

fn plan_text(steps: &[PlannedStep], from: &str, to: &str) {
    say(&format!("plan: upgrade {from} → {to}, {} steps", steps.len()));
    let width = steps.iter().map(|step| step.target.len()).max().unwrap_or(0);
    for (n, step) in steps.iter().enumerate() {
        let phases = step.phases.join(", ").replace('_', " ");
        say(&format!("{:>3}  {:width$}  {phases}", n + 1, step.target));
    }
    say("nothing was changed");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339_in_utc_with_milliseconds() {
        assert_eq!(rfc3339(Timestamp::new(1_796_072_632_050, 0)), "2026-11-30T21:03:52.050Z");
        assert_eq!(rfc3339(Timestamp::new(1_796_072_632_000, 0)), "2026-11-30T21:03:52.000Z");
    }
}
