//! The live drain: counts over time, their rate, and what is left by changefeed. Nothing decides on it.

use std::collections::VecDeque;
use std::time::Duration;

use super::engine::{Engine, Visit};
use super::event::Fact;
use super::evidence::{Carried, tables_in};
use super::view::DrainView;
use crate::cluster::{Architecture, CaptureId, Timestamp};

/// Counts kept for the sparkline.
const HISTORY: usize = 240;
/// A rate is over this long, or as much of it as there is.
const RATE_OVER: Duration = Duration::from_secs(15);

/// A drain as it goes.
#[derive(Clone, Debug, PartialEq)]
pub struct DrainRecord {
    /// The capture.
    pub capture: CaptureId,
    /// Its address.
    pub address: String,
    /// The last count of tables.
    pub count: Option<u64>,
    /// The last answer of the new architecture, which counts remaining work.
    pub work: Option<u64>,
    /// The highest count: the bar's whole. A count may rise (field report 5), so it is no first reading.
    pub baseline: u64,
    counted_at: Option<Timestamp>,
    started_at: Timestamp,
    samples: VecDeque<(Timestamp, u64)>,
    by_changefeed: Carried,
    waiting_for: String,
    is_done: bool,
}

impl DrainRecord {
    /// A drain that begins now.
    pub const fn new(capture: CaptureId, address: String, now: Timestamp) -> Self {
        Self {
            capture,
            address,
            count: None,
            work: None,
            baseline: 0,
            counted_at: None,
            started_at: now,
            samples: VecDeque::new(),
            by_changefeed: Vec::new(),
            waiting_for: String::new(),
            is_done: false,
        }
    }

    /// It is asked for again after it was proven to be over: something came back.
    pub(super) const fn begin_again(&mut self) {
        self.is_done = false;
    }

    /// Takes a count whose request was sent at `at`.
    pub fn count(&mut self, count: u64, at: Timestamp) {
        self.count = Some(count);
        self.baseline = self.baseline.max(count);
        self.counted_at = Some(at);
        if self.samples.len() >= HISTORY {
            self.samples.pop_front();
        }
        self.samples.push_back((at, count));
    }

    /// Tables a second over the last stretch before `now`; `None` where it was not counted, or rose.
    fn rate(&self, now: Timestamp) -> Option<f64> {
        let (last_at, last) = *self.samples.back()?;
        let (first_at, first) = *self.samples.iter().find(|(at, _)| now.since(*at) <= RATE_OVER)?;
        let over = last_at.since(first_at).as_secs_f64();
        if over <= 0.0 || first < last {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "table counts are far below 2^52")]
        let moved = (first - last) as f64;
        Some(moved / over)
    }

    /// About how much longer; `None` while nothing moves.
    pub fn remaining(&self, now: Timestamp) -> Option<Duration> {
        let rate = self.rate(now).filter(|rate| *rate > 0.0)?;
        #[expect(clippy::cast_precision_loss, reason = "table counts are far below 2^52")]
        let left = self.count? as f64;
        Duration::try_from_secs_f64(left / rate).ok()
    }

    /// The read model.
    pub fn view(&self, now: Timestamp, is_lost: bool, is_asked: bool) -> DrainView {
        DrainView {
            capture: self.capture.clone(),
            address: self.address.clone(),
            count: self.count,
            // A number nobody asks for any more is none.
            work: self.work.filter(|_| is_asked || self.is_done),
            baseline: self.baseline,
            counted_at: self.counted_at,
            started_at: self.started_at,
            rate: self.rate(now),
            remaining: self.remaining(now),
            history: self.samples.iter().map(|(_, count)| *count).collect(),
            by_changefeed: self.by_changefeed.clone(),
            waiting_for: self.waiting_for.clone(),
            is_lost,
            is_done: self.is_done,
        }
    }
}

impl Engine {
    /// A classic drain was answered with tables: takes the count into the live drain and says it aloud if it changed.
    pub(super) fn drain_counted(&mut self, count: u64, at: Timestamp) {
        let Some(record) = &mut self.drain else { return };
        let has_changed = record.count != Some(count);
        record.count(count, at);
        if has_changed {
            self.say_progress();
        }
    }

    /// The new architecture answered a drain with remaining work, which is no count of tables.
    pub(super) fn drain_worked(&mut self, work: u64) {
        let Some(record) = &mut self.drain else { return };
        if record.work.replace(work) != Some(work) {
            self.say_progress();
        }
    }

    /// What a round saw still there. It is the count where the call gives none: in the new architecture, and while
    /// nothing may be sent.
    pub(super) fn drain_seen(&mut self, visit: &Visit, there: Carried, at: Timestamp) {
        let is_count = visit.architecture == Architecture::New || !self.state.may_act();
        let Some(record) = &mut self.drain else { return };
        let sum = tables_in(&there);
        let has_changed = is_count && record.count != Some(sum);
        if is_count {
            record.count(sum, at);
        }
        record.by_changefeed = there;
        if has_changed {
            self.say_progress();
        }
    }

    fn say_progress(&mut self) {
        let step = self.cursor.0;
        let Some(record) = &self.drain else { return };
        // Before anything was counted there is nothing to be told of.
        let Some(count) = record.count else { return };
        let (target, of, work) = (record.address.clone(), record.baseline, record.work);
        self.emit(Fact::DrainProgress { step, target, count, of, work });
    }

    /// What the drain waits for.
    pub(super) fn drain_waits(&mut self, what: &str) {
        if let Some(record) = &mut self.drain {
            what.clone_into(&mut record.waiting_for);
        }
    }

    /// The drain is proven to be over.
    pub(super) fn drain_done(&mut self) {
        if let Some(record) = &mut self.drain {
            record.is_done = true;
            record.waiting_for.clear();
        }
    }

    /// After an abort nobody asks for the drain any more, and the servers go on with it: the rounds tell how far.
    pub(super) fn follow_abandoned_drain(&mut self) {
        if !self.is_aborted() {
            return;
        }
        let Some(visit) = self.visit.value().clone() else { return };
        let Some(round) = self.round(&visit) else { return };
        let begun = round.sweep.begun;
        let is_it = self.drain.as_ref().is_some_and(|record| record.capture == visit.old_id && !record.is_done);
        let is_new = self.drain.as_ref().and_then(|record| record.counted_at).is_none_or(|at| begun > at);
        if is_it
            && is_new
            && let Some(there) = round.tables_there()
        {
            self.drain_seen(&visit, there, begun);
        }
    }
}
