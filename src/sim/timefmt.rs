//! Times in the two forms in which the servers write them.

use jiff::Timestamp;

fn formatted(ms: u64, format: &str) -> String {
    let timestamp = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    timestamp.unwrap_or_default().strftime(format).to_string()
}

/// `2026-11-30 21:03:52.050`, in the server's own zone, which is UTC here.
pub(crate) fn local(ms: u64) -> String {
    formatted(ms, "%Y-%m-%d %H:%M:%S%.3f")
}

/// RFC 3339 with nanoseconds.
pub(crate) fn rfc3339(ms: u64) -> String {
    formatted(ms, "%Y-%m-%dT%H:%M:%S%.9fZ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms() {
        assert_eq!(local(1_796_072_632_050), "2026-11-30 21:03:52.050");
        assert_eq!(rfc3339(1_796_072_632_050), "2026-11-30T21:03:52.050000000Z");
    }
}
