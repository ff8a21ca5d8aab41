//! What an operator may say, and when it is refused.

use serde::{Deserialize, Serialize};

/// A command, as keys, choices and headless mode give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Run the next phase, then wait again.
    Step,
    /// Run phase after phase until something asks for a person.
    Continue,
    /// Start nothing new; what the servers already do goes on and stays visible.
    Pause,
    /// New architecture, while a person has the word: ask once more for a drain that was lost with its coordinator.
    AskAgain,
    /// Try the phase that asked for a person again.
    Retry,
    /// Give the phase that ran into its deadline as much time again.
    Wait,
    /// The thing the rollout cannot see has been done: the hand-over of PD and `TiKV`.
    Confirm,
    /// By name, with a reason: leave out the phase that asks or comes next, or its node.
    Skip,
    /// By name, with a reason: restart a capture although tables are on it.
    Force,
    /// By name, with a reason: what is owed there is owed no more, although nothing shows that it was paid.
    Waive,
    /// Give the rollout up; says what that leaves behind.
    Abort,
    /// After an abort: restart the drained capture on the binary it has.
    Recover,
    /// After an abort: start a process that was stopped.
    Start,
    /// After an abort: send `/upgrade/finish`, so that user DDL runs again.
    Finish,
    /// After an abort: end, and accept what is still owed.
    Close,
}

impl Command {
    /// Every command, in the order help shows them.
    pub const ALL: [Self; 15] = [
        Self::Step,
        Self::Continue,
        Self::Pause,
        Self::AskAgain,
        Self::Retry,
        Self::Wait,
        Self::Confirm,
        Self::Skip,
        Self::Force,
        Self::Waive,
        Self::Abort,
        Self::Recover,
        Self::Start,
        Self::Finish,
        Self::Close,
    ];

    /// The stable name, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Continue => "continue",
            Self::Pause => "pause",
            Self::AskAgain => "ask_again",
            Self::Retry => "retry",
            Self::Wait => "wait",
            Self::Confirm => "confirm",
            Self::Skip => "skip",
            Self::Force => "force",
            Self::Waive => "waive",
            Self::Abort => "abort",
            Self::Recover => "recover",
            Self::Start => "start",
            Self::Finish => "finish",
            Self::Close => "close",
        }
    }

    /// Whether it is only given with a name and a reason.
    pub const fn is_by_name(self) -> bool {
        matches!(self, Self::Skip | Self::Force | Self::Waive)
    }

    /// What it does, in one line.
    pub const fn help(self) -> &'static str {
        match self {
            Self::Step => "run the next phase, then wait",
            Self::Continue => "run on until something needs a person",
            Self::Pause => "start nothing new; the servers go on with what they have",
            Self::AskAgain => "while paused: ask again for a drain that its coordinator has lost",
            Self::Retry => "try the waiting phase again",
            Self::Wait => "give the waiting phase as much time again",
            Self::Confirm => "say that the hand-over has been done",
            Self::Skip => "leave out what asks or comes next",
            Self::Force => "restart a capture although tables are on it",
            Self::Waive => "let go of something that is owed",
            Self::Abort => "give the rollout up, and see what that leaves",
            Self::Recover => "after an abort: restart the drained capture on the binary it has",
            Self::Start => "after an abort: start the stopped process again",
            Self::Finish => "after an abort: let user DDL run again",
            Self::Close => "after an abort: end here, with what is still owed",
        }
    }
}

/// A command as it is given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instruction {
    /// Which.
    pub command: Command,
    /// For those that are given by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<Consent>,
}

/// What a person typed to show that they mean it: journaled with the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consent {
    /// The name of what it is about: see [`super::view::ByName`].
    pub typed: String,
    /// Why.
    pub reason: String,
}

impl From<Command> for Instruction {
    fn from(command: Command) -> Self {
        Self { command, consent: None }
    }
}

impl Instruction {
    /// A command by name.
    pub fn by_name(command: Command, typed: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { command, consent: Some(Consent { typed: typed.into(), reason: reason.into() }) }
    }
}

/// Who gave a command: a person at a terminal, or the program on somebody's behalf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// `user@host`, `headless`, `signal`.
    pub name: String,
}

impl Who {
    /// A name as it will be recorded.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

/// Whether a command may be given now; if not, why.
pub type Permission = Result<(), String>;
