//! What scripts are told: JSON lines and documents, each with the version of their schema
//! ([`crate::rollout::event::SCHEMA`]).

use color_eyre::eyre::Result;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cluster::Timestamp;
use crate::rollout::event::{Event, SCHEMA};

/// A line of a running rollout.
pub(super) fn line(event: &Event) -> String {
    line_of(event.at, event.fact.name(), &event.fact.data())
}

/// A line of this name.
pub(super) fn line_of(at: Timestamp, event: &str, data: &Value) -> String {
    json!({ "v": SCHEMA, "at": rfc3339(at), "event": event, "data": data }).to_string()
}

/// A document of its own.
pub(super) fn document<T: Serialize>(document: &T) -> Result<String> {
    #[derive(Serialize)]
    struct Versioned<'a, T> {
        v: u32,
        #[serde(flatten)]
        document: &'a T,
    }
    Ok(serde_json::to_string(&Versioned { v: SCHEMA, document })?)
}

/// RFC 3339 in UTC with milliseconds.
pub(super) fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.wall_ms).map_or_else(|_| String::new(), |at| format!("{at:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339_in_utc_with_milliseconds() {
        assert_eq!(rfc3339(Timestamp::new(1_796_072_632_050, 0)), "2026-11-30T21:03:52.050Z");
        assert_eq!(rfc3339(Timestamp::new(1_796_072_632_000, 0)), "2026-11-30T21:03:52.000Z");
    }
}
