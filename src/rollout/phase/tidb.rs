//! `restart` and `verify` of a `TiDB` server. The proof is its own `/info`: a new DDL id, a later start, the target
//! version, and `/status` 200 (contract section 7.4).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::act::{Act, Words};
use super::{Flow, LOOK_AGAIN, Turn, WAIT_LONGER, ask};
use crate::cluster::units::spoken;
use crate::cluster::{Address, Timestamp, Version};
use crate::rollout::command::Command;
use crate::rollout::effect::Component;
use crate::rollout::engine::Engine;

/// The server before its restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// Its DDL id.
    pub ddl_id: Arc<str>,
    /// When it started, seconds since the epoch.
    pub start_timestamp: i64,
}

/// The machine of `restart`.
#[derive(Clone, Debug)]
pub struct TidbRestart {
    address: Address,
    to: Version,
    is_confirmed: bool,
    /// A person goes on although somebody else left the upgrading state.
    goes_on_normal: bool,
    /// Whether the question was about that.
    asks_of_state: bool,
    act: Act,
}

impl TidbRestart {
    /// A restart of this server to this version.
    pub fn new(address: Address, to: Version) -> Self {
        let act = Act::default();
        Self { address, to, is_confirmed: false, goes_on_normal: false, asks_of_state: false, act }
    }

    /// Starts over.
    pub fn retry(&mut self) {
        *self = Self { act: self.act.again(), ..Self::new(self.address.clone(), self.to.clone()) };
    }

    /// A person says that no `TiDB` may serve for a while, or that user DDL may run meanwhile: whichever was asked.
    pub const fn confirm(&mut self) {
        if self.asks_of_state {
            self.goes_on_normal = true;
        } else {
            self.is_confirmed = true;
        }
    }

    /// Whether an act on the process is under way.
    pub const fn is_acting(&self) -> bool {
        self.act.is_acting()
    }

    /// Looks, and acts if it may.
    pub fn run(&mut self, engine: &mut Engine, turn: Turn) -> Flow {
        if self.act.is_ordered() {
            return self.follow(engine, turn);
        }
        let Some(sweep) = engine.picture.tidb.clone() else { return Flow::Stay("reading TiDB".to_owned()) };
        if engine.now.since(sweep.begun) > engine.policy.stale_after {
            return Flow::Stay("waiting for a fresh reading of TiDB".to_owned());
        }
        self.asks_of_state = false;
        if let Some(since) = self.act.since()
            && self.is_new(engine, since)
        {
            engine.note_return();
            return Flow::Done("a new process answers".to_owned());
        }
        let is_left = engine.owes_finish() && engine.picture.is_upgrading.known() == Some(&false);
        if is_left && self.goes_on_normal {
            engine.pay_finish("TiDB shows the normal state; somebody else sent finish");
        } else if is_left {
            self.asks_of_state = true;
            return ask(
                "foreign_finish",
                "TiDB shows the normal state, although this rollout took it into the upgrading state: somebody else sent finish.",
                "User DDL runs while servers of two versions serve.",
                "Find out who it was. Have start sent again and look again, or go on as it is.",
                &[LOOK_AGAIN, (Command::Confirm, "go on in the normal state; user DDL runs meanwhile")],
            );
        }
        let others = sweep.servers.iter().filter(|server| server.address != self.address);
        if !self.is_confirmed && !others.clone().any(|server| server.status.is_ok()) {
            return ask(
                "no_other_tidb",
                format!("No TiDB server but {} is known to serve.", self.address),
                "While it restarts no SQL is served.",
                "Bring another server up and look again, or confirm that this gap is fine.",
                &[LOOK_AGAIN, (Command::Confirm, "restart it although nothing serves meanwhile")],
            );
        }
        let own = sweep.server_at(&self.address);
        match own.map(|server| &server.info) {
            Some(Ok(info)) => {
                let before = Before { ddl_id: info.ddl_id.clone(), start_timestamp: info.start_timestamp };
                engine.tidb_before.set(Some(before));
            }
            _ if turn.spent >= engine.policy.unknown_asks => {
                return ask(
                    "server_unread",
                    format!("TiDB {} has not answered /info for {}.", self.address, spoken(turn.spent)),
                    "Without its id before the restart nothing proves afterwards that it is a new process.",
                    "Bring it up (or start the new version there by hand), then look again.",
                    &[LOOK_AGAIN, WAIT_LONGER],
                );
            }
            _ => return Flow::Stay(format!("{} must answer /info before it is restarted", self.address)),
        }
        if turn.may_act {
            let before = engine.tidb_before.as_ref().map(|before| Arc::clone(&before.ddl_id)).unwrap_or_default();
            self.act.restart(engine, Component::Tidb, &self.address, Some(&self.to), &before, false);
        }
        Flow::Stay("restarting".to_owned())
    }

    fn follow(&mut self, engine: &mut Engine, turn: Turn) -> Flow {
        let what = format!("TiDB {}", self.address);
        let words = Words {
            what: &what,
            means: "The server may be down; user DDL hangs while the cluster is upgrading.",
            retry: "make sure it is safe and restart it again",
        };
        let mut act = std::mem::take(&mut self.act);
        let flow = act.follow(engine, turn, &words, |engine, since| {
            self.is_new(engine, since).then(|| "a new process answers".to_owned())
        });
        self.act = act;
        flow
    }

    /// Whether another process answers there than the one that was to be restarted.
    fn is_new(&self, engine: &Engine, since: Timestamp) -> bool {
        let Some(before) = engine.tidb_before.value() else { return false };
        let sweep = engine.picture.tidb.as_ref().filter(|sweep| sweep.begun >= since);
        let server = sweep.and_then(|sweep| sweep.server_at(&self.address));
        server.and_then(|server| server.info.as_ref().ok()).is_some_and(|info| info.ddl_id != before.ddl_id)
    }
}

/// The machine of `verify`.
#[derive(Clone, Debug)]
pub struct TidbVerify {
    address: Address,
    to: Version,
    since: Timestamp,
}

impl TidbVerify {
    /// Only what was asked after `since` counts.
    pub const fn new(address: Address, to: Version, since: Timestamp) -> Self {
        Self { address, to, since }
    }

    /// Looks.
    pub fn run(&self, engine: &mut Engine, turn: Turn) -> Flow {
        let missing = match self.proof(engine) {
            Ok(evidence) => {
                engine.pay_restart(&self.address, Component::Tidb, &evidence);
                return Flow::Done(evidence);
            }
            Err((true, wrong)) => {
                return ask(
                    "wrong_version",
                    format!("TiDB {} came back as {wrong}, not as {}.", self.address, self.to),
                    "The command may have said success; the server says otherwise. The next server is not touched.",
                    "Put the right binary in place and restart the process; this step notices when it answers.",
                    &[LOOK_AGAIN, WAIT_LONGER],
                );
            }
            Err((false, missing)) => missing,
        };
        if turn.spent >= engine.policy.verify_deadline {
            return ask(
                "not_verified",
                format!(
                    "{} after its restart TiDB {} is not proven to be back: {missing}.",
                    spoken(turn.spent),
                    self.address
                ),
                "The next server is not touched; user DDL hangs while the cluster is upgrading.",
                "Look at its log (a server may wait for its own bootstrap DDL: ADMIN SHOW DDL JOBS); this step notices when it answers.",
                &[WAIT_LONGER, LOOK_AGAIN],
            );
        }
        Flow::Stay(format!("waiting: {missing}"))
    }

    /// The flag is true where the process is the wrong one.
    fn proof(&self, engine: &Engine) -> Result<String, (bool, String)> {
        let wait = |why: String| (false, why);
        let sweep = engine.picture.tidb.as_ref().filter(|sweep| sweep.begun >= self.since);
        let sweep = sweep.ok_or_else(|| wait("no answer yet".to_owned()))?;
        let server = sweep.server_at(&self.address);
        let server = server.ok_or_else(|| wait("it was not asked".to_owned()))?;
        let info = server.info.as_ref().map_err(|why| wait(format!("it {why}")))?;
        if let Some(before) = engine.tidb_before.value()
            && (before.ddl_id == info.ddl_id || info.start_timestamp <= before.start_timestamp)
        {
            return Err(wait("the old process still answers".to_owned()));
        }
        if !info.version.is_same_release(&self.to) {
            return Err((true, info.version.to_string()));
        }
        server.status.as_ref().map_err(|why| wait(format!("it {why}")))?;
        Ok(format!("{} as a new process, serving", info.version))
    }
}
