//! Suspended time: a closed lid, Ctrl-Z, a clock that was set. The engine is told the time every few seconds, so a
//! stretch without a word means that the program did not run; and where the machine slept, the wall clock has gone on
//! while the monotonic one stood still, so that old readings look fresh. Such a stretch is charged to no deadline, what
//! was believed before it is forgotten, and the cluster is read again before anything is sent.

use std::time::Duration;

use super::engine::Engine;
use super::phase::Machine;
use crate::cluster::Timestamp;
use crate::cluster::units::spoken;

/// The engine asks to be told the time every few seconds; nothing for this long means that the program did not run.
const SILENCE: Duration = Duration::from_secs(30);
/// The two clocks drift by less between two steps, also where the wall clock is being corrected.
const DRIFT: Duration = Duration::from_secs(5);

/// What happened between two steps, if it was no ordinary passing of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// The program or its machine stood still.
    Slept(Duration),
    /// The wall clock was set back.
    SetBack(Duration),
}

impl Gap {
    /// Looks at both clocks.
    pub(super) fn between(before: Timestamp, now: Timestamp) -> Option<Self> {
        let mono = now.since(before);
        let wall = now.wall_ms.saturating_sub(before.wall_ms);
        let ahead = wall.saturating_sub(i64::try_from(mono.as_millis()).unwrap_or(i64::MAX));
        let drift = Duration::from_millis(ahead.unsigned_abs());
        if mono > SILENCE || (drift > DRIFT && ahead > 0) {
            return Some(Self::Slept(mono.max(Duration::from_millis(u64::try_from(wall).unwrap_or(0)))));
        }
        (drift > DRIFT).then_some(Self::SetBack(drift))
    }

    fn text(self) -> String {
        match self {
            Self::Slept(gap) => format!("this program did not run for {} (or the clock was set)", spoken(gap)),
            Self::SetBack(by) => format!("the clock of this machine was set back by {}", spoken(by)),
        }
    }
}

impl Engine {
    /// The program runs again after a gap: nothing read or answered before it ends a phase.
    pub(super) fn wake_after(&mut self, gap: Gap) {
        let now = self.now;
        if self.resumed_at.is_some() {
            self.resumed_at = Some(now);
        }
        if !self.state.is_going() {
            return;
        }
        self.warn(format!("{}: the cluster is read again before anything is sent", gap.text()));
        self.state.forget_readings(now);
        self.guards.forget_watched();
        let Some(active) = &mut self.active else { return };
        match &mut active.machine {
            Machine::Drain(machine) => machine.forget(active.spent),
            Machine::Restart(machine) if !machine.has_acted() => machine.retry(now),
            Machine::Settle(machine) => machine.retry(),
            _ => {}
        }
    }

    /// Whether every part of the cluster was read after the gap. A part that could not be read is unknown by that, and
    /// the phases wait for it as they always do.
    pub(super) fn catch_up(&mut self) {
        let Some(since) = self.state.unread_since() else { return };
        let cdc = self.picture.cdc.as_ref().is_some_and(|sweep| sweep.begun >= since);
        let tidb = !self.request.has_tidb || self.picture.tidb.as_ref().is_some_and(|sweep| sweep.begun >= since);
        if cdc && tidb {
            self.state.trust_readings();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(wall: i64, mono: u64) -> Timestamp {
        Timestamp::new(1_000_000 + wall, 1_000 + mono)
    }

    #[test]
    fn only_what_no_ordinary_day_has_is_a_gap() {
        let before = at(0, 0);
        let s = Duration::from_secs;
        assert_eq!(Gap::between(before, at(5_000, 5_000)), None);
        // A correction of the clock in small steps.
        assert_eq!(Gap::between(before, at(9_000, 5_000)), None);
        // Ctrl-Z: both clocks went on.
        assert_eq!(Gap::between(before, at(600_000, 600_000)), Some(Gap::Slept(s(600))));
        // A lid: the monotonic clock stood still.
        assert_eq!(Gap::between(before, at(600_000, 1_000)), Some(Gap::Slept(s(600))));
        assert_eq!(Gap::between(before, at(-60_000, 1_000)), Some(Gap::SetBack(s(61))));
    }
}
