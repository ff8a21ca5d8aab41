//! How far a drain is, and when it last came closer. No wait counts as standing still by itself: that is judged by the
//! questions.

use std::time::Duration;

use crate::cluster::CaptureTables;
use crate::rollout::engine::{Engine, Visit};

/// The lowest number seen, and how long the phase had run when it was first seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Low {
    pub(super) value: u64,
    pub(super) since: Duration,
}

/// What is left, by both of its witnesses.
///
/// The classic drain call counts tables. The new architecture's counts remaining work: at first changefeeds, then the
/// largest of several numbers refreshed once a second, which may rise and stays at 1 until the capture calls itself
/// stopping (recorded/README 16). It tells that something is left, not how much, and is no measure of progress.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// Whether this owner's counts are of tables: at first they are of changefeeds it has not looked at yet.
    is_ready: bool,
    /// By the classic drain call; `u64::MAX` while a new owner has not counted.
    counted: Option<Low>,
    /// By rounds.
    seen: Option<Low>,
    /// How long the phase had run when all its tables were last read.
    seen_at: Duration,
    /// The new architecture's last answer.
    work: Option<u64>,
    /// Whether this coordinator has answered more than the 1 of one that has not begun.
    has_counted: bool,
}

fn lower(low: &mut Option<Low>, value: u64, since: Duration) {
    // After a zero the number begins anew; else only a fall is progress.
    if low.is_none_or(|low| value < low.value || low.value == 0) {
        *low = Some(Low { value, since });
    }
}

impl Progress {
    /// Takes a count of tables by the call.
    pub(super) fn count(&mut self, count: u64, spent: Duration) {
        lower(&mut self.counted, count, spent);
    }

    /// Takes remaining work by the call.
    pub(super) const fn work(&mut self, work: u64) {
        self.work = Some(work);
        self.has_counted |= work > 1;
    }

    /// Takes tables by a round.
    pub(super) fn tables(&mut self, tables: u64, spent: Duration) {
        lower(&mut self.seen, tables, spent);
        self.seen_at = spent;
    }

    /// The clock begins anew, the numbers stay.
    pub(super) fn restart(&mut self, spent: Duration) {
        for low in [&mut self.counted, &mut self.seen].into_iter().flatten() {
            low.since = spent;
        }
        self.seen_at = spent;
    }

    /// Another owner has to look first.
    pub(super) fn begin_under_another(&mut self, spent: Duration) {
        self.restart(spent);
        self.is_ready = false;
        self.work = None;
        self.has_counted = false;
        // More may be there than before: only a fall from what is seen next is one.
        self.seen = None;
        if let Some(counted) = &mut self.counted {
            counted.value = u64::MAX;
        }
    }

    /// Whether a classic count is of tables: an owner that is new counts one for each changefeed it has not looked at.
    pub(super) fn is_of_tables(&mut self, engine: &Engine, visit: &Visit, count: u64) -> bool {
        let Some(group) = engine.picture.groups.get(&visit.cluster) else { return false };
        let running = group.changefeeds.last().into_iter().flatten().filter(|row| row.state.is_running()).count();
        let listed = group.tables.get(&visit.old_id).and_then(|carrier| carrier.seen.last());
        let listed = listed.map_or(u64::MAX, CaptureTables::count);
        self.is_ready |= usize::try_from(count).unwrap_or(usize::MAX) > running || count >= listed;
        self.is_ready
    }

    pub(super) const fn counted(&self) -> Option<Low> {
        self.counted
    }

    pub(super) const fn seen(&self) -> Option<Low> {
        self.seen
    }

    pub(super) const fn seen_at(&self) -> Duration {
        self.seen_at
    }

    /// Whether the coordinator has begun, by its answers.
    pub(super) const fn has_counted(&self) -> bool {
        self.has_counted
    }

    pub(super) const fn last_work(&self) -> Option<u64> {
        self.work
    }
}
