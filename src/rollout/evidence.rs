//! What a round proves. Pure judgements over one sweep; nothing here remembers anything.
//!
//! Both architectures need the same proof: everything was read, under an owner who has stood a while, and the capture
//! carries nothing. They differ in who witnesses it. Classic captures have processors, which both name the tables and
//! show that a changefeed at rest has none. In the new architecture the tables call of each changefeed's maintainer
//! names them, and the capture itself must say that it has come to the end of its drain; even with that, and a zero from
//! the coordinator, 110 tables have been seen there (recorded cdc-new-more 09), so the tables call has the last word.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::engine::{Engine, Visit};
use super::picture::count_all;
use crate::cluster::{
    Architecture, CaptureEntry, CaptureId, CdcSweep, ChangefeedId, ChangefeedRow, ClusterId, GroupSweep, Liveness,
    Timestamp,
};

/// What a round says of one capture's tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was read whole, and the capture carries nothing.
    Empty,
    /// It carries this many tables of these changefeeds, most first.
    Carries(Carried),
    /// It proves nothing, for this reason.
    Unknown(String),
}

/// Tables by changefeed, most first; no changefeed without any.
pub type Carried = Vec<(ChangefeedId, u64)>;

/// One sweep, looked at for what it says of one capture.
#[derive(Clone, Copy, Debug)]
pub struct Round<'a> {
    /// What was read.
    pub sweep: &'a CdcSweep,
    /// The capture's cluster.
    pub cluster: &'a ClusterId,
    /// The capture.
    pub target: &'a CaptureId,
    /// Since when the owner named in the sweep has been seen without a break.
    pub owner_since: Option<Timestamp>,
    /// All changefeeds ever seen: one that is missing from the list may have tables there.
    pub known: &'a BTreeSet<ChangefeedId>,
    /// The last number of tables of each changefeed that was not zero.
    pub totals: &'a BTreeMap<ChangefeedId, u64>,
    /// How long an owner must have stood before the sweep began to be believed.
    pub owner_stands: Duration,
}

impl Round<'_> {
    /// Judges it (design section 4).
    pub fn judge(&self) -> Verdict {
        match self.carried() {
            Ok(carried) if carried.is_empty() => Verdict::Empty,
            Ok(carried) => Verdict::Carries(carried),
            Err(why) => Verdict::Unknown(why),
        }
    }

    fn carried(&self) -> Result<Carried, String> {
        let group = self.sweep.group(self.cluster).ok_or("the cluster did not answer")?;
        let captures =
            group.captures.as_ref().map_err(|why| format!("the captures list could not be read: it {why}"))?;
        self.check_owner(group)?;
        if !captures.iter().any(|entry| &entry.id == self.target) {
            return Err("the capture is not in the list".to_owned());
        }
        captures.iter().try_for_each(|entry| self.check_capture(entry))?;
        let feeds = group.changefeeds.as_ref().map_err(|why| format!("the changefeeds could not be read: it {why}"))?;
        if let Some(missing) = self.known.iter().find(|id| !feeds.iter().any(|row| &row.id == *id)) {
            return Err(format!("changefeed {} is missing from the list", missing.label()));
        }
        match group.architecture {
            Some(Architecture::Classic) => self.check_processors(group, feeds)?,
            // No changefeed at rest has a maintainer to ask, and no list of processors is a second witness: its state
            // in this round is all there is (recorded cdc-new-more 04).
            Some(Architecture::New) => {}
            None => return Err("it is not known which kind of TiCDC the listed captures are".to_owned()),
        }
        let carried = self.count(group, feeds)?;
        if carried.is_empty() && group.architecture == Some(Architecture::New) {
            self.check_stopping()?;
        }
        Ok(carried)
    }

    fn check_owner(&self, group: &GroupSweep) -> Result<(), String> {
        let owner = group.owner().ok_or("the list names no single owner")?;
        let stands = |since: Timestamp| self.sweep.begun.since(since) >= self.owner_stands && since <= self.sweep.begun;
        if !self.owner_since.is_some_and(stands) {
            return Err("the owner is too new to be believed".to_owned());
        }
        if &owner.id == self.target {
            return Err("the capture is the owner".to_owned());
        }
        Ok(())
    }

    /// Every listed capture answers as itself, and none but the target is leaving.
    fn check_capture(&self, entry: &CaptureEntry) -> Result<(), String> {
        let at = &entry.address;
        let (_, status) = self
            .sweep
            .node_of(&entry.id)
            .ok_or_else(|| format!("{at} is listed as {} and does not answer as that", entry.id.short()))?;
        if &entry.id == self.target {
            return Ok(());
        }
        match status.liveness.meaning {
            Some(Liveness::Alive) => Ok(()),
            Some(Liveness::Draining) => Err(format!("{at} is draining too")),
            Some(Liveness::Stopping) => Err(format!("{at} is stopping too")),
            None => Err(format!("{at} does not tell its liveness")),
        }
    }

    /// Classic: both lists of changefeeds agree, and none at rest has a processor there.
    fn check_processors(&self, group: &GroupSweep, feeds: &[ChangefeedRow]) -> Result<(), String> {
        let processors =
            group.processors.as_ref().map_err(|why| format!("the processors could not be read: it {why}"))?;
        for (id, capture) in processors {
            let Some(row) = feeds.iter().find(|row| &row.id == id) else {
                return Err(format!("changefeed {} has processors and is not in the list", id.label()));
            };
            if row.state.is_at_rest() && capture == self.target {
                return Err(format!("changefeed {} is {} and has a processor there", id.label(), row.state));
            }
        }
        Ok(())
    }

    /// The tables of every changefeed that may have some there.
    fn count(&self, group: &GroupSweep, feeds: &[ChangefeedRow]) -> Result<Carried, String> {
        let tables = group
            .target
            .as_ref()
            .filter(|tables| &tables.capture == self.target)
            .ok_or("its tables were not asked for in this round")?;
        let mut carried = Vec::new();
        for row in feeds.iter().filter(|row| !row.state.is_at_rest()) {
            let label = row.id.label();
            if !row.state.is_running() {
                return Err(format!("changefeed {label} is in the state `{}`", row.state));
            }
            self.check_total(group, &row.id)?;
            match tables.by_changefeed.get(&row.id) {
                Some(Ok(ids)) if ids.is_empty() => {}
                Some(Ok(ids)) => carried.push((row.id.clone(), u64::try_from(ids.len()).unwrap_or(u64::MAX))),
                Some(Err(why)) => return Err(format!("the tables of {label} could not be read: it {why}")),
                None => return Err(format!("the tables of {label} were not read")),
            }
        }
        carried.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Ok(carried)
    }

    /// New architecture: a maintainer that has just begun names no table anywhere (recorded cdc-new 113). Where there
    /// were some before, that is no answer yet.
    fn check_total(&self, group: &GroupSweep, id: &ChangefeedId) -> Result<(), String> {
        let placement = group.placement.get(id).and_then(|reading| reading.as_ref().ok());
        let before = self.totals.get(id).copied().unwrap_or(0);
        if group.architecture == Some(Architecture::New) && before > 0 && placement.map(count_all) == Some(0) {
            return Err(format!(
                "the maintainer of {} names no table on any capture, where there were {before}",
                id.label()
            ));
        }
        Ok(())
    }

    /// New architecture: an empty capture may still be given tables until it calls itself stopping.
    fn check_stopping(&self) -> Result<(), String> {
        let status = self.sweep.node_of(self.target).map(|(_, status)| status);
        match status.and_then(|status| status.liveness.meaning) {
            Some(Liveness::Stopping) => Ok(()),
            Some(Liveness::Draining) => Err("no table is there, and it does not call itself stopping yet".to_owned()),
            Some(Liveness::Alive) => {
                Err("no table is there, and it calls itself alive: it may be given some".to_owned())
            }
            None => Err("it does not tell its liveness".to_owned()),
        }
    }

    /// The tables there as far as they were read, whatever else the round lacks: for showing, and for telling whether a
    /// drain moves. `None` if not all of them were read.
    pub fn tables_there(&self) -> Option<Carried> {
        let group = self.sweep.group(self.cluster)?;
        self.count(group, group.changefeeds.as_ref().ok()?).ok()
    }
}

impl Engine {
    /// The newest round about the capture of a visit; `None` before anything was read.
    pub(super) fn round<'a>(&'a self, visit: &'a Visit) -> Option<Round<'a>> {
        let group = self.picture.groups.get(&visit.cluster)?;
        Some(Round {
            sweep: self.picture.cdc.as_deref()?,
            cluster: &visit.cluster,
            target: &visit.old_id,
            owner_since: group.owner_since,
            known: &group.known,
            totals: &group.totals,
            owner_stands: self.policy.owner_stands,
        })
    }

    /// Whether the newest sweep of `TiCDC` may pass a gate.
    pub(super) fn is_fresh(&self) -> bool {
        let limit = self.fresh_within();
        self.picture.cdc.as_ref().is_some_and(|sweep| self.now.since(sweep.begun) <= limit)
    }
}
