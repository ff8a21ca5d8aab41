//! The one list of actions behind keys, footer and help.
//!
//! Lower-case keys act at once and are harmless: they start or hold what the plan holds anyway. What changes something
//! outside the plan, or claims a fact, is `x` or a capital and asks first.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::rollout::command::{Command, Permission};
use crate::rollout::view::{Mode, View};

use super::state::{Pane, Steering, UiState};

/// What a key can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// Gives a command to the engine, after a dialog where it needs one.
    Tell(Command),
    /// Moves the selection.
    Up,
    /// Moves the selection.
    Down,
    /// Moves the selection by a page.
    PageUp,
    /// Moves the selection by a page.
    PageDown,
    /// To the first row.
    Top,
    /// To the last row.
    Bottom,
    /// Gives the keys to the next pane.
    NextPane,
    /// Gives the keys to the pane before.
    PreviousPane,
    /// Shows the selected thing in full.
    Open,
    /// Closes, clears, lets go.
    Back,
    /// Asks for a text to filter by.
    Filter,
    /// Shows or hides requests and counts among the events.
    Details,
    /// Stops the display (not the rollout).
    Freeze,
    /// Draws everything anew.
    Redraw,
    /// Puts the program in the background.
    Suspend,
    /// Shows the help page.
    Help,
    /// Leaves, asking first where something goes on.
    Leave,
}

/// Where an action stands in the help page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Steering the rollout.
    Rollout,
    /// Overruling the rollout.
    ByName,
    /// After an abort.
    AfterAbort,
    /// Looking around.
    Looking,
    /// The program itself.
    Program,
}

impl Group {
    /// All, in the order of the help page.
    pub(crate) const ALL: [Self; 5] = [Self::Rollout, Self::ByName, Self::AfterAbort, Self::Looking, Self::Program];

    /// The heading.
    pub(crate) const fn heading(self) -> &'static str {
        match self {
            Self::Rollout => "The rollout",
            Self::ByName => "Overruling it (each wants a name typed, and why)",
            Self::AfterAbort => "After an abort (each asks first)",
            Self::Looking => "Looking around",
            Self::Program => "The program",
        }
    }
}

/// A key with its modifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Chord {
    code: KeyCode,
    is_ctrl: bool,
}

const fn plain(code: KeyCode) -> Chord {
    Chord { code, is_ctrl: false }
}

const fn char(c: char) -> Chord {
    plain(KeyCode::Char(c))
}

const fn ctrl(c: char) -> Chord {
    Chord { code: KeyCode::Char(c), is_ctrl: true }
}

impl Chord {
    /// What was pressed. A capital says its shift itself, so shift is not a modifier of its own; keys held with Alt or
    /// Super mean nothing here.
    pub(crate) fn of(key: &KeyEvent) -> Option<Self> {
        let foreign = KeyModifiers::ALT | KeyModifiers::SUPER | KeyModifiers::HYPER | KeyModifiers::META;
        if key.modifiers.intersects(foreign) {
            return None;
        }
        let code = match key.code {
            KeyCode::Char(c) if key.modifiers.contains(KeyModifiers::SHIFT) => KeyCode::Char(c.to_ascii_uppercase()),
            code => code,
        };
        Some(Self { code, is_ctrl: key.modifiers.contains(KeyModifiers::CONTROL) })
    }

    /// As people write it.
    pub(crate) fn name(self) -> String {
        let name = match self.code {
            KeyCode::Char(' ') => "Space".to_owned(),
            KeyCode::Char(c) if self.is_ctrl => return format!("Ctrl-{}", c.to_ascii_uppercase()),
            KeyCode::Char(c) => c.to_string(),
            KeyCode::Up => "↑".to_owned(),
            KeyCode::Down => "↓".to_owned(),
            KeyCode::PageUp => "PgUp".to_owned(),
            KeyCode::PageDown => "PgDn".to_owned(),
            KeyCode::BackTab => "Shift-Tab".to_owned(),
            KeyCode::F(n) => format!("F{n}"),
            code => format!("{code:?}"),
        };
        if self.is_ctrl { format!("Ctrl-{name}") } else { name }
    }
}

/// One action with its keys and words.
pub(crate) struct Binding {
    /// What it does.
    pub(crate) action: Action,
    /// The keys, the one to show first.
    pub(crate) keys: &'static [Chord],
    /// In the footer.
    pub(crate) label: &'static str,
    /// In the help page.
    pub(crate) help: &'static str,
    /// Where in the help page.
    pub(crate) group: Group,
}

const fn tell(command: Command, keys: &'static [Chord], label: &'static str, group: Group) -> Binding {
    Binding { action: Action::Tell(command), keys, label, help: command.help(), group }
}

const fn look(action: Action, keys: &'static [Chord], label: &'static str, help: &'static str) -> Binding {
    Binding { action, keys, label, help, group: Group::Looking }
}

const fn own(action: Action, keys: &'static [Chord], label: &'static str, help: &'static str) -> Binding {
    Binding { action, keys, label, help, group: Group::Program }
}

/// Every action, in the order of footer and help.
pub(crate) const BINDINGS: &[Binding] = &[
    tell(Command::AskAgain, &[char('a')], "ask again", Group::Rollout),
    tell(Command::Step, &[char('s')], "step", Group::Rollout),
    tell(Command::Continue, &[char('c')], "continue", Group::Rollout),
    tell(Command::Retry, &[char('r')], "retry", Group::Rollout),
    tell(Command::Wait, &[char('w')], "wait longer", Group::Rollout),
    tell(Command::Pause, &[char('p')], "pause", Group::Rollout),
    tell(Command::Confirm, &[char('H')], "handed over", Group::Rollout),
    tell(Command::Abort, &[char('x')], "abort", Group::Rollout),
    tell(Command::Skip, &[char('K')], "skip", Group::ByName),
    tell(Command::Force, &[char('T')], "force", Group::ByName),
    tell(Command::Waive, &[char('W')], "waive", Group::ByName),
    tell(Command::Recover, &[char('R')], "recover", Group::AfterAbort),
    tell(Command::Start, &[char('S')], "start", Group::AfterAbort),
    tell(Command::Finish, &[char('F')], "finish", Group::AfterAbort),
    tell(Command::Close, &[char('E')], "end here", Group::AfterAbort),
    look(Action::Open, &[plain(KeyCode::Enter)], "open", "show the selected thing in full"),
    look(Action::Back, &[plain(KeyCode::Esc)], "back", "close, clear the filter, follow again"),
    look(Action::Up, &[plain(KeyCode::Up), char('k')], "up", "up"),
    look(Action::Down, &[plain(KeyCode::Down), char('j')], "down", "down"),
    look(Action::PageUp, &[plain(KeyCode::PageUp), ctrl('b')], "page up", "a page up"),
    look(Action::PageDown, &[plain(KeyCode::PageDown), ctrl('f')], "page down", "a page down"),
    look(Action::Top, &[plain(KeyCode::Home), char('g')], "first", "to the first row"),
    look(Action::Bottom, &[plain(KeyCode::End), char('G')], "last", "to the last row; events follow again"),
    look(Action::NextPane, &[plain(KeyCode::Tab)], "next pane", "give the keys to the next pane"),
    look(Action::PreviousPane, &[plain(KeyCode::BackTab)], "pane before", "give the keys to the pane before"),
    look(Action::Filter, &[char('/')], "filter", "show rows with this text only; !text hides them"),
    look(Action::Details, &[char('v')], "details", "show or hide requests and counts among the events"),
    look(Action::Freeze, &[char('f')], "freeze", "hold the display still; the rollout goes on (p pauses the rollout)"),
    own(Action::Help, &[char('?'), plain(KeyCode::F(1))], "help", "this page"),
    own(Action::Redraw, &[ctrl('l')], "redraw", "draw the screen anew"),
    own(Action::Suspend, &[ctrl('z')], "suspend", "to the background; nothing new starts until fg"),
    own(Action::Leave, &[char('q'), ctrl('c')], "leave", "leave; says first what goes on and what is owed"),
];

/// The action behind a key.
pub(crate) fn action(chord: Chord) -> Option<Action> {
    BINDINGS.iter().find(|binding| binding.keys.contains(&chord)).map(|binding| binding.action)
}

/// The key to show for an action.
pub(crate) fn key(action: Action) -> String {
    let binding = BINDINGS.iter().find(|binding| binding.action == action);
    binding.and_then(|binding| binding.keys.first()).map_or_else(String::new, |chord| chord.name())
}

/// Whether a command asks before it is given.
pub(crate) const fn asks_first(command: Command) -> bool {
    match command {
        Command::Abort
        | Command::Confirm
        | Command::Skip
        | Command::Force
        | Command::Waive
        | Command::Recover
        | Command::Start
        | Command::Finish
        | Command::Close => true,
        Command::Step | Command::Continue | Command::Pause | Command::AskAgain | Command::Retry | Command::Wait => {
            false
        }
    }
}

/// Whether an action does something now, or why not. Keys, footer and help ask here and nowhere else.
pub(crate) fn permission(action: Action, view: &View, state: &UiState) -> Permission {
    match action {
        Action::Tell(command) => match state.steering {
            Steering::Allowed => view.permission(command),
            Steering::LooksOnly if state.is_attached => {
                Err("attached to look only; attach without --read-only to steer".to_owned())
            }
            Steering::LooksOnly => Err("this screen only looks; it steers nothing".to_owned()),
            Steering::EngineGone if state.is_attached => Err("the rollout's program has ended".to_owned()),
            Steering::EngineGone => Err("the rollout no longer runs in this program".to_owned()),
        },
        Action::Filter if !matches!(state.focus, Pane::Captures | Pane::Events) => {
            Err("only captures and events can be filtered; Tab goes there".to_owned())
        }
        Action::Details if matches!(view.mode, Mode::Watching) && state.events.is_empty() => {
            Err("there are no events yet".to_owned())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_key_has_two_meanings() {
        let mut seen = HashSet::new();
        for binding in BINDINGS {
            assert!(!binding.keys.is_empty() && !binding.label.is_empty() && !binding.help.is_empty());
            for chord in binding.keys {
                assert!(seen.insert(*chord), "{} is bound twice", chord.name());
            }
        }
    }

    #[test]
    fn every_command_has_a_key_and_the_dangerous_ones_are_no_small_letters() {
        for command in Command::ALL {
            let name = key(Action::Tell(command));
            assert!(!name.is_empty(), "{} has no key", command.name());
            if asks_first(command) && command != Command::Abort {
                assert!(name.chars().all(char::is_uppercase), "{name}");
            }
        }
    }

    #[test]
    fn a_capital_is_the_same_with_and_without_the_shift_flag() {
        let bare = KeyEvent::new(KeyCode::Char('R'), KeyModifiers::NONE);
        let flagged = KeyEvent::new(KeyCode::Char('R'), KeyModifiers::SHIFT);
        let small = KeyEvent::new(KeyCode::Char('r'), KeyModifiers::SHIFT);
        assert_eq!(Chord::of(&bare), Chord::of(&flagged));
        assert_eq!(Chord::of(&bare), Chord::of(&small));
        assert_eq!(Chord::of(&KeyEvent::new(KeyCode::Char('x'), KeyModifiers::ALT)), None);
    }
}
