//! `settle`: every changefeed that ran when the step began runs, its checkpoint has moved since the restart, its lag is
//! under the limit and stays there, and health answers. State alone is not enough (field report 30).

use super::{Flow, LOOK_AGAIN, Turn, WAIT_LONGER, ask};
use crate::cluster::units::{counted, spoken};
use crate::cluster::{ChangefeedState, Timestamp};
use crate::rollout::command::Command;
use crate::rollout::engine::{Engine, FeedBefore, Visit};

/// The machine.
#[derive(Clone, Debug)]
pub struct Settle {
    since: Timestamp,
    good_since: Option<Timestamp>,
    judged: Option<Timestamp>,
    missing: String,
    /// Whether what is missing is only health.
    is_only_health: bool,
    /// A person goes on although health does not answer.
    is_waived: bool,
}

impl Settle {
    /// Only what was asked after `since` counts.
    pub const fn new(since: Timestamp) -> Self {
        Self { since, good_since: None, judged: None, missing: String::new(), is_only_health: false, is_waived: false }
    }

    /// A person goes on although health does not answer.
    pub const fn confirm(&mut self) {
        self.is_waived = true;
    }

    /// Looks again.
    pub fn retry(&mut self) {
        self.good_since = None;
    }

    /// Looks.
    pub fn run(&mut self, engine: &mut Engine, turn: Turn) -> Flow {
        let Some(visit) = engine.visit.value().clone() else { return Flow::Stay("reading the cluster".to_owned()) };
        let hold = engine.policy.lag_hold;
        if let Some(sweep) = engine.picture.cdc.clone()
            && sweep.begun >= self.since
            && self.judged != Some(sweep.begun)
        {
            self.judged = Some(sweep.begun);
            let feeds = Self::missing_now(engine, &visit);
            let health = Self::ill(engine, &visit).filter(|_| !self.is_waived);
            self.is_only_health = feeds.is_none() && health.is_some();
            match feeds.or(health) {
                None => {
                    let good = *self.good_since.get_or_insert(sweep.begun);
                    if sweep.begun.since(good) >= hold {
                        let feeds = u64::try_from(visit.feeds.len()).unwrap_or(u64::MAX);
                        return Flow::Done(format!(
                            "{} as before, checkpoints moving, lag held for {}; {}",
                            counted(feeds, "changefeed"),
                            spoken(sweep.begun.since(good)),
                            if self.is_waived { "health waived by a person" } else { "healthy" }
                        ));
                    }
                    "the lag must hold a while".clone_into(&mut self.missing);
                }
                Some(missing) => {
                    self.good_since = None;
                    self.missing = missing;
                }
            }
        }
        if turn.spent >= engine.policy.settle_deadline {
            let waive = (Command::Confirm, "go on although health does not answer");
            let choices: &[_] =
                if self.is_only_health { &[WAIT_LONGER, LOOK_AGAIN, waive] } else { &[WAIT_LONGER, LOOK_AGAIN] };
            return ask(
                "not_settled",
                format!(
                    "{} after the restart of {} the changefeeds have not settled: {}.",
                    spoken(turn.spent),
                    visit.address,
                    self.missing
                ),
                "The next node is not touched while replication is behind.",
                "See to what is named here (resume what is paused); wait if a lag falls.",
                choices,
            );
        }
        let missing = if self.missing.is_empty() { "no answer yet" } else { &self.missing };
        Flow::Stay(format!("waiting: {missing}"))
    }

    fn ill(engine: &Engine, visit: &Visit) -> Option<String> {
        match engine.picture.groups.get(&visit.cluster)?.health.known() {
            Some(true) => None,
            Some(false) => Some("TiCDC says it is unhealthy".to_owned()),
            None => Some("health could not be read".to_owned()),
        }
    }

    fn missing_now(engine: &Engine, visit: &Visit) -> Option<String> {
        let group = engine.picture.groups.get(&visit.cluster)?;
        let Some(rows) = group.changefeeds.known() else {
            return Some("the changefeeds could not be read".to_owned());
        };
        for (id, before) in visit.feeds.iter().filter(|(_, before)| before.state.is_running()) {
            let label = id.label();
            let Some(row) = rows.iter().find(|row| &row.id == id) else {
                return Some(format!("changefeed {label} is missing from the list"));
            };
            if is_no_worse(before, &row.state) {
                continue;
            }
            if before.stood_still && row.state == before.state {
                continue;
            }
            if row.state == ChangefeedState::Stopped {
                return Some(format!("changefeed {label} ran when this step began and is paused now: resume it"));
            }
            if row.state != ChangefeedState::Normal {
                return Some(format!("changefeed {label} is {}", row.state));
            }
            let moved = match (before.checkpoint, row.checkpoint) {
                (Some(before), Some(now)) => now > before,
                (None, Some(_)) => true,
                (_, None) => false,
            };
            if !moved {
                return Some(format!("the checkpoint of {label} has not moved since the restart"));
            }
            let Some(lag) = group.lag(row).filter(|_| group.cluster_time.known().is_some()) else {
                return Some(format!("the lag of {label} is unknown"));
            };
            let limit = engine.lag_limit(before.lag);
            if lag > limit {
                return Some(format!("{label} is {} behind, over its limit of {}", spoken(lag), spoken(limit)));
            }
        }
        None
    }
}

/// A changefeed that was in trouble before the step passes if it is no worse now.
fn is_no_worse(before: &FeedBefore, now: &ChangefeedState) -> bool {
    matches!(before.state, ChangefeedState::Warning | ChangefeedState::Pending)
        && matches!(now, ChangefeedState::Warning | ChangefeedState::Pending)
}
