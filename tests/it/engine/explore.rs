//! Every course of a small cluster up to a bound: breadth first over what happens and what a person says, each state
//! visited a few times at most. The promises are the model's own assertions.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};

use tiroll::cluster::FailureKind;
use tiroll::rollout::command::Command;
use tiroll::rollout::view::{Mode, Outcome};

use super::model::{Course, Spoil};

/// Steps in all; a fifth of a million take a few seconds without optimisation.
const BUDGET: usize = 20_000;
/// States that look the same from outside may differ inside: each is gone on from this often.
const VISITS: u8 = 3;

/// Everything that may happen next.
fn branches(course: &Course) -> Vec<Course> {
    let mut all = Vec::new();
    let mut branch = |act: &dyn Fn(&mut Course)| {
        let mut next = course.clone();
        act(&mut next);
        all.push(next);
    };
    branch(&|c| c.pass(1_000, Spoil::default()));
    branch(&|c| c.pass(4_000, Spoil::default()));
    branch(&|c| c.pass(1_000, Spoil { target: true, ..Spoil::default() }));
    branch(&|c| c.pass(1_000, Spoil { captures: true, ..Spoil::default() }));
    branch(&|c| {
        c.resign();
        c.pass(250, Spoil::default());
    });
    branch(&|c| {
        c.next_call_fails = Some(FailureKind::Timeout);
        c.takes_hold = true;
        c.pass(1_000, Spoil::default());
    });
    branch(&|c| {
        c.loses_next_act = true;
        c.pass(1_000, Spoil::default());
    });
    branch(&|c| {
        let n = 1;
        if c.captures[n].down_until.is_none() {
            c.restart(n, c.captures[n].version);
        }
        c.pass(1_000, Spoil::default());
    });
    for command in Command::ALL {
        if course.engine.permission(command).is_ok() {
            branch(&|c| drop(c.say(command)));
        }
    }
    all
}

/// What a state looks like, ages left out.
fn digest(course: &Course) -> u64 {
    let view = course.engine.view();
    let mut hash = DefaultHasher::new();
    format!("{:?} {:?}", view.mode, view.cursor).hash(&mut hash);
    for phase in view.plan.iter().flat_map(|step| &step.phases) {
        format!("{:?} {:?}", phase.kind, phase.state).hash(&mut hash);
    }
    if let Some((_, phase)) = view.current() {
        // What it waits for tells the machine's inside; numbers in it are mostly ages.
        phase.note.chars().filter(|c| !c.is_ascii_digit()).collect::<String>().hash(&mut hash);
    }
    view.question.map(|question| question.reason).hash(&mut hash);
    view.owed.iter().map(|owed| (owed.kind, owed.target.clone())).collect::<Vec<_>>().hash(&mut hash);
    for capture in &course.captures {
        (capture.stopping, capture.tables, capture.version, capture.generation.min(2), capture.down_until.is_some())
            .hash(&mut hash);
    }
    (course.owner, course.upgrading, course.ghosts.len(), course.is_waiting()).hash(&mut hash);
    hash.finish()
}

#[test]
fn every_course_of_a_small_cluster_keeps_the_promises() {
    let mut start = Course::new(2, true);
    start.keeps_log = false;
    for capture in &mut start.captures {
        capture.tables = [2, 0];
    }
    let mut seen: HashMap<u64, u8> = HashMap::new();
    let mut next = VecDeque::from([start]);
    let (mut steps, mut done, mut aborted) = (0, 0, 0);
    while let Some(course) = next.pop_front() {
        for course in branches(&course) {
            steps += 1;
            match course.mode() {
                Mode::Ended(ending) => {
                    let view = course.engine.view();
                    if ending.outcome == Outcome::Done {
                        done += 1;
                        assert!(view.owed.is_empty());
                        let is_there =
                            |c: &super::model::Capture| c.version == "v8.5.4" || c.changed_at >= course.read_at;
                        assert!(course.captures.iter().all(is_there));
                    }
                    aborted += usize::from(ending.outcome == Outcome::Aborted);
                }
                _ => {
                    let visits = seen.entry(digest(&course)).or_default();
                    if *visits < VISITS {
                        *visits += 1;
                        next.push_back(course);
                    }
                }
            }
        }
        if steps >= BUDGET {
            break;
        }
    }
    eprintln!("{} states, {steps} steps, {done} done, {aborted} aborted, {} open", seen.len(), next.len());
    assert!(seen.len() > 500 && aborted > 0, "{} states, {steps} steps, {done} done, {aborted} aborted", seen.len());
}
