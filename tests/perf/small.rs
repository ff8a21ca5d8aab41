//! A whole rollout of three captures and two `TiDB` servers in memory, by the cluster that the engine's tests have: what
//! happened is recorded once and told to fresh engines again.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use tiroll::cluster::Timestamp;
use tiroll::rollout::Engine;
use tiroll::rollout::effect::Input;
use tiroll::rollout::policy::Policy;
use tiroll::rollout::view::{Mode, Outcome};

use crate::course::coordinator_of;
use crate::course::model::{Course, Spoil, request};
use crate::measure::{mean, report};

/// How often the whole rollout is told again.
const TIMES: usize = 300;

pub(crate) fn run() {
    for (name, course) in [("classic", Course::new(3, true)), ("new architecture", coordinator_of(3))] {
        let tape = record(course);
        let whole: Vec<Duration> = (0..TIMES).map(|_| replay(&tape)).collect();
        let steps = tape.len();
        let seconds = whole.iter().sum::<Duration>().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a few thousand steps")]
        let rate = (steps * TIMES) as f64 / seconds;
        println!("3 captures, {name}: a whole rollout of {steps} steps, {rate:.0} steps a second over all of them");
        for (kind, mut times) in by_kind(&tape) {
            times.sort_unstable();
            let share = times.len() / TIMES;
            report(&format!("  {kind} ({share} of them, mean {:.2?})", mean(&times)), &times);
        }
    }
    let nothing: Vec<Duration> = (0..1_000).map(|_| Instant::now().elapsed()).collect();
    println!(
        "  (to take a time costs {:.0?} by itself, which is in each of these but not in the rate)",
        mean(&nothing)
    );
}

/// Drives the rollout to its end as the program does: both kinds of server are read, the time is told between the reads,
/// and every call is answered.
fn record(mut course: Course) -> Vec<(Timestamp, Input)> {
    for _ in 0..10_000 {
        if matches!(course.mode(), Mode::Ended(_)) {
            break;
        }
        course.sleep(250);
        course.pass(250, Spoil::default());
    }
    match course.mode() {
        Mode::Ended(ending) => assert_eq!(ending.outcome, Outcome::Done, "{}", ending.reason),
        other => panic!("it came to no end: {other:?}, {:?}", course.asked()),
    }
    course.tape
}

fn replay(tape: &[(Timestamp, Input)]) -> Duration {
    let mut engine = Engine::new(request(true), Policy::default());
    let inputs: Vec<_> = tape.to_vec();
    let begun = Instant::now();
    for (at, input) in inputs {
        black_box(engine.step(at, input));
    }
    let took = begun.elapsed();
    assert!(matches!(engine.view().mode, Mode::Ended(_)));
    took
}

fn by_kind(tape: &[(Timestamp, Input)]) -> BTreeMap<&'static str, Vec<Duration>> {
    let mut times: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for _ in 0..TIMES {
        let mut engine = Engine::new(request(true), Policy::default());
        for (at, input) in tape.iter().cloned() {
            let kind = kind(&input);
            let begun = Instant::now();
            black_box(engine.step(at, input));
            times.entry(kind).or_default().push(begun.elapsed());
        }
    }
    times
}

const fn kind(input: &Input) -> &'static str {
    match input {
        Input::Tick => "tick",
        Input::Cdc(_) => "sweep of TiCDC",
        Input::Tidb(_) => "sweep of TiDB",
        Input::Answer { .. } => "answer of a call",
        Input::Outcome { .. } => "outcome of an act",
        _ => "other",
    }
}
