//! `verify`: a *new* id at that address in the owner's list, its own status with that id, the version it should have,
//! liveness alive, and the old id gone (design section 4).

use super::{Flow, LOOK_AGAIN, Turn, WAIT_LONGER, ask};
use crate::cluster::units::spoken;
use crate::cluster::{Architecture, Liveness, Timestamp};
use crate::rollout::command::Command;
use crate::rollout::effect::Component;
use crate::rollout::engine::{Engine, Visit};

/// The machine.
#[derive(Clone, Debug)]
pub struct Verify {
    since: Timestamp,
    wrong: Option<String>,
    /// It came back as the other architecture.
    is_other: bool,
}

impl Verify {
    /// Only what was asked after `since` counts.
    pub const fn new(since: Timestamp) -> Self {
        Self { since, wrong: None, is_other: false }
    }

    /// Looks again.
    pub fn retry(&mut self) {
        self.wrong = None;
        self.is_other = false;
    }

    /// Looks.
    pub fn run(&mut self, engine: &mut Engine, turn: Turn) -> Flow {
        let Some(visit) = engine.visit.value().clone() else { return Flow::Stay("reading the cluster".to_owned()) };
        let missing = match self.proof(engine, &visit) {
            Ok(evidence) => {
                engine.pay_restart(&visit.address, Component::Ticdc, &evidence);
                return Flow::Done(evidence);
            }
            Err(missing) => missing,
        };
        if let Some(wrong) = &self.wrong {
            return ask(
                "wrong_version",
                format!("{} came back as {wrong}, not as {}.", visit.address, visit.expected()),
                "The command may have said success; the node says otherwise. The next node is not touched.",
                "Put the right binary in place and restart the process; this step notices when it answers.",
                &[LOOK_AGAIN, (Command::Wait, "wait for it as long again")],
            );
        }
        if self.is_other {
            return other_architecture(&visit);
        }
        if turn.spent >= engine.policy.verify_deadline {
            return ask(
                "not_verified",
                format!(
                    "{} after the restart {} is not proven to be back: {missing}.",
                    spoken(turn.spent),
                    visit.address
                ),
                "The next node is not touched until this one is proven.",
                "Look at the process and its log; this step notices when it answers.",
                &[WAIT_LONGER, LOOK_AGAIN],
            );
        }
        Flow::Stay(format!("waiting: {missing}"))
    }

    fn proof(&mut self, engine: &Engine, visit: &Visit) -> Result<String, String> {
        let at = &visit.address;
        let sweep = engine.picture.cdc.as_ref().filter(|sweep| sweep.begun >= self.since).ok_or("no answer yet")?;
        let node = sweep.node_at(at).ok_or_else(|| format!("{at} was not asked"))?;
        let status = node.status.as_ref().map_err(|why| format!("{at} {why}"))?;
        let id = status.id.as_ref().ok_or("it has no capture id yet")?;
        if id == &visit.old_id {
            return Err("the old process still answers".to_owned());
        }
        let is_right = match (&visit.to, &status.version) {
            (Some(to), Some(version)) => version.is_same_release(to),
            (None, Some(version)) => version == &visit.old_version,
            (_, None) => false,
        };
        if !is_right {
            self.wrong = Some(status.version_text.to_string());
            return Err(format!("it runs {}", status.version_text));
        }
        self.wrong = None;
        self.is_other = status.architecture != visit.architecture;
        if self.is_other {
            return Err(format!("it runs the {} architecture", status.architecture.word()));
        }
        if visit.to.is_none() && status.pid.is_some() && status.pid == visit.old_pid {
            return Err(
                "it has another id and the same process id: it registered anew, it was not restarted".to_owned()
            );
        }
        if status.liveness.meaning != Some(Liveness::Alive) {
            return Err("it does not say it is alive".to_owned());
        }
        let group = sweep.group(&visit.cluster).ok_or("its cluster did not answer")?;
        let list = group.captures.as_ref().map_err(|why| format!("the captures list could not be read: it {why}"))?;
        if !list.iter().any(|entry| &entry.id == id) {
            return Err("it is not in the owner's list yet".to_owned());
        }
        if list.iter().any(|entry| entry.id == visit.old_id) {
            return Err(match visit.architecture {
                Architecture::Classic => "the old id is still listed".to_owned(),
                Architecture::New => {
                    "the old id is still listed, and its drain is held open until it leaves".to_owned()
                }
            });
        }
        Ok(format!("{} as {}, alive and listed; the old id is gone", status.version_text, id.short()))
    }
}

/// Somebody turned the new architecture on, or off, with this restart: it answers, and joins nothing.
fn other_architecture(visit: &Visit) -> Flow {
    let (is, was) = match visit.architecture {
        Architecture::Classic => ("new", "classic"),
        Architecture::New => ("classic", "new"),
    };
    ask(
        "other_architecture",
        format!("{} came back with the {is} TiCDC architecture, among captures of the {was} one.", visit.address),
        "The two do not work together: a node of the new architecture waits until every classic capture is gone. The next node is not touched.",
        format!(
            "Start it as before (see `newarch` in its configuration, the flag -x and TICDC_NEWARCH); this step notices. To change all of TiCDC to the {is} one, abort here, pause every changefeed, stop all captures, start all of them anew, resume."
        ),
        &[LOOK_AGAIN, (Command::Wait, "wait for it as long again")],
    )
}
