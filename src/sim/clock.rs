//! The only place of the simulator that reads a clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where virtual time comes from.
#[derive(Debug)]
pub(crate) enum Clock {
    /// Real elapsed time multiplied by a speed.
    Real {
        /// When virtual time was 0.
        start: Instant,
        /// Virtual milliseconds for each real one.
        speed: f64,
    },
    /// Stands still until it is moved: tests never sleep.
    Manual {
        /// When the clock was made, for the wall figures only.
        start: Instant,
        /// Virtual milliseconds since the start.
        now: AtomicU64,
    },
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock of the simulator")]
    pub(crate) fn real(speed: f64) -> Self {
        Self::Real { start: Instant::now(), speed }
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock of the simulator")]
    pub(crate) fn manual() -> Self {
        Self::Manual { start: Instant::now(), now: AtomicU64::new(0) }
    }

    /// Virtual milliseconds since the start.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "elapsed time is never negative, and 2^53 milliseconds are 285 thousand years"
    )]
    pub(crate) fn now_ms(&self) -> u64 {
        match self {
            Self::Real { start, speed } => (start.elapsed().as_secs_f64() * 1000.0 * speed) as u64,
            Self::Manual { now, .. } => now.load(Ordering::SeqCst),
        }
    }

    /// Wall milliseconds since the start, whatever the speed.
    pub(crate) fn wall_ms(&self) -> u64 {
        let (Self::Real { start, .. } | Self::Manual { start, .. }) = self;
        u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Virtual milliseconds for each real one; 1 for a manual clock.
    pub(crate) fn speed(&self) -> f64 {
        match self {
            Self::Real { speed, .. } => *speed,
            Self::Manual { .. } => 1.0,
        }
    }

    pub(crate) fn is_manual(&self) -> bool {
        matches!(self, Self::Manual { .. })
    }

    /// Moves a manual clock forward to `at_ms` (never back); a real one moves by itself.
    pub(crate) fn advance_to(&self, at_ms: u64) {
        if let Self::Manual { now, .. } = self {
            now.fetch_max(at_ms, Ordering::SeqCst);
        }
    }

    /// How long to wait on the wall for `ms` virtual milliseconds.
    #[expect(clippy::cast_precision_loss, reason = "a wait is far below 2^53 milliseconds")]
    pub(crate) fn real_duration(&self, ms: u64) -> Duration {
        Duration::try_from_secs_f64(ms as f64 / 1000.0 / self.speed()).unwrap_or(Duration::from_hours(1))
    }
}

/// Milliseconds since 1970 by the machine's clock: where the cluster's own time starts in a served world.
#[expect(clippy::disallowed_methods, reason = "this is the clock of the simulator")]
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(0)
}
