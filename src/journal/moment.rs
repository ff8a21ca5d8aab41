//! Wall time as it stands in a file.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cluster::Timestamp;

/// A wall time as records keep it: milliseconds since the epoch, written `2026-12-01T04:10:55.123Z`.
///
/// Monotonic time has no meaning in another process and is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(i64);

impl Moment {
    /// A moment from milliseconds since the epoch. What lies before it, or after the year 9999, becomes the edge: no
    /// clock that is set says so.
    pub fn from_ms(ms: i64) -> Self {
        Self(ms.clamp(0, jiff::Timestamp::MAX.as_second() * 1_000))
    }

    /// Milliseconds since the epoch.
    pub const fn ms(self) -> i64 {
        self.0
    }

    /// Reads what [`Display`](fmt::Display) writes, and nothing else: a spelling of the same moment that this program
    /// does not use was not written by it.
    pub fn parse(text: &str) -> Option<Self> {
        let at: jiff::Timestamp = text.parse().ok()?;
        let moment = Self(at.as_millisecond());
        (moment.to_string() == text).then_some(moment)
    }

    /// The date and time of day as one sortable word, `20261201-041055`, UTC.
    pub(super) fn compact(self) -> String {
        self.instant().strftime("%Y%m%d-%H%M%S").to_string()
    }

    fn instant(self) -> jiff::Timestamp {
        jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }
}

impl From<Timestamp> for Moment {
    fn from(at: Timestamp) -> Self {
        Self::from_ms(at.wall_ms)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.instant())
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("`{text}` is no time of a journal")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_back_as_they_were_written() {
        for ms in [0, 1, 1_796_098_255_123, -1, i64::MIN, i64::MAX] {
            let moment = Moment::from_ms(ms);
            assert_eq!(Moment::parse(&moment.to_string()), Some(moment), "{ms}: {moment}");
        }
        let moment = Moment::from_ms(1_796_098_255_123);
        assert_eq!(moment.to_string(), "2026-12-01T04:10:55.123Z");
        assert_eq!(moment.compact(), "20261201-041055");
    }

    #[test]
    fn another_spelling_of_a_time_is_not_ours() {
        for text in ["2026-12-01T04:10:55Z", "2026-12-01T05:10:55.123+01:00", "2026-12-01t04:10:55.123z", ""] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }
}
