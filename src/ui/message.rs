//! What reaches the state of the screen, and what it asks for in return.

use crossterm::event::KeyEvent;

use crate::rollout::command::{Command, Instruction, Permission};
use crate::rollout::event::Event;

use super::Leave;

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) enum Msg {
    /// A key.
    Key(KeyEvent),
    /// Pasted text: only ever text, never keys.
    Paste(String),
    /// The terminal has another size.
    Resized(u16, u16),
    /// There is a newer view.
    ViewChanged,
    /// A fact.
    Event(Event),
    /// So many facts went by faster than this screen could take them.
    Missed(u64),
    /// The engine's word on a command.
    Answered(Command, Permission),
    /// The engine is gone.
    EngineGone,
}

/// Something to do outside the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UiEffect {
    /// Give this command.
    Tell(Command),
    /// Give this one, with what was typed for it.
    ByName(Instruction),
    /// Ask for a pause and leave with the engine's word, whatever it is.
    PauseAndLeave,
    /// End the loop.
    Quit(Leave),
    /// Clear and draw anew.
    Redraw,
    /// Put the program in the background.
    Suspend,
    /// A person is needed.
    Ring,
}
