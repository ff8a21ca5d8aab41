//! Examples: one turn each.

use tiroll::cluster::FailureKind;
use tiroll::rollout::command::Command;
use tiroll::rollout::effect::{Call, Effect};
use tiroll::rollout::event::Fact;
use tiroll::rollout::view::{Mode, Outcome, PhaseKind};

use super::model::{Course, Spoil};

pub(super) fn ending(course: &Course) -> Option<(Outcome, u8)> {
    match course.mode() {
        Mode::Ended(ending) => Some((ending.outcome, ending.exit_code)),
        _ => None,
    }
}

pub(super) fn is_over(course: &Course) -> bool {
    ending(course).is_some()
}

pub(super) fn drains(course: &Course) -> usize {
    let is_drain = |effect: &&Effect| matches!(effect, Effect::Call { call: Call::Drain { .. }, .. });
    course.effects.iter().filter(is_drain).count()
}

/// The ports of what was restarted, in order.
pub(super) fn restarted(course: &Course) -> Vec<u16> {
    let restart = |effect: &Effect| match effect {
        Effect::Exec { action, .. } => Some(action.address.port()),
        _ => None,
    };
    course.effects.iter().filter_map(restart).collect()
}

pub(super) fn phase(course: &Course) -> Option<PhaseKind> {
    course.engine.view().current().map(|(_, phase)| phase.kind)
}

fn is_in(kind: PhaseKind) -> impl Fn(&Course) -> bool {
    move |course| phase(course) == Some(kind) && course.engine.view().drain.is_some()
}

#[test]
fn a_whole_upgrade_is_done_with_nothing_owed_and_the_owner_last() {
    let mut course = Course::new(3, true);
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
    assert!(course.engine.view().owed.is_empty());
    assert!(course.captures.iter().all(|c| c.version == "v8.5.4"));
    assert!(course.tidb.iter().all(|t| t.version == "v8.5.4"));
    assert!(!course.upgrading);
    assert_eq!(restarted(&course), [8301, 8302, 8300, 10_081, 10_080], "the owners of both kinds go last");
}

#[test]
fn step_runs_one_phase_and_waits() {
    let mut course = Course::new(3, false);
    course.until("the plan", |course| course.mode() == Mode::Stepping);
    assert_eq!(drains(&course), 0);
    for ended in 1..=4 {
        assert_eq!(course.say(Command::Step), Ok(()));
        course.until("the phase's end", |course| course.mode() == Mode::Stepping);
        let count = course.events.iter().filter(|event| matches!(event.fact, Fact::PhaseEnded { .. })).count();
        assert_eq!(count, ended);
    }
}

#[test]
fn a_pause_stops_the_drain_request_and_eats_no_deadline() {
    let mut course = Course::new(3, true);
    course.until("the drain", |course| drains(course) > 1);
    assert_eq!(course.say(Command::Pause), Ok(()));
    let before = drains(&course);
    for _ in 0..200 {
        course.pass(10_000, Spoil::default());
    }
    assert_eq!(drains(&course), before);
    assert_eq!(course.mode(), Mode::Paused, "half an hour of pause is no stall and no deadline");
    assert_eq!(course.engine.view().drain.and_then(|drain| drain.count), Some(0), "the count goes on from rounds");
    assert_eq!(course.say(Command::Continue), Ok(()));
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
}

#[test]
fn a_table_that_does_not_move_asks_and_names_its_changefeed() {
    let mut course = Course::new(3, true);
    course.is_stuck = true;
    course.until("the question", |course| course.asked().is_some());
    assert_eq!(course.asked(), Some("drain_stalled"));
    let question = course.engine.view().question.unwrap();
    assert!(question.message().contains("dwh (3)"), "{}", question.message());
    // It answers itself when the table moves after all and the person looks again.
    course.is_stuck = false;
    assert_eq!(course.say(Command::Retry), Ok(()));
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
}

#[test]
fn a_zero_of_the_count_is_not_believed_against_a_round() {
    let mut course = Course::new(3, true);
    course.warning = true;
    course.is_stuck = true;
    course.until("the question", |course| course.asked().is_some());
    assert_eq!(course.asked(), Some("left_out_by_count"));
}

#[test]
fn unread_rounds_never_end_a_drain() {
    let mut course = Course::new(3, true);
    course.until("the drain", is_in(PhaseKind::Drain));
    for _ in 0..400 {
        course.pass(250, Spoil { target: true, ..Spoil::default() });
    }
    assert_eq!(phase(&course), Some(PhaseKind::Drain));
    assert_eq!(course.asked(), Some("zero_without_round"));
}

#[test]
fn an_abort_in_a_drain_offers_to_recover_and_recovers() {
    let mut course = Course::new(3, true);
    course.until("the drain", |course| drains(course) > 1);
    assert_eq!(course.say(Command::Abort), Ok(()));
    assert_eq!(course.mode(), Mode::Aborted);
    let before = drains(&course);
    course.pass(1_000, Spoil::default());
    assert_eq!(drains(&course), before, "an aborted rollout asks for nothing");
    assert_eq!(course.say(Command::Recover), Ok(()));
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Aborted, 4)));
    assert!(course.engine.view().owed.is_empty());
    assert!(course.captures.iter().all(|c| c.version == "v8.5.3" && !c.stopping));
    assert_eq!(course.captures.iter().map(|c| c.generation).sum::<u32>(), 1);
}

#[test]
fn an_abort_while_upgrading_offers_to_finish() {
    let mut course = Course::new(2, true);
    course.until("the upgrading state", |course| phase(course) == Some(PhaseKind::Restart) && course.upgrading);
    assert_eq!(course.say(Command::Abort), Ok(()));
    course.until("finish is offered", |course| course.engine.permission(Command::Finish).is_ok());
    assert_eq!(course.say(Command::Finish), Ok(()));
    course.until("the finish", |course| !course.upgrading && course.mode() != Mode::Running);
    assert!(course.engine.view().owed.iter().all(|owed| owed.kind != "finish"));
}

#[test]
fn a_wrong_version_asks_at_once_and_notices_when_it_is_mended() {
    let mut course = Course::new(3, true);
    course.comes_back_as = Some("v8.5.3");
    course.until("the question", |course| course.asked().is_some());
    assert_eq!(course.asked(), Some("wrong_version"));
    let wrong = course.captures.iter().position(|c| c.generation == 1).unwrap();
    course.restart(wrong, "v8.5.4");
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
}

#[test]
fn a_start_that_fails_and_is_set_all_the_same_is_tried_once_more() {
    let mut course = Course::new(2, true);
    course.until("the hand-over", |course| phase(course) == Some(PhaseKind::Settle) && course.owner != 0);
    course.next_call_fails = Some(FailureKind::TidbRefused);
    course.until("a question or an end", |course| course.asked().is_some() || is_over(course));
    assert_eq!(course.asked(), Some("not_confirmed"));
    assert!(course.engine.view().owed.iter().any(|owed| owed.kind == "finish"));
    assert_eq!(course.say(Command::Retry), Ok(()));
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
}

#[test]
fn what_was_found_stopping_is_refused_by_name() {
    let mut course = Course::new(3, true);
    course.captures[2].stopping = true;
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Refused, 3)));
    assert_eq!(drains(&course), 0);
    let Mode::Ended(ending) = course.mode() else { panic!("it has ended") };
    assert!(ending.reason.contains("10.0.1.1:8302"), "{}", ending.reason);
}

#[test]
fn refusals_and_nothing_to_do() {
    let end = |versions: [&'static str; 3], tidb: &'static str| {
        let mut course = Course::new(3, true);
        for (capture, version) in course.captures.iter_mut().zip(versions) {
            capture.version = version;
        }
        for server in &mut course.tidb {
            server.version = tidb;
        }
        course.until("the end", is_over);
        (ending(&course), drains(&course))
    };
    assert_eq!(end(["v8.5.4"; 3], "v8.5.4"), (Some((Outcome::NothingToDo, 0)), 0));
    assert_eq!(end(["v8.5.3", "v8.5.2", "v8.5.3"], "v8.5.3"), (Some((Outcome::Refused, 3)), 0));
    assert_eq!(end(["v8.5.3", "v8.5.5", "v8.5.3"], "v8.5.3"), (Some((Outcome::Refused, 3)), 0));
    assert_eq!(end(["v8.5.3"; 3], "v9.0.0"), (Some((Outcome::Refused, 3)), 0));
}

#[test]
fn every_command_is_taken_or_says_why_not() {
    let mut course = Course::new(3, false);
    let check = |course: &Course| {
        for (command, permission) in course.engine.view().commands {
            if let Err(why) = permission {
                assert!(why.len() > 10, "{command:?} says only `{why}`");
            }
        }
    };
    check(&course);
    course.until("the plan", |course| course.mode() == Mode::Stepping);
    check(&course);
    course.say(Command::Continue).unwrap();
    course.until("the drain", |course| drains(course) > 0);
    check(&course);
    course.say(Command::Pause).unwrap();
    check(&course);
    course.say(Command::Abort).unwrap();
    check(&course);
    course.say(Command::Close).unwrap();
    check(&course);
    assert_eq!(ending(&course), Some((Outcome::Aborted, 4)));
    assert_eq!(course.engine.view().owed.len(), 1, "closing pays nothing");
}

pub(super) fn acts(course: &Course) -> usize {
    course.effects.iter().filter(|effect| matches!(effect, Effect::Exec { .. })).count()
}

pub(super) fn owes(course: &Course, kind: &str) -> bool {
    course.engine.view().owed.iter().any(|owed| owed.kind == kind)
}

/// An abort in the middle of a restart is paid as soon as the new process is seen, by nobody's word but the server's.
#[test]
fn an_abort_in_a_capture_restart_is_paid_when_the_process_is_back() {
    let mut course = Course::new(3, true);
    course.until("the restart", |course| acts(course) == 1);
    assert_eq!(course.say(Command::Abort), Ok(()));
    assert!(owes(&course, "start") && owes(&course, "restart"));
    assert!(course.engine.permission(Command::Recover).is_err(), "the act is still under way");
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Aborted, 4)));
    assert!(course.engine.view().owed.is_empty(), "{:?}", course.engine.view().owed);
}

#[test]
fn an_abort_in_a_tidb_restart_owes_only_the_finish_once_it_is_back() {
    let mut course = Course::new(2, true);
    course.until("the restart", |course| acts(course) == 3);
    assert_eq!(course.say(Command::Abort), Ok(()));
    assert!(owes(&course, "start") && owes(&course, "finish"));
    for _ in 0..40 {
        course.pass(250, Spoil::default());
    }
    assert!(!owes(&course, "start"), "{:?}", course.engine.view().owed);
    assert!(owes(&course, "finish"));
    assert_eq!(course.say(Command::Finish), Ok(()));
    course.until("the end", is_over);
    assert!(!course.upgrading && course.engine.view().owed.is_empty());
}

/// A ghost of the old process is still listed when the new one answers: the new one is not drained again.
#[test]
fn an_abort_in_verify_never_drains_the_new_process() {
    let mut course = Course::new(3, true);
    course.until("the verify", |course| phase(course) == Some(PhaseKind::Verify));
    assert_eq!(course.say(Command::Abort), Ok(()));
    let before = (drains(&course), acts(&course));
    if course.engine.permission(Command::Recover).is_ok() {
        course.say(Command::Recover).unwrap();
    }
    course.until("the end", is_over);
    assert_eq!((drains(&course), acts(&course)), before);
    assert!(course.engine.view().owed.is_empty());
}
