//! Versions as the servers write them, and their order.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The prefix `TiDB` puts before its own version for the sake of `MySQL` clients (recorded `tidb` 01).
pub const TIDB_PREFIX: &str = "8.0.11-TiDB-";

/// A server's version: the text as it came, and the release it stands for.
///
/// Equality is of the text (without `TiDB`'s prefix), because the mixed-version rule of classic `TiCDC` counts
/// distinct *strings* (contract section 5): `v8.5.3` and `v8.5.3-fips` are two. Order is of the release.
#[derive(Clone)]
pub struct Version {
    raw: Arc<str>,
    release: semver::Version,
}

/// Why a text is no version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no version; expected for example v8.5.4")]
pub struct VersionError {
    text: String,
}

impl Version {
    /// Reads `v8.5.4`, `8.5.4`, `8.0.11-TiDB-v8.5.4` and the suffixes builds carry (`-12-gabcdef`, `-dev`, `-fips`,
    /// `-dirty`).
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        let fail = || VersionError { text: text.to_owned() };
        let trimmed = text.trim();
        let raw = trimmed.strip_prefix(TIDB_PREFIX).unwrap_or(trimmed);
        let mut number = raw.strip_prefix(['v', 'V']).unwrap_or(raw);
        loop {
            let shorter = ["-dirty", "-fips", "-dev"].iter().find_map(|s| number.strip_suffix(s));
            match shorter.or_else(|| without_git_describe(number)) {
                Some(shorter) => number = shorter,
                None => break,
            }
        }
        let release = semver::Version::parse(number).map_err(|_| fail())?;
        Ok(Self { raw: Arc::from(raw), release })
    }

    /// v0.0.0: older than everything; stands where no target was named.
    pub fn zero() -> Self {
        Self { raw: Arc::from("v0.0.0"), release: semver::Version::new(0, 0, 0) }
    }

    /// The text as the server wrote it, without `TiDB`'s prefix.
    pub fn as_str(&self) -> &str {
        &self.raw
    }

    /// Major, minor and patch.
    pub const fn numbers(&self) -> (u64, u64, u64) {
        (self.release.major, self.release.minor, self.release.patch)
    }

    /// Whether both name the same release, whatever `v` or build suffix they carry: what "at the target" means.
    pub fn is_same_release(&self, other: &Self) -> bool {
        self.release.cmp_precedence(&other.release).is_eq()
    }

    /// Whether this release is older.
    pub fn is_older_than(&self, other: &Self) -> bool {
        self.release.cmp_precedence(&other.release).is_lt()
    }

    /// Whether `TiDB` at this version takes `/upgrade/start` and `/upgrade/finish` (contract section 7.3).
    pub fn has_upgrade_api(&self) -> bool {
        matches!(self.numbers(), (7, 1, patch) if patch >= 2) || (self.release.major, self.release.minor) >= (7, 4)
    }

    /// Whether `TiCDC` at this version can be drained (contract section 5).
    pub const fn has_drain(&self) -> bool {
        self.release.major > 6 || (self.release.major == 6 && self.release.minor >= 3)
    }
}

/// Cuts `-12-gabcdef` off, as `git describe` appends it.
fn without_git_describe(number: &str) -> Option<&str> {
    let (rest, hash) = number.rsplit_once("-g")?;
    let (rest, count) = rest.rsplit_once('-')?;
    let is_hash = !hash.is_empty() && hash.bytes().all(|b| b.is_ascii_hexdigit());
    let is_count = !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit());
    (is_hash && is_count).then_some(rest)
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl Eq for Version {}

impl std::hash::Hash for Version {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.raw.hash(state);
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.release.cmp_precedence(&other.release).then_with(|| self.raw.cmp(&other.raw))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.raw)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({})", self.raw)
    }
}

impl std::str::FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl Serialize for Version {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.raw)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[test]
    fn releases_order_by_number_not_by_text() {
        assert!(v("v7.5.9").is_older_than(&v("v7.5.10")));
        assert!(v("v8.5.3") < v("v8.5.4"));
        assert!(v("v8.5.0-alpha").is_older_than(&v("v8.5.0")));
    }

    #[test]
    fn build_suffixes_and_prefixes_do_not_change_the_release() {
        for text in ["8.5.4", "v8.5.4-dev", "v8.5.4-12-gabcdef0", "v8.5.4-12-gabcdef0-dirty", "8.0.11-TiDB-v8.5.4-fips"]
        {
            assert!(v(text).is_same_release(&v("v8.5.4")), "{text}");
        }
        assert_eq!(v("8.0.11-TiDB-v8.5.4").as_str(), "v8.5.4");
    }

    #[test]
    fn two_strings_of_one_release_are_two_versions() {
        assert_ne!(v("v8.5.4"), v("v8.5.4-fips"));
    }

    #[test]
    fn what_is_no_version_is_refused_with_the_value() {
        for text in ["", "latest", "v8", "v8.5", "8.5.x"] {
            assert!(Version::parse(text).unwrap_err().to_string().contains(text));
        }
    }

    #[test]
    fn the_upgrade_api_came_with_7_1_2_and_7_4() {
        let with = ["v7.1.2", "v7.1.6", "v7.4.0", "v7.5.1", "v8.5.4"];
        let without = ["v6.5.9", "v7.0.0", "v7.1.1", "v7.2.0", "v7.3.0"];
        assert!(with.iter().all(|t| v(t).has_upgrade_api()));
        assert!(without.iter().all(|t| !v(t).has_upgrade_api()));
        assert!(v("v6.3.0").has_drain() && !v("v6.2.9").has_drain());
    }
}
