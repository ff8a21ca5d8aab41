//! Who has the word, and what each command does. Whether one may be given is a table of its own ([`super::permission`]).

use super::command::{Command, Instruction, Permission, Who};
use super::engine::{Engine, StepOutput};
use super::event::Fact;

use super::view::{Ending, Mode, Outcome, PhaseState, Question};
use serde::{Deserialize, Serialize};

use super::durable::Tracked;
use crate::cluster::Timestamp;

/// Who has the word, as far as it outlives the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Where the rollout is in its life.
    pub life: Life,
    /// Whether phase follows phase without being told.
    pub is_auto: bool,
    /// Whether a person paused.
    pub is_paused: bool,
    /// Who aborted, in which phase.
    pub aborted: Option<String>,
    /// What was let go of by name, by whom and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waived: Vec<String>,
}

/// Where the rollout is in its life.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Life {
    /// The cluster is being read; there is no plan yet.
    #[default]
    Reading,
    /// Looking only.
    Watching,
    /// Phases run.
    Going,
    /// Aborted; what is owed can be paid.
    Aborted,
    /// Over.
    Ended(Ending),
}

/// Where the rollout is, and what is asked at the moment.
#[derive(Clone, Debug)]
pub struct State {
    standing: Tracked<Standing>,
    is_granted: bool,
    /// It goes on from a journal, and no person has chosen how yet.
    is_undecided: bool,
    /// A person who paused said to ask for the drain once more.
    asks_again: bool,
    /// The program slept, and the cluster has not been read since this moment.
    unread_since: Option<Timestamp>,
    question: Option<Question>,
    /// A machine asked for its deadline to count from now.
    pub(super) reset_spent: bool,
}

impl State {
    /// The state before anything was read.
    pub const fn new(is_auto: bool, is_watch: bool) -> Self {
        let life = if is_watch { Life::Watching } else { Life::Reading };
        let standing = Standing { life, is_auto, is_paused: false, aborted: None, waived: Vec::new() };
        Self {
            standing: Tracked::new(standing),
            is_granted: false,
            is_undecided: false,
            asks_again: false,
            unread_since: None,
            question: None,
            reset_spent: false,
        }
    }

    /// Goes on from where a journal left it, undecided.
    pub fn resume(&mut self, standing: Standing) {
        // A program that ended because a person was needed, or was told to, did not end the rollout.
        let life = match standing.life {
            Life::Ended(ending) if ending.outcome.is_of_program() => Life::Going,
            Life::Ended(Ending { outcome: Outcome::Aborted, .. }) => Life::Aborted,
            other => other,
        };
        let is_as_kept = !matches!(life, Life::Going | Life::Aborted);
        let standing = Standing { life, ..standing };
        self.standing = if is_as_kept { Tracked::kept(standing) } else { Tracked::new(standing) };
        self.is_undecided = true;
    }

    /// A person chose how to go on.
    pub const fn decide(&mut self) {
        self.is_undecided = false;
    }

    /// What of it outlives the program.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    pub(super) const fn take_touch(&mut self) -> bool {
        self.standing.take_touch()
    }

    /// Whether the plan is still to be made.
    pub fn is_reading(&self) -> bool {
        self.standing.life == Life::Reading
    }

    /// Whether phases run.
    pub fn is_going(&self) -> bool {
        self.standing.life == Life::Going
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        matches!(self.standing.life, Life::Ended(_))
    }

    /// Whether anything may be sent.
    pub fn may_act(&self) -> bool {
        self.is_unheld() && self.unread_since.is_none()
    }

    /// Whether no person has the word: at most a reading after a gap is waited for.
    pub fn is_unheld(&self) -> bool {
        self.is_going() && !self.standing.is_paused && self.question.is_none() && !self.is_undecided
    }

    /// Nothing is sent before the cluster was read after this moment.
    pub const fn forget_readings(&mut self, since: Timestamp) {
        self.unread_since = Some(since);
    }

    /// The moment after which the cluster must be read before anything is sent.
    pub const fn unread_since(&self) -> Option<Timestamp> {
        self.unread_since
    }

    /// The cluster has been read since.
    pub const fn trust_readings(&mut self) {
        self.unread_since = None;
    }

    /// Whether a question holds it, and no person's pause.
    pub fn is_held_by_question(&self) -> bool {
        self.is_going() && !self.standing.is_paused && self.question.is_some()
    }

    /// Whether a person who paused said to ask for the drain once more.
    pub fn is_told_to_ask_again(&self) -> bool {
        self.is_going() && self.asks_again
    }

    /// It has been asked for.
    pub const fn use_ask_again(&mut self) {
        self.asks_again = false;
    }

    /// Whether the next phase may begin.
    pub fn may_begin(&self) -> bool {
        self.may_act() && (self.standing.is_auto || self.is_granted)
    }

    /// A phase has begun: a step is used up.
    pub const fn use_grant(&mut self) {
        self.is_granted = false;
    }

    /// The same step goes back to an earlier phase: it need not be granted again.
    pub const fn grant(&mut self) {
        self.is_granted = true;
    }

    /// Something owed was let go of by name.
    pub fn waive(&mut self, what: String) {
        self.standing.waived.push(what);
    }

    /// A person who overruled what held the phase has said that it goes on; who had paused has not said what follows.
    pub fn go_on_once(&mut self) {
        if self.standing.is_paused {
            self.standing.is_paused = false;
            self.standing.is_auto = false;
        }
        self.grant();
    }

    /// The plan stands.
    pub fn begin(&mut self) {
        self.standing.life = Life::Going;
    }

    /// A step that pays what an abort left runs through.
    pub fn pay(&mut self) {
        self.standing.life = Life::Going;
        self.standing.is_auto = true;
    }

    /// What an abort left waits for a person again.
    pub fn await_payment(&mut self) {
        self.standing.life = Life::Aborted;
    }

    /// Who aborted, and in which phase.
    pub fn aborted(&self) -> Option<&str> {
        self.standing.aborted.as_deref()
    }

    /// It has ended.
    pub fn end(&mut self, ending: Ending) {
        self.question = None;
        self.standing.life = Life::Ended(ending);
    }

    /// What is being asked.
    pub const fn question(&self) -> Option<&Question> {
        self.question.as_ref()
    }

    /// Asks; says whether this is a new question.
    pub fn ask(&mut self, question: Question) -> bool {
        let is_new = self.question.as_ref().is_none_or(|before| before.reason != question.reason);
        self.question = Some(question);
        is_new
    }

    /// The question has answered itself.
    pub fn withdraw(&mut self) {
        self.question = None;
    }

    /// What the engine is doing, for people.
    pub fn mode(&self, has_active: bool) -> Mode {
        match &self.standing.life {
            Life::Reading => Mode::Reading,
            Life::Watching => Mode::Watching,
            Life::Ended(ending) => Mode::Ended(ending.clone()),
            Life::Aborted => Mode::Aborted,
            Life::Going if self.question.is_some() => Mode::Asking,
            Life::Going if self.is_undecided => Mode::Reading,
            Life::Going if self.standing.is_paused => Mode::Paused,
            Life::Going if self.standing.is_auto => Mode::Running,
            Life::Going if has_active => Mode::StepRunning,
            Life::Going => Mode::Stepping,
        }
    }
}

impl Engine {
    /// Gives a command at a moment. The answer says whether it was taken, or why not.
    pub fn command(
        &mut self,
        now: Timestamp,
        who: &Who,
        instruction: impl Into<Instruction>,
    ) -> (Permission, StepOutput) {
        self.pass_time(now);
        let instruction = instruction.into();
        let permission = self.consents(&instruction);
        if permission.is_ok() {
            let Instruction { command, consent } = instruction;
            self.emit(Fact::Commanded { who: who.clone(), command, consent: consent.clone() });
            if command.is_by_name() {
                self.obey_by_name(command, consent.as_ref(), who);
            } else {
                self.obey(command, who);
            }
            self.advance();
            self.keep_drain_open();
        }
        (permission, self.finish())
    }

    fn obey(&mut self, command: Command, who: &Who) {
        match command {
            // To look again decides nothing.
            Command::Retry if self.resumed_at.is_some() => return,
            Command::Abort | Command::Continue | Command::Step => self.resume_with(command),
            _ => {}
        }
        match command {
            Command::Step => {
                self.state.use_ask_again();
                self.state.standing.is_auto = false;
                self.state.is_granted = self.active.is_none();
                self.state.standing.is_paused = false;
            }
            Command::Continue if self.acknowledge_guard() => {}
            Command::Continue => {
                self.state.use_ask_again();
                self.state.standing.is_auto = true;
                self.state.standing.is_paused = false;
            }
            Command::Pause => {
                self.state.use_ask_again();
                self.state.standing.is_paused = true;
            }
            Command::AskAgain => self.state.asks_again = true,
            Command::Retry => {
                self.resume_asking();
                self.retry_active();
            }
            Command::Wait => {
                self.resume_asking();
                self.extend_active();
            }
            Command::Confirm => {
                self.resume_asking();
                self.confirm_active();
            }
            // Given by name: see `by_name`.
            Command::Skip | Command::Force | Command::Waive => {}
            Command::Abort => self.abort(who),
            Command::Recover => self.recover(),
            Command::Start => self.start_again(),
            Command::Finish => self.finish_now(),
            Command::Close => self.close(),
        }
    }

    pub(super) fn resume_asking(&mut self) {
        self.state.withdraw();
        self.opening_since = None;
        let resumed = if self.active.is_some() { PhaseState::Running } else { PhaseState::Waiting };
        let (step, phase) = self.cursor;
        if let Some(phase) = self.plan.get_mut(step).and_then(|step| step.phases.get_mut(phase))
            && phase.state == PhaseState::Asking
        {
            phase.state = resumed;
        }
    }

    fn abort(&mut self, who: &Who) {
        let (step, phase) = self.cursor;
        let during = match (&self.active, self.plan.get(step)) {
            (Some(_), Some(at)) => {
                let word = at.phases.get(phase).map_or("", |phase| phase.kind.word());
                format!("during {word} of {}", at.target.label())
            }
            _ => "between two phases".to_owned(),
        };
        self.state.standing.aborted = Some(format!("aborted by {} {during}", who.name));
        self.end_active_as(PhaseState::Aborted, "aborted");
        self.state.standing.life = Life::Aborted;
        self.state.use_ask_again();
        self.forced = None;
        self.state.standing.is_paused = false;
        self.state.standing.is_auto = false;
        self.offer();
    }

    /// Whether it was aborted and waits for what shall be paid.
    pub(super) fn is_aborted(&self) -> bool {
        self.state.standing.life == Life::Aborted
    }
}
