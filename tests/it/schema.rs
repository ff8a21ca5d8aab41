//! What scripts are told: the README's table of events, held to what is really written.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use tiroll::cluster::Timestamp;
use tiroll::rollout::command::{Command, Consent, Who};
use tiroll::rollout::event::{Fact, PlannedStep, SCHEMA};
use tiroll::rollout::view::{Choice, Ending, Outcome, OwedView, PhaseKind, Question};

use crate::support::{fresh_state_dir, tiroll};

fn owed() -> OwedView {
    let text = |text: &str| text.to_owned();
    OwedView {
        kind: "finish".into(),
        target: text("tidb"),
        what: text("x"),
        how: text("y"),
        since: Timestamp::new(0, 0),
    }
}

/// Every event that scripts are told, with all it can have and with what it has at least.
fn told() -> Vec<(Fact, Fact)> {
    let text = |text: &str| text.to_owned();
    let (target, phase) = (text("a:1"), PhaseKind::Drain);
    let twice = |fact: Fact| (fact.clone(), fact);
    let progress = |work| Fact::DrainProgress { step: 0, target: text("a:1"), count: 1, of: 2, work };
    let said = |consent| Fact::Commanded { who: Who::new("anna@box"), command: Command::Skip, consent };
    let question = Question {
        reason: "drain_stalled".into(),
        step: text("capture/drain"),
        target: text("a:1"),
        what: text("x"),
        means: text("y"),
        advice: text("z"),
        choices: vec![Choice { command: Command::Wait, label: text("wait") }],
    };
    let ending = Ending { outcome: Outcome::Done, exit_code: 0, reason: text("x") };
    vec![
        twice(Fact::RolloutStarted {
            operation: "upgrade".into(),
            from: None,
            to: text("v8.5.4"),
            executor: "sim".into(),
            simulated: true,
            steps: vec![PlannedStep { target: text("a:1"), phases: vec!["drain".into()] }],
        }),
        twice(Fact::PhaseStarted { step: 0, target: target.clone(), phase }),
        (progress(Some(1)), progress(None)),
        twice(Fact::PhaseEnded { step: 0, target, phase, outcome: "done".into(), evidence: text("x"), took_ms: 1 }),
        twice(Fact::Paused(question)),
        twice(Fact::ObligationIncurred(owed())),
        twice(Fact::ObligationPaid { owed: owed(), evidence: text("x") }),
        twice(Fact::ObligationWaived { owed: owed(), who: Who::new("anna@box"), reason: text("x") }),
        (said(Some(Consent { typed: text("a:1"), reason: text("x") })), said(None)),
        twice(Fact::RolloutEnded { ending, owed: vec![owed()] }),
    ]
}

fn keys(fact: &Fact) -> BTreeSet<String> {
    fact.data().as_object().expect("an object").keys().cloned().collect()
}

/// The table, a row for each event.
fn page() -> String {
    let row = |(most, least): (Fact, Fact)| {
        let always = keys(&least);
        let mark = |key: String| if always.contains(&key) { format!("`{key}`") } else { format!("`{key}`?") };
        let fields: Vec<_> = keys(&most).into_iter().map(mark).collect();
        format!("| `{}` | {} |\n", most.name(), fields.join(" "))
    };
    let rows: String = told().into_iter().map(row).collect();
    format!("| event | data |\n| --- | --- |\n{rows}")
}

#[test]
fn the_readme_names_every_event_and_its_data() {
    assert!(told().iter().all(|(most, _)| most.is_public()));
    assert!(include_str!("../../README.md").contains(&page()), "the README's table of events should be:\n\n{}", page());
}

#[test]
fn documents_carry_the_version_of_the_schema() {
    let output = tiroll(&["history", "--json"]).env("TIROLL_STATE_DIR", fresh_state_dir()).output().expect("it runs");
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    assert_eq!(document["v"], SCHEMA);
}

#[test]
fn a_journal_of_a_newer_schema_is_refused_by_name() {
    let journal = newer(&fresh_state_dir());
    let (id, state) = (journal.0, journal.1);
    let output =
        tiroll(&["resume", &id, "--headless", "--yes"]).env("TIROLL_STATE_DIR", &state).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("was written by a newer tiroll (schema 2; this one knows 1)"), "{said}");
}

/// The journal of a rollout that a newer program has begun: its id, and the directory it is in.
fn newer(state: &Path) -> (String, std::path::PathBuf) {
    use tiroll::journal::{Base, Journal, RolloutId, Writer};
    use tiroll::rollout::record::{Began, Record};
    let base = Base::at(state);
    let at = Timestamp::new(1_796_072_400_000, 0);
    let id = RolloutId::new(at);
    let began = Began {
        schema: SCHEMA + 1,
        operation: "upgrade".to_owned(),
        target: tiroll::cluster::Version::parse("v8.5.4").expect("a version"),
        cdc: Vec::new(),
        tidb: Vec::new(),
        pd: Vec::new(),
        executor: "manual".to_owned(),
        set: Vec::new(),
    };
    let mut journal = Journal::create(&base, &id, at, &Writer::here("anna"), "upgrade").expect("a journal");
    journal.append(at, &[Record::Began(began)]).expect("it is written");
    (id.to_string(), state.to_owned())
}
