//! Time as a value, and how durations and counts are written for people.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment: wall time for people and records, monotonic time for deadlines and ages.
///
/// Both travel together so that no code has to choose between them later: a clock that is set back changes what is
/// printed, never how long something has waited. Order and differences are monotonic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timestamp {
    /// Milliseconds since the epoch, UTC.
    pub wall_ms: i64,
    /// Milliseconds since an arbitrary start, never going back.
    pub mono_ms: u64,
}

impl Timestamp {
    /// A moment from both clocks.
    pub const fn new(wall_ms: i64, mono_ms: u64) -> Self {
        Self { wall_ms, mono_ms }
    }

    /// How long ago `earlier` was; zero if it is not earlier.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.mono_ms.saturating_sub(earlier.mono_ms))
    }

    /// The moment `by` later.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        let ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        let wall = i64::try_from(ms).unwrap_or(i64::MAX);
        Self { wall_ms: self.wall_ms.saturating_add(wall), mono_ms: self.mono_ms.saturating_add(ms) }
    }
}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.mono_ms.cmp(&other.mono_ms).then(self.wall_ms.cmp(&other.wall_ms))
    }
}

/// Something that tells the time. Only the edges of the program hold a real one; tests hold a hand-driven one.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// A timestamp of the cluster's own oracle: physical milliseconds in the upper 46 bits, a counter in the lower 18.
/// Values are beyond 2^53, so one must never pass through a float (contract section 1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tso(u64);

impl Tso {
    /// A reading, if it is one: 0 and the largest value mean "no checkpoint yet" (field report 73).
    pub const fn new(raw: u64) -> Option<Self> {
        if raw == 0 || raw == u64::MAX { None } else { Some(Self(raw)) }
    }

    /// The number as the server wrote it.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Milliseconds since the epoch.
    pub const fn physical_ms(self) -> u64 {
        self.0 >> 18
    }

    /// How far this checkpoint is behind `now`; zero if it is ahead.
    pub const fn lag_behind(self, now: Self) -> Duration {
        Duration::from_millis(now.physical_ms().saturating_sub(self.physical_ms()))
    }
}

impl fmt::Display for Tso {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// `0:38`, `6:12`, `1:02:03`: a duration as a clock.
pub fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if h > 0 { format!("{h}:{m:02}:{s:02}") } else { format!("{m}:{s:02}") }
}

/// `350 ms`, `2.4 s`, `38 s`, `6 min 12 s`, `1 h 2 min`: a duration in words.
pub fn spoken(duration: Duration) -> String {
    let ms = duration.as_millis();
    let seconds = duration.as_secs();
    match seconds {
        0 if ms == 0 => "0 s".to_owned(),
        0 => format!("{ms} ms"),
        1..10 if !ms.is_multiple_of(1000) => format!("{}.{} s", seconds, ms % 1000 / 100),
        1..120 => format!("{seconds} s"),
        120..3600 if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        120..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ if (seconds / 60).is_multiple_of(60) => format!("{} h", seconds / 3600),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// `1,204`: a count with its thousands apart.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 table`, `87 tables`: a count with its noun.
pub fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_set_back_does_not_shorten_a_wait() {
        let start = Timestamp::new(1_000_000, 500);
        let later = Timestamp::new(400_000, 2_500);
        assert_eq!(later.since(start), Duration::from_secs(2));
        assert!(later > start);
    }

    #[test]
    fn a_checkpoint_is_exact_beyond_2_to_the_53() {
        let recorded = Tso::new(470_829_664_056_115_205).unwrap();
        assert_eq!(recorded.get(), 470_829_664_056_115_205);
        assert_eq!(recorded.physical_ms(), 1_796_072_632_050);
        assert_eq!(Tso::new(0), None);
        assert_eq!(Tso::new(u64::MAX), None);
    }

    #[test]
    fn a_checkpoint_ahead_of_the_clock_has_no_lag() {
        let now = Tso::new(1_000 << 18).unwrap();
        let ahead = Tso::new(2_000 << 18).unwrap();
        assert_eq!(ahead.lag_behind(now), Duration::ZERO);
        assert_eq!(now.lag_behind(ahead), Duration::from_secs(1));
    }

    #[test]
    fn durations_and_counts_read_well() {
        let ms = Duration::from_millis;
        assert_eq!(spoken(ms(0)), "0 s");
        assert_eq!(spoken(ms(350)), "350 ms");
        assert_eq!(spoken(ms(2_450)), "2.4 s");
        assert_eq!(spoken(ms(10_000)), "10 s");
        assert_eq!(spoken(ms(372_000)), "6 min 12 s");
        assert_eq!(spoken(ms(600_000)), "10 min");
        assert_eq!(spoken(ms(3_720_000)), "1 h 2 min");
        assert_eq!(clock(ms(38_000)), "0:38");
        assert_eq!(clock(ms(3_723_000)), "1:02:03");
        assert_eq!(grouped(1_204), "1,204");
        assert_eq!(grouped(10_000_000), "10,000,000");
        assert_eq!(counted(1, "table"), "1 table");
    }
}
