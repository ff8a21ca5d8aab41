//! The one place outside the simulator that reads the machine's clocks.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::cluster::{Clock, Timestamp};

/// The machine's clocks: wall time, and monotonic time since this value was made.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Monotonic time counts from here (plus a second, so that no moment is the zero that stands for "never").
    #[expect(clippy::disallowed_methods, reason = "this is the edge where time enters")]
    pub fn new() -> Self {
        Self { start: Instant::now() }
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
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let mono = Instant::now().duration_since(self.start).as_millis() + 1_000;
        Timestamp::new(i64::try_from(wall).unwrap_or(i64::MAX), u64::try_from(mono).unwrap_or(u64::MAX))
    }
}
