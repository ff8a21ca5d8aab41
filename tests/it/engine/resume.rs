//! Killed at any moment and started again: the rollout knows where it was and what is owed, and sends nothing before a
//! person has chosen.

use tiroll::cluster::{Architecture, FailureKind};
use tiroll::rollout::command::Command;
use tiroll::rollout::view::{Mode, Outcome, PhaseKind};

use super::examples::{acts, drains, ending, is_over, owes, phase};
use super::model::{Course, Spoil};

/// Answers everything with what comes first, until the end.
fn goes_on_to_the_end(course: &mut Course) {
    for _ in 0..3_000 {
        if is_over(course) {
            return;
        }
        if let Some(question) = course.engine.view().question {
            let first = question.choices.iter().find(|choice| choice.command != Command::Abort);
            if let Some(choice) = first {
                let _ = course.say(choice.command);
            }
        }
        course.pass(250, Spoil::default());
    }
    let view = course.engine.view();
    panic!("it never ends: {:?} {:?} {:?}", view.mode, view.current(), view.question);
}

/// Killed about once a second of a whole upgrade, in both architectures.
#[test]
fn killed_at_any_moment_it_ends_done_with_nothing_owed() {
    for architecture in [Architecture::Classic, Architecture::New] {
        let mut course = Course::of(architecture, 2, true);
        course.keeps_log = false;
        let mut kills = 0;
        while !is_over(&course) {
            course.pass(250, Spoil::default());
            course.pass(450, Spoil::default());
            if course.engine.view().plan.is_empty() || is_over(&course) {
                continue;
            }
            let mut other = course.clone();
            let before = other.sent;
            let owed = other.engine.view().owed;
            other.kill();
            assert_eq!(other.sent, before, "nothing is sent before a person has chosen");
            assert_eq!(other.engine.view().owed, owed, "what is owed outlives the program");
            assert!(matches!(other.mode(), Mode::Asking), "{:?}", other.mode());
            goes_on_to_the_end(&mut other);
            assert_eq!(ending(&other), Some((Outcome::Done, 0)), "{:?}", other.mode());
            kills += 1;
        }
        assert!(kills > 60, "{kills}");
    }
}

/// A drain may be asked for again at any time; whether it arrived does not matter. It is still a person's word.
#[test]
fn a_drain_without_an_answer_is_not_asked_for_again_before_a_word() {
    let mut course = Course::new(3, true);
    course.next_answer_after = 60_000;
    course.until("the drain", |course| drains(course) == 1);
    course.kill();
    assert_eq!(course.asked(), Some("resumed"));
    let message = course.engine.view().question.unwrap().message();
    assert!(message.contains("still the process it was"), "{message}");
    let before = course.sent;
    for _ in 0..40 {
        course.pass(1_000, Spoil::default());
    }
    assert_eq!((course.sent, course.asked()), (before, Some("resumed")));
    assert!(owes(&course, "restart"));
    assert_eq!(course.say(Command::Continue), Ok(()));
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
}

/// The act was ordered and nobody knows what came of it: the servers tell.
#[test]
fn an_act_without_an_outcome_is_settled_by_what_answers_there() {
    // It took hold: another process answers, at the target.
    let mut course = Course::new(3, true);
    course.until("the act", |course| acts(course) == 1);
    course.kill();
    course.until("its return", |course| course.asked() == Some("resumed"));
    assert_eq!(course.say(Command::Continue), Ok(()));
    course.pass(250, Spoil::default());
    assert_eq!((phase(&course), acts(&course)), (Some(PhaseKind::Verify), 1), "it is not restarted twice");
    // It never did: the old process answers, and everything is asked afresh before it is stopped.
    let mut course = Course::new(3, true);
    course.loses_next_act = true;
    course.until("the act", |course| acts(course) == 1);
    course.kill();
    assert_eq!(course.asked(), Some("unsettled"));
    assert!(course.engine.view().question.unwrap().message().contains("restart TiCDC 10.0.1.1:8301 as v8.5.4"));
    let before = drains(&course);
    assert_eq!(course.say(Command::Continue), Ok(()));
    course.until("another act", |course| acts(course) == 2);
    assert!(drains(&course) > before, "on fresh evidence");
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
}

#[test]
fn a_process_that_is_not_there_is_waited_for() {
    let mut course = Course::new(3, true);
    course.stays_down = 100_000;
    course.until("the act", |course| acts(course) == 1);
    course.kill();
    assert_eq!(course.asked(), Some("nobody_there"));
    assert!(course.say(Command::Continue).is_err());
    course.until("its return", |course| course.asked() != Some("nobody_there"));
    assert_eq!(course.say(Command::Continue), Ok(()));
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
}

#[test]
fn a_start_whose_answer_was_lost_owes_the_finish_and_is_not_taken_for_anothers() {
    let mut course = Course::new(2, true);
    course.until("the start", |course| owes(course, "finish"));
    course.kill();
    assert!(owes(&course, "finish"));
    assert_eq!(course.say(Command::Continue), Ok(()));
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
}

#[test]
fn an_aborted_rollout_offers_again_what_it_owes() {
    let mut course = Course::new(3, true);
    course.until("the drain", |course| drains(course) > 1);
    assert_eq!(course.say(Command::Abort), Ok(()));
    course.kill();
    assert_eq!((course.mode(), course.asked()), (Mode::Aborted, Some("aborted")));
    assert_eq!(course.say(Command::Recover), Ok(()));
    course.until("the end", is_over);
    assert_eq!(ending(&course).map(|(outcome, _)| outcome), Some(Outcome::Aborted));
    assert!(course.engine.view().owed.is_empty());
}

#[test]
fn a_cluster_that_cannot_be_read_after_the_return_is_said() {
    let mut course = Course::new(3, true);
    course.until("the drain", |course| drains(course) > 1);
    course.next_call_fails = Some(FailureKind::Timeout);
    course.no_owner_until = course.now + 60_000;
    course.kill();
    assert_eq!(course.asked(), None);
    course.until("the question", |course| course.asked() == Some("resume_unread"));
    course.until("its answer", |course| course.asked() != Some("resume_unread"));
    let before = course.sent;
    course.pass(5_000, Spoil::default());
    assert_eq!(course.sent, before);
}
