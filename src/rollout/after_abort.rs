//! After an abort: what is left behind, and the ways to pay it.

use std::sync::Arc;

use super::command::Command;
use super::durable::{Intent, IntentKind};
use super::effect::{Action, Component, Verb};
use super::engine::Engine;
use super::event::Fact;
use super::obligation::Debt;
use super::plan::{CAPTURE_PHASES, Step, Target};
use super::view::{Choice, Outcome, PhaseKind, PhaseState, Question, StepKind};
use crate::cluster::{Address, ClusterId};

/// The reason of the question that stands after an abort.
pub const ABORTED: &str = "aborted";

impl Engine {
    /// After an abort: says what is left behind and what can be done about it, or ends if nothing is.
    pub(super) fn offer(&mut self) {
        if !self.is_aborted() {
            return;
        }
        self.give_up_silent_acts();
        let acting = self.in_flight.len();
        if self.obligations.is_empty() && acting == 0 {
            let how = self.state.aborted().unwrap_or("aborted").to_owned();
            let waived = self.waived();
            self.end(Outcome::Aborted, 4, format!("The rollout was {how}; nothing is left behind.{waived}"));
            return;
        }
        let left: Vec<_> = self.obligations.iter().map(|obligation| obligation.view().what).collect();
        let mut choices = Vec::new();
        let mut offer = |command, label| choices.push(Choice { command, label });
        if acting == 0 {
            if let Some((_, address)) = self.recoverable() {
                let label = format!("recover: finish the drain of {address} and restart it on the binary it has");
                offer(Command::Recover, label);
            }
            if let Some((_, address)) = self.startable() {
                offer(Command::Start, format!("start the process at {address}, on the binary that is there"));
            }
            if self.owes_finish() {
                offer(Command::Finish, self.finish_label());
            }
        }
        offer(Command::Close, "end here; what is listed above stays owed".to_owned());
        let acting = if acting > 0 { " What was asked last is still under way; its end is waited for." } else { "" };
        let question = Question {
            reason: ABORTED.into(),
            step: "abort".to_owned(),
            target: String::new(),
            what: format!("The rollout was {}.{acting}", self.state.aborted().unwrap_or("aborted")),
            means: if left.is_empty() {
                "Nothing is owed so far.".to_owned()
            } else {
                format!("Left behind: {}.", left.join("; "))
            },
            advice: "Pay what is owed now, or end and pay it by hand.".to_owned(),
            choices,
        };
        if self.state.ask(question.clone()) {
            self.emit(Fact::Paused(question));
        }
    }

    /// An act that nobody has heard of for as long as a restart may take keeps nothing from being paid: what is there now
    /// is looked at before another one is ordered.
    fn give_up_silent_acts(&mut self) {
        let (now, limit) = (self.now, self.policy.verify_deadline);
        let is_silent = |intent: &Intent| intent.kind == IntentKind::Act && now.since(intent.at) >= limit;
        if self.in_flight.values().any(is_silent) {
            self.in_flight.retain(|_, intent| !is_silent(intent));
        }
    }

    fn finish_label(&self) -> String {
        let mut versions: Vec<_> = self
            .picture
            .tidb_versions
            .values()
            .map(|v| v.last().map(ToString::to_string).unwrap_or_default())
            .collect();
        versions.sort();
        versions.dedup();
        if versions.len() <= 1 {
            "finish: leave the upgrading state, so that user DDL runs".to_owned()
        } else {
            format!("finish although TiDB runs {}: user DDL then runs on mixed versions", versions.join(" and "))
        }
    }

    /// A drained capture that can be restarted with care: the first one owed. One that does not answer is not.
    fn recoverable(&self) -> Option<(ClusterId, Address)> {
        self.obligations.iter().find_map(|obligation| match &obligation.debt {
            Debt::Drain { cluster, address, capture, .. }
                if self.may_recover(address, capture) && !self.is_silent(Component::Ticdc, address) =>
            {
                Some((cluster.clone(), address.clone()))
            }
            Debt::Finish | Debt::Drain { .. } | Debt::Start { .. } => None,
        })
    }

    /// A process that can be started since nothing answers there: the first one owed.
    fn startable(&self) -> Option<(Component, Address)> {
        self.obligations.iter().find_map(|obligation| match &obligation.debt {
            Debt::Start { component, address, .. } if self.is_silent(*component, address) => {
                Some((*component, address.clone()))
            }
            // The capture that was to be drained is gone: started again it takes tables as before.
            Debt::Drain { address, .. } if self.is_silent(Component::Ticdc, address) => {
                Some((Component::Ticdc, address.clone()))
            }
            Debt::Finish | Debt::Drain { .. } | Debt::Start { .. } => None,
        })
    }

    /// Restarts the drained capture on the binary it has, as a step of its own with the same care.
    pub(super) fn recover(&mut self) {
        let Some((cluster, address)) = self.recoverable() else { return };
        let target = Target::Capture { cluster, address };
        self.append(Step::new(StepKind::Recover, target, "on the binary it has", &CAPTURE_PHASES));
    }

    pub(super) fn finish_now(&mut self) {
        let phases = [PhaseKind::LeaveUpgrading];
        self.append(Step::new(
            StepKind::LeaveUpgrading,
            Target::Cluster(Arc::from("TiDB")),
            "after the abort",
            &phases,
        ));
    }

    pub(super) fn start_again(&mut self) {
        let Some((component, address)) = self.startable() else { return };
        let is_owed = |debt: &Debt| matches!(debt, Debt::Start { address: at, .. } if *at == address);
        if !self.obligations.iter().any(|obligation| is_owed(&obligation.debt)) {
            let before = self.drained_at(&address).map(|capture| capture.as_str().to_owned()).unwrap_or_default();
            self.owe_start(component, &address, &before);
        }
        let action = Action { verb: Verb::Start, component, address, version: None, forced: false };
        self.state.withdraw();
        self.exec(action);
        self.offer();
    }

    /// A step after an abort: what was not begun is given up first, so that the cursor comes to rest on it.
    fn append(&mut self, step: Step) {
        for phase in self.plan.iter_mut().flat_map(|step| &mut step.phases) {
            if !phase.state.is_over() {
                phase.state = PhaseState::Skipped;
                "not begun: the rollout was aborted".clone_into(&mut phase.note);
            }
        }
        self.plan.push(step);
        self.visit.set(None);
        self.state.withdraw();
        self.state.pay();
    }

    /// Whether the steps that run now only pay what an aborted rollout owes.
    pub(super) fn is_paying(&self) -> bool {
        self.state.aborted().is_some()
    }

    /// The steps after an abort are over: back to what is still owed.
    pub(super) fn paid_so_far(&mut self) {
        self.state.await_payment();
        self.state.withdraw();
        self.offer();
    }

    pub(super) fn close(&mut self) {
        let how = self.state.aborted().unwrap_or("aborted").to_owned();
        let waived = self.waived();
        self.end(Outcome::Aborted, 4, format!("The rollout was {how}; what is listed as owed is still owed.{waived}"));
    }
}
