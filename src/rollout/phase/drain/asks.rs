//! The deadlines of a drain. None of them does anything but ask.

use std::time::Duration;

use super::super::{Flow, LOOK_AGAIN, Turn, WAIT_LONGER, ask};
use super::Drain;
use super::progress::Low;
use crate::cluster::units::{counted, spoken};
use crate::cluster::{Architecture, CaptureId, ChangefeedRow, ChangefeedState, Liveness};
use crate::rollout::command::Command;
use crate::rollout::engine::{Engine, Visit};
use crate::rollout::evidence::{Verdict, tables_in};

impl Drain {
    /// The question that is due, if one is.
    pub(super) fn asks(&self, engine: &Engine, visit: &Visit, turn: Turn) -> Option<Flow> {
        lost(engine, visit)
            .or_else(|| self.unread(engine, visit, turn))
            .or_else(|| self.unproven(engine, visit, turn))
            .or_else(|| self.stalled(engine, visit, turn))
            .or_else(|| self.late(engine, visit, turn))
    }

    fn unread(&self, engine: &Engine, visit: &Visit, turn: Turn) -> Option<Flow> {
        let at = &visit.address;
        let since = turn.spent.saturating_sub(self.last_reading);
        if since >= engine.policy.unknown_asks {
            return Some(ask(
                "drain_unread",
                format!("For {} the drain of {at} was not answered: {}.", spoken(since), self.why_unknown(visit)),
                "The capture may go on draining; it is not known to be empty, so it is not restarted.",
                format!(
                    "See whether the servers can be reached and TiCDC has {}, then look again.",
                    visit.architecture.an_owner()
                ),
                &[LOOK_AGAIN, WAIT_LONGER],
            ));
        }
        // The new architecture's answer is no count of tables: without the tables call nothing tells how far it is.
        let since = turn.spent.saturating_sub(self.progress.seen_at());
        if visit.architecture == Architecture::New && since >= engine.policy.unknown_asks {
            return Some(ask(
                "tables_unread",
                format!(
                    "For {} it could not be read which tables are on {at}: {}.",
                    spoken(since),
                    self.why_unknown(visit)
                ),
                "The drain's own answer is no count of tables, and it has been 0 with tables there.",
                "See to what is named here (a changefeed without a maintainer tells no tables), then look again.",
                &[LOOK_AGAIN, WAIT_LONGER],
            ));
        }
        None
    }

    /// Two zeros, and yet no round that proves it.
    fn unproven(&self, engine: &Engine, visit: &Visit, turn: Turn) -> Option<Flow> {
        let policy = &engine.policy;
        let at = &visit.address;
        let since = |then: Duration| turn.spent.saturating_sub(then);
        if !self.zeros.are_enough(policy.zeros_apart) {
            return None;
        }
        let is_alive = engine.picture.liveness_now(&visit.old_id) == Some(Liveness::Alive);
        let is_read_since = self.judged.zip(self.zeros.last).is_some_and(|(judged, last)| judged >= last);
        if visit.architecture == Architecture::New && is_alive && is_read_since {
            let tables = self.progress.seen().map_or_else(String::new, |seen| match seen.value {
                0 => ", and no table is there at the moment".to_owned(),
                _ => format!(", with {} on it: {}", counted(self.sum_there(), "table"), self.carried()),
            });
            return Some(ask(
                "drain_does_nothing",
                format!("Every drain of {at} is answered 0, yet it goes on calling itself alive{tables}."),
                "Early builds of the new architecture answer so, and any coordinator while one capture of such a build is there: nothing is moved. It is not restarted on that.",
                "Take another way with these builds: abort here, pause every changefeed, upgrade all of TiCDC with your cluster manager, resume.",
                &[LOOK_AGAIN],
            ));
        }
        // A classic capture that is alive after two zeros was never told; a new one has been asked about above.
        let is_untold = is_alive && visit.architecture == Architecture::Classic;
        let has_stalled = |low: Low| since(low.since) >= policy.drain_stall && !is_alive;
        if let Some(left) = self.progress.seen().filter(|left| left.value > 0)
            && (has_stalled(left) || is_untold)
        {
            return Some(self.left_out(visit, left));
        }
        if let Some(missing) = &self.missing
            && self.zero_since.is_some_and(|then| since(then) >= policy.unknown_asks)
        {
            return Some(ask(
                "tables_missing",
                format!(
                    "The drain call says 0 and no table is named on {at}, but not all tables are named: {missing}."
                ),
                "A maintainer that has just begun names none, or not all; those it leaves out may be there.",
                "Wait until all are named. If tables were dropped meanwhile, say so: what is named then counts as all.",
                &[LOOK_AGAIN, WAIT_LONGER, (Command::Confirm, "tables were dropped; what is named now is all")],
            ));
        }
        // What is still there is waited for while it falls.
        let is_seen = matches!(self.verdict, Some(Verdict::Carries(_)));
        if !is_seen && self.zero_since.is_some_and(|then| since(then) >= policy.unknown_asks) {
            return Some(ask(
                "zero_without_round",
                format!("The drain call says 0, yet no round proves {at} empty: {}.", self.why_unknown(visit)),
                "A zero alone has been seen on captures with tables, so the restart waits.",
                "See to what is named here, then look again.",
                &[LOOK_AGAIN, WAIT_LONGER],
            ));
        }
        None
    }

    fn left_out(&self, visit: &Visit, left: Low) -> Flow {
        let what = format!(
            "The drain call says 0, yet {} still has {}: {}.",
            visit.address,
            counted(self.sum_there().max(u64::from(left.value > 0)), "table"),
            self.carried()
        );
        let choices = [LOOK_AGAIN, WAIT_LONGER];
        match visit.architecture {
            Architecture::Classic => ask(
                "left_out_by_count",
                what,
                "The count leaves out changefeeds that are not `normal`; a restart would stop these tables.",
                "Bring that changefeed back to normal (or pause it), then look again.",
                &choices,
            ),
            Architecture::New => ask(
                "false_zero",
                what,
                "The zero is false: that has been seen after a coordinator crashed in the middle of a drain. A restart would stop these tables.",
                "Pause the changefeeds named here: then nothing is there any more, which is noticed by itself, and the restart follows. Resume them once the new process is proven.",
                &choices,
            ),
        }
    }

    fn stalled(&self, engine: &Engine, visit: &Visit, turn: Turn) -> Option<Flow> {
        let at = &visit.address;
        let low = match visit.architecture {
            Architecture::Classic => self.progress.counted(),
            Architecture::New => self.progress.seen(),
        }?;
        let since = turn.spent.saturating_sub(low.since);
        if low.value == 0 || since < engine.policy.drain_stall {
            return None;
        }
        // A 1 from a coordinator that has answered nothing else is a wait for its turn, and no stall before the deadline
        // of the whole drain.
        let is_waiting = self.progress.last_work() == Some(1) && !self.progress.has_counted();
        if visit.architecture == Architecture::New && is_waiting {
            return None;
        }
        let left = match (low.value, visit.architecture) {
            (u64::MAX, _) => "its number is not told".to_owned(),
            (_, Architecture::New) => format!("{} left", counted(self.sum_there(), "table")),
            (count, Architecture::Classic) => format!("{} left", counted(count, "table")),
        };
        Some(ask(
            "drain_stalled",
            format!("The drain of {at} has not moved for {}: {left}.", spoken(since)),
            "The capture goes on trying and takes no new table; it is not restarted while tables are there.",
            format!(
                "Still there: {}. Likely cause: {}. Mend that, then look again; or wait longer.",
                self.carried(),
                self.likely_cause(engine, visit)
            ),
            &[LOOK_AGAIN, WAIT_LONGER],
        ))
    }

    /// Why tables may stay, as far as the servers tell; the servers name no cause themselves.
    fn likely_cause(&self, engine: &Engine, visit: &Visit) -> String {
        let picture = &engine.picture;
        let listed = picture.groups.get(&visit.cluster).and_then(|group| group.captures.known());
        let others = listed.into_iter().flatten().filter(|entry| entry.id != visit.old_id);
        let leaves = |id: &CaptureId| matches!(picture.liveness_now(id), Some(Liveness::Draining | Liveness::Stopping));
        let leaving: Vec<_> = others.filter(|entry| leaves(&entry.id)).map(|entry| entry.address.to_string()).collect();
        if !leaving.is_empty() {
            return format!("{} is being drained too, and tables go back and forth between them", leaving.join(", "));
        }
        if picture.able_beside(&visit.cluster, &visit.old_id).is_empty() {
            return "no other capture can take tables now".to_owned();
        }
        let rows = picture.groups.get(&visit.cluster).and_then(|group| group.changefeeds.known());
        let is_there = |row: &&ChangefeedRow| self.there.iter().any(|(id, _)| id == &row.id);
        let told = rows.into_iter().flatten().filter(is_there).filter_map(|row| {
            let error = row.error.as_ref().map(|error| format!(" ({}: {})", error.code, error.message));
            let is_well = row.state == ChangefeedState::Normal && error.is_none();
            (!is_well)
                .then(|| format!("changefeed {} is {}{}", row.id.label(), row.state.word(), error.unwrap_or_default()))
        });
        let told: Vec<_> = told.collect();
        if told.is_empty() {
            return "a table that cannot start elsewhere, for which the servers give no reason (look at the sinks of these changefeeds and at the other captures' logs)".to_owned();
        }
        told.join("; ")
    }

    fn late(&self, engine: &Engine, visit: &Visit, turn: Turn) -> Option<Flow> {
        let since = turn.spent.saturating_sub(self.deadline_extended_at);
        (since >= engine.policy.drain_deadline).then(|| {
            ask(
                "drain_deadline",
                format!("The drain of {} has taken {}.", visit.address, spoken(turn.spent)),
                "The capture is not restarted before it is proven empty.",
                "Wait as long again, or give up and recover the capture.",
                &[WAIT_LONGER, LOOK_AGAIN],
            )
        })
    }

    fn why_unknown(&self, visit: &Visit) -> String {
        match (&self.refusal, &self.verdict) {
            (Some(why), _) => format!("the {} {why}", visit.architecture.owner()),
            (None, Some(Verdict::Unknown(why))) => why.clone(),
            (None, Some(Verdict::Carries(_))) => format!("it still has {}", self.carried()),
            (None, _) => "no round was read".to_owned(),
        }
    }

    fn sum_there(&self) -> u64 {
        tables_in(&self.there)
    }

    pub(super) fn carried(&self) -> String {
        if self.there.is_empty() {
            return "unknown".to_owned();
        }
        let parts: Vec<_> = self.there.iter().map(|(id, count)| format!("{} ({count})", id.label())).collect();
        parts.join(", ")
    }
}

/// An owner who stands does not list it any more, and it is not ours that stopped it.
fn lost(engine: &Engine, visit: &Visit) -> Option<Flow> {
    let group = engine.picture.groups.get(&visit.cluster)?;
    let is_listed = group.captures.known()?.iter().any(|entry| entry.id == visit.old_id);
    let stands = group.owner_since.is_some_and(|since| engine.now.since(since) >= engine.policy.owner_stands);
    if is_listed || !stands || !engine.is_fresh() {
        return None;
    }
    Some(ask(
        "capture_lost",
        format!("Capture {} ({}) is in no list any more; we did not stop it.", visit.address, visit.old_id.short()),
        "It is lost, which is not the same as drained: its tables stood still until others took them.",
        "See what happened to the process. If it was restarted, retry: the step looks at it afresh.",
        &[LOOK_AGAIN],
    ))
}
