//! Dialogs that ask before something that cannot be taken back, and the words for what it leaves behind.
//!
//! The harmless button has the focus, the first 300 ms take no answer (a held key would give it), and a dialog keeps
//! what it was opened for: when that is gone, so is the dialog.

use std::time::Duration;

use crate::cluster::{Liveness, Timestamp};
use crate::rollout::command::Command;
use crate::rollout::view::{Choice, Mode, PhaseKind, PhaseState, Standing, StepKind, View};

use super::typed::Typed;

/// How long a dialog stands before it takes an answer.
pub(crate) const SETTLES: Duration = Duration::from_millis(300);

/// What a button does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Nothing.
    Cancel,
    /// Gives the command.
    Tell(Command),
    /// Leaves at once.
    Leave,
    /// Pauses, then leaves.
    PauseAndLeave,
    /// Opens the abort dialog.
    AbortDialog,
}

/// A button.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Button {
    /// Its letter.
    pub(crate) key: char,
    /// Its words.
    pub(crate) label: String,
    /// What it does.
    pub(crate) answer: Answer,
}

/// What a dialog asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Whether to give this command.
    Command(Command),
    /// How to leave.
    Leave,
}

/// A dialog.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dialog {
    /// What it asks.
    pub(crate) ask: Ask,
    /// The title.
    pub(crate) title: String,
    /// The paragraphs.
    pub(crate) text: Vec<String>,
    /// The buttons, the harmless first.
    pub(crate) buttons: Vec<Button>,
    /// The button with the focus.
    pub(crate) focus: usize,
    /// Since when it shows this text.
    pub(crate) since: Timestamp,
    /// What must be typed before anything but the first button works, and what has been typed.
    pub(crate) typed: Option<Typed>,
    /// What it was opened for.
    about: String,
}

impl Dialog {
    /// The dialog before a command, as the rollout stands now.
    pub(crate) fn before(command: Command, view: &View, now: Timestamp) -> Self {
        let target = target(command, view);
        let named = view.by_name.iter().find(|named| named.command == command);
        let means = || named.map_or_else(|| vec![command.help().to_owned()], |named| named.means.clone());
        let cancel = |label: &str| Button { key: 'n', label: label.to_owned(), answer: Answer::Cancel };
        let go = |label: &str| Button { key: 'y', label: label.to_owned(), answer: Answer::Tell(command) };
        let (title, mut text, keep, verb) = match command {
            Command::Abort => ("Abort the rollout?".to_owned(), left_behind(view), "keep going", "abort"),
            Command::Recover => {
                let text = vec![
                    format!("{target} is drained until empty, then restarted on the binary it has."),
                    "That pays what the aborted drain owes: it takes tables again afterwards.".to_owned(),
                ];
                (format!("Recover {target}?"), text, "not now", "recover")
            }
            Command::Start => {
                let text = vec![format!("The process at {target} is started. Nothing is stopped.")];
                (format!("Start {target}?"), text, "not now", "start it")
            }
            Command::Finish => {
                let text = vec![
                    "/upgrade/finish is sent: the TiDB cluster leaves the upgrading state and user DDL runs again."
                        .to_owned(),
                ];
                ("Finish the TiDB upgrade?".to_owned(), text, "not now", "finish")
            }
            Command::Close => {
                let text = vec!["The rollout ends here; this program pays nothing any more.".to_owned()];
                ("End here?".to_owned(), text, "stay", "end here")
            }
            Command::Confirm => {
                let text = vec![
                    "You say that PD and TiKV have been upgraded; the rollout goes on to TiDB on your word.".to_owned(),
                ];
                ("Has the hand-over been done?".to_owned(), text, "not yet", "it is done")
            }
            Command::Skip => (format!("Skip {target}?"), means(), "keep it", "skip it"),
            Command::Force => (format!("Restart {target} by force?"), means(), "keep waiting", "restart it"),
            Command::Waive => ("Let go of what is owed?".to_owned(), means(), "keep it", "waive it"),
            Command::Step | Command::Continue | Command::Pause | Command::AskAgain | Command::Retry | Command::Wait => {
                (format!("{}?", command.name()), vec![command.help().to_owned()], "cancel", command.name())
            }
        };
        // The engine knows best what the command does here and now.
        if let (Some(choice), Some(first)) = (chosen(command, view), text.first_mut()) {
            *first = choice;
        }
        if command == Command::Abort {
            text.extend(offered(view));
        }
        if matches!(command, Command::Abort | Command::Close) {
            text.extend(owed(view));
        }
        let is_named_abort = command == Command::Abort && is_restarting(view);
        let typed = match named {
            Some(named) => Some(Typed::with_reason(named)),
            None => is_named_abort.then(|| Typed::name(command, &target)),
        };
        Self {
            ask: Ask::Command(command),
            title,
            text,
            buttons: vec![cancel(keep), go(verb)],
            focus: 0,
            since: now,
            typed,
            about: about(command, view),
        }
    }

    /// The dialog before leaving.
    pub(crate) fn leaving(view: &View, now: Timestamp) -> Self {
        let button = |key, label: &str, answer| Button { key, label: label.to_owned(), answer };
        let mut buttons = vec![button('n', "stay", Answer::Cancel)];
        if view.permission(Command::Pause).is_ok() {
            buttons.push(button('p', "pause and leave", Answer::PauseAndLeave));
        }
        buttons.push(button('l', "leave", Answer::Leave));
        if view.permission(Command::Abort).is_ok() {
            buttons.push(button('x', "abort…", Answer::AbortDialog));
        }
        let mut text = vec![
            "This program starts nothing new once you leave; what the servers are doing goes on without it.".to_owned(),
        ];
        text.extend(going_on(view));
        text.extend(owed(view));
        Self {
            ask: Ask::Leave,
            title: "Leave tiroll?".to_owned(),
            text,
            buttons,
            focus: 0,
            since: now,
            typed: None,
            about: String::new(),
        }
    }

    /// Whether it has stood long enough to take an answer.
    pub(crate) fn is_settled(&self, now: Timestamp) -> bool {
        now.since(self.since) >= SETTLES
    }

    /// To the next field or button.
    pub(crate) fn forward(&mut self) {
        if !self.typed.as_mut().is_some_and(Typed::forward) {
            self.turn(1);
        }
    }

    /// To the field or button before.
    pub(crate) fn back(&mut self) {
        if self.focus > 0 || !self.typed.as_mut().is_some_and(Typed::back) {
            self.turn(self.buttons.len().saturating_sub(1));
        }
    }

    /// So many buttons on, and around.
    pub(crate) fn turn(&mut self, by: usize) {
        self.focus = (self.focus + by) % self.buttons.len().max(1);
    }

    fn is_still_about(&self, command: Command, view: &View) -> bool {
        about(command, view) == self.about && view.permission(command).is_ok()
    }

    /// Follows the rollout while open. `Err` says why the dialog has to go.
    pub(crate) fn follow(&mut self, view: &View, now: Timestamp) -> Result<(), String> {
        let fresh = match self.ask {
            Ask::Leave => Self::leaving(view, now),
            Ask::Command(Command::Abort) => {
                if let Err(why) = view.permission(Command::Abort) {
                    return Err(format!("nothing was aborted: {why}"));
                }
                Self::before(Command::Abort, view, now)
            }
            Ask::Command(command) if command.is_by_name() && self.is_still_about(command, view) => {
                Self::before(command, view, now)
            }
            Ask::Command(command) => {
                if !self.is_still_about(command, view) {
                    return Err(format!("the rollout moved on; {} was not given", command.name()));
                }
                return Ok(());
            }
        };
        if fresh.text != self.text || fresh.buttons != self.buttons {
            // Whoever has a finger on Enter has read another text: the answer counts only once this one has stood too.
            let focus = self.buttons.get(self.focus).map(|button| button.answer);
            let kept = fresh.buttons.iter().position(|button| Some(button.answer) == focus).unwrap_or(0);
            let before = self.typed.take();
            *self = Self { focus: kept, ..fresh };
            if let (Some(typed), Some(before)) = (&mut self.typed, before) {
                typed.keep(before);
            }
        }
        Ok(())
    }
}

/// The address a command is about.
fn target(command: Command, view: &View) -> String {
    let asked = view.question.as_ref().map(|question| question.target.clone());
    let current = || view.current().map(|(step, _)| step.target.clone());
    let owed = |kind: &str| view.owed.iter().find(|owed| owed.kind == kind).map(|owed| owed.target.clone());
    let target = match command {
        Command::Recover => owed("restart").or(asked).or_else(current),
        Command::Start => owed("start").or(asked).or_else(current),
        _ => current().or(asked),
    };
    target.unwrap_or_else(|| "the node".to_owned())
}

/// What a command would be given for: when this changes, an open dialog is about something that is gone.
fn about(command: Command, view: &View) -> String {
    let question = view.question.as_ref().map(|question| format!("{} {}", question.reason, question.step));
    format!("{} {}", target(command, view), question.unwrap_or_default())
}

/// What the engine says the command will do here.
fn chosen(command: Command, view: &View) -> Option<String> {
    let mut choices = view.question.iter().flat_map(|question| &question.choices);
    let choice = choices.find(|choice| choice.command == command && command != Command::Abort)?;
    Some(sentence(label(choice)))
}

/// What a choice does, without its own name in front.
pub(crate) fn label(choice: &Choice) -> &str {
    let text = if choice.label.is_empty() { choice.command.help() } else { &choice.label };
    text.strip_prefix(choice.command.name()).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(text)
}

/// As a sentence: with a capital and a full stop, whatever it came as.
pub(crate) fn sentence(text: &str) -> String {
    let mut chars = text.trim_end_matches('.').chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

fn is_restarting(view: &View) -> bool {
    view.current().is_some_and(|(_, phase)| phase.kind == PhaseKind::Restart && phase.state == PhaseState::Running)
}

/// What goes on after the program is left.
fn going_on(view: &View) -> Vec<String> {
    if matches!(view.mode, Mode::Aborted | Mode::Ended(_)) {
        return Vec::new();
    }
    left_behind(view)
}

/// What an abort now would leave behind, in sentences.
pub(crate) fn left_behind(view: &View) -> Vec<String> {
    let mut text = vec![by_phase(view)];
    if let Some(mix) = mix(view) {
        text.push(mix);
    }
    text
}

/// What the abort then offers.
fn offered(view: &View) -> Option<String> {
    let (step, phase) = view.current()?;
    let target = &step.target;
    match (phase.kind, step.kind) {
        _ if !matches!(phase.state, PhaseState::Running | PhaseState::Asking) => None,
        (PhaseKind::Drain, _) if matches!(drained(view), Some((_, Some(Liveness::Alive)))) => None,
        (PhaseKind::Drain, _) => {
            Some(format!("You are then offered to recover it: restart it on {}.", binary(view, target)))
        }
        (PhaseKind::Restart, StepKind::Capture | StepKind::Recover) => {
            Some("You are then offered to start it, should it be down.".to_owned())
        }
        (PhaseKind::EnterUpgrading | PhaseKind::LeaveUpgrading, _) => {
            Some("You are then offered to finish the upgrade, so that user DDL runs again.".to_owned())
        }
        _ => None,
    }
}

/// The version a capture has, for a sentence.
fn binary(view: &View, address: &str) -> String {
    let mut captures = view.groups.iter().flat_map(|group| &group.captures);
    let capture = captures.find(|capture| capture.address == address && capture.standing != Standing::Ghost);
    let version = capture.and_then(|capture| capture.version.as_ref());
    version.map_or_else(|| "the binary it has".to_owned(), ToString::to_string)
}

/// What the capture that is being drained is, and calls itself.
fn drained(view: &View) -> Option<(Standing, Option<Liveness>)> {
    let capture = view.capture(&view.drain.as_ref()?.capture)?;
    Some((capture.standing, capture.liveness.meaning))
}

fn by_phase(view: &View) -> String {
    let nothing = if view.owed.is_empty() {
        "Nothing new is left behind: no phase is under way.".to_owned()
    } else {
        "No phase is under way; what is owed stays so.".to_owned()
    };
    let Some((step, phase)) = view.current() else { return nothing };
    if !matches!(phase.state, PhaseState::Running | PhaseState::Asking) {
        return nothing;
    }
    let target = &step.target;
    let hangs = "user DDL hangs until the upgrade is finished";
    match (phase.kind, step.kind) {
        (PhaseKind::Resign, _) => {
            format!("{target} has been asked to hand the owner's duty over; another owner may stand.")
        }
        (PhaseKind::Drain, _) => match drained(view) {
            None | Some((Standing::Ghost | Standing::Silent, _)) => {
                format!("{target} does not answer as the process that was to be drained; see what became of it.")
            }
            Some((_, Some(Liveness::Alive))) => {
                format!("{target} still calls itself alive: the drain has not taken hold so far, and may yet.")
            }
            Some(_) => format!(
                "{target} goes on draining and takes no table again until it is restarted; meanwhile the whole cluster \
                 does not balance."
            ),
        },
        (PhaseKind::Restart, StepKind::Tidb) => {
            format!(
                "{target} may be down or half-way to the new version, and {hangs}. Nothing rolls it back by itself."
            )
        }
        (PhaseKind::Restart, _) => format!("{target} is being restarted; it may stay down."),
        (PhaseKind::Verify | PhaseKind::Settle, StepKind::Tidb) => {
            format!("{target} has been restarted; versions are mixed and {hangs}.")
        }
        (PhaseKind::Verify, _) => format!("{target} has been restarted, but nothing proves yet that it works."),
        (PhaseKind::Settle, _) => format!("{target} runs the new binary; its changefeeds may still be behind."),
        (PhaseKind::HandOver, _) => "PD and TiKV stay as they are now; TiDB is not upgraded.".to_owned(),
        (PhaseKind::EnterUpgrading, _) => format!("The TiDB cluster may be in the upgrading state: then {hangs}."),
        (PhaseKind::LeaveUpgrading, _) => {
            format!("The TiDB cluster may still be in the upgrading state: then {hangs}.")
        }
    }
}

/// How many captures run what, if not all run the same.
fn mix(view: &View) -> Option<String> {
    let to = view.title.to.as_ref()?;
    let captures = || view.groups.iter().flat_map(|group| &group.captures);
    let (all, at_target) = (captures().count(), captures().filter(|c| c.version.as_ref() == Some(to)).count());
    (at_target > 0 && at_target < all).then(|| format!("Versions stay mixed: {at_target} of {all} captures run {to}."))
}

/// What is owed, a sentence each.
pub(crate) fn owed(view: &View) -> Vec<String> {
    if view.owed.is_empty() {
        return vec!["Owed: nothing.".to_owned()];
    }
    // What it means has been said above; what pays it has not.
    view.owed.iter().map(|owed| format!("Owed: {} {}. By hand: {}", owed.kind, owed.target, owed.how)).collect()
}
