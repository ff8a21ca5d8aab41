//! Which command may be given when: one table, [`rule`]. The engine asks it and nothing else; its word is in every view,
//! where keys, footer, help, headless mode and whoever is attached read it.

use super::command::{Command, Permission};
use super::control::Life;
use super::engine::Engine;
use super::view::Mode;

/// What the rollout is doing, as far as it decides what may be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// There is no plan yet.
    Reading,
    /// It goes on from a journal, and the cluster has not been read yet.
    Resuming,
    /// It looks only.
    Watching,
    /// Phase after phase runs.
    Running,
    /// A phase runs, and the rollout waits after it.
    StepRunning,
    /// The next phase waits for a word.
    Stepping,
    /// A person said pause.
    Paused,
    /// A question is open.
    Asking,
    /// Aborted; what is owed can be paid.
    Aborted,
    /// Over.
    Ended,
}

impl Stage {
    /// Every stage, in the order a rollout comes through them.
    pub const ALL: [Self; 10] = [
        Self::Reading,
        Self::Resuming,
        Self::Watching,
        Self::Running,
        Self::StepRunning,
        Self::Stepping,
        Self::Paused,
        Self::Asking,
        Self::Aborted,
        Self::Ended,
    ];

    /// A word for people.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Resuming => "resuming",
            Self::Watching => "watching",
            Self::Running => "running",
            Self::StepRunning => "one phase",
            Self::Stepping => "waiting",
            Self::Paused => "paused",
            Self::Asking => "asking",
            Self::Aborted => "aborted",
            Self::Ended => "ended",
        }
    }
}

/// One cell of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// It may be given.
    Yes,
    /// It may not, for this reason.
    No(&'static str),
    /// It may if the open question offers it; why not otherwise.
    Offered(&'static str),
    /// It may if this holds, which only the engine knows.
    If(Condition),
}

/// What must hold for a command beside the stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// No phase is under way.
    NoPhase,
    /// A drain was lost with its coordinator, and the rollout does not ask for it by itself.
    DrainLost,
    /// The question offers it, or a lost drain is asked for under the question, which a pause stops.
    OfferedOrDrainLost,
    /// What comes next, or asks, can be left out.
    CanBeSkipped,
    /// A capture is being drained, is not the owner, and its restart was not ordered.
    CanBeForced,
    /// Something is owed that nothing in hand pays.
    Owing,
}

/// Whether a command may be given at a stage.
#[expect(clippy::match_same_arms, reason = "a table: one line for each command and what it is at which stage")]
pub const fn rule(stage: Stage, command: Command) -> Rule {
    use Command as C;
    use Stage as S;
    match (stage, command) {
        (S::Reading, _) => READING,
        (S::Resuming, C::Abort) => Rule::Yes,
        (S::Resuming, _) => READING,
        (S::Watching, _) => Rule::No("this only watches; start an upgrade to steer one"),
        (S::Ended, _) => Rule::No("the rollout has ended"),

        (S::Aborted, C::Waive) => Rule::If(Condition::Owing),
        (S::Aborted, C::Recover | C::Start | C::Finish | C::Close) => {
            Rule::Offered("nothing calls for that: the question says what is left behind")
        }
        (S::Aborted, _) => Rule::No("the rollout was aborted; what is owed can be paid"),

        (S::Asking, C::Abort) => Rule::Yes,
        (S::Asking, C::Pause) => Rule::If(Condition::OfferedOrDrainLost),
        (S::Asking, C::Skip) => Rule::If(Condition::CanBeSkipped),
        (S::Asking, C::Force) => Rule::If(Condition::CanBeForced),
        (S::Asking, C::Waive) => Rule::If(Condition::Owing),
        (S::Asking, C::Recover | C::Start | C::Finish | C::Close) => AFTER_ABORT,
        (S::Asking, _) => Rule::Offered("a question is open; choose one of its answers"),

        (_, C::Abort) => Rule::Yes,
        (S::Running | S::StepRunning, C::Pause) => Rule::Yes,
        (S::Stepping, C::Pause) => Rule::No("nothing runs: the next phase waits for step"),
        (S::Paused, C::Pause) => Rule::No("it is paused already"),
        (S::Running, C::Continue) => Rule::No("it runs on already"),
        (_, C::Continue) => Rule::Yes,
        (S::Running | S::StepRunning, C::Step) => Rule::If(Condition::NoPhase),
        (_, C::Step) => Rule::Yes,
        (_, C::AskAgain) => Rule::If(Condition::DrainLost),
        (S::Running | S::StepRunning, C::Skip | C::Force) => {
            Rule::No("pause first; what runs is not taken away under it")
        }
        (_, C::Skip) => Rule::If(Condition::CanBeSkipped),
        (_, C::Force) => Rule::If(Condition::CanBeForced),
        (_, C::Waive) => Rule::If(Condition::Owing),
        (_, C::Retry | C::Wait | C::Confirm) => Rule::No("nothing is being asked"),
        (_, C::Recover | C::Start | C::Finish | C::Close) => AFTER_ABORT,
    }
}

const READING: Rule = Rule::No("the cluster is still being read");
const AFTER_ABORT: Rule = Rule::No("that is offered after an abort");

impl Engine {
    /// What the rollout is doing, as far as it decides what may be said.
    pub fn stage(&self) -> Stage {
        let is_begun = self.state.standing().life == Life::Going;
        match self.state.mode(self.active.is_some()) {
            Mode::Reading if is_begun => Stage::Resuming,
            Mode::Reading => Stage::Reading,
            Mode::Watching => Stage::Watching,
            Mode::Running => Stage::Running,
            Mode::StepRunning => Stage::StepRunning,
            Mode::Stepping => Stage::Stepping,
            Mode::Paused => Stage::Paused,
            Mode::Asking => Stage::Asking,
            Mode::Aborted => Stage::Aborted,
            Mode::Ended(_) => Stage::Ended,
        }
    }

    /// Whether a command may be given now, or why not.
    pub fn permission(&self, command: Command) -> Permission {
        match rule(self.stage(), command) {
            Rule::Yes => Ok(()),
            Rule::No(why) => Err(why.to_owned()),
            Rule::Offered(why) => self.is_offered(command, why),
            Rule::If(condition) => self.holds(condition, command),
        }
    }

    fn is_offered(&self, command: Command, why_not: &str) -> Permission {
        let mut choices = self.state.question().into_iter().flat_map(|question| &question.choices);
        if choices.any(|choice| choice.command == command) { Ok(()) } else { Err(why_not.to_owned()) }
    }

    fn holds(&self, condition: Condition, command: Command) -> Permission {
        match condition {
            Condition::NoPhase if self.active.is_some() => {
                Err("a phase is running; step again when it is over".to_owned())
            }
            Condition::NoPhase => Ok(()),
            Condition::DrainLost => self.may_be_told_to_ask_again(),
            Condition::OfferedOrDrainLost if self.is_drain_lost() && !self.state.standing().is_paused => Ok(()),
            Condition::OfferedOrDrainLost => self.is_offered(command, "a question is open; choose one of its answers"),
            Condition::CanBeSkipped | Condition::CanBeForced | Condition::Owing => self.by_name(command).map(|_| ()),
        }
    }

    /// Only where a person keeps a lost drain from being asked for: everywhere else the rollout asks by itself.
    fn may_be_told_to_ask_again(&self) -> Permission {
        let open = self.visit.as_ref().filter(|visit| self.owes_drain(&visit.old_id));
        let is_asked_by_itself = self.active.is_some() && !self.state.standing().is_paused;
        match open.is_some_and(|visit| self.is_drain_lost_of(visit)) {
            true if is_asked_by_itself => Err("the rollout asks by itself while it runs".to_owned()),
            true => Ok(()),
            false => Err("no drain was lost: the coordinator has not changed in the middle of one".to_owned()),
        }
    }
}
