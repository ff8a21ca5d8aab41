//! The ledger: what is owed, since when, and what the servers show of its payment (design: obligations).

use std::sync::Arc;
use std::time::Duration;

use super::effect::Component;
use super::engine::{Engine, Visit};
use super::event::Fact;
use super::obligation::{Debt, Obligation};
use crate::cluster::{Address, CaptureId, ClusterId, Liveness, Timestamp, UpgradeState};

/// A change that does not show this long after it was asked for never took hold. Wall time, also against a simulator.
const NEVER_TOOK_HOLD: Duration = Duration::from_secs(5);

impl Engine {
    fn owe(&mut self, debt: Debt) {
        let obligation = Obligation { debt, since: self.now };
        self.emit(Fact::ObligationIncurred(obligation.view()));
        self.obligations.push(obligation);
    }

    /// A drain is about to be asked for.
    pub(super) fn owe_drain(&mut self, visit: &Visit) {
        let now = self.now;
        for obligation in self.obligations.iter_mut() {
            if let Debt::Drain { capture, last_asked, .. } = &mut obligation.debt
                && capture == &visit.old_id
            {
                *last_asked = now;
                return;
            }
        }
        self.owe(Debt::Drain {
            cluster: visit.cluster.clone(),
            capture: visit.old_id.clone(),
            address: visit.address.clone(),
            last_asked: now,
        });
    }

    /// Whether a drain of this capture is open.
    pub(super) fn owes_drain(&self, of: &CaptureId) -> bool {
        self.obligations
            .iter()
            .any(|obligation| matches!(&obligation.debt, Debt::Drain { capture, .. } if capture == of))
    }

    /// A process is about to be stopped; `before` is the id it answers with now.
    pub(super) fn owe_start(&mut self, component: Component, address: &Address, before: &str) {
        let now = self.now;
        for obligation in self.obligations.iter_mut() {
            if let Debt::Start { component: c, address: a, before: b, last_act } = &mut obligation.debt
                && (*c, &*a) == (component, address)
            {
                *last_act = now;
                *b = Arc::from(before);
                return;
            }
        }
        self.owe(Debt::Start { component, address: address.clone(), before: Arc::from(before), last_act: now });
    }

    /// `/upgrade/start` is about to be sent.
    pub(super) fn owe_finish(&mut self) {
        if !self.owes_finish() {
            self.owe(Debt::Finish);
        }
    }

    /// Whether this rollout owes the finish.
    pub(super) fn owes_finish(&self) -> bool {
        self.obligations.iter().any(|obligation| obligation.debt == Debt::Finish)
    }

    fn pay(&mut self, evidence: &str, is_paid: impl Fn(&Debt) -> bool) {
        let (paid, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut *self.obligations).into_iter().partition(|obligation| is_paid(&obligation.debt));
        self.obligations.set(kept);
        for obligation in paid {
            self.emit(Fact::ObligationPaid { owed: obligation.view(), evidence: evidence.to_owned() });
        }
    }

    /// A restarted process is proven to be back.
    pub(super) fn pay_restart(&mut self, at: &Address, what: Component, evidence: &str) {
        self.pay(evidence, |debt| match debt {
            Debt::Start { component, address, .. } => *component == what && address == at,
            Debt::Drain { address, .. } => what == Component::Ticdc && address == at,
            Debt::Finish => false,
        });
    }

    /// `TiDB` shows the normal state.
    pub(super) fn pay_finish(&mut self, evidence: &str) {
        self.pay(evidence, |debt| *debt == Debt::Finish);
    }

    /// Pays what the servers show to be paid, whoever did it, and dissolves what never took hold.
    pub(super) fn settle_obligations(&mut self) {
        let settled: Vec<_> = self
            .obligations
            .iter()
            .filter_map(|obligation| self.why_settled(obligation).map(|why| (obligation.debt.clone(), why)))
            .collect();
        for (debt, evidence) in settled {
            self.pay(&evidence, |owed| owed == &debt);
        }
    }

    fn why_settled(&self, obligation: &Obligation) -> Option<String> {
        match &obligation.debt {
            Debt::Drain { cluster, capture, address, last_asked } => {
                self.drain_settled(cluster, capture, address, *last_asked)
            }
            Debt::Start { component: Component::Ticdc, address, before, last_act } => {
                self.capture_started(address, before, *last_act)
            }
            Debt::Start { component: Component::Tidb, address, before, last_act } => {
                self.tidb_started(address, before, *last_act)
            }
            Debt::Finish => {
                let sweep = self.picture.tidb.as_ref()?;
                let is_late = sweep.begun.since(obligation.since) > NEVER_TOOK_HOLD;
                let is_normal = matches!(sweep.state, Ok(UpgradeState::Normal));
                // While the rollout goes on, its own phases take the state in; here somebody else finished it.
                (self.is_aborted() && self.in_flight.is_empty() && is_late && is_normal)
                    .then(|| "TiDB shows the normal state".to_owned())
            }
        }
    }

    fn drain_settled(
        &self,
        cluster: &ClusterId,
        capture: &CaptureId,
        address: &Address,
        last_asked: Timestamp,
    ) -> Option<String> {
        let sweep = self.picture.cdc.as_ref()?;
        if let Some((node, status)) = sweep.node_of(capture) {
            let is_own = self.active.as_ref().is_some_and(super::runner::Active::is_drain_of_visit)
                && self.visit.as_ref().is_some_and(|visit| &visit.old_id == capture);
            let is_late = node.at.since(last_asked) > NEVER_TOOK_HOLD;
            return (!is_own && is_late && status.liveness.meaning == Some(Liveness::Alive))
                .then(|| "its own liveness still reads 0: the drain never took hold".to_owned());
        }
        let list = self.picture.groups.get(cluster)?.captures.known()?;
        let status = sweep.node_at(address)?.status.as_ref().ok()?;
        let is_gone = !list.iter().any(|entry| &entry.id == capture);
        let is_new = status.id.is_some() && status.liveness.meaning == Some(Liveness::Alive);
        (is_gone && is_new).then(|| "a new process answers there, alive; the old id is gone".to_owned())
    }

    /// Whether nothing answers at this address by the newest reading: only then can a process be started there.
    pub(super) fn is_silent(&self, component: Component, address: &Address) -> bool {
        match component {
            Component::Ticdc => {
                let node = self.picture.cdc.as_ref().and_then(|sweep| sweep.node_at(address));
                node.is_none_or(|node| node.status.is_err())
            }
            Component::Tidb => {
                let server = self.picture.tidb.as_ref().and_then(|sweep| sweep.server_at(address));
                server.is_none_or(|server| server.info.is_err())
            }
        }
    }

    /// Whether the phases that prove a restart have this process in hand.
    fn is_in_hand(&self, address: &Address) -> bool {
        let step = self.plan.get(self.cursor.0);
        self.active.as_ref().is_some_and(super::runner::Active::proves_restart)
            && step.is_some_and(|step| step.target.address() == Some(address))
    }

    fn capture_started(&self, address: &Address, before: &str, last_act: Timestamp) -> Option<String> {
        if self.is_in_hand(address) {
            return None;
        }
        let sweep = self.picture.cdc.as_ref()?;
        let node = sweep.node_at(address).filter(|node| node.at > last_act)?;
        let status = node.status.as_ref().ok()?;
        let id = status.id.as_ref()?;
        if id.as_str() == before {
            return self.never_stopped(node.at, last_act);
        }
        let is_listed =
            sweep.groups.iter().filter_map(|group| group.captures.as_ref().ok()).flatten().any(|entry| &entry.id == id);
        (is_listed && status.liveness.meaning == Some(Liveness::Alive))
            .then(|| format!("a new process answers there as {}, listed and alive", id.short()))
    }

    fn tidb_started(&self, address: &Address, before: &str, last_act: Timestamp) -> Option<String> {
        if self.is_in_hand(address) {
            return None;
        }
        let sweep = self.picture.tidb.as_ref().filter(|sweep| sweep.begun > last_act)?;
        let server = sweep.server_at(address)?;
        let info = server.info.as_ref().ok()?;
        if &*info.ddl_id == before {
            return self.never_stopped(sweep.begun, last_act);
        }
        server.status.is_ok().then(|| "a new process answers there and serves".to_owned())
    }

    fn never_stopped(&self, read: Timestamp, last_act: Timestamp) -> Option<String> {
        (self.in_flight.is_empty() && read.since(last_act) > NEVER_TOOK_HOLD)
            .then(|| "the process that was there still answers: it was not stopped".to_owned())
    }
}
