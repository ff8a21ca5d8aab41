//! A rollout on screen, and what is said after it.

use color_eyre::eyre::Result;

use super::args::Look;
use super::headless::owed_lines;
use super::output::say;
use crate::driver::Started;
use crate::rollout::command::Who;
use crate::rollout::view::Mode;
use crate::ui;

/// Opens the screen, runs until it is left, ends the driver, and says what is left behind; the exit code.
pub(super) async fn run(started: Started, look: Look, can_command: bool) -> Result<u8> {
    let no_color = look.no_color || wants_no_colour();
    let options = ui::Options { ascii: look.ascii, no_color, who: Who::new(who()), can_command };
    let handle = started.handle.clone();
    drop(started.events);
    let left = ui::run(started.handle, options).await;
    handle.stop();
    let last = started.task.await?;
    left?;
    if !can_command {
        return Ok(0);
    }
    let Mode::Ended(ending) = &last.mode else { return Ok(1) };
    say(&ending.reason);
    if last.owed.is_empty() {
        say("Nothing is left behind.");
    } else {
        say("Left behind:");
        for line in owed_lines(ending, &last.owed) {
            say(&line);
        }
    }
    Ok(ending.exit_code)
}

/// Whether the environment asks for no colour.
pub(super) fn wants_no_colour() -> bool {
    let (no_color, term) = (std::env::var("NO_COLOR").ok(), std::env::var("TERM").ok());
    ui::wants_no_colour(no_color.as_deref(), term.as_deref())
}

/// Who sits at the terminal.
fn who() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "operator".to_owned());
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "localhost".to_owned());
    format!("{user}@{host}")
}
