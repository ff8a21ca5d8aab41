//! One act on a process, from its order to what came of it: the same for a capture and for a `TiDB` server.
//!
//! The act's end proves nothing; what ends the phase is the executor's return, or a new process that answers.

use super::{Flow, Turn, WAIT_LONGER, ask};
use crate::cluster::units::spoken;
use crate::cluster::{Address, Timestamp, Version};
use crate::rollout::command::Command;
use crate::rollout::effect::{Action, ActionOutcome, Component, EffectId, Verb};
use crate::rollout::engine::Engine;

/// The act of a phase.
#[derive(Clone, Debug, Default)]
pub struct Act {
    order: Option<(EffectId, Timestamp)>,
    /// When one was ordered before, in this phase: its process may come up late.
    before: Option<Timestamp>,
    /// What a person was told to do.
    asked: Option<String>,
    failed: Option<String>,
}

/// The words in which its failures are told.
pub struct Words<'a> {
    /// The process, for people.
    pub what: &'a str,
    /// What a failure means.
    pub means: &'a str,
    /// What retry does.
    pub retry: &'a str,
}

impl Act {
    /// Forgets what was ordered, but not that it was.
    #[must_use]
    pub fn again(&self) -> Self {
        Self { before: self.since(), ..Self::default() }
    }

    /// Since when a new process may be ours; `None` if none was ordered in this phase.
    pub fn since(&self) -> Option<Timestamp> {
        self.before.or_else(|| self.order.map(|(_, since)| since))
    }

    /// Whether it is ordered now.
    pub const fn is_ordered(&self) -> bool {
        self.order.is_some()
    }

    /// Whether it is under way, and by no person's hand.
    pub const fn is_acting(&self) -> bool {
        self.order.is_some() && self.asked.is_none() && self.failed.is_none()
    }

    /// Orders a restart; that the process must come back is owed before it. `id` is the one it answers with now.
    pub(super) fn restart(
        &mut self,
        engine: &mut Engine,
        component: Component,
        address: &Address,
        version: Option<&Version>,
        id: &str,
        forced: bool,
    ) {
        engine.owe_start(component, address, id);
        let action =
            Action { verb: Verb::Restart, component, address: address.clone(), version: version.cloned(), forced };
        self.order = Some((engine.exec(action), engine.now));
    }

    /// What came of it. `came_back` says what answers there now, if it is another process than before the order.
    pub(super) fn follow(
        &mut self,
        engine: &mut Engine,
        turn: Turn,
        words: &Words<'_>,
        came_back: impl FnOnce(&Engine, Timestamp) -> Option<String>,
    ) -> Flow {
        let Some((id, since)) = self.order else { return Flow::Stay("restarting".to_owned()) };
        match engine.take_outcome(id) {
            Some(ActionOutcome::Returned { detail }) => {
                engine.note_return();
                return Flow::Done(detail);
            }
            Some(ActionOutcome::Failed { message }) => self.failed = Some(message),
            Some(ActionOutcome::Asked { text }) => self.asked = Some(text),
            None => {}
        }
        if let Some(evidence) = came_back(engine, since) {
            engine.note_return();
            return Flow::Done(evidence);
        }
        let Words { what, means, retry } = words;
        if let Some(message) = &self.failed {
            return ask(
                "executor_failed",
                format!("The restart of {what} failed: {message}."),
                *means,
                format!("Look at the node. If the process comes up by itself this step notices; retry will {retry}."),
                &[(Command::Retry, retry)],
            );
        }
        if self.asked.is_none() && turn.spent >= engine.policy.verify_deadline {
            return ask(
                "executor_silent",
                format!("The restart of {what} was ordered {} ago and nothing came of it.", spoken(turn.spent)),
                "It is not known whether the process was stopped. Nothing else is stopped meanwhile.",
                format!("Look at the node. If a new process answers this step notices; retry will {retry}."),
                &[WAIT_LONGER, (Command::Retry, retry)],
            );
        }
        self.asked.clone().map_or_else(|| Flow::Stay(format!("restarting for {}", spoken(turn.spent))), Flow::Stay)
    }
}
