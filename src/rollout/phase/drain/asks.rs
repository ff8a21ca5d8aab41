//! The deadlines of a drain. None of them does anything but ask.

use std::time::Duration;

use super::super::{Flow, LOOK_AGAIN, Turn, WAIT_LONGER, ask};
use super::Drain;
use super::progress::Low;
use crate::cluster::units::{counted, spoken};
use crate::cluster::{Architecture, Liveness};
use crate::rollout::engine::{Engine, Visit};
use crate::rollout::evidence::Verdict;

impl Drain {
    /// The question that is due, if one is.
    pub(super) fn asks(&self, engine: &Engine, visit: &Visit, turn: Turn) -> Option<Flow> {
        self.unread(engine, visit, turn)
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
                count => format!(", with {} on it: {}", counted(count, "table"), self.carried()),
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
            counted(left.value, "table"),
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
                "Pause the changefeeds named here (they are stopped and start again elsewhere when resumed), or have the coordinator resign so that another one looks; then look again.",
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
        // A 1 from a coordinator that has not told the capture yet is a wait for its turn, and no stall before the
        // deadline of the whole drain.
        let liveness = engine.picture.liveness_now(&visit.old_id);
        if visit.architecture == Architecture::New
            && self.progress.last_work() == Some(1)
            && liveness == Some(Liveness::Alive)
        {
            return None;
        }
        let left = if low.value == u64::MAX {
            "its number is not told".to_owned()
        } else {
            format!("{} left", counted(low.value, "table"))
        };
        Some(ask(
            "drain_stalled",
            format!("The drain of {at} has not moved for {}: {left}.", spoken(since)),
            "The capture goes on trying and takes no new table; it is not restarted while tables are there.",
            format!(
                "Likely cause: a table that cannot start elsewhere. Still there: {}. Look at those changefeeds.",
                self.carried()
            ),
            &[LOOK_AGAIN, WAIT_LONGER],
        ))
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

    pub(super) fn carried(&self) -> String {
        if self.there.is_empty() {
            return "unknown".to_owned();
        }
        let parts: Vec<_> = self.there.iter().map(|(id, count)| format!("{} ({count})", id.label())).collect();
        parts.join(", ")
    }
}
