//! Facts, with stable names: the screen's event pane, the JSON lines of headless mode and the journal share them.
//!
//! # The schema
//!
//! What scripts are told has a version, [`SCHEMA`]: it stands as `v` in every JSON line, in the documents of `status`,
//! `history`, `pause` and `abort`, and as `schema` in the first record of a journal. A line is
//! `{"v", "at", "event", "data"}`; which fields `data` has for which event is a table in the README, which a test holds
//! to [`Fact::data`]. New events and new fields come without a new version; one that goes, or means something else, makes
//! one. A journal of a newer version is refused by name and not guessed at.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::command::{Command, Consent, Who};
use super::view::{Choice, Ending, Name, OwedView, PhaseKind, Question};
use crate::cluster::Timestamp;

/// The version of what scripts are told and journals keep.
pub const SCHEMA: u32 = 1;

/// A fact and when it became one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// What.
    pub fact: Fact,
}

/// How much a fact asks for attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Every request, every count.
    Detail,
    /// What happened.
    Info,
    /// What somebody should look at.
    Warning,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// The plan stands.
    RolloutStarted {
        /// `upgrade`.
        operation: Name,
        /// The version before.
        from: Option<String>,
        /// The version after.
        to: String,
        /// How processes are restarted.
        executor: Name,
        /// Whether the cluster is simulated.
        simulated: bool,
        /// The plan: target and phases of every step.
        steps: Vec<PlannedStep>,
    },
    /// A phase began.
    PhaseStarted {
        /// Index of the step in the plan.
        step: usize,
        /// The node.
        target: String,
        /// The phase.
        phase: PhaseKind,
    },
    /// A drain has come further, or answered with another number.
    DrainProgress {
        /// Index of the step in the plan.
        step: usize,
        /// The node.
        target: String,
        /// Tables left: by the classic drain call, in the new architecture by the tables call.
        count: u64,
        /// The highest number seen.
        of: u64,
        /// New architecture: remaining work by the drain call, which is no count of tables.
        work: Option<u64>,
    },
    /// A phase ended.
    PhaseEnded {
        /// Index of the step in the plan.
        step: usize,
        /// The node.
        target: String,
        /// The phase.
        phase: PhaseKind,
        /// `done`, `skipped` or `aborted`.
        outcome: Name,
        /// The evidence that ended it.
        evidence: String,
        /// How long it took, in milliseconds.
        took_ms: u64,
    },
    /// The rollout waits for a person.
    Paused(Question),
    /// Something was changed that must be changed back.
    ObligationIncurred(OwedView),
    /// It was changed back, or turned out never to have happened.
    ObligationPaid {
        /// What was owed.
        owed: OwedView,
        /// What proved it.
        evidence: String,
    },
    /// Somebody let go of it by name; no server shows that it was paid.
    ObligationWaived {
        /// What was owed.
        owed: OwedView,
        /// Who said so.
        who: Who,
        /// Why.
        reason: String,
    },
    /// The end.
    RolloutEnded {
        /// How.
        ending: Ending,
        /// What is still owed.
        owed: Vec<OwedView>,
    },
    /// A command was taken.
    Commanded {
        /// Who gave it.
        who: Who,
        /// Which.
        command: Command,
        /// What was typed for one that is given by name, and why.
        consent: Option<Consent>,
    },
    /// A request or an action went out.
    Sent {
        /// The effect's id, which its outcome names again.
        id: u64,
        /// The request or action, exactly.
        what: String,
    },
    /// Its outcome came back.
    Answered {
        /// The effect's id.
        id: u64,
        /// The outcome.
        what: String,
    },
    /// Anything else worth a line.
    Noted {
        /// How much it matters.
        weight: Weight,
        /// The line.
        text: String,
    },
}

/// One step of a plan as scripts see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStep {
    /// The node's address, or a word for steps that are about none.
    pub target: String,
    /// The names of its phases.
    pub phases: Vec<Name>,
}

impl Fact {
    /// The stable name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RolloutStarted { .. } => "rollout_started",
            Self::PhaseStarted { .. } => "phase_started",
            Self::DrainProgress { .. } => "drain_progress",
            Self::PhaseEnded { .. } => "phase_ended",
            Self::Paused(_) => "paused",
            Self::ObligationIncurred(_) => "obligation_incurred",
            Self::ObligationPaid { .. } => "obligation_paid",
            Self::ObligationWaived { .. } => "obligation_waived",
            Self::RolloutEnded { .. } => "rollout_ended",
            Self::Commanded { .. } => "commanded",
            Self::Sent { .. } => "sent",
            Self::Answered { .. } => "answered",
            Self::Noted { .. } => "noted",
        }
    }

    /// Whether headless JSON carries it: the names that scripts rely on, and no other.
    pub const fn is_public(&self) -> bool {
        match self {
            Self::RolloutStarted { .. }
            | Self::PhaseStarted { .. }
            | Self::DrainProgress { .. }
            | Self::PhaseEnded { .. }
            | Self::Paused(_)
            | Self::ObligationIncurred(_)
            | Self::ObligationPaid { .. }
            | Self::ObligationWaived { .. }
            | Self::RolloutEnded { .. }
            | Self::Commanded { .. } => true,
            Self::Sent { .. } | Self::Answered { .. } | Self::Noted { .. } => false,
        }
    }

    /// How much it asks for attention.
    pub const fn weight(&self) -> Weight {
        match self {
            Self::Sent { .. } | Self::Answered { .. } | Self::DrainProgress { .. } => Weight::Detail,
            Self::Noted { weight, .. } => *weight,
            Self::Paused(_) | Self::ObligationWaived { .. } => Weight::Warning,
            Self::RolloutStarted { .. }
            | Self::PhaseStarted { .. }
            | Self::PhaseEnded { .. }
            | Self::ObligationIncurred(_)
            | Self::ObligationPaid { .. }
            | Self::RolloutEnded { .. }
            | Self::Commanded { .. } => Weight::Info,
        }
    }

    /// The `data` of a JSON line.
    pub fn data(&self) -> Value {
        match self {
            Self::RolloutStarted { operation, from, to, executor, simulated, steps } => json!({
                "operation": operation, "from": from, "to": to, "executor": executor,
                "simulated": simulated, "steps": steps,
            }),
            Self::PhaseStarted { step, target, phase } => {
                json!({ "step": step, "target": target, "phase": phase.name() })
            }
            Self::DrainProgress { step, target, count, of, work } => {
                let mut data = json!({ "step": step, "target": target, "count": count, "of": of });
                if let Some(work) = work {
                    data["work"] = json!(work);
                }
                data
            }
            Self::PhaseEnded { step, target, phase, outcome, evidence, took_ms } => json!({
                "step": step, "target": target, "phase": phase.name(), "outcome": outcome,
                "evidence": evidence, "took_ms": took_ms,
            }),
            Self::Paused(question) => {
                let choices: Vec<_> = question
                    .choices
                    .iter()
                    .map(|Choice { command, label }| json!({ "command": command, "label": label }))
                    .collect();
                json!({
                    "reason": question.reason, "step": question.step, "target": question.target,
                    "message": question.message(), "choices": choices,
                })
            }
            Self::ObligationIncurred(owed) => owed_data(owed),
            Self::ObligationPaid { owed, evidence } => {
                json!({ "kind": owed.kind, "target": owed.target, "what": owed.what, "evidence": evidence })
            }
            Self::ObligationWaived { owed, who, reason } => json!({
                "kind": owed.kind, "target": owed.target, "what": owed.what, "who": who.name, "reason": reason,
            }),
            Self::RolloutEnded { ending, owed } => json!({
                "outcome": ending.outcome, "exit_code": ending.exit_code, "reason": ending.reason,
                "owed": owed.iter().map(owed_data).collect::<Vec<_>>(),
            }),
            Self::Commanded { who, command, consent } => {
                let mut data = json!({ "who": who.name, "command": command });
                if let Some(Consent { typed, reason }) = consent {
                    data["typed"] = json!(typed);
                    data["reason"] = json!(reason);
                }
                data
            }
            Self::Sent { id, what } | Self::Answered { id, what } => json!({ "id": id, "what": what }),
            Self::Noted { weight, text } => json!({ "weight": weight, "text": text }),
        }
    }

    /// One line for people.
    pub fn line(&self) -> String {
        match self {
            Self::RolloutStarted { operation, from, to, executor, simulated, steps } => {
                let mark = if *simulated { " (SIMULATED)" } else { "" };
                let from = from.as_deref().unwrap_or("?");
                format!("{operation} {from} → {to} by {executor}{mark}: {} steps", steps.len())
            }
            Self::PhaseStarted { target, phase, .. } => format!("{target}: {} begins", phase.word()),
            Self::DrainProgress { target, count, of, work, .. } => {
                let work = work.map_or_else(String::new, |work| format!(" (remaining work: {work})"));
                format!("{target}: {count} of {of} left to move{work}")
            }
            Self::PhaseEnded { target, phase, outcome, evidence, .. } => {
                format!("{target}: {} {outcome}: {evidence}", phase.word())
            }
            Self::Paused(question) => format!("waiting for a person: {}", question.message()),
            Self::ObligationIncurred(owed) => format!("owed from now on: {}", owed.what),
            Self::ObligationPaid { owed, evidence } => {
                format!("no longer owed: {} {}: {evidence}", owed.kind, owed.target)
            }
            Self::ObligationWaived { owed, who, reason } => {
                format!("waived by {}: {} {}: {reason}", who.name, owed.kind, owed.target)
            }
            Self::RolloutEnded { ending, owed } => {
                let rest = if owed.is_empty() { "nothing is owed".to_owned() } else { format!("{} owed", owed.len()) };
                format!("ended: {}; {rest}", ending.reason)
            }
            Self::Commanded { who, command, consent: None } => format!("{} says {}", who.name, command.name()),
            Self::Commanded { who, command, consent: Some(Consent { typed, reason }) } => {
                format!("{} says {} {typed}: {reason}", who.name, command.name())
            }
            Self::Sent { id, what } => format!("#{id} {what}"),
            Self::Answered { id, what } => format!("#{id} answered: {what}"),
            Self::Noted { text, .. } => text.clone(),
        }
    }
}

/// What is owed, as scripts see it.
fn owed_data(owed: &OwedView) -> Value {
    json!({ "kind": owed.kind, "target": owed.target, "what": owed.what, "how": owed.how })
}
