//! Examples of the new architecture: what differs there in drain, liveness and tables, and what must not.

use std::time::Duration;

use tiroll::cluster::{Architecture, FailureKind};
use tiroll::rollout::Engine;
use tiroll::rollout::command::Command;
use tiroll::rollout::event::Fact;
use tiroll::rollout::policy::Policy;
use tiroll::rollout::view::{DrainView, Mode, Outcome, PhaseKind};

use super::examples::{acts, drains, ending, is_over, owes, phase, restarted};
use super::model::{Course, Spoil, request};

fn new(captures: usize) -> Course {
    Course::of_new_architecture(captures, true)
}

fn is_asking(reason: &'static str) -> impl Fn(&Course) -> bool {
    move |course| course.asked() == Some(reason)
}

fn drain(course: &Course) -> DrainView {
    course.engine.view().drain.expect("a drain")
}

/// In the middle of the first drain.
fn draining(mut course: Course) -> Course {
    course.until("the drain", |course| drains(course) > 2);
    course
}

fn ends_done(mut course: Course) {
    course.until("the end", |course| is_over(course) || course.asked().is_some());
    assert_eq!(ending(&course), Some((Outcome::Done, 0)), "{:?}", course.engine.view().question);
    assert!(course.engine.view().owed.is_empty());
}

/// Lets time pass and says how many mutating effects went out meanwhile.
fn sent_in(course: &mut Course, seconds: u64) -> usize {
    let before = course.sent;
    for _ in 0..seconds {
        course.pass(1_000, Spoil::default());
    }
    course.sent - before
}

#[test]
fn a_whole_upgrade_is_done_with_the_coordinator_last() {
    let mut course = new(3);
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
    assert!(course.captures.iter().all(|c| c.version == "v8.5.4"));
    assert_eq!(restarted(&course), [8301, 8302, 8300, 10_081, 10_080]);
}

#[test]
fn what_the_drain_answers_is_remaining_work_and_tables_come_from_rounds() {
    let mut course = new(3);
    course.until("the first answer", |course| course.engine.view().drain.is_some_and(|drain| drain.work.is_some()));
    let first = drain(&course);
    assert_eq!(first.work, Some(2), "it counts changefeeds at first");
    assert!(first.count.is_some_and(|count| count > 2), "the tables are counted where they are: {:?}", first.count);
    assert_eq!(first.baseline, 9);
    course.until("no table", |course| drain(course).count == Some(0));
    let later = drain(&course);
    assert!(!later.is_done && later.waiting_for.contains("liveness 2"), "{}", later.waiting_for);
    course.until("the restart", |course| phase(course) == Some(PhaseKind::Restart));
    let told = course.events.iter().filter_map(|event| match event.fact {
        Fact::DrainProgress { count, of, work, .. } => Some((count, of, work.is_some())),
        _ => None,
    });
    let told: Vec<_> = told.collect();
    assert!(told.iter().all(|(count, of, _)| count <= of && *of == 9), "{told:?}");
    assert!(told.iter().any(|(_, _, has_work)| *has_work), "{told:?}");
}

#[test]
fn an_answer_that_stays_at_one_is_no_stall_before_the_deadline() {
    let mut course = new(3);
    course.coordinator.is_slow = true;
    let mut course = draining(course);
    course.until("no table", |course| drain(course).count == Some(0));
    sent_in(&mut course, 300);
    assert_eq!((course.asked(), phase(&course)), (None, Some(PhaseKind::Drain)));
    course.until("the deadline", is_asking("drain_deadline"));
    course.coordinator.is_slow = false;
    assert_eq!(course.say(Command::Wait), Ok(()));
    ends_done(course);
}

#[test]
fn a_table_that_stays_is_a_stall_although_the_answer_is_one() {
    let mut course = new(3);
    course.is_stuck = true;
    course.until("the stall", is_asking("drain_stalled"));
    let question = course.engine.view().question.unwrap();
    assert!(question.message().contains("dwh (3)"), "{}", question.message());
}

/// A legacy peer, or the drain of an early build: 0, and nothing is drained.
#[test]
fn a_drain_that_does_nothing_is_named_and_nothing_is_restarted() {
    for tables in [[6, 3], [0, 0]] {
        let mut course = new(3);
        for capture in &mut course.captures {
            capture.tables = tables;
        }
        course.coordinator.is_legacy = true;
        course.until("the question", is_asking("drain_does_nothing"));
        let asked_after = course.now;
        assert!(asked_after < 30_000, "it is known at once");
        assert_eq!(sent_in(&mut course, 60), 0);
        assert_eq!(acts(&course), 0);
        // Nothing took hold, so an abort leaves nothing behind.
        assert_eq!(course.say(Command::Abort), Ok(()));
        course.until("the end", is_over);
        assert!(course.engine.view().owed.is_empty());
        let means = course.events.iter().find_map(|event| match &event.fact {
            Fact::Paused(question) => Some(question.message()),
            _ => None,
        });
        assert_eq!(means.unwrap().contains("9 tables"), tables[0] > 0);
    }
}

/// Recorded cdc-new-more 09: zero and liveness 2, and 110 tables there.
#[test]
fn a_false_zero_is_caught_by_the_tables_call_and_by_nothing_else() {
    let mut course = new(3);
    course.coordinator.believes_zero = true;
    course.is_stuck = true;
    let mut course = draining(course);
    course.until("liveness 2 and a zero", |course| course.captures[1].liveness() == 2);
    course.until("the question", is_asking("false_zero"));
    assert_eq!(acts(&course), 0);
    assert!(course.captures[1].tables[1] > 0);
    let message = course.engine.view().question.unwrap().message();
    assert!(message.contains("3 tables: dwh (3)"), "{message}");
    // A paused changefeed carries nothing anywhere, and is noticed by itself.
    course.is_second_paused = true;
    course.until("the restart", |course| acts(course) > 0);
}

/// Recorded cdc-new 113: a maintainer that has just begun names only its own dispatcher.
#[test]
fn a_changefeed_that_suddenly_has_no_table_anywhere_proves_nothing() {
    let mut course = draining(new(3));
    course.coordinator.names_nothing_until = u64::MAX;
    course.coordinator.believes_zero = true;
    course.until("the question", |course| course.asked().is_some());
    assert_eq!(acts(&course), 0);
    let message = course.engine.view().question.unwrap().message();
    assert!(message.contains("names 0 of its 18 tables"), "{message}");
}

#[test]
fn tables_that_cannot_be_read_ask_after_a_while() {
    let mut course = draining(new(3));
    course.coordinator.no_tables_until = u64::MAX;
    course.coordinator.is_slow = true;
    course.until("the question", is_asking("tables_unread"));
    assert_eq!(acts(&course), 0);
}

#[test]
fn another_coordinator_is_asked_again_and_the_drain_goes_on() {
    let mut course = draining(new(3));
    course.is_stuck = true;
    course.pass(5_000, Spoil::default());
    course.is_stuck = false;
    course.resign();
    course.pass(250, Spoil::default());
    assert!(drain(&course).is_lost && drain(&course).waiting_for.contains("taken up"));
    let left = course.captures[1].tables;
    course.pass(1_000, Spoil::default());
    assert_eq!(course.captures[1].tables, left, "placement is frozen");
    ends_done(course);
}

fn with_guard(seconds: u64, is_auto: bool) -> Course {
    let mut course = new(3);
    let policy = Policy { no_owner_guard: Duration::from_secs(seconds), ..Policy::default() };
    course.engine = Engine::new(request(is_auto), policy);
    course
}

/// Design section 4, the one exception: the placement of the whole cluster stands still until somebody asks.
#[test]
fn after_a_crash_of_the_coordinator_the_drain_is_asked_again_while_a_guard_holds() {
    let mut course = with_guard(5, true);
    course.is_stuck = true;
    let mut course = draining(course);
    course.crash_coordinator();
    course.until("the guard", is_asking("no_owner"));
    let before = drains(&course);
    course.is_stuck = false;
    course.until("a request", |course| drains(course) > before);
    assert_eq!(course.asked(), Some("no_owner"), "the guard still holds");
    assert_eq!(course.sent, drains(&course), "nothing else is sent");
    course.until("the last table", |course| course.captures[1].tables == [0, 0]);
    // Heard of, it is not asked for any more: the rest is the servers' own.
    let before = course.sent;
    sent_in(&mut course, 30);
    assert!(course.sent <= before + 1, "{} more", course.sent - before);
    assert_eq!(course.asked(), Some("no_owner"), "a phase that ends does not answer for a person");
    assert_eq!(acts(&course), 0, "the restart waits for a person");
    course.captures[0].down_until = None;
    course.pass(2_000, Spoil::default());
    assert_eq!(course.say(Command::Continue), Ok(()));
    ends_done(course);
}

#[test]
fn without_another_coordinator_a_question_silences_the_drain_too() {
    let mut course = new(3);
    course.is_stuck = true;
    course.until("the stall", is_asking("drain_stalled"));
    assert_eq!(sent_in(&mut course, 60), 0);
}

#[test]
fn in_a_persons_pause_the_lost_drain_is_said_and_asked_for_on_order_only() {
    let mut course = draining(new(3));
    course.is_stuck = true;
    assert_eq!(course.say(Command::Pause), Ok(()));
    assert!(course.say(Command::AskAgain).is_err(), "nothing is lost yet");
    course.resign();
    assert_eq!(sent_in(&mut course, 20), 0, "a person's pause is a person's");
    assert!(drain(&course).waiting_for.contains("asked again"), "{}", drain(&course).waiting_for);
    course.is_stuck = false;
    let left = course.captures[1].tables;
    assert_eq!(sent_in(&mut course, 20), 0);
    assert_eq!(course.captures[1].tables, left, "placement is frozen");
    let before = course.sent;
    assert_eq!(course.say(Command::AskAgain), Ok(()));
    sent_in(&mut course, 20);
    let told: Vec<_> = course.events.iter().rev().take(12).map(|event| event.fact.line()).collect();
    assert_eq!(course.sent - before, 1, "one order, one request: {told:#?}");
    assert_eq!(course.mode(), Mode::Paused);
    assert_eq!(course.captures[1].tables, [0, 0]);
    assert_eq!(course.say(Command::Continue), Ok(()));
    ends_done(course);
}

/// Drained, and the restart waits for a person: the drain is open all the same.
#[test]
fn between_two_phases_a_lost_drain_is_asked_for_on_order_or_under_a_guard() {
    let mut course = with_guard(5, false);
    course.until("the plan", |course| course.mode() == Mode::Stepping);
    assert_eq!(course.say(Command::Step), Ok(()));
    course.until("the end of the drain", |course| course.mode() == Mode::Stepping);
    assert!(course.say(Command::AskAgain).is_err() && !drain(&course).is_lost);
    course.resign();
    assert_eq!(sent_in(&mut course, 20), 0, "a person steps");
    assert!(drain(&course).is_lost);
    let before = course.sent;
    assert_eq!(course.say(Command::AskAgain), Ok(()));
    sent_in(&mut course, 20);
    assert_eq!(course.sent - before, 1);
    assert!(!drain(&course).is_lost);
    // A guard is no person: there it is asked for by itself.
    course.crash_coordinator();
    course.until("the guard", is_asking("no_owner"));
    let before = drains(&course);
    course.until("a request", |course| drains(course) > before);
    assert_eq!((course.asked(), course.sent), (Some("no_owner"), drains(&course)));
}

#[test]
fn to_ask_again_is_never_offered_in_the_classic_architecture() {
    let mut course = Course::new(3, true);
    course.until("the drain", |course| drains(course) > 2);
    course.resign();
    course.until("the guard", is_asking("foreign_resign"));
    assert_eq!(course.say(Command::Continue), Ok(()));
    assert_eq!(course.say(Command::Pause), Ok(()));
    assert!(course.say(Command::AskAgain).is_err());
    assert_eq!(sent_in(&mut course, 30), 0);
}

/// The drain of a capture that was restarted meanwhile is held open until its old id leaves.
#[test]
fn a_session_that_is_held_is_said_to_be_the_reason() {
    let mut course = Course::of_new_architecture(3, false);
    course.until("the plan", |course| course.mode() == Mode::Stepping);
    // Somebody drained and restarted another one a moment before.
    let id = course.captures[2].id();
    assert_eq!(course.drain_new(&id), Ok(2));
    course.restart(2, "v8.5.3");
    let until = course.now + 20_000;
    course.ghosts[0].2 = until;
    course.pass(2_000, Spoil::default());
    assert_eq!(course.say(Command::Continue), Ok(()));
    course.until("an answer", |course| course.engine.view().drain.is_some_and(|drain| drain.work == Some(1)));
    course.pass(250, Spoil::default());
    let (waits, liveness) = (drain(&course).waiting_for, course.captures[1].liveness());
    assert!(waits.contains("10.0.1.1:8302 to leave the list") && liveness == 0, "{waits}");
    ends_done(course);
}

#[test]
fn a_one_after_the_drain_holds_the_restart_and_does_not_send_it_back() {
    let mut course = new(3);
    course.until("the confirmation", |course| phase(course) == Some(PhaseKind::Restart));
    let drained: Vec<_> = course.events.iter().filter(|e| matches!(e.fact, Fact::PhaseStarted { .. })).collect();
    let before = drained.len();
    course.count_is = Some(1);
    course.resign();
    sent_in(&mut course, 10);
    assert_eq!((phase(&course), acts(&course)), (Some(PhaseKind::Restart), 0));
    course.count_is = None;
    course.until("the act", |course| acts(course) > 0);
    let after = course.events.iter().filter(|e| matches!(e.fact, Fact::PhaseStarted { .. })).count();
    assert_eq!(after, before);
}

#[test]
fn a_node_of_the_other_architecture_beside_them_is_refused_with_the_way_to_do_it() {
    for architecture in [Architecture::Classic, Architecture::New] {
        let mut course = Course::of(architecture, 4, true);
        course.captures[3].is_other = true;
        course.captures[3].tables = [0, 0];
        course.until("the end", is_over);
        assert_eq!(ending(&course), Some((Outcome::Refused, 3)));
        assert_eq!(course.sent, 0);
        let Mode::Ended(ending) = course.mode() else { panic!() };
        for word in ["pause every changefeed", "no rolling upgrade", "10.0.1.1:8303"] {
            let is_said = ending.reason.contains(word) || (architecture == Architecture::New && word.contains("8303"));
            assert!(is_said, "{word}: {}", ending.reason);
        }
    }
}

#[test]
fn a_node_that_comes_back_as_the_other_architecture_stops_the_rollout() {
    for architecture in [Architecture::Classic, Architecture::New] {
        let mut course = Course::of(architecture, 3, true);
        course.comes_back_as_other = true;
        course.until("the question", is_asking("other_architecture"));
        assert_eq!(acts(&course), 1);
        assert!(owes(&course, "start"));
        // Put right by hand, it is noticed.
        course.restart(1, "v8.5.4");
        course.until("the answer", |course| course.asked() != Some("other_architecture"));
        ends_done(course);
    }
}

/// Recorded cdc-new-more 09: a coordinator that still lists its dead predecessor answers 1 and opens nothing.
#[test]
fn an_order_to_ask_again_stands_until_the_coordinator_has_heard() {
    let mut course = new(3);
    course.is_stuck = true;
    let mut course = draining(course);
    assert_eq!(course.say(Command::Pause), Ok(()));
    course.crash_coordinator();
    course.coordinator.stays_busy_until(course.now + 30_000);
    course.until("another coordinator", |course| drain(course).is_lost);
    assert_eq!(course.say(Command::AskAgain), Ok(()));
    let before = course.sent;
    assert!(sent_in(&mut course, 8) >= 2 && drain(&course).is_lost, "it only answers 1 so far");
    course.is_stuck = false;
    course.until("the last table", |course| course.captures[1].tables == [0, 0]);
    assert!(course.sent > before && course.mode() == Mode::Paused);
    assert_eq!(sent_in(&mut course, 30), 0, "it was heard");
}

/// A question that is due must not keep the cluster frozen for the night.
#[test]
fn under_a_question_of_its_own_a_lost_drain_is_asked_for_too() {
    let mut course = new(3);
    course.coordinator.is_slow = true;
    course.until("the deadline", is_asking("drain_deadline"));
    let before = drains(&course);
    assert_eq!(sent_in(&mut course, 10), 0);
    course.resign();
    course.until("a request", |course| drains(course) > before);
    assert_eq!(course.asked(), Some("drain_deadline"));
    // And a person can have it silent all the same.
    course.coordinator.is_slow = true;
    course.resign();
    course.pass(250, Spoil::default());
    assert_eq!(course.say(Command::Pause), Ok(()));
    assert_eq!(sent_in(&mut course, 20), 0);
}

#[test]
fn a_drain_refused_for_good_is_not_repeated_under_its_question() {
    let mut course = draining(new(3));
    course.is_stuck = true;
    course.resign();
    course.next_call_fails = Some(FailureKind::Unauthorized);
    course.until("the question", is_asking("drain_refused"));
    assert_eq!(sent_in(&mut course, 30), 0);
}

/// An answer of the same capture's earlier term is another coordinator's.
#[test]
fn a_new_term_of_the_same_coordinator_discards_zeros_and_rounds() {
    for architecture in [Architecture::Classic, Architecture::New] {
        let mut course = Course::of(architecture, 3, true);
        course.until("the first zero", |course| {
            let zero = course.events.iter().any(|event| event.fact.line().ends_with("202, 0 left"));
            zero && phase(course) == Some(PhaseKind::Drain)
        });
        let since = course.now;
        course.elect_again();
        course.pass(250, Spoil::default());
        course.until("the end of the drain", |course| drain(course).is_done);
        assert!(course.now - since > 4_000, "it is proven anew under the new term: {}", course.now - since);
    }
}

#[test]
fn a_maintainer_that_is_still_there_holds_the_restart() {
    let mut course = draining(new(3));
    course.coordinator.maintainer_stays_at = Some(course.captures[1].id());
    course.until("the question", is_asking("zero_without_round"));
    assert!(course.engine.view().question.unwrap().what.contains("the maintainer of"));
    assert_eq!(acts(&course), 0);
    course.coordinator.maintainer_stays_at = None;
    course.until("the restart", |course| acts(course) > 0);
}

/// Half an answer, with the zero and liveness 2: what it leaves out is there.
#[test]
fn an_answer_that_leaves_tables_out_proves_nothing_and_no_retry_makes_it_do() {
    let mut course = new(3);
    course.is_stuck = true;
    course.coordinator.believes_zero = true;
    course.coordinator.names_half = true;
    course.until("the question", is_asking("tables_missing"));
    for _ in 0..3 {
        assert_eq!(course.say(Command::Retry), Ok(()));
        course.until("the question again", is_asking("tables_missing"));
    }
    assert_eq!(acts(&course), 0);
    // Where they were dropped, a person says so.
    course.captures[1].tables = [0, 0];
    assert_eq!(course.say(Command::Confirm), Ok(()));
    course.until("the restart", |course| acts(course) > 0);
}

#[test]
fn a_capture_that_is_gone_is_lost_although_its_drain_is_answered_with_zero() {
    let mut course = draining(new(3));
    course.until("the last table", |course| course.captures[1].is_finished);
    course.stays_down = 600_000;
    course.restart(1, "v8.5.3");
    course.until("the question", is_asking("capture_lost"));
}

/// A changefeed that has no table is believed to have none, but not at once: its maintainer may have just begun.
#[test]
fn a_changefeed_without_any_table_holds_nothing_up_for_long() {
    let mut course = new(3);
    for capture in &mut course.captures {
        capture.tables = [4, 0];
    }
    course.until("the restart", |course| acts(course) > 0);
    assert!(course.now > 30_000, "{}", course.now);
    ends_done(course);
}
