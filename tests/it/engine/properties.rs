//! Random courses of a bad day: whatever happens, the promises of [`super::model`] hold.

use proptest::prelude::*;
use tiroll::cluster::FailureKind;
use tiroll::rollout::Engine;
use tiroll::rollout::command::Command;
use tiroll::rollout::effect::Effect;
use tiroll::rollout::policy::Policy;
use tiroll::rollout::view::{Mode, Outcome};

use super::model::{Course, Spoil, request};

/// One thing that happens.
#[derive(Clone, Debug)]
enum Turn {
    Pass(u64),
    Spoilt(u64, u8),
    Owner,
    RestartByItself(usize),
    CallFails(u8),
    ActIsLost,
    WrongVersion,
    Stuck(bool),
    Warning(bool),
    Say(usize),
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        20 => (50_u64..3_000).prop_map(Turn::Pass),
        3 => (3_000_u64..60_000).prop_map(Turn::Pass),
        6 => ((50_u64..3_000), any::<u8>()).prop_map(|(ms, what)| Turn::Spoilt(ms, what)),
        1 => Just(Turn::Owner),
        1 => (0_usize..3).prop_map(Turn::RestartByItself),
        2 => any::<u8>().prop_map(Turn::CallFails),
        1 => Just(Turn::ActIsLost),
        1 => Just(Turn::WrongVersion),
        1 => any::<bool>().prop_map(Turn::Stuck),
        1 => any::<bool>().prop_map(Turn::Warning),
        4 => (0_usize..Command::ALL.len()).prop_map(Turn::Say),
    ]
}

const FAILURES: [FailureKind; 9] = [
    FailureKind::Timeout,
    FailureKind::Refused,
    FailureKind::NoOwner,
    FailureKind::Malformed,
    FailureKind::Empty500,
    FailureKind::CannotDrainOwner,
    FailureKind::Unauthorized,
    FailureKind::NoSuchCapture,
    FailureKind::Unexpected,
];

fn happen(course: &mut Course, turn: &Turn) {
    let before = course.effects.len();
    let was_silent = matches!(course.mode(), Mode::Paused | Mode::Asking | Mode::Aborted | Mode::Ended(_));
    let mut is_said = false;
    match turn {
        Turn::Pass(ms) => course.pass(*ms, Spoil::default()),
        Turn::Spoilt(ms, what) => course.pass(
            *ms,
            Spoil {
                captures: what & 1 > 0,
                changefeeds: what & 2 > 0,
                target: what & 4 > 0,
                node: (what & 8 > 0).then_some(usize::from(what / 16) % 3),
                tidb: what & 128 > 0,
            },
        ),
        Turn::Owner => course.resign(),
        // A capture that carries tables and is restarted by somebody else: not ours, but it happens.
        Turn::RestartByItself(n) => {
            if course.captures[*n].down_until.is_none() {
                course.restart(*n, course.captures[*n].version);
            }
        }
        Turn::CallFails(n) => course.next_call_fails = Some(FAILURES[usize::from(*n) % FAILURES.len()]),
        Turn::ActIsLost => course.loses_next_act = true,
        Turn::WrongVersion => course.comes_back_as = Some("v8.5.3"),
        Turn::Stuck(is_stuck) => course.is_stuck = *is_stuck,
        Turn::Warning(warning) => course.warning = *warning,
        Turn::Say(n) => {
            is_said = true;
            let command = Command::ALL[*n];
            let may = course.engine.permission(command);
            assert_eq!(course.say(command).is_ok(), may.is_ok(), "{command:?}");
        }
    }
    let is_silent = matches!(course.mode(), Mode::Paused | Mode::Asking | Mode::Aborted | Mode::Ended(_));
    let sent = course.effects[before..].iter().filter(|effect| !matches!(effect, Effect::Watch(_))).count();
    // A question may answer itself and the rollout go on within one turn; what is silent before and after sends nothing.
    if was_silent && is_silent && !is_said {
        assert_eq!(sent, 0, "something was sent although a person had the word");
    }
}

fn judge(course: &Course) {
    if let Mode::Ended(ending) = course.mode()
        && ending.outcome == Outcome::Done
    {
        assert!(course.engine.view().owed.is_empty(), "done and still owing");
        assert!(!course.upgrading, "done and upgrading");
        assert!(course.tidb.iter().all(|t| t.version == "v8.5.4"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_carries_tables_is_stopped_whatever_happens(turns in proptest::collection::vec(turn(), 20..250)) {
        let mut course = Course::new(3, true);
        for turn in &turns {
            happen(&mut course, turn);
        }
        judge(&course);
    }

    #[test]
    fn after_a_bad_day_the_rollout_ends_or_waits_with_a_reason(turns in proptest::collection::vec(turn(), 0..80)) {
        let mut course = Course::new(3, true);
        for turn in &turns {
            happen(&mut course, turn);
        }
        course.is_stuck = false;
        course.warning = false;
        for _ in 0..400 {
            course.pass(2_000, Spoil::default());
        }
        judge(&course);
        let view = course.engine.view();
        let says_why = view.question.is_some()
            || matches!(view.mode, Mode::Ended(_) | Mode::Paused | Mode::Stepping | Mode::Watching);
        prop_assert!(says_why, "{:?} {:?}", view.mode, view.current());
    }

    #[test]
    fn the_same_inputs_give_the_same_rollout(turns in proptest::collection::vec(turn(), 20..120)) {
        let mut course = Course::new(3, true);
        for turn in turns.iter().filter(|turn| !matches!(turn, Turn::Say(_))) {
            happen(&mut course, turn);
        }
        let mut again = Engine::new(request(true), Policy::default());
        for ((at, input), was) in course.tape.iter().zip(&course.outputs) {
            let out = again.step(*at, input.clone());
            prop_assert_eq!(&out, was);
        }
    }
}
