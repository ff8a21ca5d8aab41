//! Examples of odd days: what somebody else does, what is lost, what is late, and what a person may then say.

use tiroll::cluster::FailureKind;
use tiroll::rollout::command::Command;
use tiroll::rollout::view::{Outcome, PhaseKind, PhaseState};

use super::examples::{acts, drains, ending, is_over, owes, phase};
use super::model::{Course, Spoil};

fn is_asking(reason: &'static str) -> impl Fn(&Course) -> bool {
    move |course| course.asked() == Some(reason)
}

fn is_offered(course: &Course, command: Command) -> bool {
    course.engine.view().question.is_some_and(|question| question.choices.iter().any(|c| c.command == command))
}

fn ends_done(mut course: Course) {
    course.until("the end", |course| is_over(course) || course.asked().is_some());
    assert_eq!(ending(&course), Some((Outcome::Done, 0)), "{:?}", course.engine.view().question);
    assert!(course.engine.view().owed.is_empty());
}

#[test]
fn no_owner_for_long_pauses_and_is_silent_once_acknowledged() {
    let mut course = Course::new(3, true);
    course.until("the drain", |course| drains(course) > 1);
    course.no_owner_until = course.now + 25_000;
    course.until("the guard", is_asking("no_owner"));
    let before = drains(&course);
    assert!(is_offered(&course, Command::Continue) && is_offered(&course, Command::Abort));
    assert_eq!(course.say(Command::Continue), Ok(()));
    course.pass(1_000, Spoil::default());
    assert_eq!((course.asked(), drains(&course)), (None, before), "it was acknowledged, and there is nobody to ask");
    ends_done(course);
}

#[test]
fn two_claims_of_ownership_pause_too() {
    let mut course = Course::new(3, true);
    course.until("the drain", |course| drains(course) > 1);
    course.has_two_owners = true;
    course.pass(250, Spoil::default());
    let before = drains(&course);
    course.until("the guard", is_asking("two_owners"));
    assert_eq!(drains(&course), before, "nothing is asked of either");
    course.has_two_owners = false;
    assert_eq!(course.say(Command::Continue), Ok(()));
    ends_done(course);
}

/// Found by the random courses: the end of a phase took the guard's question away, and the next phase began.
#[test]
fn a_phase_that_ends_does_not_answer_a_guard() {
    let mut course = Course::new(3, true);
    course.until("the last phase of the first node", |course| phase(course) == Some(PhaseKind::Settle));
    course.has_two_owners = true;
    course.until("the guard", is_asking("two_owners"));
    let before = course.sent;
    course.has_two_owners = false;
    for _ in 0..60 {
        course.pass(1_000, Spoil::default());
    }
    let view = course.engine.view();
    assert!(view.plan[0].phases.iter().all(|phase| phase.state == PhaseState::Done), "{:?}", view.current());
    assert_eq!((course.asked(), course.sent), (Some("two_owners"), before));
    assert_eq!(course.say(Command::Continue), Ok(()));
    ends_done(course);
}

#[test]
fn an_acknowledged_guard_leaves_a_stepped_rollout_stepped() {
    let mut course = Course::new(3, false);
    course.until("the plan", |course| course.engine.permission(Command::Step).is_ok());
    course.no_owner_until = course.now + 25_000;
    course.until("the guard", is_asking("no_owner"));
    assert_eq!(course.say(Command::Continue), Ok(()));
    for _ in 0..120 {
        course.pass(250, Spoil::default());
    }
    assert_eq!(course.sent, 0);
    assert_eq!(course.say(Command::Step), Ok(()));
}

#[test]
fn while_paused_the_count_comes_from_rounds_also_before_the_first_answer() {
    let mut course = Course::new(3, true);
    course.next_answer_after = 60_000;
    course.until("the drain", |course| drains(course) == 1);
    assert_eq!(course.say(Command::Pause), Ok(()));
    course.pass(250, Spoil::default());
    let first = course.engine.view().drain.and_then(|drain| drain.count).unwrap();
    course.pass(1_000, Spoil::default());
    let second = course.engine.view().drain.and_then(|drain| drain.count).unwrap();
    assert!(second < first, "{first} then {second}");
    assert_eq!(drains(&course), 1);
}

#[test]
fn after_an_abort_rounds_go_on_telling_how_far_the_drain_is() {
    let mut course = Course::new(3, true);
    course.until("the drain", |course| course.engine.view().drain.is_some_and(|drain| drain.count.is_some()));
    assert_eq!(course.say(Command::Abort), Ok(()));
    for _ in 0..20 {
        course.pass(500, Spoil::default());
    }
    assert_eq!(course.engine.view().drain.and_then(|drain| drain.count), Some(0));
}

/// The first counts of an owner are of changefeeds it has not looked at yet (recorded: 2, then 80).
#[test]
fn a_count_of_changefeeds_is_not_shown_as_progress() {
    let mut course = Course::new(3, true);
    course.count_is = Some(2);
    course.until("the drain", |course| drains(course) > 3);
    assert_eq!(course.engine.view().drain.and_then(|drain| drain.count), None);
    course.count_is = None;
    course.pass(1_000, Spoil::default());
    course.pass(250, Spoil::default());
    assert!(course.engine.view().drain.and_then(|drain| drain.count).is_some_and(|count| count > 2));
    ends_done(course);
}

#[test]
fn an_estimate_is_unknown_where_nothing_is_counted_any_more() {
    let mut course = Course::new(3, true);
    course.is_stuck = true;
    course.until("a fall", |course| course.engine.view().drain.is_some_and(|drain| drain.remaining.is_some()));
    course.until("the stall", is_asking("drain_stalled"));
    assert_eq!(course.engine.view().drain.and_then(|drain| drain.remaining), None);
}

#[test]
fn a_zero_does_not_end_the_watch_for_a_stall() {
    let mut course = Course::new(3, true);
    course.is_stuck = true;
    course.until("the drain", |course| drains(course) > 1);
    course.count_is = Some(0);
    course.pass(1_000, Spoil::default());
    course.pass(250, Spoil::default());
    course.count_is = None;
    let since = course.now;
    course.until("the stall", is_asking("drain_stalled"));
    assert!(course.now - since < 60_000, "the deadline of the whole drain found it, not the guard");
}

#[test]
fn a_drain_that_is_refused_for_good_asks_at_once() {
    for kind in [FailureKind::Unauthorized, FailureKind::NoRoute, FailureKind::Unexpected] {
        let mut course = Course::new(3, true);
        course.until("the drain", |course| drains(course) > 1);
        course.next_call_fails = Some(kind);
        course.until("the question", is_asking("drain_refused"));
        let before = drains(&course);
        for _ in 0..20 {
            course.pass(1_000, Spoil::default());
        }
        assert_eq!(drains(&course), before, "{kind:?}");
    }
}

#[test]
fn a_target_that_owns_resigns_in_its_own_step_and_the_second_time_asks() {
    let mut course = Course::new(3, true);
    course.next_call_fails = Some(FailureKind::CannotDrainOwner);
    course.until("the second drain", |course| drains(course) == 2);
    let view = course.engine.view();
    assert_eq!(view.cursor.map(|(step, _)| step), Some(0), "it stays the same step");
    course.next_call_fails = Some(FailureKind::CannotDrainOwner);
    course.until("the question", is_asking("owner_again"));
    assert_eq!(course.say(Command::Retry), Ok(()));
    ends_done(course);
}

#[test]
fn a_capture_restarted_by_somebody_else_before_our_restart_is_drained_afresh() {
    let mut course = Course::new(3, true);
    course.until("the confirmation", |course| phase(course) == Some(PhaseKind::Restart));
    assert_eq!(acts(&course), 0);
    course.restart(1, "v8.5.3");
    course.until("the question", is_asking("restarted_elsewhere"));
    assert_eq!(acts(&course), 0);
    assert_eq!(course.say(Command::Retry), Ok(()));
    course.until("the drain of the new one", |course| phase(course) == Some(PhaseKind::Drain));
    ends_done(course);
}

#[test]
fn a_node_somebody_else_upgraded_meanwhile_is_skipped() {
    let mut course = Course::new(3, true);
    course.until("the first verify", |course| phase(course) == Some(PhaseKind::Settle));
    course.restart(2, "v8.5.4");
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
    assert_eq!(course.captures[2].generation, 1, "it was not restarted again");
    let view = course.engine.view();
    let step = view.plan.iter().find(|step| step.target.ends_with(":8302")).unwrap();
    assert!(step.phases.iter().all(|phase| phase.state == PhaseState::Skipped));
}

#[test]
fn an_act_that_is_lost_asks_and_the_process_is_noticed_after_a_retry_too() {
    let mut course = Course::new(3, true);
    course.loses_next_act = true;
    course.until("the question", is_asking("executor_silent"));
    assert_eq!(course.say(Command::Retry), Ok(()));
    course.restart(1, "v8.5.4");
    ends_done(course);
}

#[test]
fn a_drain_that_never_took_hold_dissolves_after_an_abort() {
    let mut course = Course::new(3, true);
    course.count_is = Some(9);
    course.until("the drain", |course| drains(course) > 1);
    assert_eq!(course.say(Command::Abort), Ok(()));
    course.pass(4_000, Spoil::default());
    assert!(owes(&course, "restart"), "liveness may still turn");
    course.pass(4_000, Spoil::default());
    assert_eq!(ending(&course), Some((Outcome::Aborted, 4)));
    assert!(course.engine.view().owed.is_empty());
}

#[test]
fn an_abort_with_a_call_under_way_waits_for_its_answer() {
    let mut course = Course::new(2, true);
    course.until("the owner's step", |course| phase(course) == Some(PhaseKind::Settle));
    course.next_answer_after = 8_000;
    course.until("the resign", |course| phase(course) == Some(PhaseKind::Resign) && course.is_waiting());
    assert_eq!(course.say(Command::Abort), Ok(()));
    assert!(!is_over(&course) && is_offered(&course, Command::Close));
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Aborted, 4)));
}

#[test]
fn a_resign_retried_while_its_call_is_under_way_is_not_sent_twice() {
    let mut course = Course::new(2, true);
    course.until("the owner's step", |course| phase(course) == Some(PhaseKind::Settle));
    course.next_call_fails = Some(FailureKind::Timeout);
    course.next_answer_after = 30_000;
    course.until("the question", is_asking("resign_without_effect"));
    assert!(course.is_waiting());
    // The model itself fails when a second call is sent meanwhile.
    assert_eq!(course.say(Command::Retry), Ok(()));
    ends_done(course);
}

#[test]
fn health_that_does_not_answer_asks_and_may_be_waived() {
    let mut course = Course::new(2, true);
    course.until("the owner's step", |course| phase(course) == Some(PhaseKind::Settle));
    course.until("the resign", |course| phase(course) == Some(PhaseKind::Resign));
    course.is_unhealthy = true;
    course.until("the question", is_asking("unhealthy"));
    assert_eq!(course.say(Command::Confirm), Ok(()));
    course.until("the next question", is_asking("not_settled"));
    assert_eq!(course.say(Command::Confirm), Ok(()));
    ends_done(course);
}

#[test]
fn a_changefeed_that_stood_still_before_does_not_hold_the_step() {
    let mut course = Course::new(3, false);
    course.frozen_at = Some(1_796_072_400_000);
    for _ in 0..20 {
        course.pass(1_000, Spoil::default());
    }
    assert_eq!(course.say(Command::Continue), Ok(()));
    ends_done(course);
}

#[test]
fn a_changefeed_that_stops_moving_with_the_restart_holds_it() {
    let mut course = Course::new(3, true);
    course.until("the verify", |course| phase(course) == Some(PhaseKind::Verify));
    course.frozen_at = Some(1_796_072_400_000);
    course.until("the question", is_asking("not_settled"));
    assert!(!is_offered(&course, Command::Confirm), "only health may be waived");
}

#[test]
fn somebody_elses_finish_asks_before_a_server_is_restarted() {
    let mut course = Course::new(2, true);
    course.until("the first server", |course| acts(course) == 3);
    course.upgrading = false;
    course.until("the question", is_asking("foreign_finish"));
    assert_eq!(acts(&course), 3);
    assert_eq!(course.say(Command::Confirm), Ok(()));
    ends_done(course);
}

#[test]
fn what_somebody_took_back_is_not_called_done() {
    let mut course = Course::new(2, true);
    course.until("the last server", |course| acts(course) == 4);
    course.restart(1, "v8.5.3");
    course.until("the question", is_asking("not_all_there"));
    course.restart(1, "v8.5.4");
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
}

#[test]
fn a_capture_that_somebody_drains_meanwhile_stops_ours() {
    let mut course = Course::new(3, true);
    course.until("the drain", |course| drains(course) > 1);
    course.captures[2].stopping = true;
    course.until("the question", is_asking("leftover"));
    let before = drains(&course);
    course.pass(1_000, Spoil::default());
    assert_eq!(drains(&course), before);
    course.restart(2, "v8.5.3");
    for _ in 0..40 {
        course.pass(250, Spoil::default());
    }
    assert_eq!(course.say(Command::Retry), Ok(()));
    ends_done(course);
}

/// Between the drain and the restart tables come back, and the count does not know it.
#[test]
fn tables_that_come_back_before_the_restart_send_it_back_to_the_drain() {
    let mut course = Course::new(3, true);
    course.until("the confirmation", |course| phase(course) == Some(PhaseKind::Restart));
    course.count_is = Some(0);
    course.give(1);
    course.pass(250, Spoil::default());
    assert_eq!((phase(&course), acts(&course)), (Some(PhaseKind::Drain), 0));
    course.count_is = None;
    ends_done(course);
}

/// A zero of the count alone stops nothing: here the tables are there and cannot be read.
#[test]
fn a_zero_without_a_round_never_restarts() {
    let mut course = Course::new(3, true);
    course.until("the confirmation", |course| phase(course) == Some(PhaseKind::Restart));
    (course.count_is, course.is_stuck) = (Some(0), true);
    course.give(1);
    for _ in 0..160 {
        course.pass(250, Spoil { target: true, ..Spoil::default() });
    }
    assert_eq!((acts(&course), course.asked()), (0, Some("restart_unproven")));
}

#[test]
fn a_third_version_that_appears_on_the_way_is_called_so_at_once() {
    let mut course = Course::new(4, true);
    course.until("the second node", |course| {
        acts(course) == 1 && course.engine.view().cursor.is_some_and(|at| at.0 == 1)
    });
    course.comes_back_as = Some("v8.5.2");
    course.until("the guard", is_asking("third_version"));
    let message = course.engine.view().question.unwrap().message();
    assert!(message.contains("v8.5.2") && message.contains("every changefeed"), "{message}");
    let before = course.sent;
    for _ in 0..30 {
        course.pass(1_000, Spoil::default());
    }
    assert_eq!(course.sent, before);
}

#[test]
fn a_changefeed_that_fails_on_the_way_pauses_and_is_silent_once_acknowledged() {
    let mut course = Course::new(3, true);
    course.until("the drain", |course| drains(course) > 1);
    course.has_second_failed = true;
    course.until("the guard", is_asking("changefeed_failed"));
    assert!(course.engine.view().question.unwrap().message().contains("dwh"));
    assert_eq!(course.say(Command::Continue), Ok(()));
    course.pass(1_000, Spoil::default());
    assert_ne!(course.asked(), Some("changefeed_failed"));
}

/// Recover finishes a drain; a capture that is gone is started.
#[test]
fn a_drained_capture_that_died_is_started_after_an_abort() {
    let mut course = Course::new(3, true);
    course.until("the drain", |course| drains(course) > 1);
    course.stays_down = 600_000;
    course.restart(1, "v8.5.3");
    course.pass(1_000, Spoil::default());
    assert_eq!(course.say(Command::Abort), Ok(()));
    course.pass(1_000, Spoil::default());
    assert!(is_offered(&course, Command::Start) && !is_offered(&course, Command::Recover));
    assert_eq!(course.say(Command::Start), Ok(()));
    course.until("the end", is_over);
    assert!(course.engine.view().owed.is_empty());
}

#[test]
fn after_a_lid_was_closed_nothing_is_sent_before_the_cluster_was_read_again() {
    let mut course = Course::new(3, true);
    let mut would_have_sent = 0;
    while !is_over(&course) {
        let mut waking = course.clone();
        assert_eq!(waking.close_lid(8 * 3_600_000), 0, "sent on readings of before the lid was closed");
        would_have_sent += course.clone().close_lid(0);
        course.pass(250, Spoil::default());
    }
    assert!(would_have_sent > 10, "the course had few moments at which anything was due: {would_have_sent}");
}

#[test]
fn tables_that_came_while_the_lid_was_closed_keep_the_capture_from_being_restarted() {
    let mut course = Course::new(3, true);
    course.until("the restart", |course| phase(course) == Some(PhaseKind::Restart));
    let before = acts(&course);
    course.give(0);
    assert_eq!(course.close_lid(8 * 3_600_000), 0);
    course.pass(250, Spoil::default());
    assert_eq!(acts(&course), before, "restarted on the evidence of the evening before");
    ends_done(course);
}

#[test]
fn a_long_sleep_is_charged_to_no_deadline() {
    let mut course = Course::new(3, true);
    course.until("the drain", |course| drains(course) > 1);
    assert_eq!(course.sleep(2 * 3_600_000), 0);
    course.pass(250, Spoil::default());
    assert_eq!(course.asked(), None, "nobody let it run for these two hours");
    ends_done(course);
}
