//! The screen: one reader of the rollout's handle, like the headless mode.
//!
//! This room owns the terminal: [`run`] takes it, runs the loop and gives it back, whatever happens in between. It knows
//! the read model, the events and the commands, and refuses to know servers, clients, journals and the engine. State,
//! update and drawing are pure: keys and views go in, effects and a buffer come out; only `event_loop` waits and only
//! `terminal` writes. The one invariant: what is on the screen was observed, and shows its age when it is old.

use std::io;

use tokio::sync::broadcast::Receiver;

use crate::cluster::Timestamp;
use crate::driver::handle::Handle;
use crate::rollout::command::Who;
use crate::rollout::event::Event;
use crate::rollout::view::View;

mod detail;
mod dialog;
mod event_loop;
#[cfg(test)]
mod fixture;
mod frame;
mod keymap;
mod message;
#[cfg(test)]
mod scenes;
mod select;
mod state;
mod status;
pub mod terminal;
mod theme;
mod typed;
mod update;
mod view;
mod widgets;

/// How the screen looks and what it may do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Plain characters instead of boxes, blocks and signs.
    pub ascii: bool,
    /// No colour. `NO_COLOR` and `TERM=dumb` ask for it too; whoever starts the program may pass
    /// [`wants_no_colour`].
    pub no_color: bool,
    /// Who sits at the terminal, for the record of every command.
    pub who: Who,
    /// Whether keys may give commands; `false` only looks.
    pub can_command: bool,
    /// Whether the rollout is run by another program: then leaving the screen changes nothing.
    pub is_attached: bool,
}

/// How the person left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// After the end of the rollout.
    Ended,
    /// While it was still open.
    Left,
    /// After asking for a pause.
    PausedAndLeft,
    /// By a signal, named here.
    Signal(&'static str),
    /// The terminal is gone.
    TerminalLost,
    /// Some part of the program panicked; the report has been printed.
    Crashed,
}

/// Why there is no screen.
#[derive(Debug, thiserror::Error)]
pub enum UiError {
    /// Input or output is a pipe or a file.
    #[error("the screen needs a terminal for input and output, and there is none here")]
    NoTerminal,
    /// The terminal refused something.
    #[error("the terminal could not be used: {0}")]
    Terminal(#[from] io::Error),
}

/// Whether the environment asks for no colour: `NO_COLOR` set to anything but nothing, or a dumb terminal.
pub fn wants_no_colour(no_color: Option<&str>, term: Option<&str>) -> bool {
    no_color.is_some_and(|value| !value.is_empty()) || term == Some("dumb")
}

/// Every action with its keys and what it does, in the order of the help page: for the README, which must not drift.
pub fn keys() -> Vec<(String, &'static str)> {
    let names = |keys: &[keymap::Chord]| keys.iter().map(|chord| chord.name()).collect::<Vec<_>>().join(", ");
    keymap::BINDINGS.iter().map(|binding| (names(binding.keys), binding.help)).collect()
}

/// Draws one frame of a fresh screen into a buffer: for measuring, and for looking at a view without a terminal.
pub fn paint(buf: &mut ratatui::buffer::Buffer, view: &View, now: Timestamp, options: &Options) {
    let state = state::UiState::new(options, now, (buf.area.width, buf.area.height));
    view::draw(buf, view, &state, theme::Theme::new(!options.no_color, options.ascii));
}

/// Whether input and output are a terminal.
pub fn has_terminal() -> bool {
    terminal::is_there()
}

/// Takes the terminal, shows the rollout until the person leaves or something ends it, and gives the terminal back.
/// `events` are those to show, from the first on.
pub async fn run(handle: Handle, events: Receiver<Event>, options: Options) -> Result<Leave, UiError> {
    if !has_terminal() {
        return Err(UiError::NoTerminal);
    }
    // Signals first: one that comes while the screen is being entered must not leave the terminal raw.
    let signals = terminal::signals()?;
    // Then the reader of keys: made on a terminal that has just gone it panics, so it is made before anything is drawn.
    let input = crossterm::event::EventStream::new();
    let mut screen = terminal::Screen::enter()?;
    let leave = event_loop::run(&mut screen, input, signals, &handle, events, &options).await;
    drop(screen);
    Ok(leave)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_no_color_asks_for_nothing() {
        assert!(!wants_no_colour(None, None));
        assert!(!wants_no_colour(Some(""), Some("xterm-256color")));
        assert!(wants_no_colour(Some("1"), None));
        assert!(wants_no_colour(None, Some("dumb")));
    }
}
