//! The phases: one small machine each, which looks at the picture and says whether it stays, ends, goes back or asks.
//!
//! A machine never changes the plan and never decides what comes next; it may send effects through the engine, and only
//! while [`Turn::may_act`] says so, but for a drain that was lost with its coordinator ([`Turn::may_ask_again`]).

use std::time::Duration;

use super::command::Command;
use super::view::{Choice, PhaseKind, Question};

pub mod act;
pub mod drain;
pub mod resign;
pub mod restart;
pub mod settle;
pub mod tidb;
pub mod upgrading;
pub mod verify;

/// What a machine says after a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Not over; this is what it waits for.
    Stay(String),
    /// Over, on this evidence.
    Done(String),
    /// Only a person can decide.
    Ask(Box<Question>),
    /// An earlier phase of the same step must be done again, and why.
    Back(PhaseKind, String),
}

/// What a machine is given beside the engine.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// Whether it may send anything.
    pub may_act: bool,
    /// Whether a drain that is open may be asked for again, although nothing else may be sent.
    pub may_ask_again: bool,
    /// How long it has run, pauses left out. Deadlines are measured by it.
    pub spent: Duration,
}

/// The machine of the phase that runs.
#[derive(Clone, Debug)]
pub enum Machine {
    /// See [`resign`].
    Resign(resign::Resign),
    /// See [`drain`].
    Drain(Box<drain::Drain>),
    /// See [`restart`].
    Restart(restart::Restart),
    /// See [`verify`].
    Verify(verify::Verify),
    /// See [`settle`].
    Settle(settle::Settle),
    /// See [`tidb`].
    TidbRestart(tidb::TidbRestart),
    /// See [`tidb`].
    TidbVerify(tidb::TidbVerify),
    /// See [`upgrading`].
    HandOver(upgrading::HandOver),
    /// See [`upgrading`].
    Enter(upgrading::Enter),
    /// See [`upgrading`].
    Leave(upgrading::Leave),
}

/// A question in its three parts, with the choices every phase has beside those of its own.
pub(super) fn question(
    reason: &'static str,
    what: impl Into<String>,
    means: impl Into<String>,
    advice: impl Into<String>,
    own: &[(Command, &str)],
) -> Question {
    let mut choices: Vec<Choice> =
        own.iter().map(|(command, label)| Choice { command: *command, label: (*label).to_owned() }).collect();
    choices.push(Choice { command: Command::Abort, label: "give the rollout up; says what is left behind".to_owned() });
    Question {
        reason: reason.into(),
        step: String::new(),
        target: String::new(),
        what: what.into(),
        means: means.into(),
        advice: advice.into(),
        choices,
    }
}

/// The same as what a phase says after a look.
pub(super) fn ask(
    reason: &'static str,
    what: impl Into<String>,
    means: impl Into<String>,
    advice: impl Into<String>,
    own: &[(Command, &str)],
) -> Flow {
    Flow::Ask(Box::new(question(reason, what, means, advice, own)))
}

/// The choice that nearly every question has.
pub(super) const LOOK_AGAIN: (Command, &str) = (Command::Retry, "look again and go on from here");
/// The choice of a deadline.
pub(super) const WAIT_LONGER: (Command, &str) = (Command::Wait, "wait as long again");
