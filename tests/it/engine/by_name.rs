//! Skip, force and waive: what only a person may say, by name and with a reason.

use tiroll::rollout::command::{Command, Instruction};
use tiroll::rollout::effect::Effect;
use tiroll::rollout::event::Fact;
use tiroll::rollout::view::{ByName, Mode, Outcome, PhaseKind};

use super::examples::{drains, ending, is_over, phase, restarted};
use super::model::Course;

fn wanted(course: &Course, command: Command) -> Option<ByName> {
    course.engine.view().by_name.into_iter().find(|named| named.command == command)
}

fn why_not(course: &mut Course, command: Command, typed: &str, reason: &str) -> String {
    course.instruct(&Instruction::by_name(command, typed, reason)).expect_err("it is refused")
}

fn reason(course: &Course) -> String {
    match course.mode() {
        Mode::Ended(ending) => ending.reason,
        other => panic!("{other:?}"),
    }
}

/// A drain that has stalled with tables on the capture.
fn stalled() -> Course {
    let mut course = Course::new(3, true);
    course.is_stuck = true;
    course.until("the question", |course| course.asked() == Some("drain_stalled"));
    course
}

#[test]
fn a_node_is_left_out_by_its_name_and_the_end_says_so() {
    let mut course = Course::new(3, false);
    course.until("the plan", |course| course.mode() == Mode::Stepping);
    assert_eq!(wanted(&course, Command::Skip).unwrap().typed, ["10.0.1.1:8301"]);
    assert_eq!(
        course.instruct(&Command::Skip.into()).unwrap_err(),
        "it is given by name: type `10.0.1.1:8301`, and why"
    );
    assert!(why_not(&mut course, Command::Skip, "10.0.1.1:8302", "x").contains("type `10.0.1.1:8301`"));
    assert!(why_not(&mut course, Command::Skip, "10.0.1.1:8301", " ").contains("say why"));
    assert_eq!(course.instruct(&Instruction::by_name(Command::Skip, "10.0.1.1:8301", "on loan")), Ok(()));
    let said = course.events.iter().find_map(|event| match &event.fact {
        Fact::Commanded { consent: Some(consent), .. } => Some((consent.typed.clone(), consent.reason.clone())),
        _ => None,
    });
    assert_eq!(said, Some(("10.0.1.1:8301".to_owned(), "on loan".to_owned())));
    course.say(Command::Continue).unwrap();
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
    assert_eq!(restarted(&course), [8302, 8300, 10_081, 10_080]);
    let reason = reason(&course);
    assert!(reason.contains("but for 10.0.1.1:8301 (skipped by test: on loan)"), "{reason}");
}

#[test]
fn what_was_asked_to_drain_cannot_just_be_left_out() {
    let mut course = stalled();
    assert!(wanted(&course, Command::Skip).is_none());
    let why = course.say(Command::Skip).unwrap_err();
    assert!(why.contains("takes no table until it is restarted"), "{why}");
}

#[test]
fn while_a_phase_runs_nothing_is_overruled() {
    let mut course = Course::new(3, true);
    course.until("the drain", |course| drains(course) > 0);
    for command in [Command::Skip, Command::Force] {
        assert_eq!(course.say(command).unwrap_err(), "pause first; what runs is not taken away under it");
    }
}

#[test]
fn a_verify_that_is_left_out_leaves_the_start_owed_until_it_shows() {
    let mut course = Course::new(3, true);
    course.stays_down = 60_000;
    course.until("the verify", |course| phase(course) == Some(PhaseKind::Verify));
    course.say(Command::Pause).unwrap();
    course.say(Command::Skip).unwrap();
    assert!(course.engine.view().owed.iter().any(|owed| owed.kind == "start"));
    course.say(Command::Continue).unwrap();
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
    assert!(reason(&course).contains("but for 10.0.1.1:8301 (skipped by test"), "{}", reason(&course));
}

#[test]
fn without_the_upgrading_state_tidb_is_restarted_all_the_same() {
    let mut course = Course::new(2, false);
    course.until("the plan", |course| course.mode() == Mode::Stepping);
    for _ in 0..100 {
        if phase(&course) == Some(PhaseKind::EnterUpgrading) && course.mode() == Mode::Stepping {
            break;
        }
        let _ = course.say(Command::Step);
        course.until("the phase's end", |course| course.mode() == Mode::Stepping);
    }
    course.say(Command::Skip).unwrap();
    course.say(Command::Continue).unwrap();
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
    assert!(!course.events.iter().any(|event| event.fact.line().contains("/upgrade/")));
    assert!(course.tidb.iter().all(|server| server.version == "v8.5.4"));
}

#[test]
fn a_tidb_server_that_is_left_out_does_not_keep_user_ddl_hanging() {
    let mut course = Course::new(2, true);
    course.until("the restarts of TiDB", |course| course.upgrading && phase(course) == Some(PhaseKind::Verify));
    course.say(Command::Pause).unwrap();
    course.until("the verify's end", |course| phase(course) == Some(PhaseKind::Restart));
    let left = wanted(&course, Command::Skip).unwrap();
    assert!(left.means.iter().any(|text| text.contains("mixed versions")), "{left:?}");
    course.say(Command::Skip).unwrap();
    course.say(Command::Continue).unwrap();
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
    assert!(!course.upgrading);
}

#[test]
fn a_stalled_drain_is_ended_by_force_with_its_tables_named() {
    let mut course = stalled();
    let tables: u64 = course.captures[1].tables.iter().sum();
    assert!(tables > 1);
    let named = wanted(&course, Command::Force).unwrap();
    assert_eq!(named.typed, [format!("10.0.1.1:8301 {tables}")]);
    assert!(named.means[0].contains(&format!("with {tables} tables on it")), "{named:?}");
    let fewer = format!("10.0.1.1:8301 {}", tables - 1);
    assert!(why_not(&mut course, Command::Force, &fewer, "x").contains("is not what it is about now"));
    // Tables may have left while somebody typed.
    let more = format!("10.0.1.1:8301 {}", tables + 1);
    assert_eq!(course.instruct(&Instruction::by_name(Command::Force, more, "sink is dead")), Ok(()));
    course.is_stuck = false;
    course.until("the end", is_over);
    assert_eq!(ending(&course), Some((Outcome::Done, 0)));
    let forced: Vec<_> = course
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Exec { action, .. } => Some((action.address.port(), action.forced)),
            _ => None,
        })
        .collect();
    assert_eq!(forced[0], (8301, true));
    assert!(forced[1..].iter().all(|(_, is_forced)| !is_forced), "only this once: {forced:?}");
    let ended = course.events.iter().find_map(|event| match &event.fact {
        Fact::PhaseEnded { phase: PhaseKind::Drain, outcome, evidence, .. } => {
            Some((outcome.clone(), evidence.clone()))
        }
        _ => None,
    });
    let (outcome, evidence) = ended.unwrap();
    assert_eq!((&*outcome, evidence.as_str()), ("skipped", "restart forced by test: sink is dead"));
}

#[test]
fn an_order_to_force_is_void_where_it_became_the_owner_meanwhile() {
    let mut course = Course::new(3, true);
    course.is_stuck = true;
    course.until("a request of the drain", |course| drains(course) > 1);
    // The last request is still under way when the order comes.
    course.next_answer_after = 8_000;
    let before = drains(&course);
    course.until("another request", |course| drains(course) > before);
    course.say(Command::Pause).unwrap();
    course.say(Command::Force).unwrap();
    assert!(restarted(&course).is_empty());
    course.owner = 1;
    course.owned_since = course.now;
    course.until("the guard", |course| course.asked() == Some("foreign_resign"));
    course.say(Command::Continue).unwrap();
    for _ in 0..40 {
        course.pass(500, super::model::Spoil::default());
    }
    assert!(restarted(&course).is_empty());
    assert!(course.events.iter().any(|event| event.fact.line().contains("not restarted by force: it may own now")));
}

#[test]
fn the_owner_is_never_stopped_by_force() {
    let mut course = Course::new(3, true);
    course.until("the resign", |course| phase(course) == Some(PhaseKind::Resign));
    course.say(Command::Pause).unwrap();
    let why = course.say(Command::Force).unwrap_err();
    assert!(why.contains("the owner is never stopped by force"), "{why}");
}

#[test]
fn what_is_owed_is_waived_by_name_and_the_end_says_so() {
    let mut course = stalled();
    assert_eq!(course.say(Command::Waive).unwrap_err(), "what runs now pays what is owed");
    course.say(Command::Abort).unwrap();
    assert_eq!(wanted(&course, Command::Waive).unwrap().typed, ["10.0.1.1:8301"]);
    assert!(why_not(&mut course, Command::Waive, "tidb", "x").contains("type `10.0.1.1:8301`"));
    course.instruct(&Instruction::by_name(Command::Waive, "10.0.1.1:8301", "it is being removed")).unwrap();
    assert_eq!(ending(&course), Some((Outcome::Aborted, 4)));
    assert!(course.engine.view().owed.is_empty());
    let reason = reason(&course);
    assert!(reason.contains("Waived, and not shown to be paid: restart 10.0.1.1:8301 (by test: it is being removed)"));
    let is_waived = |fact: &Fact| matches!(fact, Fact::ObligationWaived { .. });
    assert_eq!(course.events.iter().filter(|event| is_waived(&event.fact)).count(), 1);
}
