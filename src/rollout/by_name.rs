//! What a person may only say by name and with a reason: leave a node or a phase out (*skip*), restart a capture with
//! tables on it (*force*), let go of something owed (*waive*). Nothing here is ever done by the program for anybody:
//! no flag stands for it, and the journal keeps who said it and why.

use super::command::{Command, Consent, Instruction, Permission, Who};
use super::engine::{Engine, Visit};
use super::event::Fact;
use super::evidence::tables_in;
use super::obligation::{Debt, Obligation};
use super::phase::Machine;
use super::plan::{Step, Target};
use super::view::{ByName, PhaseKind, PhaseState, StepKind};
use crate::cluster::Address;
use crate::cluster::units::counted;

/// How much of the plan a skip leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Omission {
    /// The node.
    Step,
    /// Entering the upgrading state, and so leaving it too.
    Upgrading,
    /// This phase alone.
    Phase,
}

/// The number of tables that is typed where nobody knows it.
const UNKNOWN: &str = "unknown";

impl Engine {
    /// What such a command would do now, and what must be typed for it; why it may not be given otherwise.
    pub(super) fn by_name(&self, command: Command) -> Result<ByName, String> {
        let (typed, means) = match command {
            Command::Skip => self.skip_by_name()?,
            Command::Force => self.force_by_name()?,
            Command::Waive => self.waive_by_name()?,
            _ => return Err("that is not given by name".to_owned()),
        };
        Ok(ByName { command, typed, means })
    }

    /// Whether an instruction may be obeyed now: the command by the table, its consent by what it is about.
    pub(super) fn consents(&self, instruction: &Instruction) -> Permission {
        let command = instruction.command;
        self.permission(command)?;
        if !command.is_by_name() {
            return Ok(());
        }
        let named = self.by_name(command)?;
        let wanted = named.typed.join("` or `");
        let Some(Consent { typed, reason }) = &instruction.consent else {
            return Err(format!("it is given by name: type `{wanted}`, and why"));
        };
        if !named.accepts(typed) {
            return Err(format!("`{}` is not what it is about now: type `{wanted}`", typed.trim()));
        }
        if reason.trim().is_empty() {
            return Err("say why: the reason is kept in the journal".to_owned());
        }
        Ok(())
    }

    /// Obeys one that was consented to.
    pub(super) fn obey_by_name(&mut self, command: Command, consent: Option<&Consent>, who: &Who) {
        let Some(consent) = consent else { return };
        let by = format!("by {}: {}", who.name, consent.reason.trim());
        match command {
            Command::Skip => self.skip(&by),
            Command::Force => self.force(&by),
            Command::Waive => self.waive(consent.typed.trim(), who, consent.reason.trim()),
            _ => {}
        }
    }

    /// Neither may be said while something else must be answered first.
    fn may_overrule(&self) -> Permission {
        if self.resumed_at.is_some() {
            return Err("say first how to go on".to_owned());
        }
        if self.is_guard_asking() {
            return Err("what is asked now holds whichever phase runs; answer it first".to_owned());
        }
        Ok(())
    }

    // ---- skip ----------------------------------------------------------------------------------------------------

    fn skip_by_name(&self) -> Result<(Vec<String>, Vec<String>), String> {
        let (step, omission) = self.omission()?;
        let label = step.target.label();
        let first = match (omission, step.kind) {
            (Omission::Step, StepKind::HandOver) => "PD and TiKV are left as they are; TiDB is next.".to_owned(),
            (Omission::Step, _) => format!(
                "{label} is left as it is: nothing is done there, and the rollout goes on without it. In the end it is named as left out."
            ),
            (Omission::Upgrading, _) => {
                "The upgrading state is not entered, nor left: TiDB is restarted while user DDL runs.".to_owned()
            }
            (Omission::Phase, _) if self.next_kind() == Some(PhaseKind::Settle) => {
                "The changefeeds are not waited for: the next node is taken while they may be behind.".to_owned()
            }
            (Omission::Phase, _) => format!(
                "Nothing proves that {label} came back as it should. That it must be started stays owed until the servers show it."
            ),
        };
        let mut means = vec![first];
        if step.kind == StepKind::Tidb {
            means.push(
                "The upgrading state is left all the same when the others are through: user DDL then runs on mixed versions."
                    .to_owned(),
            );
        }
        Ok((vec![label], means))
    }

    fn next_kind(&self) -> Option<PhaseKind> {
        let (step, phase) = self.next_phase()?;
        Some(self.plan.get(step)?.phases.get(phase)?.kind)
    }

    /// What a skip would leave out now.
    fn omission(&self) -> Result<(&Step, Omission), String> {
        self.may_overrule()?;
        let no = |why: &str| Err(why.to_owned());
        let (step, kind) = self
            .next_phase()
            .and_then(|(step, phase)| Some((self.plan.get(step)?, self.plan.get(step)?.phases.get(phase)?.kind)))
            .ok_or("no phase is left to skip")?;
        let at = step.target.address();
        let is_owed = |debt: &Debt| match debt {
            Debt::Drain { address, .. } | Debt::Start { address, .. } => Some(address) == at,
            Debt::Finish => false,
        };
        let is_begun = self.obligations.iter().any(|obligation| is_owed(&obligation.debt));
        match (step.kind, kind) {
            (StepKind::Recover, _) => no("a recovery pays what is owed: wait for it, or abort and waive that"),
            (_, PhaseKind::Verify | PhaseKind::Settle) => Ok((step, Omission::Phase)),
            _ if !self.in_flight.is_empty() => no("a request is under way; wait for what comes of it"),
            (StepKind::LeaveUpgrading, _) if self.owes_finish() => {
                no("the finish is owed: user DDL hangs until it is sent")
            }
            (StepKind::EnterUpgrading, _) if self.owes_finish() => {
                no("TiDB may be in the upgrading state by now: try again, or abort and finish")
            }
            (StepKind::EnterUpgrading, _) => Ok((step, Omission::Upgrading)),
            _ if is_begun => {
                no("it takes no table until it is restarted, or its restart was ordered: force, or abort and recover")
            }
            _ => Ok((step, Omission::Step)),
        }
    }

    fn skip(&mut self, by: &str) {
        let Ok((_, omission)) = self.omission() else { return };
        let Some((step, phase)) = self.next_phase() else { return };
        self.resume_asking();
        let note = format!("skipped {by}");
        self.end_active_as(PhaseState::Skipped, &note);
        match omission {
            Omission::Phase => {
                if let Some(phase) = self.phase_mut(step, phase) {
                    phase.leave_out(&note);
                    let is_unproven = phase.kind == PhaseKind::Verify;
                    if is_unproven && let Some(step) = self.plan.get_mut(step) {
                        step.is_left_out = true;
                        note.clone_into(&mut step.note);
                    }
                }
            }
            Omission::Step => self.leave_out(step, &note),
            Omission::Upgrading => {
                for at in 0..self.plan.len() {
                    if matches!(self.plan[at].kind, StepKind::EnterUpgrading | StepKind::LeaveUpgrading) {
                        self.leave_out(at, &note);
                    }
                }
            }
        }
    }

    fn leave_out(&mut self, step: usize, note: &str) {
        self.skip_step(step, note);
        if let Some(step) = self.plan.get_mut(step) {
            step.is_left_out = true;
        }
    }

    /// Whether a person left this server out by name.
    pub(super) fn is_left_out(&self, address: &Address) -> bool {
        self.plan.iter().any(|step| step.is_left_out && step.target.address() == Some(address))
    }

    /// What a rollout that is done has to say: what is proven, and what was left out or waived by name.
    pub(super) fn proven(&self) -> String {
        let to = &self.request.target;
        let left = self.plan.iter().filter(|step| step.is_left_out);
        let left: Vec<_> = left.map(|step| format!("{} ({})", step.target.label(), step.note)).collect();
        let but = if left.is_empty() { String::new() } else { format!(", but for {}", left.join(", ")) };
        format!("Every server of the plan is proven to run {to}{but}.{}", self.waived())
    }

    /// What was let go of by name, as a sentence with a space before it; nothing where nothing was.
    pub(super) fn waived(&self) -> String {
        match self.state.standing().waived.as_slice() {
            [] => String::new(),
            waived => format!(" Waived, and not shown to be paid: {}.", waived.join("; ")),
        }
    }

    // ---- force ---------------------------------------------------------------------------------------------------

    fn force_by_name(&self) -> Result<(Vec<String>, Vec<String>), String> {
        let visit = self.forcible()?;
        let at = &visit.address;
        let tables = self.tables_now(visit);
        let number = tables.map_or_else(|| UNKNOWN.to_owned(), |tables| tables.to_string());
        let first = match tables {
            Some(0) => format!("{at} is restarted although the servers do not prove that no table is on it."),
            Some(tables) => format!(
                "{at} is restarted with {} on it. They stand still until another capture has taken them over.",
                counted(tables, "table")
            ),
            None => format!(
                "{at} is restarted, and it is not known how many tables are on it. They stand still until another capture has taken them over."
            ),
        };
        let mut means = vec![first];
        if self.picture.able_beside(&visit.cluster, &visit.old_id).is_empty() {
            means.push("No other capture can take them now: they stand still until this one is back.".to_owned());
        }
        Ok((vec![format!("{at} {number}")], means))
    }

    /// The capture whose restart may be forced now.
    fn forcible(&self) -> Result<&Visit, String> {
        self.may_overrule()?;
        let no = |why: &str| Err(why.to_owned());
        let nothing = "no capture is being drained or restarted";
        let (step, phase) = self.next_phase().ok_or(nothing)?;
        let step = self.plan.get(step).filter(|step| step.is_open).ok_or(nothing)?;
        let is_at_it = matches!(step.target, Target::Capture { .. });
        match step.phases.get(phase).map(|phase| phase.kind).filter(|_| is_at_it) {
            Some(PhaseKind::Drain | PhaseKind::Restart) => {}
            Some(PhaseKind::Resign) => return no("it owns; the owner is never stopped by force"),
            _ => return no(nothing),
        }
        let visit = self.visit.as_ref().filter(|visit| Some(&visit.address) == step.target.address()).ok_or(nothing)?;
        let is_ordered = |debt: &Debt| matches!(debt, Debt::Start { address, .. } if address == &visit.address);
        if self.obligations.iter().any(|obligation| is_ordered(&obligation.debt)) {
            return no("its restart was ordered already");
        }
        let node = self.picture.cdc.as_ref().and_then(|sweep| sweep.node_of(&visit.old_id));
        if node.is_none_or(|(node, _)| node.address != visit.address) {
            return no("it does not answer as the process that was to be restarted");
        }
        if self.is_another_owner(visit) { Ok(visit) } else { no("it may own; the owner is never stopped by force") }
    }

    /// Whether the newest reading names another capture as the owner.
    fn is_another_owner(&self, visit: &Visit) -> bool {
        self.picture.owner(&visit.cluster).is_some_and(|(owner, _)| owner != &visit.old_id)
    }

    /// How many tables the newest round names there; `None` is unknown.
    fn tables_now(&self, visit: &Visit) -> Option<u64> {
        let round = self.round(visit).filter(|_| self.is_fresh())?;
        Some(tables_in(&round.tables_there()?))
    }

    fn force(&mut self, by: &str) {
        let Ok(capture) = self.forcible().map(|visit| visit.old_id.clone()) else { return };
        let Some((step, phase)) = self.next_phase() else { return };
        self.resume_asking();
        let is_drain = self.active.as_ref().is_some_and(|active| matches!(active.machine, Machine::Drain(_)));
        let note = format!("restart forced {by}");
        if is_drain {
            self.end_active_as(PhaseState::Skipped, &note);
        } else if let Some(phase) = self.phase_mut(step, phase).filter(|phase| phase.kind == PhaseKind::Drain) {
            phase.leave_out(&note);
        }
        self.forced = Some(capture);
        self.state.go_on_once();
    }

    /// Whether a person has ordered to restart this capture as it is. Where it may own meanwhile the order is void.
    pub(super) fn is_forced(&mut self, visit: &Visit) -> bool {
        let is_ordered = self.forced.as_ref() == Some(&visit.old_id);
        if is_ordered && !self.is_another_owner(visit) {
            self.forced = None;
            self.warn(format!("{} is not restarted by force: it may own now", visit.address));
        }
        self.forced.is_some() && is_ordered
    }

    // ---- waive ---------------------------------------------------------------------------------------------------

    fn waive_by_name(&self) -> Result<(Vec<String>, Vec<String>), String> {
        let open: Vec<_> = self.obligations.iter().filter(|owed| !self.is_being_paid(&owed.debt)).collect();
        if open.is_empty() {
            let why = if self.obligations.is_empty() { "nothing is owed" } else { "what runs now pays what is owed" };
            return Err(why.to_owned());
        }
        let views: Vec<_> = open.into_iter().map(Obligation::view).collect();
        let mut typed: Vec<_> = views.iter().map(|owed| owed.target.clone()).collect();
        typed.sort();
        typed.dedup();
        let mut means = vec![
            "It is struck off the list, on your word alone: no server shows that it was paid, and no start reminds of it."
                .to_owned(),
        ];
        means.extend(views.iter().map(|owed| format!("{} {}: {}.", owed.kind, owed.target, owed.what)));
        Ok((typed, means))
    }

    /// Whether the step in hand, or one that is still to come, pays this.
    fn is_being_paid(&self, debt: &Debt) -> bool {
        if !self.state.is_going() {
            return false;
        }
        match debt {
            Debt::Finish => {
                let is_open = |step: &Step| step.phases.iter().any(|phase| !phase.state.is_over());
                self.plan.iter().any(|step| step.kind == StepKind::LeaveUpgrading && is_open(step))
            }
            Debt::Drain { address, .. } | Debt::Start { address, .. } => self.next_phase().is_some_and(|(step, _)| {
                self.plan.get(step).is_some_and(|step| step.is_open && step.target.address() == Some(address))
            }),
        }
    }

    fn waive(&mut self, target: &str, who: &Who, reason: &str) {
        let is_meant = |owed: &Obligation| owed.view().target == target && !self.is_being_paid(&owed.debt);
        let (waived, kept): (Vec<_>, Vec<_>) = self.obligations.value().iter().cloned().partition(is_meant);
        self.obligations.set(kept);
        for owed in waived {
            let owed = owed.view();
            self.state.waive(format!("{} {} (by {}: {reason})", owed.kind, owed.target, who.name));
            self.emit(Fact::ObligationWaived { owed, who: who.clone(), reason: reason.to_owned() });
        }
        // What stood in the question may be gone; it is asked again as it is now.
        if self.is_aborted() {
            self.state.withdraw();
        }
    }
}
