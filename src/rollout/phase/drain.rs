//! `drain`: the capture gives its tables away. It ends on two zero answers with no other number between **and** one
//! empty round begun after the first zero (design section 4); a single zero proves nothing (recorded cdc-classic 79).
//!
//! The machine is the same for both architectures. What a number means is not: classic counts tables, the new
//! architecture remaining work, so there the tables call tells how far it is (see [`progress`]).

mod asking;
mod asks;
mod progress;
mod waits;

use std::time::Duration;

pub(crate) use asking::{Asked, Term};
pub(super) use asking::{Ready, ask_for_drain, beside, ready};

use super::{Flow, LOOK_AGAIN, Turn, ask};
use crate::cluster::{Architecture, CaptureId, Failure, FailureKind, Reading, Timestamp};
use crate::rollout::command::Command;
use crate::rollout::effect::{CallAnswer, EffectId};
use crate::rollout::engine::{Engine, Visit};
use crate::rollout::evidence::{Carried, Verdict, tables_in};
use crate::rollout::view::PhaseKind;
use progress::Progress;

/// The machine.
#[derive(Clone, Debug, Default)]
pub struct Drain {
    /// The request under way, and whom it is about.
    request: Option<(EffectId, CaptureId)>,
    /// The owner that is believed, and since when it stands.
    term: Option<Term>,
    zeros: Zeros,
    judged: Option<Timestamp>,
    empty_round: Option<Timestamp>,
    verdict: Option<Verdict>,
    /// The tables there as they were last read.
    there: Carried,
    progress: Progress,
    /// How long the phase had run when the drain was last answered with a count.
    last_reading: Duration,
    /// How long the phase had run at the first zero in a row.
    zero_since: Option<Duration>,
    refusal: Option<Failure>,
    /// It was refused in a way that asking again does not heal: only a person has it asked again.
    is_refused: bool,
    /// What the maintainers leave out, in words.
    missing: Option<String>,
    deadline_extended_at: Duration,
}

/// The zeros in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Zeros {
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl Zeros {
    fn are_enough(self, apart: Duration) -> bool {
        matches!((self.first, self.last), (Some(first), Some(last)) if last.since(first) >= apart && last > first)
    }
}

impl Drain {
    /// Starts over, keeping nothing that was believed.
    pub fn retry(&mut self) {
        *self = Self { request: self.request.take(), ..Self::default() };
    }

    /// Forgets what was believed before the program slept, but not how long it has run.
    pub fn forget(&mut self, spent: Duration) {
        let deadline_extended_at = self.deadline_extended_at;
        self.retry();
        self.deadline_extended_at = deadline_extended_at;
        self.count_from(spent);
    }

    /// Gives it as much time again.
    pub fn extend(&mut self, spent: Duration) {
        self.deadline_extended_at = spent;
        self.count_from(spent);
        self.zero_since = self.zero_since.map(|_| spent);
    }

    /// What is waited for is waited for from now on.
    fn count_from(&mut self, spent: Duration) {
        self.last_reading = spent;
        self.progress.restart(spent);
    }

    /// Looks, and acts if it may.
    pub fn run(&mut self, engine: &mut Engine, turn: Turn) -> Flow {
        let Some(visit) = engine.visit.value().clone() else { return Flow::Stay("reading the cluster".to_owned()) };
        self.follow_owner(engine, &visit, turn);
        if let Some((id, capture)) = self.request.clone()
            && let Some((sent_at, CallAnswer::Drain(reading))) = engine.take_answer(id)
        {
            self.request = None;
            // An answer to a question about somebody else, or by an owner who has gone since, says nothing here.
            let is_ours = capture == visit.old_id && self.is_by_this_owner(engine, &visit, sent_at);
            if is_ours {
                if let Some(flow) = self.take(engine, &visit, sent_at, reading, turn) {
                    return flow;
                }
            } else if capture == visit.old_id && reading.is_ok_and(|count| count > 0) {
                // Also where the owner could not be read: no other number may lie between two zeros.
                self.forget_zeros();
            }
        }
        self.judge(engine, &visit, turn);
        if self.zeros.are_enough(engine.policy.zeros_apart) && self.empty_round.is_some() {
            engine.drain_done();
            return Flow::Done("two zeros, and one round that found no table there".to_owned());
        }
        if let Some(flow) = self.asks(engine, &visit, turn) {
            // A question that is due must not keep a lost drain from being asked for again.
            if turn.may_ask_again {
                let _ = self.send(engine, &visit, turn);
            }
            return flow;
        }
        self.send(engine, &visit, turn)
    }

    /// An owner change discards zeros and rounds, also where the same capture is elected again: the new one has not
    /// looked yet. Its first counts are of changefeeds it has not looked at, so progress is measured anew too.
    fn follow_owner(&mut self, engine: &Engine, visit: &Visit, turn: Turn) {
        let term = engine.term(visit);
        if term.is_some() && term != self.term {
            if self.term.is_some() {
                self.progress.begin_under_another(turn.spent);
            }
            self.term = term;
            self.forget_zeros();
        }
    }

    fn forget_zeros(&mut self) {
        self.zeros = Zeros::default();
        self.zero_since = None;
        self.empty_round = None;
    }

    fn is_by_this_owner(&self, engine: &Engine, visit: &Visit, sent_at: Timestamp) -> bool {
        let term = engine.term(visit);
        term.is_some() && term == self.term && term.is_some_and(|(_, since)| sent_at >= since)
    }

    fn take(
        &mut self,
        engine: &mut Engine,
        visit: &Visit,
        sent_at: Timestamp,
        reading: Reading<u64>,
        turn: Turn,
    ) -> Option<Flow> {
        let count = match reading {
            Ok(count) => count,
            Err(why) => return self.refused(engine, visit, why),
        };
        self.refusal = None;
        self.last_reading = turn.spent;
        if count == 0 {
            self.zeros.first = self.zeros.first.or(Some(sent_at));
            self.zeros.last = Some(sent_at);
            self.zero_since = self.zero_since.or(Some(turn.spent));
        } else {
            self.forget_zeros();
        }
        match visit.architecture {
            Architecture::Classic if self.progress.is_of_tables(engine, visit, count) => {
                self.progress.count(count, turn.spent);
                engine.drain_counted(count, sent_at);
            }
            Architecture::Classic => {}
            Architecture::New => {
                self.progress.work(count);
                engine.drain_was_answered(visit, count, sent_at);
                engine.drain_worked(count);
            }
        }
        None
    }

    fn refused(&mut self, engine: &mut Engine, visit: &Visit, why: Failure) -> Option<Flow> {
        let at = &visit.address;
        self.is_refused = is_for_good(why.kind);
        let flow = match why.kind {
            FailureKind::CannotDrainOwner => {
                // What the list said since may already be otherwise; the next look decides.
                owns_again(engine, visit)
            }
            // Whether it is gone the list of an owner who stands tells, whatever the call says.
            FailureKind::NoSuchCapture => {
                self.refusal = Some(why);
                return None;
            }
            FailureKind::OnlyOneCapture => ask(
                "only_one_capture",
                "Only one capture is alive, so its tables have nowhere to go.".to_owned(),
                "A restart now would stop replication until the process is back.",
                "Bring another capture up, then look again.",
                &[LOOK_AGAIN],
            ),
            FailureKind::IncompatibleTikv => ask(
                "incompatible_tikv",
                format!("TiCDC will not drain: {}", why.message),
                "TiKV is newer (or older) than this TiCDC supports, and asking again will not heal that.",
                "Check the order of the upgrade: TiCDC goes before TiKV from v5.1.0 on.",
                &[LOOK_AGAIN],
            ),
            _ if why.kind.is_transient() || matches!(why.kind, FailureKind::Malformed | FailureKind::OtherDrain) => {
                self.refusal = Some(why);
                return None;
            }
            _ => ask(
                "drain_refused",
                format!("The drain of {at} was refused: it {why}"),
                "Nothing is known of its tables by that; the capture is left as it is.",
                if why.raw.is_empty() {
                    "Look at the server's log.".to_owned()
                } else {
                    format!("It answered: {}", why.raw)
                },
                &[LOOK_AGAIN],
            ),
        };
        Some(flow)
    }

    fn judge(&mut self, engine: &mut Engine, visit: &Visit, turn: Turn) {
        let Some(round) = engine.round(visit) else { return };
        let begun = round.sweep.begun;
        if self.judged == Some(begun) {
            return;
        }
        self.judged = Some(begun);
        let verdict = round.judge();
        let there = round.tables_there();
        self.missing = round.missing_tables();
        match &verdict {
            Verdict::Empty if self.zeros.first.is_some_and(|first| begun >= first) => self.empty_round = Some(begun),
            Verdict::Carries(_) => self.empty_round = None,
            Verdict::Empty | Verdict::Unknown(_) => {}
        }
        self.verdict = Some(verdict);
        if let Some(there) = there {
            self.progress.tables(tables_in(&there), turn.spent);
            engine.drain_seen(visit, there.clone(), begun);
            self.there = there;
        }
    }

    fn send(&mut self, engine: &mut Engine, visit: &Visit, turn: Turn) -> Flow {
        let note = self.waits_for(engine, visit, turn);
        engine.drain_waits(&note);
        if self.request.is_some() || !engine.drain_is_due() {
            return Flow::Stay(note);
        }
        let term = match ready(engine, visit) {
            Ready::Of(term) => term,
            Ready::NotYet(why) => return Flow::Stay(why),
            Ready::Owns => return owns_again(engine, visit),
            Ready::Asks(flow) => return flow,
        };
        if turn.may_act || (engine.may_ask_again() && !self.is_refused) {
            let id = ask_for_drain(engine, visit, &term);
            self.request = Some((id, visit.old_id.clone()));
        }
        Flow::Stay(note)
    }
}

/// Whether asking again does not heal it.
pub(super) const fn is_for_good(kind: FailureKind) -> bool {
    !kind.is_transient()
        && !matches!(
            kind,
            FailureKind::Malformed
                | FailureKind::OtherDrain
                | FailureKind::NoSuchCapture
                | FailureKind::CannotDrainOwner
                // Nothing was sent.
                | FailureKind::NotAsked
        )
}

/// The target owns: back to `resign` of the same step; the second time a person is asked.
fn owns_again(engine: &mut Engine, visit: &Visit) -> Flow {
    let at = &visit.address;
    let owner = visit.architecture.owner();
    let refusals = engine.visit.as_ref().map_or(0, |visit| visit.owner_refusals);
    if refusals >= 1 {
        return ask(
            "owner_again",
            format!("Capture {at} became the {owner} for the second time in this step."),
            format!("The {owner} cannot be drained."),
            "See why the other captures do not keep the duty; retry asks it once more to resign.",
            &[(Command::Retry, "ask it to resign once more")],
        );
    }
    // Nothing goes back while a person has the word: the look after that decides.
    if !engine.may_act() {
        return Flow::Stay(format!("{at} is the {owner} now"));
    }
    if let Some(visit) = &mut *engine.visit {
        visit.owner_refusals += 1;
    }
    Flow::Back(PhaseKind::Resign, format!("{at} is the {owner} now and cannot be drained"))
}
