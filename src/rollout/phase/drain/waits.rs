//! What a drain waits for, in words.

use super::super::Turn;
use super::Drain;
use crate::cluster::{Architecture, Liveness};
use crate::rollout::engine::{Engine, Visit};
use crate::rollout::evidence::{Verdict, tables_in};

impl Drain {
    /// What it waits for; nothing while it simply moves.
    pub(super) fn waits_for(&self, engine: &Engine, visit: &Visit, turn: Turn) -> String {
        let owner = visit.architecture.owner();
        if engine.is_drain_lost_of(visit) {
            let how = if turn.may_act || turn.may_ask_again { "taken up" } else { "asked again" };
            return format!("the drain to be {how}: the new coordinator places nothing before");
        }
        if let Some(why) = &self.refusal {
            return format!("the {owner}: it {why}");
        }
        if !turn.may_act && !turn.may_ask_again {
            return "a person: nothing is asked meanwhile".to_owned();
        }
        if self.zeros.first.is_some() {
            return match &self.verdict {
                Some(Verdict::Unknown(why)) => format!("a round, after the zero: {why}"),
                Some(Verdict::Carries(_)) => format!("what the zero leaves out, still there: {}", self.carried()),
                _ => "the proof, after the zero".to_owned(),
            };
        }
        match visit.architecture {
            Architecture::Classic => String::new(),
            Architecture::New => self.session(engine, visit),
        }
    }

    /// The new architecture's answer stays at 1 or more for many reasons. The likeliest, by what was read.
    fn session(&self, engine: &Engine, visit: &Visit) -> String {
        let (Some(work), Some(group)) = (self.progress.last_work(), engine.picture.groups.get(&visit.cluster)) else {
            return String::new();
        };
        let ghost = group.captures.known().into_iter().flatten().find(|entry| {
            entry.id != visit.old_id && engine.picture.cdc.as_ref().is_some_and(|cdc| cdc.node_of(&entry.id).is_none())
        });
        if let Some(ghost) = ghost.filter(|_| work == 1) {
            let at = engine.capture_label(&visit.cluster, &ghost.id);
            return format!("{at} to leave the list as {}: nothing is drained before", ghost.id.short());
        }
        let tables = engine.round(visit).and_then(|round| round.tables_there());
        let tables = tables.map(|tables| tables_in(&tables));
        match (tables, engine.picture.liveness_now(&visit.old_id)) {
            (None, _) => self.why_unread(),
            (Some(0), Some(Liveness::Draining)) => "liveness 2 (stopping): no table is left there".to_owned(),
            (Some(0), Some(Liveness::Stopping)) => "the coordinator to take note: no table is left there".to_owned(),
            (Some(_), Some(Liveness::Alive)) if work == 1 => {
                "the coordinator to begin: a drain before this one may not be closed yet".to_owned()
            }
            _ => String::new(),
        }
    }

    fn why_unread(&self) -> String {
        match &self.verdict {
            Some(Verdict::Unknown(why)) => why.clone(),
            _ => "its tables to be read".to_owned(),
        }
    }
}
