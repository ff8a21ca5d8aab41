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

pub(crate) use asking::Asked;
pub(super) use asking::{ask_for_drain, beside};

use super::{Flow, LOOK_AGAIN, Turn, ask};
use crate::cluster::{Architecture, CaptureId, Failure, FailureKind, Reading, Timestamp};
use crate::rollout::command::Command;
use crate::rollout::effect::{CallAnswer, EffectId};
use crate::rollout::engine::{Engine, Visit};
use crate::rollout::evidence::{Carried, Verdict};
use crate::rollout::view::PhaseKind;
use progress::Progress;

/// The machine.
#[derive(Clone, Debug, Default)]
pub struct Drain {
    /// The request under way, and whom it is about.
    request: Option<(EffectId, CaptureId)>,
    owner: Option<CaptureId>,
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

    /// Gives it as much time again.
    pub fn extend(&mut self, spent: Duration) {
        self.deadline_extended_at = spent;
        self.last_reading = spent;
        self.progress.restart(spent);
        self.zero_since = self.zero_since.map(|_| spent);
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
            if is_ours && let Some(flow) = self.take(engine, &visit, sent_at, reading, turn) {
                return flow;
            }
        }
        self.judge(engine, &visit, turn);
        if self.zeros.are_enough(engine.policy.zeros_apart) && self.empty_round.is_some() {
            engine.drain_done();
            return Flow::Done("two zeros, and one round that found no table there".to_owned());
        }
        if let Some(flow) = self.asks(engine, &visit, turn) {
            return flow;
        }
        self.send(engine, &visit, turn)
    }

    /// An owner change discards zeros and rounds: the new owner has not looked yet. Its first counts are of changefeeds
    /// it has not looked at, so progress is measured anew too.
    fn follow_owner(&mut self, engine: &Engine, visit: &Visit, turn: Turn) {
        let owner = engine.picture.owner(&visit.cluster).map(|(id, _)| id.clone());
        if owner.is_some() && owner != self.owner {
            if self.owner.is_some() {
                self.progress.begin_under_another(turn.spent);
            }
            self.owner = owner;
            self.zeros = Zeros::default();
            self.empty_round = None;
            self.zero_since = None;
        }
    }

    fn is_by_this_owner(&self, engine: &Engine, visit: &Visit, sent_at: Timestamp) -> bool {
        let owner = engine.picture.owner(&visit.cluster);
        owner.is_some_and(|(id, since)| Some(id) == self.owner.as_ref() && sent_at >= since)
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
            self.zeros = Zeros::default();
            self.zero_since = None;
            self.empty_round = None;
        }
        match visit.architecture {
            Architecture::Classic if self.progress.is_of_tables(engine, visit, count) => {
                self.progress.count(count, turn.spent);
                engine.drain_counted(count, sent_at);
            }
            Architecture::Classic => {}
            Architecture::New => {
                self.progress.work(count);
                engine.drain_worked(count);
            }
        }
        None
    }

    fn refused(&mut self, engine: &mut Engine, visit: &Visit, why: Failure) -> Option<Flow> {
        let at = &visit.address;
        let flow = match why.kind {
            FailureKind::CannotDrainOwner => {
                // What the list said since may already be otherwise; the next look decides.
                owns_again(engine, visit)
            }
            FailureKind::NoSuchCapture => {
                let group = engine.picture.groups.get(&visit.cluster)?;
                let is_listed = group.captures.known()?.iter().any(|entry| entry.id == visit.old_id);
                let stands =
                    group.owner_since.is_some_and(|since| engine.now.since(since) >= engine.policy.owner_stands);
                if is_listed || !stands || !engine.is_fresh() {
                    self.refusal = Some(why);
                    return None;
                }
                ask(
                    "capture_lost",
                    format!("Capture {at} ({}) is in no list any more; we did not stop it.", visit.old_id.short()),
                    "It is lost, which is not the same as drained: its tables stood still until others took them.",
                    "See what happened to the process. If it was restarted, retry: the step looks at it afresh.",
                    &[LOOK_AGAIN],
                )
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
        match &verdict {
            Verdict::Empty if self.zeros.first.is_some_and(|first| begun >= first) => self.empty_round = Some(begun),
            Verdict::Carries(_) => self.empty_round = None,
            Verdict::Empty | Verdict::Unknown(_) => {}
        }
        self.verdict = Some(verdict);
        if let Some(there) = there {
            self.progress.tables(there.iter().map(|(_, count)| count).sum(), turn.spent);
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
        let Some((owner, since)) = engine.picture.owner(&visit.cluster).map(|(id, since)| (id.clone(), since)) else {
            return Flow::Stay(format!("waiting for {}", visit.architecture.an_owner()));
        };
        if owner == visit.old_id {
            return owns_again(engine, visit);
        }
        if !engine.is_fresh() || engine.now.since(since) < engine.policy.owner_stands {
            return Flow::Stay(format!("waiting for {} who has stood a while", visit.architecture.an_owner()));
        }
        if let Some(flow) = beside(engine, visit) {
            return flow;
        }
        if turn.may_act || (turn.may_ask_again && !self.is_refused_for_good()) {
            let id = ask_for_drain(engine, visit, &owner);
            self.request = Some((id, visit.old_id.clone()));
        }
        Flow::Stay(note)
    }

    fn is_refused_for_good(&self) -> bool {
        self.refusal.as_ref().is_some_and(|why| !why.kind.is_transient())
    }
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
