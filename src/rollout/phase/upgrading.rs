//! The hand-over to whoever upgrades PD and `TiKV`, and the two ends of the upgrading state (contract section 7.2).

use super::{Flow, LOOK_AGAIN, Turn, WAIT_LONGER, ask};
use crate::cluster::units::spoken;
use crate::cluster::{FinishAnswer, StartAnswer, Timestamp, UpgradeState};
use crate::rollout::command::Command;
use crate::rollout::effect::{Call, CallAnswer, EffectId};
use crate::rollout::engine::Engine;

/// The machine of `hand-over`.
#[derive(Clone, Debug, Default)]
pub struct HandOver {
    is_confirmed: bool,
}

impl HandOver {
    /// A person says that PD and `TiKV` are at the target.
    pub const fn confirm(&mut self) {
        self.is_confirmed = true;
    }

    /// Looks.
    pub fn run(&self, engine: &Engine) -> Flow {
        if self.is_confirmed {
            return Flow::Done("a person says PD and TiKV are at the target".to_owned());
        }
        if engine.request.hand_over_passes {
            return Flow::Done("the simulated cluster has no PD and TiKV to upgrade".to_owned());
        }
        let to = &engine.request.target;
        let behind: Vec<_> = engine
            .picture
            .pd_versions
            .iter()
            .filter(|(_, version)| version.known().is_none_or(|version| !version.is_same_release(to)))
            .map(|(address, version)| {
                let version = version.known().map_or_else(|| "?".to_owned(), ToString::to_string);
                format!("{address} ({version})")
            })
            .collect();
        let seen = match (engine.picture.pd_versions.is_empty(), behind.is_empty()) {
            (true, _) => "No PD address was given, so their versions are not visible from here.".to_owned(),
            (false, true) => format!("Every PD runs {to}; TiKV is not visible from here."),
            (false, false) => format!("Not at {to}: PD {}.", behind.join(", ")),
        };
        ask(
            "hand_over",
            format!("TiCDC is done. PD and TiKV come before TiDB, and they are not rolled by this program. {seen}"),
            "A TiDB newer than its TiKV is not supported, so the TiDB servers wait.",
            "Upgrade PD and TiKV with your cluster manager, then confirm.",
            &[(Command::Confirm, "PD and TiKV are at the target; go on with TiDB")],
        )
    }
}

/// The machine of `enter upgrading`.
#[derive(Clone, Debug, Default)]
pub struct Enter {
    call: Option<EffectId>,
    sent: u32,
    answered_at: Option<Timestamp>,
    last: Option<String>,
    is_confirmed: bool,
    is_foreign: bool,
}

impl Enter {
    /// Enters the upgrading state. Where the finish is owed already, `start` was sent before the program was gone, and
    /// whoever let it go on wants it sent once more: *duplicated* is then our own.
    pub fn new(is_owed: bool) -> Self {
        Self { sent: u32::from(is_owed), ..Self::default() }
    }

    /// Sends `start` once more, or looks again.
    pub fn retry(&mut self) {
        *self = Self { sent: self.sent, ..Self::default() };
    }

    /// Looks, and acts if it may.
    pub fn run(&mut self, engine: &mut Engine, turn: Turn) -> Flow {
        if let Some(id) = self.call
            && let Some((_, CallAnswer::Start(answer))) = engine.take_answer(id)
        {
            self.call = None;
            self.answered_at = Some(engine.now);
            match answer {
                Ok(StartAnswer::Success) => self.is_confirmed = true,
                Ok(StartAnswer::Duplicated) if self.sent > 1 => self.is_confirmed = true,
                Ok(StartAnswer::Duplicated) => self.is_foreign = true,
                Ok(StartAnswer::Other(text)) => self.last = Some(format!("it answered `{text}`")),
                Err(why) => self.last = Some(format!("TiDB {why}")),
            }
        }
        let Some(sweep) = engine.picture.tidb.clone() else { return Flow::Stay("reading TiDB".to_owned()) };
        if self.call.is_some() {
            return Flow::Stay("asking TiDB to pause user DDL".to_owned());
        }
        let Some(answered_at) = self.answered_at else { return self.before(engine, &sweep.state, sweep.begun, turn) };
        if self.is_foreign {
            return ask(
                "foreign_upgrade",
                "TiDB says it is upgrading already, although it was normal a moment ago: somebody else started an upgrade.",
                "Two upgrades would finish each other's state.",
                "Find out who it is. Retry goes on with the state as it is; this rollout then owes the finish.",
                &[(Command::Retry, "go on in the upgrading state that is there")],
            );
        }
        if sweep.begun < answered_at {
            return Flow::Stay("waiting for TiDB to show the state".to_owned());
        }
        match &sweep.state {
            Ok(UpgradeState::Upgrading { .. }) if self.is_confirmed => {
                Flow::Done("TiDB shows the upgrading state; user DDL waits".to_owned())
            }
            Ok(UpgradeState::Upgrading { .. }) => ask(
                "not_confirmed",
                format!("The upgrading state is set, but not confirmed by the DDL owner: {}.", self.why()),
                "User DDL may still run for a moment. The finish is owed.",
                "Retry sends start once more; or abort and finish.",
                &[(Command::Retry, "send start once more")],
            ),
            Ok(UpgradeState::Normal) if turn.spent < engine.policy.upgrading_deadline && self.is_confirmed => {
                Flow::Stay("waiting for TiDB to show the upgrading state".to_owned())
            }
            Ok(UpgradeState::Normal) => {
                engine.pay_finish("TiDB shows the normal state");
                ask(
                    "start_failed",
                    format!("TiDB did not enter the upgrading state: {}.", self.why()),
                    "User DDL runs as always; no TiDB server is restarted.",
                    "See what it says, then retry.",
                    &[(Command::Retry, "send start once more")],
                )
            }
            Err(why) if turn.spent >= engine.policy.upgrading_deadline => ask(
                "state_unread",
                format!("It is not known whether TiDB is upgrading: it {why}."),
                "The finish is owed until the state is known.",
                "See whether the status ports answer, then look again.",
                &[LOOK_AGAIN, WAIT_LONGER],
            ),
            Err(why) => Flow::Stay(format!("waiting: TiDB {why}")),
        }
    }

    fn before(
        &mut self,
        engine: &mut Engine,
        state: &crate::cluster::Reading<UpgradeState>,
        at: Timestamp,
        turn: Turn,
    ) -> Flow {
        let is_old = engine.now.since(at) > engine.policy.stale_after;
        if (is_old || state.is_err()) && turn.spent >= engine.policy.unknown_asks {
            return unread(state);
        }
        if is_old {
            return Flow::Stay("waiting for a fresh reading of TiDB".to_owned());
        }
        match state {
            Ok(UpgradeState::Normal) => {}
            Ok(UpgradeState::Upgrading { .. }) if self.sent > 0 => {}
            Ok(UpgradeState::Upgrading { .. }) => {
                return ask(
                    "found_upgrading",
                    "The TiDB cluster is in the upgrading state, and this rollout did not put it there.",
                    "Somebody else's upgrade is under way, or one ended without its finish. User DDL hangs.",
                    "If nobody is upgrading: POST /upgrade/finish to any TiDB server, then look again.",
                    &[LOOK_AGAIN],
                );
            }
            Err(why) => return Flow::Stay(format!("waiting: TiDB {why}")),
        }
        if turn.may_act {
            engine.owe_finish();
            self.sent += 1;
            self.call = Some(engine.call(Call::UpgradeStart));
        }
        Flow::Stay("asking TiDB to pause user DDL".to_owned())
    }

    fn why(&self) -> String {
        self.last.clone().unwrap_or_else(|| "no reason was given".to_owned())
    }
}

/// The machine of `leave upgrading`.
#[derive(Clone, Debug)]
pub struct Leave {
    since: Timestamp,
    call: Option<EffectId>,
    answered_at: Option<Timestamp>,
    last: Option<String>,
    /// After an abort a person may finish with versions that differ.
    is_forced: bool,
}

impl Leave {
    /// Only what was asked after `since` counts.
    pub const fn new(since: Timestamp, is_forced: bool) -> Self {
        Self { since, call: None, answered_at: None, last: None, is_forced }
    }

    /// Sends `finish` once more, or looks again.
    pub fn retry(&mut self, now: Timestamp) {
        *self = Self::new(now, self.is_forced);
    }

    /// Looks, and acts if it may.
    pub fn run(&mut self, engine: &mut Engine, turn: Turn) -> Flow {
        if let Some(id) = self.call
            && let Some((_, CallAnswer::Finish(answer))) = engine.take_answer(id)
        {
            self.call = None;
            self.answered_at = Some(engine.now);
            match answer {
                Ok(FinishAnswer::Success | FinishAnswer::Duplicated) => {}
                Ok(FinishAnswer::Other(text)) => self.last = Some(format!("it answered `{text}`")),
                Err(why) => self.last = Some(format!("TiDB {why}")),
            }
        }
        let Some(sweep) = engine.picture.tidb.clone().filter(|sweep| sweep.begun >= self.since) else {
            return Flow::Stay("reading TiDB".to_owned());
        };
        if self.call.is_some() {
            return Flow::Stay("asking TiDB to let user DDL run".to_owned());
        }
        if let Some(answered_at) = self.answered_at.filter(|at| sweep.begun >= *at) {
            return match &sweep.state {
                Ok(UpgradeState::Normal) => {
                    engine.pay_finish("TiDB shows the normal state");
                    Flow::Done("TiDB shows the normal state; user DDL runs".to_owned())
                }
                _ if turn.spent < engine.policy.upgrading_deadline && self.last.is_none() => {
                    Flow::Stay("waiting for TiDB to show the normal state".to_owned())
                }
                _ => ask(
                    "finish_failed",
                    format!(
                        "{} after finish TiDB does not show the normal state: {}.",
                        spoken(engine.now.since(answered_at)),
                        self.last.as_deref().unwrap_or("it gave no reason")
                    ),
                    "User DDL hangs until it does.",
                    "Retry sends finish once more.",
                    &[(Command::Retry, "send finish once more")],
                ),
            };
        }
        if self.answered_at.is_some() {
            return Flow::Stay("waiting for TiDB to show the normal state".to_owned());
        }
        let to = &engine.request.target;
        let behind: Vec<_> = sweep
            .servers
            .iter()
            .filter_map(|server| match &server.info {
                Ok(info) if info.version.is_same_release(to) => None,
                _ if engine.is_left_out(&server.address) => None,
                Ok(info) => Some(format!("{} runs {}", server.address, info.version)),
                Err(why) => Some(format!("{} {why}", server.address)),
            })
            .collect();
        if !behind.is_empty() && !self.is_forced {
            if turn.spent >= engine.policy.upgrading_deadline {
                return ask(
                    "not_all_at_target",
                    format!("Not every TiDB server is at {to}: {}.", behind.join("; ")),
                    "The upgrading state is left only when all are; user DDL hangs meanwhile.",
                    "Bring the server to the target; this step notices.",
                    &[LOOK_AGAIN, WAIT_LONGER],
                );
            }
            return Flow::Stay(format!("waiting: {}", behind.join("; ")));
        }
        if engine.now.since(sweep.begun) > engine.policy.stale_after {
            return Flow::Stay("waiting for a fresh reading of TiDB".to_owned());
        }
        if turn.may_act {
            self.call = Some(engine.call(Call::UpgradeFinish));
        }
        Flow::Stay("asking TiDB to let user DDL run".to_owned())
    }
}

fn unread(state: &crate::cluster::Reading<UpgradeState>) -> Flow {
    let why = state.as_ref().err().map_or_else(|| "the last reading is too old".to_owned(), |why| format!("it {why}"));
    ask(
        "state_unread",
        format!("It is not known whether TiDB is upgrading: {why}."),
        "The upgrading state is entered only from one that was just read.",
        "See whether the status ports answer, then look again.",
        &[LOOK_AGAIN, WAIT_LONGER],
    )
}
