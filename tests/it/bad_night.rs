//! The scenario `bad-night`: a person who reads each question and gives the answer it advises gets to the end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tiroll::driver::Started;
use tiroll::rollout::command::{Command, Who};
use tiroll::rollout::view::{Mode, Outcome, Question, View};

use crate::support::steered::{reason, rollout};
use crate::support::{builtin, referee, simulator};

/// How long the person looks at a question before answering: what mends itself is left to.
const LOOKS: Duration = Duration::from_millis(300);
/// How long the whole night may take.
const NIGHT: Duration = Duration::from_mins(3);

/// What the person presses: more time where that is offered, else the first choice. Never abort.
fn advised(question: &Question) -> Command {
    for text in [&question.what, &question.means, &question.advice] {
        assert!(!text.trim().is_empty(), "a question says what is, what it means and what to do: {question:?}");
    }
    let choices: Vec<_> = question.choices.iter().map(|choice| choice.command).collect();
    assert!(!choices.is_empty(), "a question offers an answer: {question:?}");
    if choices.contains(&Command::Wait) { Command::Wait } else { choices[0] }
}

/// Sits before the rollout until it ends; every question that was asked, by reason.
async fn person(started: &Started) -> (Arc<View>, BTreeSet<String>) {
    let who = Who::new("person");
    let mut asked = BTreeSet::new();
    let mut view = started.handle.view();
    loop {
        let needs = |view: &Arc<View>| matches!(view.mode, Mode::Ended(_)) || view.question.is_some();
        let now = Arc::clone(&*view.wait_for(needs).await.expect("the rollout goes on"));
        let Some(question) = &now.question else { return (now, asked) };
        asked.insert(question.reason.clone().into_owned());
        let is_over = |view: &Arc<View>| reason(view) != Some(&*question.reason);
        if tokio::time::timeout(LOOKS, view.wait_for(is_over)).await.is_err() {
            // A question that has just answered itself takes no answer any more.
            let _ = started.handle.command(&who, advised(question)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_with_the_screen_alone_gets_through() {
    let running = simulator(builtin("bad-night"), 50.0).await;
    // Deadlines are wall time; shortened as the night is, so that what lasts long enough is asked about.
    let set = ["drain_stall=600ms", "unknown_asks=600ms", "verify_deadline=2400ms"];
    let started = rollout(&running, &set).await;
    let night = tokio::time::timeout(NIGHT, person(&started)).await;
    let Ok((last, asked)) = night else {
        let view = started.handle.view().borrow().clone();
        panic!("the night does not end: {:?} {:?} {:?}", view.mode, view.current(), view.question);
    };
    let Mode::Ended(ending) = &last.mode else { panic!("{:?}", last.question) };
    assert_eq!(ending.outcome, Outcome::Done, "{} after {asked:?}", ending.reason);
    assert!(last.owed.is_empty(), "{:?}", last.owed);
    // Deadlines are wall time, so on a busy machine one fault or another mends itself before anybody is asked.
    let night = [
        "capture_lost",
        "changefeed_failed",
        "drain_stalled",
        "left_out_by_count",
        "not_confirmed",
        "not_verified",
        "wrong_version",
    ];
    let met = night.iter().filter(|reason| asked.contains(**reason)).count();
    assert!(met + 2 >= night.len(), "a night on which little went wrong: {asked:?}");
    assert!(asked.contains("wrong_version"), "nothing but a person's hand mends this: {asked:?}");
    // Whatever the person pressed, nothing was stopped that carried tables or owned.
    let report = referee(&running);
    for stop in report["stops"].as_array().expect("a list of stops") {
        assert_eq!((&stop["tables"], &stop["was_owner"], &stop["forced"]), (&0.into(), &false.into(), &false.into()));
    }
    assert_eq!(report["left_stopping"], serde_json::json!([]), "{report:#}");
    assert_eq!((&report["tidb_upgrading"], &report["finish_owed"]), (&false.into(), &false.into()));
}
