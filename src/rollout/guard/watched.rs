//! What guards remember from sweep to sweep: servers that fell silent, lag that grows, owners that were told to resign.
//! Looked at when a sweep comes in, not at every step.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::cluster::{
    Address, Architecture, CaptureId, CdcSweep, ChangefeedId, ClusterId, Liveness, TidbSweep, Timestamp,
};
use crate::rollout::effect::Component;
use crate::rollout::engine::Engine;
use crate::rollout::obligation::Debt;
use crate::rollout::phase::Machine;
use crate::rollout::view::PhaseKind;

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched {
    /// Captures that do not answer and are not in hand, and since when.
    pub(super) captures: BTreeMap<Address, Timestamp>,
    /// The same of `TiDB` servers.
    pub(super) tidb: BTreeMap<Address, Timestamp>,
    /// Changefeeds whose lag is over its limit: since when it has not become smaller, and how large it was then.
    pub(super) lagging: BTreeMap<ChangefeedId, (Timestamp, Duration)>,
    /// Who owned by the last sweep that said so.
    owners: BTreeMap<ClusterId, CaptureId>,
    /// Owners that gave up their duty and live on, not told to by this rollout; in words.
    pub(super) resigned: BTreeSet<String>,
}

impl Engine {
    /// Takes note of what a sweep of `TiCDC` shows.
    pub(in crate::rollout) fn watch_captures(&mut self, sweep: &CdcSweep) {
        for node in &sweep.nodes {
            let silent = node.status.is_err() && !self.has_in_hand(Component::Ticdc, &node.address);
            note(&mut self.guards.watched.captures, &node.address, silent.then_some(node.at));
        }
        for group in &sweep.groups {
            let Some(owner) = group.owner().map(|entry| entry.id.clone()) else { continue };
            let before = self.guards.watched.owners.insert(group.cluster_id.clone(), owner.clone());
            let Some(before) = before.filter(|before| *before != owner) else { continue };
            let is_listed = group.captures.as_ref().is_ok_and(|list| list.iter().any(|entry| entry.id == before));
            let lives =
                sweep.node_of(&before).map(|(_, status)| status.liveness.meaning) == Some(Some(Liveness::Alive));
            if is_listed && lives && !self.has_resigned(&before) {
                let label = |id| self.capture_label(&group.cluster_id, id);
                let text = format!("{} gave its duty up and {} owns now", label(&before), label(&owner));
                // In the new architecture the rollout follows by itself, and an open drain must not wait to be asked again.
                match group.architecture {
                    Some(Architecture::New) => self.warn(format!("{text}; this rollout did not ask for that")),
                    _ => drop(self.guards.watched.resigned.insert(text)),
                }
            }
        }
        self.watch_lag();
    }

    /// Takes note of what a sweep of `TiDB` shows.
    pub(in crate::rollout) fn watch_tidb(&mut self, sweep: &TidbSweep) {
        for server in &sweep.servers {
            let is_silent = server.status.is_err() && !self.has_in_hand(Component::Tidb, &server.address);
            note(&mut self.guards.watched.tidb, &server.address, is_silent.then_some(sweep.begun));
        }
    }

    /// Whether the rollout stops this process, or has: then its silence is no news.
    fn has_in_hand(&self, component: Component, address: &Address) -> bool {
        let is_owed = self.obligations.iter().any(|obligation| match &obligation.debt {
            Debt::Start { component: of, address: at, .. } => *of == component && at == address,
            Debt::Drain { address: at, .. } => component == Component::Ticdc && at == address,
            Debt::Finish => false,
        });
        // Settling looks at the changefeeds alone.
        let step = self.plan.get(self.cursor.0).filter(|step| step.is_open && step.target.address() == Some(address));
        let is_at_it = |step: &super::super::plan::Step| {
            step.phases.iter().any(|p| !p.state.is_over() && p.kind != PhaseKind::Settle)
        };
        is_owed || step.is_some_and(is_at_it)
    }

    /// Whether this rollout told that capture to resign.
    fn has_resigned(&self, capture: &CaptureId) -> bool {
        let is_visited = self.visit.as_ref().is_some_and(|visit| &visit.old_id == capture);
        let step = self.plan.get(self.cursor.0);
        is_visited && step.is_some_and(|step| step.phases.iter().any(|phase| phase.kind == PhaseKind::Resign))
    }

    /// While a node settles its phase looks at the lag; a changefeed that was behind before is none of ours.
    fn watch_lag(&mut self) {
        let settles = self.active.as_ref().is_some_and(|active| matches!(active.machine, Machine::Settle(_)));
        let group = self.visit.as_ref().and_then(|visit| Some((visit, self.picture.groups.get(&visit.cluster)?)));
        let Some((visit, group)) = group.filter(|_| !settles) else { return self.guards.watched.lagging.clear() };
        let Some(rows) = group.changefeeds.known() else { return };
        let mut lagging = std::mem::take(&mut self.guards.watched.lagging);
        let mut still = BTreeMap::new();
        for row in rows.iter().filter(|row| row.state.is_running()) {
            let before = visit.feeds.get(&row.id).filter(|before| before.state.is_running() && !before.stood_still);
            let (Some(before), Some(lag)) = (before, group.lag(row)) else { continue };
            if lag > self.lag_limit(before.lag) {
                let since = lagging.remove(&row.id).filter(|(_, then)| lag >= *then);
                still.insert(row.id.clone(), since.unwrap_or((self.now, lag)));
            }
        }
        self.guards.watched.lagging = still;
    }
}

fn note(silent: &mut BTreeMap<Address, Timestamp>, address: &Address, at: Option<Timestamp>) {
    match at {
        Some(at) => drop(silent.entry(address.clone()).or_insert(at)),
        None => drop(silent.remove(address)),
    }
}
