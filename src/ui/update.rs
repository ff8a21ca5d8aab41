//! What a message does to the state, and what it asks for. Pure: no clock, no terminal, no waiting.

use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::cluster::Timestamp;
use crate::rollout::command::{Command, Instruction, Who};
use crate::rollout::event::{Fact, Weight};
use crate::rollout::view::{Mode, View};

use super::Leave;
use super::detail;
use super::dialog::{Answer, Ask, Dialog};
use super::keymap::{self, Action, Chord};
use super::message::{Msg, UiEffect};
use super::select;
use super::state::{Detail, Modal, Notice, Pane, Steering, Subject, UiState, is_watching};
use super::typed::Typed;
use super::widgets::{text, window};

/// How long a notice stands.
const NOTICE: Duration = Duration::from_secs(6);
/// Rows of a page up or down.
const PAGE: isize = 10;
/// A filter longer than this is a paste gone wrong.
const FILTER_MAX: usize = 100;

/// Takes one message in.
pub(crate) fn update(state: &mut UiState, view: &Arc<View>, msg: Msg) -> Vec<UiEffect> {
    match msg {
        Msg::Key(key) => on_key(state, view, &key),
        Msg::Paste(pasted) => {
            if state.is_typing {
                type_text(state, &pasted);
            } else {
                notice(state, "pasted text is not taken as keys", true);
            }
            Vec::new()
        }
        Msg::Resized(columns, rows) => {
            state.size = (columns, rows);
            Vec::new()
        }
        Msg::ViewChanged => on_view(state, view),
        Msg::Event(event) => {
            state.push_event(&event);
            if let Fact::Commanded { who, command, .. } = event.fact {
                on_said(state, who, command, event.at);
            }
            Vec::new()
        }
        Msg::Missed(count) => {
            let noun = if count == 1 { "event" } else { "events" };
            state.push_entry(state.now, Weight::Warning, format!("{count} {noun} not shown: they came too fast"));
            Vec::new()
        }
        // What it does is seen at once; a line about it would only hide the keys.
        Msg::Answered(_, Ok(())) => Vec::new(),
        Msg::Answered(command, Err(why)) => {
            take_given(state, command);
            notice(state, &format!("{} refused: {why}", command.name()), true);
            Vec::new()
        }
        Msg::EngineGone => {
            state.steering = Steering::EngineGone;
            Vec::new()
        }
    }
}

/// Whether a person is needed, or may be wanted back.
pub(crate) const fn calls_for_person(view: &View) -> bool {
    matches!(view.mode, Mode::Asking | Mode::Ended(_)) || view.question.is_some()
}

fn on_view(state: &mut UiState, view: &Arc<View>) -> Vec<UiEffect> {
    if !UiState::panes(view).contains(&state.focus) {
        state.focus = Pane::Captures;
    }
    if state.mode.as_ref() != Some(&view.mode) {
        state.mode = Some(view.mode.clone());
        // Why a key was refused is no longer true in another mode.
        state.notice.take_if(|notice| notice.is_refusal);
    }
    if let Some(Modal::Dialog(dialog)) = state.modals.last_mut()
        && let Err(why) = dialog.follow(view, state.now)
    {
        state.modals.pop();
        notice(state, &why, true);
    }
    let is_called = calls_for_person(view);
    let is_new_call = is_called && !state.is_called;
    state.is_called = is_called;
    if !is_new_call {
        return Vec::new();
    }
    // The captures are the one pane beside which a question always has room.
    state.focus = Pane::Captures;
    if state.frozen.take().is_some() {
        notice(state, "the display runs again: the rollout needs you", false);
    }
    vec![UiEffect::Ring]
}

/// A command was taken. One that was not given here is said at once, and by whom.
fn on_said(state: &mut UiState, who: Who, command: Command, at: Timestamp) {
    let is_given_here = who == state.who && take_given(state, command);
    // Whoever attaches is also told of what was said long ago.
    if !is_given_here && state.now.since(at) < NOTICE {
        let name = &who.name;
        let text = match command {
            Command::Pause => format!("paused by {name}"),
            Command::Continue => format!("set going by {name}"),
            Command::Abort => format!("aborted by {name}"),
            command => format!("{name} says {}", command.name()),
        };
        notice(state, &text, false);
    }
    state.last_said = Some((who, command));
}

/// Strikes a command off those that were given here; whether it was among them.
fn take_given(state: &mut UiState, command: Command) -> bool {
    let at = state.given.iter().position(|given| *given == command);
    at.map(|at| state.given.remove(at)).is_some()
}

fn notice(state: &mut UiState, text: &str, is_refusal: bool) {
    let until = state.now.plus(NOTICE);
    state.notice = Some(Notice { text: text.to_owned(), is_refusal, until });
}

fn on_key(state: &mut UiState, view: &Arc<View>, key: &KeyEvent) -> Vec<UiEffect> {
    let Some(chord) = Chord::of(key) else { return Vec::new() };
    let bound = keymap::action(chord);
    let moves = matches!(bound, Some(Action::Up | Action::Down | Action::PageUp | Action::PageDown));
    match key.kind {
        KeyEventKind::Press => {}
        // A key that is held down may move, never act.
        KeyEventKind::Repeat if moves || (state.is_typing && matches!(key.code, KeyCode::Backspace)) => {}
        KeyEventKind::Repeat | KeyEventKind::Release => return Vec::new(),
    }
    if key.modifiers.contains(KeyModifiers::CONTROL)
        && let Some(action @ (Action::Leave | Action::Redraw | Action::Suspend)) = bound
    {
        state.is_typing = false;
        return act(state, view, action);
    }
    if state.is_typing {
        return on_typing(state, key);
    }
    match state.modals.last() {
        Some(Modal::Dialog(_)) => on_dialog_key(state, view, key),
        Some(Modal::Help(_) | Modal::Detail(_)) => on_page_key(state, view, bound),
        None => {
            if let Some(action) = bound {
                return act(state, view, action);
            }
            if let KeyCode::Char(_) = key.code {
                let help = keymap::key(Action::Help);
                notice(state, &format!("{} does nothing; {help} shows the keys", chord.name()), true);
            }
            Vec::new()
        }
    }
}

fn type_text(state: &mut UiState, typed: &str) {
    let typed = text::clean(typed).into_owned();
    if let Some(filter) = state.filter_mut()
        && filter.len() + typed.len() <= FILTER_MAX
    {
        filter.push_str(&typed);
    }
}

fn on_typing(state: &mut UiState, key: &KeyEvent) -> Vec<UiEffect> {
    match key.code {
        KeyCode::Enter | KeyCode::Tab | KeyCode::Down | KeyCode::Up => state.is_typing = false,
        KeyCode::Esc => {
            state.is_typing = false;
            if let Some(filter) = state.filter_mut() {
                filter.clear();
            }
        }
        KeyCode::Backspace => {
            if let Some(filter) = state.filter_mut() {
                filter.pop();
            }
        }
        KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            if let Some(filter) = state.filter_mut() {
                filter.clear();
            }
        }
        KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::CONTROL) => type_text(state, &c.to_string()),
        _ => {}
    }
    Vec::new()
}

/// Keys while a page (help, detail) is in front: it scrolls and closes; what steers the rollout still does, because a
/// pause must not wait for a page to be closed.
fn on_page_key(state: &mut UiState, view: &Arc<View>, bound: Option<Action>) -> Vec<UiEffect> {
    let Some(action) = bound else { return Vec::new() };
    let by = match action {
        Action::Tell(_) => return act(state, view, action),
        Action::Back | Action::Leave | Action::Open => {
            if let (Action::Back, Some(Modal::Detail(detail))) = (action, state.modals.last_mut())
                && !detail.filter.is_empty()
            {
                detail.filter.clear();
                return Vec::new();
            }
            state.modals.pop();
            return Vec::new();
        }
        Action::Help => {
            if matches!(state.modals.last(), Some(Modal::Help(_))) {
                state.modals.pop();
            } else {
                state.modals.push(Modal::Help(0));
            }
            return Vec::new();
        }
        Action::Filter => {
            let is_capture =
                matches!(state.modals.last(), Some(Modal::Detail(Detail { subject: Subject::Capture { .. }, .. })));
            state.is_typing = is_capture;
            return Vec::new();
        }
        Action::Up => -1,
        Action::Down => 1,
        Action::PageUp => -PAGE,
        Action::PageDown => PAGE,
        Action::Top => isize::MIN / 2,
        Action::Bottom => isize::MAX / 2,
        _ => return Vec::new(),
    };
    let most = detail::last_scroll(state, view);
    if let Some(Modal::Help(scroll) | Modal::Detail(Detail { scroll, .. })) = state.modals.last_mut() {
        *scroll = window::moved((*scroll).min(most), by, most + 1);
    }
    Vec::new()
}

fn on_dialog_key(state: &mut UiState, view: &Arc<View>, key: &KeyEvent) -> Vec<UiEffect> {
    let now = state.now;
    let Some(Modal::Dialog(dialog)) = state.modals.last_mut() else { return Vec::new() };
    let count = dialog.buttons.len();
    match key.code {
        KeyCode::Esc => {
            state.modals.pop();
            Vec::new()
        }
        KeyCode::Tab | KeyCode::Down => {
            dialog.forward();
            Vec::new()
        }
        KeyCode::BackTab | KeyCode::Up => {
            dialog.back();
            Vec::new()
        }
        KeyCode::Right => {
            dialog.turn(1);
            Vec::new()
        }
        KeyCode::Left => {
            dialog.turn(count.saturating_sub(1));
            Vec::new()
        }
        KeyCode::Backspace => {
            if let Some(typed) = &mut dialog.typed {
                typed.pop();
            }
            Vec::new()
        }
        KeyCode::Char(c) => {
            if let Some(typed) = &mut dialog.typed {
                typed.push(c);
                return Vec::new();
            }
            let at = dialog.buttons.iter().position(|button| button.key == c);
            at.map_or_else(Vec::new, |at| press(state, view, at, now))
        }
        // Who has just typed what was wanted does not mean the button that undoes it all.
        KeyCode::Enter if dialog.focus == 0 && dialog.typed.as_ref().is_some_and(Typed::is_filled) => {
            dialog.forward();
            Vec::new()
        }
        KeyCode::Enter => {
            let at = dialog.focus;
            press(state, view, at, now)
        }
        _ => Vec::new(),
    }
}

fn press(state: &mut UiState, view: &Arc<View>, at: usize, now: crate::cluster::Timestamp) -> Vec<UiEffect> {
    let Some(Modal::Dialog(dialog)) = state.modals.last() else { return Vec::new() };
    let Some(answer) = dialog.buttons.get(at).map(|button| button.answer) else { return Vec::new() };
    if answer != Answer::Cancel {
        if !dialog.is_settled(now) {
            return Vec::new();
        }
        if let Some(missing) = dialog.typed.as_ref().and_then(Typed::missing) {
            notice(state, &missing, true);
            return Vec::new();
        }
    }
    let consent = dialog.typed.as_ref().and_then(Typed::consent);
    state.modals.pop();
    match answer {
        Answer::Cancel => Vec::new(),
        Answer::Tell(command) => give(state, view, Instruction { command, consent }),
        Answer::Leave => vec![UiEffect::Quit(Leave::Left)],
        Answer::PauseAndLeave => {
            state.given.push(Command::Pause);
            vec![UiEffect::PauseAndLeave]
        }
        Answer::AbortDialog => {
            state.modals.push(Modal::Dialog(Dialog::before(Command::Abort, view, now)));
            Vec::new()
        }
    }
}

/// Gives a command, unless the newest view says it would be refused.
fn give(state: &mut UiState, view: &Arc<View>, instruction: Instruction) -> Vec<UiEffect> {
    let command = instruction.command;
    match keymap::permission(Action::Tell(command), view, state) {
        Ok(()) => {
            // Whoever steers has to see what it does.
            state.frozen = None;
            state.given.push(command);
            let has_consent = instruction.consent.is_some();
            vec![if has_consent { UiEffect::ByName(instruction) } else { UiEffect::Tell(command) }]
        }
        Err(why) => {
            notice(state, &format!("{} refused: {why}", command.name()), true);
            Vec::new()
        }
    }
}

fn act(state: &mut UiState, view: &Arc<View>, action: Action) -> Vec<UiEffect> {
    if let Err(why) = keymap::permission(action, view, state) {
        let text = match action {
            Action::Tell(command) => format!("{}: {why}", command.name()),
            _ => why,
        };
        notice(state, &text, true);
        return Vec::new();
    }
    match action {
        Action::Tell(command) if keymap::asks_first(command) => {
            state.modals.push(Modal::Dialog(Dialog::before(command, view, state.now)));
        }
        Action::Tell(command) => return give(state, view, command.into()),
        Action::Up => select::step(state, view, -1),
        Action::Down => select::step(state, view, 1),
        Action::PageUp => select::step(state, view, -PAGE),
        Action::PageDown => select::step(state, view, PAGE),
        Action::Top => select::step(state, view, isize::MIN / 2),
        Action::Bottom => select::step(state, view, isize::MAX / 2),
        Action::NextPane => turn(state, view, 1),
        Action::PreviousPane => turn(state, view, -1),
        Action::Open => {
            if let Some(subject) = select::subject(state, view) {
                state.modals.push(Modal::Detail(Detail { subject, scroll: 0, filter: String::new() }));
            }
        }
        Action::Back => back(state),
        Action::Filter => state.is_typing = true,
        Action::Details => {
            state.shows_details = !state.shows_details;
            let shown = if state.shows_details { "shown" } else { "hidden" };
            notice(state, &format!("requests and counts are {shown} among the events"), false);
        }
        Action::Freeze => {
            state.frozen = if state.frozen.is_some() { None } else { Some((Arc::clone(view), state.now)) };
        }
        Action::Redraw => return vec![UiEffect::Redraw],
        Action::Suspend => return vec![UiEffect::Suspend],
        Action::Help => state.modals.push(Modal::Help(0)),
        Action::Leave => return leave(state, view),
    }
    Vec::new()
}

fn turn(state: &mut UiState, view: &Arc<View>, by: isize) {
    let panes = UiState::panes(view);
    let at = panes.iter().position(|pane| *pane == state.focus).unwrap_or(0);
    let count = panes.len();
    let to = if by > 0 { at + 1 } else { at + count.saturating_sub(1) } % count.max(1);
    if let Some(pane) = panes.get(to) {
        state.focus = *pane;
    }
}

fn back(state: &mut UiState) {
    if state.frozen.is_some() {
        state.frozen = None;
        return;
    }
    match state.focus {
        Pane::Plan => state.step = None,
        Pane::Captures => state.capture_filter.clear(),
        Pane::Events if !state.event_filter.is_empty() => state.event_filter.clear(),
        Pane::Events => state.event = None,
        Pane::Changefeeds | Pane::Tidb => {}
    }
    state.notice = None;
}

fn leave(state: &mut UiState, view: &Arc<View>) -> Vec<UiEffect> {
    if matches!(view.mode, Mode::Ended(_)) {
        return vec![UiEffect::Quit(Leave::Ended)];
    }
    let has_nothing_to_lose =
        view.mode == Mode::Reading || is_watching(view) || state.steering != Steering::Allowed || state.is_attached;
    if has_nothing_to_lose {
        return vec![UiEffect::Quit(Leave::Left)];
    }
    let is_open = |modal: &Modal| matches!(modal, Modal::Dialog(Dialog { ask: Ask::Leave, .. }));
    if !state.modals.last().is_some_and(is_open) {
        state.modals.push(Modal::Dialog(Dialog::leaving(view, state.now)));
    }
    Vec::new()
}

#[cfg(test)]
mod tests;
