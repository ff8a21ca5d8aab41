//! A value that was read from a server, with its age.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::answer::Failure;
use super::units::Timestamp;

/// What is known of one thing. There is no way from a failed read to an empty value: a failure keeps the last good
/// value and marks it stale, or, if there was none, is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Observed<T> {
    /// Read, and the last read succeeded.
    Known {
        /// What was read.
        value: T,
        /// When the request was *sent*: the answer may be as old as that.
        at: Timestamp,
    },
    /// Read once, but the last attempt failed.
    Stale {
        /// The last good value.
        value: T,
        /// When the request that gave it was sent.
        at: Timestamp,
        /// Why the last attempt failed.
        why: Failure,
    },
    /// Asked for, never read.
    Unknown {
        /// Why.
        why: Failure,
    },
    /// Not asked for yet.
    #[default]
    Unasked,
}

impl<T> Observed<T> {
    /// Takes the outcome of a read whose request was sent at `at`.
    pub fn absorb(&mut self, outcome: Result<T, Failure>, at: Timestamp) {
        let before = std::mem::take(self);
        *self = match (outcome, before) {
            (Ok(value), _) => Self::Known { value, at },
            (Err(why), Self::Known { value, at } | Self::Stale { value, at, .. }) => Self::Stale { value, at, why },
            (Err(why), Self::Unknown { .. } | Self::Unasked) => Self::Unknown { why },
        };
    }

    /// Takes the outcome of a read that is only lent: what says the same as before is not copied. Says whether the value
    /// may be another one now.
    pub fn follow(&mut self, outcome: &Result<T, Failure>, at: Timestamp) -> bool
    where
        T: Clone + PartialEq,
    {
        if let (Ok(new), Self::Known { value, .. }) = (outcome, &*self)
            && new == value
        {
            self.renew(at);
            return false;
        }
        self.absorb(outcome.clone(), at);
        outcome.is_ok()
    }

    /// Takes in that a read whose request was sent at `at` gave the same value again.
    pub const fn renew(&mut self, at: Timestamp) {
        if let Self::Known { at: read, .. } = self {
            *read = at;
        }
    }

    /// The last good value, fresh or stale.
    pub const fn last(&self) -> Option<&T> {
        match self {
            Self::Known { value, .. } | Self::Stale { value, .. } => Some(value),
            Self::Unknown { .. } | Self::Unasked => None,
        }
    }

    /// The value, only if the last read succeeded.
    pub const fn known(&self) -> Option<&T> {
        match self {
            Self::Known { value, .. } => Some(value),
            Self::Stale { .. } | Self::Unknown { .. } | Self::Unasked => None,
        }
    }

    /// The same observation of something worked out from the value.
    pub fn map<U>(&self, f: impl FnOnce(&T) -> U) -> Observed<U> {
        match self {
            Self::Known { value, at } => Observed::Known { value: f(value), at: *at },
            Self::Stale { value, at, why } => Observed::Stale { value: f(value), at: *at, why: why.clone() },
            Self::Unknown { why } => Observed::Unknown { why: why.clone() },
            Self::Unasked => Observed::Unasked,
        }
    }

    /// When the last good value was asked for.
    pub const fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Known { at, .. } | Self::Stale { at, .. } => Some(*at),
            Self::Unknown { .. } | Self::Unasked => None,
        }
    }

    /// The age of the last good value.
    pub fn age(&self, now: Timestamp) -> Option<Duration> {
        self.at().map(|at| now.since(at))
    }

    /// Why there is no fresh value.
    pub const fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Stale { why, .. } | Self::Unknown { why } => Some(why),
            Self::Known { .. } | Self::Unasked => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::FailureKind;
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::new(0, ms)
    }

    fn refused() -> Failure {
        Failure::local(FailureKind::Refused, "connection refused")
    }

    #[test]
    fn a_failed_read_keeps_the_last_value_and_its_age() {
        let mut tables = Observed::Unasked;
        tables.absorb(Ok(87), at(1_000));
        tables.absorb(Err(refused()), at(2_000));
        assert_eq!(tables.last(), Some(&87));
        assert_eq!(tables.known(), None);
        assert_eq!(tables.age(at(5_000)), Some(Duration::from_secs(4)));
        tables.absorb(Ok(86), at(6_000));
        assert_eq!(tables.known(), Some(&86));
    }

    #[test]
    fn to_follow_is_to_absorb_and_says_whether_the_value_is_another() {
        let outcomes = [Err(refused()), Ok(87), Ok(87), Err(refused()), Ok(87), Ok(86)];
        let (mut followed, mut absorbed, mut told) = (Observed::Unasked, Observed::Unasked, Vec::new());
        for (outcome, ms) in outcomes.into_iter().zip([1_000, 2_000, 3_000, 4_000, 5_000, 6_000]) {
            told.push(followed.follow(&outcome, at(ms)));
            absorbed.absorb(outcome, at(ms));
            assert_eq!(followed, absorbed);
        }
        assert_eq!(told, [false, true, false, false, true, true]);
    }

    #[test]
    fn a_failed_first_read_is_unknown_and_never_a_default() {
        let mut tables = Observed::<u64>::Unasked;
        tables.absorb(Err(refused()), at(1_000));
        assert_eq!(tables.last(), None);
        assert!(tables.failure().is_some());
    }
}
