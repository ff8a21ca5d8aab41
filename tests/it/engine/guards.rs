//! Guards: what pauses whichever phase runs, is answered by a person, and is silent then until it is over or grows.

use tiroll::rollout::command::Command;
use tiroll::rollout::view::{Outcome, PhaseKind};

use super::examples::{drains, ending, is_over, phase};
use super::model::{Course, Spoil};

/// In the drain of the first capture.
fn draining() -> Course {
    let mut course = Course::new(3, true);
    course.until("the drain", |course| drains(course) > 0);
    course
}

fn pass(course: &mut Course, seconds: usize) {
    for _ in 0..seconds {
        course.pass(1_000, Spoil::default());
    }
}

fn message(course: &Course) -> String {
    course.engine.view().question.expect("a question").message()
}

#[test]
fn a_capture_that_falls_silent_and_was_not_stopped_pauses() {
    let mut course = draining();
    course.is_stuck = true;
    course.captures[2].down_until = Some(course.now + 60_000);
    pass(&mut course, 10);
    assert_eq!(course.asked(), None, "a supervisor may start it again");
    course.until("the guard", |course| course.asked() == Some("capture_silent"));
    assert!(message(&course).contains("10.0.1.1:8302 has not answered for 15 s"), "{}", message(&course));
    course.say(Command::Continue).unwrap();
    course.is_stuck = false;
    course.until("the end", |course| {
        assert_ne!(course.asked(), Some("capture_silent"), "it was told to be silent of this");
        is_over(course) || course.asked().is_some()
    });
}

#[test]
fn the_capture_that_is_restarted_is_not_missed() {
    let mut course = draining();
    course.stays_down = 40_000;
    course.until("the end", |course| {
        assert_eq!(course.asked(), None);
        is_over(course)
    });
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
}

#[test]
fn a_tidb_server_that_falls_silent_pauses() {
    let mut course = draining();
    course.is_stuck = true;
    course.tidb[0].down_until = Some(course.now + 60_000);
    course.until("the guard", |course| course.asked() == Some("tidb_silent"));
    assert!(message(&course).contains("10.0.2.1:10080") || message(&course).contains("10.0.2.0:10080"));
}

#[test]
fn somebody_elses_resign_pauses_and_is_gone_on_from() {
    let mut course = draining();
    course.resign();
    course.until("the guard", |course| course.asked() == Some("foreign_resign"));
    assert!(message(&course).contains("gave its duty up and 10.0.1."), "{}", message(&course));
    course.say(Command::Continue).unwrap();
    course.until("the end", |course| {
        assert_eq!(course.asked(), None);
        is_over(course)
    });
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
}

#[test]
fn the_rollouts_own_resign_and_a_crash_of_the_owner_are_no_foreign_resign() {
    let mut course = Course::new(3, true);
    course.until("the resign", |course| phase(course) == Some(PhaseKind::Resign));
    course.until("the end", |course| {
        assert_eq!(course.asked(), None);
        is_over(course)
    });
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
    let mut course = draining();
    course.restart(course.owner, "v8.5.3");
    pass(&mut course, 5);
    assert_eq!(course.asked(), None);
}

#[test]
fn somebody_elses_start_pauses_long_before_tidb_is_next() {
    let mut course = draining();
    course.upgrading = true;
    course.until("the guard", |course| course.asked() == Some("foreign_start"));
    // It was a mistake and is taken back: nothing more is said, and nothing is owed by us.
    course.upgrading = false;
    pass(&mut course, 2);
    course.say(Command::Continue).unwrap();
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
}

#[test]
fn what_comes_back_within_a_moment_is_not_asked_about_again_and_what_grows_is() {
    let mut course = draining();
    course.is_stuck = true;
    course.captures[2].down_until = Some(course.now + 300_000);
    course.until("the guard", |course| course.asked() == Some("capture_silent"));
    course.say(Command::Continue).unwrap();
    // It answers for one second and is gone again.
    course.captures[2].down_until = None;
    pass(&mut course, 1);
    course.captures[2].down_until = Some(course.now + 300_000);
    for _ in 0..25 {
        pass(&mut course, 1);
        assert_ne!(course.asked(), Some("capture_silent"));
    }
}

#[test]
fn lag_that_grows_for_long_pauses_and_names_the_changefeed() {
    let mut course = draining();
    course.is_stuck = true;
    course.frozen_at = Some(course.at().wall_ms.unsigned_abs());
    course.until("the stall", |course| course.asked() == Some("drain_stalled"));
    // Waiting longer for the drain, the lag is what grows.
    let mut waited = 0;
    while course.asked() != Some("lag_over_limit") {
        if course.asked() == Some("drain_stalled") {
            course.say(Command::Wait).unwrap();
            waited += 1;
        }
        pass(&mut course, 1);
        assert!(waited < 10, "{:?}", course.asked());
    }
    assert!(message(&course).contains("The lag of changefeed dwh is over its limit"), "{}", message(&course));
    course.frozen_at = None;
    course.is_stuck = false;
    course.say(Command::Continue).unwrap();
    course.until("the end", |course| {
        assert_ne!(course.asked(), Some("lag_over_limit"));
        is_over(course)
    });
}
