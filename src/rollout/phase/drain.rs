//! `drain`: the capture gives its tables away. It ends on two zero answers with no other number between **and** one
//! empty round begun after the first zero (design section 4); a single zero proves nothing (recorded cdc-classic 79).

use std::time::Duration;

use super::{Flow, LOOK_AGAIN, Turn, WAIT_LONGER, ask};
use crate::cluster::units::{counted, spoken};
use crate::cluster::{CaptureId, Failure, FailureKind, Reading, Timestamp};
use crate::rollout::command::Command;
use crate::rollout::effect::{Call, CallAnswer, EffectId};
use crate::rollout::engine::{Engine, Visit};
use crate::rollout::event::Fact;
use crate::rollout::evidence::{Verdict, judge_round};
use crate::rollout::view::PhaseKind;

/// The machine.
#[derive(Clone, Debug, Default)]
pub struct Drain {
    /// The request under way, and whom it is about.
    request: Option<(EffectId, CaptureId)>,
    owner: Option<CaptureId>,
    /// Whether this owner's counts are of tables: at first they are of changefeeds it has not looked at yet.
    is_ready: bool,
    zeros: Zeros,
    judged: Option<Timestamp>,
    empty_round: Option<Timestamp>,
    verdict: Option<Verdict>,
    /// The lowest count seen, and how long the phase had run then.
    lowest: Option<(u64, Duration)>,
    /// The lowest number of tables a round saw, likewise.
    lowest_round: Option<(u64, Duration)>,
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
        self.lowest = self.lowest.map(|(count, _)| (count, spent));
        self.lowest_round = self.lowest_round.map(|(count, _)| (count, spent));
        self.zero_since = self.zero_since.map(|_| spent);
    }

    /// Looks, and acts if it may.
    pub fn run(&mut self, engine: &mut Engine, turn: Turn) -> Flow {
        let Some(visit) = engine.visit.clone() else { return Flow::Stay("reading the cluster".to_owned()) };
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
            let is_change = self.owner.is_some();
            self.owner = owner;
            self.zeros = Zeros::default();
            self.empty_round = None;
            self.zero_since = None;
            self.is_ready = false;
            if is_change {
                self.lowest = self.lowest.map(|_| (u64::MAX, turn.spent));
            }
        }
    }

    fn is_by_this_owner(&self, engine: &Engine, visit: &Visit, sent_at: Timestamp) -> bool {
        let owner = engine.picture.owner(&visit.cluster);
        owner.is_some_and(|(id, since)| Some(id) == self.owner.as_ref() && sent_at >= since)
    }

    /// Whether a count is of tables: an owner that is new counts one for each changefeed it has not looked at.
    fn is_of_tables(&mut self, engine: &Engine, visit: &Visit, count: u64) -> bool {
        let Some(group) = engine.picture.groups.get(&visit.cluster) else { return false };
        let running = group.changefeeds.last().into_iter().flatten().filter(|row| row.state.is_running()).count();
        let listed = group.tables.get(&visit.old_id).and_then(|tables| tables.last());
        let listed = listed.map_or(usize::MAX, |tables| tables.values().map(Vec::len).sum::<usize>());
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.is_ready |= count > running || count >= listed;
        self.is_ready
    }

    fn take(
        &mut self,
        engine: &mut Engine,
        visit: &Visit,
        sent_at: Timestamp,
        reading: Reading<u64>,
        turn: Turn,
    ) -> Option<Flow> {
        match reading {
            Ok(count) => {
                self.refusal = None;
                self.last_reading = turn.spent;
                let is_of_tables = self.is_of_tables(engine, visit, count);
                // After a zero, or under another owner, the number begins anew; else only a fall is progress.
                if is_of_tables && self.lowest.is_none_or(|(lowest, _)| count < lowest || lowest == 0) {
                    self.lowest = Some((count, turn.spent));
                }
                if count == 0 {
                    self.zeros.first = self.zeros.first.or(Some(sent_at));
                    self.zeros.last = Some(sent_at);
                    self.zero_since = self.zero_since.or(Some(turn.spent));
                } else {
                    self.zeros = Zeros::default();
                    self.zero_since = None;
                    self.empty_round = None;
                }
                if is_of_tables {
                    engine.drain_counted(count, sent_at);
                }
                None
            }
            Err(why) => self.refused(engine, visit, why),
        }
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
        let Some(sweep) = engine.picture.cdc.clone() else { return };
        if self.judged == Some(sweep.begun) {
            return;
        }
        self.judged = Some(sweep.begun);
        let Some(group) = engine.picture.groups.get(&visit.cluster) else { return };
        let stands = engine.policy.owner_stands;
        let verdict = judge_round(&sweep, &visit.cluster, &visit.old_id, group.owner_since, &group.known, stands);
        match &verdict {
            Verdict::Empty => {
                self.lowest_round = Some((0, turn.spent));
                if self.zeros.first.is_some_and(|first| sweep.begun >= first) {
                    self.empty_round = Some(sweep.begun);
                }
                engine.drain_by_changefeed(Vec::new());
            }
            Verdict::Carries(list) => {
                self.empty_round = None;
                let sum = list.iter().map(|(_, count)| count).sum();
                if self.lowest_round.is_none_or(|(lowest, _)| sum < lowest) {
                    self.lowest_round = Some((sum, turn.spent));
                }
                engine.drain_by_changefeed(list.clone());
            }
            Verdict::Unknown(_) => {}
        }
        self.verdict = Some(verdict);
    }

    /// The deadlines. None of them does anything but ask.
    fn asks(&self, engine: &Engine, visit: &Visit, turn: Turn) -> Option<Flow> {
        let policy = &engine.policy;
        let at = &visit.address;
        let since = |then: Duration| turn.spent.saturating_sub(then);
        if since(self.last_reading) >= policy.unknown_asks {
            let why = self.why_unknown();
            return Some(ask(
                "drain_unread",
                format!("For {} the drain of {at} was not answered: {why}.", spoken(since(self.last_reading))),
                "The capture may go on draining; it is not known to be empty, so it is not restarted.",
                "See whether the servers can be reached and TiCDC has an owner, then look again.",
                &[LOOK_AGAIN, WAIT_LONGER],
            ));
        }
        let counted_out = self.zeros.are_enough(policy.zeros_apart);
        if counted_out && let Some((left, then)) = self.lowest_round.filter(|(left, _)| *left > 0) {
            let is_alive = engine.picture.liveness_now(&visit.old_id) == Some(crate::cluster::Liveness::Alive);
            if since(then) >= policy.drain_stall || is_alive {
                return Some(ask(
                    "left_out_by_count",
                    format!(
                        "The drain call says 0, yet {at} still has {}: {}.",
                        counted(left, "table"),
                        self.carried()
                    ),
                    "The count leaves out changefeeds that are not `normal`; a restart would stop these tables.",
                    "Bring that changefeed back to normal (or pause it), then look again.",
                    &[LOOK_AGAIN, WAIT_LONGER],
                ));
            }
        }
        if counted_out && self.zero_since.is_some_and(|then| since(then) >= policy.unknown_asks) {
            return Some(ask(
                "zero_without_round",
                format!("The drain call says 0, yet no round proves {at} empty: {}.", self.why_unknown()),
                "A zero alone has been seen on captures with tables, so the restart waits.",
                "See to what is named here, then look again.",
                &[LOOK_AGAIN, WAIT_LONGER],
            ));
        }
        if let Some((lowest, then)) = self.lowest.filter(|(lowest, _)| *lowest > 0)
            && since(then) >= policy.drain_stall
        {
            let left = if lowest == u64::MAX {
                "its number is not told".to_owned()
            } else {
                format!("{} left", counted(lowest, "table"))
            };
            return Some(ask(
                "drain_stalled",
                format!("The drain of {at} has not moved for {}: {left}.", spoken(since(then))),
                "The capture goes on trying and takes no new table; it is not restarted while tables are there.",
                format!(
                    "Likely cause: a table that cannot start elsewhere. Still there: {}. Look at those changefeeds.",
                    self.carried()
                ),
                &[LOOK_AGAIN, WAIT_LONGER],
            ));
        }
        if since(self.deadline_extended_at) >= policy.drain_deadline {
            return Some(ask(
                "drain_deadline",
                format!("The drain of {at} has taken {}.", spoken(turn.spent)),
                "It still moves; the capture is not restarted while tables are there.",
                "Wait as long again, or give up and recover the capture.",
                &[WAIT_LONGER, LOOK_AGAIN],
            ));
        }
        None
    }

    fn why_unknown(&self) -> String {
        match (&self.refusal, &self.verdict) {
            (Some(why), _) => format!("the owner {why}"),
            (None, Some(Verdict::Unknown(why))) => why.clone(),
            (None, Some(Verdict::Carries(_))) => format!("it still has {}", self.carried()),
            (None, _) => "no round was read".to_owned(),
        }
    }

    fn carried(&self) -> String {
        match &self.verdict {
            Some(Verdict::Carries(list)) => {
                let parts: Vec<_> = list.iter().map(|(id, count)| format!("{} ({count})", id.label())).collect();
                parts.join(", ")
            }
            _ => "unknown".to_owned(),
        }
    }

    fn send(&mut self, engine: &mut Engine, visit: &Visit, turn: Turn) -> Flow {
        let note = self.note();
        engine.drain_waits(&note);
        if self.request.is_some() || !engine.drain_is_due() {
            return Flow::Stay(note);
        }
        let Some((owner, since)) = engine.picture.owner(&visit.cluster).map(|(id, since)| (id.clone(), since)) else {
            return Flow::Stay("waiting for an owner".to_owned());
        };
        if owner == visit.old_id {
            return owns_again(engine, visit);
        }
        if !engine.is_fresh() || engine.now.since(since) < engine.policy.owner_stands {
            return Flow::Stay("waiting for an owner who has stood a while".to_owned());
        }
        if let Some(flow) = beside(engine, visit) {
            return flow;
        }
        if turn.may_act {
            let owner_address = engine.picture.address_of(&visit.cluster, &owner);
            let id = ask_for_drain(engine, visit, owner_address);
            self.request = Some((id, visit.old_id.clone()));
        }
        Flow::Stay(note)
    }

    fn note(&self) -> String {
        match (&self.refusal, &self.verdict) {
            (Some(why), _) => format!("waiting: the owner {why}"),
            (None, Some(Verdict::Unknown(why))) if self.zeros.first.is_some() => {
                format!("zero; waiting for a round: {why}")
            }
            (None, Some(Verdict::Carries(_))) if self.zeros.first.is_some() => {
                format!("zero by the call; still there: {}", self.carried())
            }
            _ if self.zeros.first.is_some() => "zero; proving it".to_owned(),
            _ => String::new(),
        }
    }
}

/// The target owns: back to `resign` of the same step; the second time a person is asked.
fn owns_again(engine: &mut Engine, visit: &Visit) -> Flow {
    let at = &visit.address;
    let refusals = engine.visit.as_ref().map_or(0, |visit| visit.owner_refusals);
    if refusals >= 1 {
        return ask(
            "owner_again",
            format!("Capture {at} became the owner for the second time in this step."),
            "The owner cannot be drained.",
            "See why the other captures do not keep the duty; retry asks it once more to resign.",
            &[(Command::Retry, "ask it to resign once more")],
        );
    }
    // Nothing goes back while a person has the word: the look after that decides.
    if !engine.may_act() {
        return Flow::Stay(format!("{at} is the owner now"));
    }
    if let Some(visit) = &mut engine.visit {
        visit.owner_refusals += 1;
    }
    Flow::Back(PhaseKind::Resign, format!("{at} is the owner now and cannot be drained"))
}

/// What must hold beside the target before a drain is asked for; a question if it does not.
pub(super) fn beside(engine: &Engine, visit: &Visit) -> Option<Flow> {
    if let Some(other) = engine.picture.leaving_beside(&visit.cluster, &visit.old_id).first() {
        let label = engine.capture_label(&visit.cluster, other);
        return Some(ask(
            "leftover",
            format!("Capture {label} is stopping while {} is to be drained.", visit.address),
            "Tables would go back and forth between the two without end, so the drain is not asked for.",
            format!("Restart {label} on the binary it has; when it is back, look again."),
            &[LOOK_AGAIN],
        ));
    }
    if engine.picture.able_beside(&visit.cluster, &visit.old_id).is_empty() {
        return Some(ask(
            "nobody_able",
            format!("No capture but {} is able to take tables.", visit.address),
            "A drain has nowhere to move them.",
            "Bring another capture up, then look again.",
            &[(Command::Retry, "look again and go on from here")],
        ));
    }
    None
}

/// Sends the drain request; the obligation stands before it.
pub(super) fn ask_for_drain(engine: &mut Engine, visit: &Visit, owner: Option<crate::cluster::Address>) -> EffectId {
    engine.owe_drain(visit);
    engine.drain_sent_at = Some(engine.now);
    let call = Call::Drain { cluster: visit.cluster.clone(), capture: visit.old_id.clone(), owner };
    engine.call(call)
}

impl Engine {
    /// Takes a count into the live drain and says it aloud if it changed.
    pub(super) fn drain_counted(&mut self, count: u64, at: Timestamp) {
        let step = self.cursor.0;
        let Some(record) = &mut self.drain else { return };
        let changed = record.count != Some(count);
        record.count(count, at);
        if changed {
            let (target, of) = (record.address.clone(), record.baseline);
            self.emit(Fact::DrainProgress { step, target, count, of });
        }
    }
}
