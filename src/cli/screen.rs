//! A rollout on screen, and what is said after it.

use std::time::Duration;

use color_eyre::eyre::Result;

use super::args::Look;
use super::company::Company;
use super::headless::owed_lines;
use super::keep;
use super::output::say;
use crate::cluster::units::spoken;
use crate::driver::Started;
use crate::driver::handle::Handle;
use crate::rollout::effect::Cut;
use crate::rollout::view::{Ending, Mode, Outcome, View};
use crate::ui;

/// What the screen is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The cluster inside this program: it is gone when the screen is left.
    Demo,
    /// Looking only.
    Watch,
    /// A cluster that goes on without us.
    Rollout,
    /// A rollout that another program runs.
    Attached {
        /// Its id.
        id: String,
        /// Whether this screen may steer it.
        can_command: bool,
    },
}

/// Opens the screen, runs until it is left, ends the driver, and says what is left behind; the exit code.
pub(super) async fn run(
    started: Started,
    look: Look,
    purpose: Purpose,
    timeout: Option<Duration>,
    company: Option<Company>,
) -> Result<u8> {
    let no_color = look.no_color || wants_no_colour();
    let (can_command, is_attached) = match purpose {
        Purpose::Demo | Purpose::Rollout => (true, false),
        Purpose::Watch => (false, false),
        Purpose::Attached { can_command, .. } => (can_command, true),
    };
    let options = ui::Options { ascii: look.ascii, no_color, who: keep::who(), can_command, is_attached };
    let handle = started.handle.clone();
    if let Some(after) = timeout {
        let handle = handle.clone();
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            handle.end(Cut::TimedOut, format!("Timed out after {}.", spoken(after)));
        });
    }
    let left = ui::run(started.handle, started.events, options).await;
    // What another program runs is gone if the connection ended by itself.
    let is_gone = started.task.is_finished();
    if let Ok(leave) = &left {
        end_as_left(&handle, *leave);
    }
    handle.stop();
    let last = started.task.await?;
    if let Some(company) = company {
        company.part().await;
    }
    let left = left?;
    if let Purpose::Attached { id, .. } = &purpose {
        return Ok(after_attached(&last, left, id, is_gone));
    }
    let Mode::Ended(ending) = &last.mode else { return Ok(1) };
    Ok(match purpose {
        Purpose::Watch => 0,
        Purpose::Demo => after_demo(ending),
        Purpose::Rollout | Purpose::Attached { .. } => after_rollout(&last, ending),
    })
}

/// How the person left is how the rollout ends, unless it had ended before.
fn end_as_left(handle: &Handle, leave: ui::Leave) {
    match leave {
        ui::Leave::Ended => {}
        ui::Leave::Left | ui::Leave::PausedAndLeft => {
            handle.end(Cut::Paused, "Left before the end; the servers go on with what they have.");
        }
        ui::Leave::Signal(name) => {
            handle.end(Cut::Interrupted, format!("Interrupted ({name}); nothing new was started."));
        }
        ui::Leave::TerminalLost => {
            handle.end(Cut::Interrupted, "The terminal was lost; nothing new was started.");
        }
        ui::Leave::Crashed => handle.end(Cut::Interrupted, "A part of tiroll failed; nothing new was started."),
    }
}

fn after_demo(ending: &Ending) -> u8 {
    match ending.outcome {
        Outcome::Paused | Outcome::Interrupted => {
            say("The demo was left; its simulated cluster is gone with it.");
            if ending.outcome == Outcome::Paused { 0 } else { ending.exit_code }
        }
        _ => {
            say(&format!("{} (SIMULATED)", ending.reason));
            ending.exit_code
        }
    }
}

/// The rollout is another program's: what became of it is said, and what it waits for.
fn after_attached(last: &View, left: ui::Leave, id: &str, is_gone: bool) -> u8 {
    let mark = if last.title.is_simulated { " (SIMULATED)" } else { "" };
    if let Mode::Ended(ending) = &last.mode {
        after_rollout(last, ending);
        return 0;
    }
    match left {
        ui::Leave::Signal(_) | ui::Leave::TerminalLost | ui::Leave::Crashed => return 130,
        ui::Leave::Ended | ui::Leave::Left | ui::Leave::PausedAndLeft => {}
    }
    if is_gone {
        say(&format!("The program that ran rollout {id}{mark} is gone. To go on: tiroll resume {id}"));
        return 1;
    }
    say(&format!("Left; rollout {id}{mark} goes on. To come back: tiroll attach {id}"));
    match &last.mode {
        Mode::Asking | Mode::Aborted => {
            say("It waits for a person. A headless one ends there once nobody is attached; then: tiroll resume");
        }
        Mode::Paused | Mode::Stepping => say("It is paused: nothing new starts until somebody says so."),
        _ => {}
    }
    0
}

fn after_rollout(last: &View, ending: &Ending) -> u8 {
    let mark = if last.title.is_simulated { " (SIMULATED)" } else { "" };
    say(&format!("{}{mark}", ending.reason));
    if last.owed.is_empty() {
        say("Nothing is left behind.");
    } else {
        say("Left behind:");
        for line in owed_lines(&last.owed) {
            say(&line);
        }
    }
    ending.exit_code
}

/// Whether the environment asks for no colour.
pub(super) fn wants_no_colour() -> bool {
    let (no_color, term) = (std::env::var("NO_COLOR").ok(), std::env::var("TERM").ok());
    ui::wants_no_colour(no_color.as_deref(), term.as_deref())
}
