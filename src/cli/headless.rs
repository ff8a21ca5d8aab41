//! A rollout without a screen: what changes is written, line by line, as text or JSON.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use super::args::Format;
use super::company::Company;
use super::output::{say, warn};
use super::script;
use super::signals::Signals;
use crate::cluster::Clock;
use crate::cluster::units::spoken;
use crate::driver::clock::SystemClock;
use crate::driver::handle::Handle;
use crate::driver::{LAST_CALLS, Started};
use crate::rollout::after_abort::ABORTED;
use crate::rollout::command::{Command, Who};
use crate::rollout::effect::Cut;
use crate::rollout::event::{Event, Fact, PlannedStep, Weight};
use crate::rollout::resume::RESUMED;
use crate::rollout::view::{OwedView, Question, View};

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
    let mut views = started.handle.view();
    // A question that somebody who is attached can answer is left to them, until the last of them has left.
    let (mut is_left_to_people, mut is_ending) = (false, false);
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
                            is_left_to_people = true;
                            warn("somebody is attached who can answer; this program waits for them");
                        }
                        Fact::Paused(question) if !is_ending => {
                            is_ending = true;
                            end_at(&question, &started.handle, is_aborted);
                        }
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
            question = attached.all_left_with_a_question(&mut views), if is_left_to_people && !is_ending => {
                is_ending = true;
                end_at(&question, &started.handle, is_aborted);
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

    /// Resolves once nobody is there and a question is open. The view that shows it comes after the event that tells it.
    async fn all_left_with_a_question(&mut self, views: &mut watch::Receiver<Arc<View>>) -> Question {
        let Some(count) = &mut self.0 else { return std::future::pending().await };
        loop {
            if count.wait_for(|count| *count == 0).await.is_err() {
                return std::future::pending().await;
            }
            tokio::select! {
                _ = count.changed() => {}
                view = views.wait_for(|view| view.question.is_some()) => match view.map(|view| view.question.clone()) {
                    Ok(Some(question)) => return question,
                    _ => return std::future::pending().await,
                },
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
    script::line_of(clock.now(), "rollout_ended", &data)
}

fn write(event: &Event, format: Format) {
    match format {
        Format::Json if event.fact.is_public() => say(&script::line(event)),
        // What a person has to do or know does not belong among the lines that scripts read.
        Format::Json if event.fact.weight() == Weight::Warning => warn(&event.fact.line()),
        Format::Json => {}
        Format::Text => {
            if event.fact.weight() != Weight::Detail || matches!(event.fact, Fact::DrainProgress { .. }) {
                say(&format!("{}  {}", script::rfc3339(event.at), event.fact.line()));
            }
            if let Fact::RolloutEnded { owed, .. } = &event.fact {
                for line in owed_lines(owed) {
                    say(&line);
                }
            }
        }
    }
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
                    Format::Json => say(&script::line(&event)),
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
    script::line_of(event.at, "plan", &json!({ "steps": steps }))
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
