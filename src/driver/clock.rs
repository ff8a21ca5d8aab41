//! The one place outside the simulator that reads the machine's clocks.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::cluster::{Clock, Timestamp};

/// The machine's clocks: wall time, and monotonic time.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    start: Instant,
    offset_ms: u64,
}

impl SystemClock {
    /// Monotonic time goes on from what wall time is now: moments that a journal kept from an earlier run are then
    /// before it, and about as long ago as they were.
    #[expect(clippy::disallowed_methods, reason = "this is the edge where time enters")]
    pub fn new() -> Self {
        Self { start: Instant::now(), offset_ms: wall_ms().max(1_000) }
    }

    /// A clock whose monotonic time goes on from another program's: moments of that one have their right age on it.
    #[expect(clippy::disallowed_methods, reason = "this is the edge where time enters")]
    pub fn in_step_with(theirs: Timestamp) -> Self {
        Self { start: Instant::now(), offset_ms: theirs.mono_ms }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the edge where time enters")]
    fn now(&self) -> Timestamp {
        let passed = u64::try_from(Instant::now().duration_since(self.start).as_millis()).unwrap_or(u64::MAX);
        Timestamp::new(i64::try_from(wall_ms()).unwrap_or(i64::MAX), self.offset_ms.saturating_add(passed))
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the edge where time enters")]
fn wall_ms() -> u64 {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(passed.as_millis()).unwrap_or(u64::MAX)
}
