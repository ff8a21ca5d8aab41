//! Every number the rollout goes by, in one value.

use std::time::Duration;

/// The numbers of the design, each of which an operator can set with `--set KEY=VALUE`.
///
/// Against a simulator polls and holds are divided by its speed ([`Policy::at_speed`]); ages and deadlines stay wall time.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Between two reads while something moves or a gate waits.
    pub poll_moving: Duration,
    /// Between two reads while nothing happens.
    pub poll_idle: Duration,
    /// Between two reads around a restart.
    pub watch: Duration,
    /// Data older than this (counted from sending) passes no gate; twice the last round's duration where that is longer.
    pub stale_after: Duration,
    /// At least this long between the two zeros of a drain, and between two drain requests.
    pub zeros_apart: Duration,
    /// A new owner must stand this long before anything is believed or asked of it.
    pub owner_stands: Duration,
    /// No owner for this long is said aloud.
    pub no_owner_warn: Duration,
    /// No owner for this long pauses the rollout.
    pub no_owner_guard: Duration,
    /// No reading of evidence for this long asks a person.
    pub unknown_asks: Duration,
    /// The same owner this long after a resign asks a person.
    pub resign_deadline: Duration,
    /// A drain count that has not fallen for this long asks a person.
    pub drain_stall: Duration,
    /// A drain that takes longer asks a person.
    pub drain_deadline: Duration,
    /// A restarted process that is not proven after this long asks a person.
    pub verify_deadline: Duration,
    /// Changefeeds that have not settled after this long ask a person.
    pub settle_deadline: Duration,
    /// Entering or leaving the upgrading state for longer asks a person.
    pub upgrading_deadline: Duration,
    /// Lag a changefeed may always have.
    pub lag_limit: Duration,
    /// Lag a changefeed may have, as a multiple of its lag before the step.
    pub lag_factor: f64,
    /// The lag must stay under its limit this long.
    pub lag_hold: Duration,
    /// Deadline of an `/upgrade/*` call.
    pub call_upgrade: Duration,
    /// Deadline of a drain or owner call.
    pub call_drain: Duration,
    /// Deadline of every other call.
    pub call_other: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        let s = Duration::from_secs;
        Self {
            poll_moving: s(1),
            poll_idle: s(5),
            watch: Duration::from_millis(250),
            stale_after: s(3),
            zeros_apart: s(1),
            owner_stands: s(3),
            no_owner_warn: s(3),
            no_owner_guard: s(15),
            unknown_asks: s(30),
            resign_deadline: s(10),
            drain_stall: s(30),
            drain_deadline: s(600),
            verify_deadline: s(120),
            settle_deadline: s(300),
            upgrading_deadline: s(60),
            lag_limit: s(10),
            lag_factor: 2.0,
            lag_hold: s(10),
            call_upgrade: s(30),
            call_drain: s(10),
            call_other: s(5),
        }
    }
}

/// Why a `--set` was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No number of this name.
    #[error("there is no setting `{key}`; known are: {known}")]
    UnknownKey {
        /// What was given.
        key: String,
        /// Every name there is.
        known: String,
    },
    /// The text is not `KEY=VALUE`.
    #[error("`{text}` is no setting; expected KEY=VALUE, for example drain_deadline=20m")]
    NoValue {
        /// What was given.
        text: String,
    },
    /// The value cannot be read.
    #[error("`{value}` is no value for `{key}`; expected {expected}")]
    BadValue {
        /// The name.
        key: String,
        /// What was given.
        value: String,
        /// What would do.
        expected: &'static str,
    },
}

impl Policy {
    /// Every name that `--set` takes, in the order of the design.
    pub const NAMES: [&'static str; 21] = [
        "poll_moving",
        "poll_idle",
        "watch",
        "stale_after",
        "zeros_apart",
        "owner_stands",
        "no_owner_warn",
        "no_owner_guard",
        "unknown_asks",
        "resign_deadline",
        "drain_stall",
        "drain_deadline",
        "verify_deadline",
        "settle_deadline",
        "upgrading_deadline",
        "lag_limit",
        "lag_factor",
        "lag_hold",
        "call_upgrade",
        "call_drain",
        "call_other",
    ];

    /// Applies one `KEY=VALUE`. `duration` reads texts such as `10s` or `2m`; it is passed in because the core knows no
    /// parser of human durations.
    pub fn set(&mut self, text: &str, duration: impl Fn(&str) -> Option<Duration>) -> Result<(), PolicyError> {
        let (key, value) = text.split_once('=').ok_or_else(|| PolicyError::NoValue { text: text.to_owned() })?;
        let (key, value) = (key.trim(), value.trim());
        let bad = |expected| PolicyError::BadValue { key: key.to_owned(), value: value.to_owned(), expected };
        if key == "lag_factor" {
            let factor: f64 = value.parse().map_err(|_| bad("a number of at least 1, for example 2.5"))?;
            if !factor.is_finite() || factor < 1.0 {
                return Err(bad("a number of at least 1, for example 2.5"));
            }
            self.lag_factor = factor;
            return Ok(());
        }
        let Some(slot) = self.slot(key) else {
            return Err(PolicyError::UnknownKey { key: key.to_owned(), known: Self::NAMES.join(" ") });
        };
        *slot = duration(value).ok_or_else(|| bad("a duration, for example 10s or 2m"))?;
        Ok(())
    }

    fn slot(&mut self, key: &str) -> Option<&mut Duration> {
        Some(match key {
            "poll_moving" => &mut self.poll_moving,
            "poll_idle" => &mut self.poll_idle,
            "watch" => &mut self.watch,
            "stale_after" => &mut self.stale_after,
            "zeros_apart" => &mut self.zeros_apart,
            "owner_stands" => &mut self.owner_stands,
            "no_owner_warn" => &mut self.no_owner_warn,
            "no_owner_guard" => &mut self.no_owner_guard,
            "unknown_asks" => &mut self.unknown_asks,
            "resign_deadline" => &mut self.resign_deadline,
            "drain_stall" => &mut self.drain_stall,
            "drain_deadline" => &mut self.drain_deadline,
            "verify_deadline" => &mut self.verify_deadline,
            "settle_deadline" => &mut self.settle_deadline,
            "upgrading_deadline" => &mut self.upgrading_deadline,
            "lag_limit" => &mut self.lag_limit,
            "lag_hold" => &mut self.lag_hold,
            "call_upgrade" => &mut self.call_upgrade,
            "call_drain" => &mut self.call_drain,
            "call_other" => &mut self.call_other,
            _ => return None,
        })
    }

    /// The same policy against a simulator that runs `speed` times as fast: polls and holds shrink, down to 20 ms.
    #[must_use]
    pub fn at_speed(mut self, speed: f64) -> Self {
        let floor = Duration::from_millis(20);
        for slot in [
            &mut self.poll_moving,
            &mut self.poll_idle,
            &mut self.watch,
            &mut self.zeros_apart,
            &mut self.owner_stands,
            &mut self.lag_hold,
        ] {
            let shrunk = slot.div_f64(speed.max(f64::MIN_POSITIVE));
            *slot = shrunk.max(floor.min(*slot));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<Duration> {
        text.strip_suffix('s')?.parse().ok().map(Duration::from_secs)
    }

    #[test]
    fn every_name_can_be_set_and_an_unknown_one_is_refused() {
        for name in Policy::NAMES {
            let mut policy = Policy::default();
            let value = if name == "lag_factor" { "7" } else { "7s" };
            policy.set(&format!("{name}={value}"), seconds).unwrap();
            assert_ne!(policy, Policy::default(), "{name} changed nothing");
        }
        let error = Policy::default().set("drain_dedline=7s", seconds).unwrap_err().to_string();
        assert!(error.contains("drain_dedline") && error.contains("drain_deadline"), "{error}");
        assert!(Policy::default().set("watch", seconds).is_err());
        assert!(Policy::default().set("watch=soon", seconds).is_err());
        assert!(Policy::default().set("lag_factor=0.5", seconds).is_err());
    }

    #[test]
    fn speed_shrinks_polls_and_holds_but_no_deadline() {
        let fast = Policy::default().at_speed(20.0);
        assert_eq!(fast.poll_moving, Duration::from_millis(50));
        assert_eq!(fast.watch, Duration::from_millis(20));
        assert_eq!(fast.lag_hold, Duration::from_millis(500));
        assert_eq!(fast.drain_stall, Duration::from_secs(30));
        assert_eq!(fast.stale_after, Duration::from_secs(3));
    }
}
