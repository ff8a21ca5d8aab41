//! What a round proves. Pure judgements over one sweep and the little that has to be known from before it.
//!
//! Both architectures need the same proof: everything was read, under an owner who has stood a while, and the capture
//! carries nothing. They differ in who witnesses it. Classic captures have processors, which both name the tables and
//! show that a changefeed at rest has none. In the new architecture the tables call of each changefeed's maintainer
//! names them, and the capture itself must say that it has come to the end of its drain; even with that, and a zero from
//! the coordinator, 110 tables have been seen there (recorded cdc-new-more 09), so the tables call has the last word.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::engine::{Engine, FeedBefore, Visit};
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

/// All tables of it.
pub fn tables_in(carried: &[(ChangefeedId, u64)]) -> u64 {
    carried.iter().map(|(_, count)| count).sum()
}

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
    /// The largest number of tables of each changefeed since the step began.
    pub most: &'a BTreeMap<ChangefeedId, u64>,
    /// The changefeeds as they were when the step began: that outlives the program.
    pub before: &'a BTreeMap<ChangefeedId, FeedBefore>,
    /// Since when a changefeed that never named a table has named none, under this owner.
    pub bare_since: &'a BTreeMap<ChangefeedId, Timestamp>,
    /// How long it must have, to be believed that it has none.
    pub bare_for: Duration,
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
        if carried.is_empty() {
            // While some are on the move they are named nowhere, so this is asked only of what would be the proof.
            let running = feeds.iter().filter(|row| !row.state.is_at_rest());
            running.clone().try_for_each(|row| self.check_maintainer(group, &row.id))?;
        }
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
        for (id, captures) in processors.iter() {
            let Some(row) = feeds.iter().find(|row| &row.id == id) else {
                return Err(format!("changefeed {} has processors and is not in the list", id.label()));
            };
            if row.state.is_at_rest() && captures.contains(self.target) {
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
            let label = || row.id.label();
            if !row.state.is_running() {
                return Err(format!("changefeed {} is in the state `{}`", label(), row.state));
            }
            match tables.by_changefeed.get(&row.id) {
                Some(Ok(ids)) if ids.is_empty() => {}
                Some(Ok(ids)) => carried.push((row.id.clone(), u64::try_from(ids.len()).unwrap_or(u64::MAX))),
                Some(Err(why)) => return Err(format!("the tables of {} could not be read: it {why}", label())),
                None => return Err(format!("the tables of {} were not read", label())),
            }
        }
        carried.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Ok(carried)
    }

    /// New architecture: what the tables call of a changefeed must hold beside the target's tables.
    ///
    /// A maintainer that has just begun names no table anywhere (recorded cdc-new 113), and nothing says that it names
    /// all of them at once: fewer than there were is no whole answer. One that names the target with no table still sits
    /// there itself: its own dispatcher has the id 0 and is no table (contract section 1.13).
    fn check_maintainer(&self, group: &GroupSweep, id: &ChangefeedId) -> Result<(), String> {
        if group.architecture != Some(Architecture::New) {
            return Ok(());
        }
        let Some(Ok(named)) = group.placement.get(id) else { return Ok(()) };
        if group.placement.at(self.target, id).is_some_and(|ids| ids.is_empty()) {
            return Err(format!("the maintainer of {} is still there", id.label()));
        }
        self.missing(named.all, id).map_or(Ok(()), Err)
    }

    fn missing(&self, named: u64, id: &ChangefeedId) -> Option<String> {
        let before = self.before.get(id).and_then(|before| before.tables).unwrap_or(0);
        let most = self.most.get(id).copied().unwrap_or(0).max(before);
        let is_new = most == 0 && named == 0;
        let is_long = |since: &Timestamp| self.sweep.begun.since(*since) >= self.bare_for;
        if is_new && !self.bare_since.get(id).is_some_and(is_long) {
            return Some(format!(
                "the maintainer of {} has named no table so far, and may have just begun",
                id.label()
            ));
        }
        (named < most).then(|| format!("the maintainer of {} names {named} of its {most} tables", id.label()))
    }

    /// New architecture: changefeeds that name fewer tables than they had, in words.
    pub fn missing_tables(&self) -> Option<String> {
        let group = self.sweep.group(self.cluster).filter(|group| group.architecture == Some(Architecture::New))?;
        let read = group.placement.iter().filter_map(|(id, reading)| Some((id, reading.as_ref().ok()?)));
        let missing: Vec<_> = read.filter_map(|(id, named)| self.missing(named.all, id)).collect();
        (!missing.is_empty()).then(|| missing.join("; "))
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
        let feeds = group.changefeeds.as_ref().ok()?;
        // In the first second of a new owner some changefeeds are in no list (recorded/README 31).
        let is_whole = self.known.iter().all(|id| feeds.iter().any(|row| &row.id == id));
        if is_whole { self.count(group, feeds).ok() } else { None }
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
            most: &group.most,
            before: &visit.feeds,
            bare_since: &group.bare_since,
            bare_for: self.policy.unknown_asks,
            owner_stands: self.policy.owner_stands,
        })
    }

    /// Whether the newest sweep of `TiCDC` may pass a gate.
    pub(super) fn is_fresh(&self) -> bool {
        let limit = self.fresh_within();
        self.picture.cdc.as_ref().is_some_and(|sweep| self.now.since(sweep.begun) <= limit)
    }
}
