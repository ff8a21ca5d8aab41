//! Every course of a small cluster up to a bound: breadth first over what happens and what a person says, each state
//! visited a few times at most. The promises are the model's own assertions.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};

use tiroll::cluster::{Architecture, FailureKind};
use tiroll::rollout::command::Command;
use tiroll::rollout::view::{Mode, Outcome};

use super::model::{Capture, Course, Spoil};

/// Steps from each beginning.
const BUDGET: usize = 1_000;
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
    branch(&|c| {
        c.captures[0].stopping = true;
        c.pass(1_000, Spoil::default());
    });
    branch(&|c| {
        if c.captures[1].down_until.is_none() {
            c.give(1);
        }
        // The count may leave them out.
        c.count_is = Some(0);
        c.pass(1_000, Spoil::default());
    });
    branch(&|c| {
        assert_eq!(c.sleep(600_000), 0, "something was sent on readings of before a long sleep");
    });
    if course.architecture == Architecture::New {
        branch(&|c| {
            c.coordinator.believes_zero = true;
            c.pass(1_000, Spoil::default());
        });
        branch(&|c| {
            c.coordinator.names_nothing_until = c.now + 20_000;
            c.pass(1_000, Spoil::default());
        });
        branch(&|c| {
            if c.captures[c.owner].down_until.is_none() {
                c.crash_coordinator();
            }
            c.pass(4_000, Spoil::default());
        });
    }
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
    view.owed.iter().map(|owed| (owed.kind.clone(), owed.target.clone())).collect::<Vec<_>>().hash(&mut hash);
    for capture in &course.captures {
        (capture.liveness(), capture.tables, capture.version, capture.generation.min(2), capture.down_until.is_some())
            .hash(&mut hash);
    }
    (course.owner, course.upgrading, course.ghosts.len(), course.is_waiting()).hash(&mut hash);
    hash.finish()
}

/// What an exploration came to.
#[derive(Debug, Default)]
struct Explored {
    states: usize,
    steps: usize,
    done: usize,
    aborted: usize,
}

fn explore(start: Course, budget: usize, sum: &mut Explored) {
    let mut seen: HashMap<u64, u8> = HashMap::new();
    let mut next = VecDeque::from([start]);
    let end = sum.steps + budget;
    while let Some(course) = next.pop_front().filter(|_| sum.steps < end) {
        for course in branches(&course) {
            sum.steps += 1;
            if let Mode::Ended(ending) = course.mode() {
                if ending.outcome == Outcome::Done {
                    sum.done += 1;
                    assert!(course.engine.view().owed.is_empty());
                    let is_there = |c: &Capture| c.version == "v8.5.4" || c.changed_at >= course.read_at;
                    assert!(course.captures.iter().all(|c| is_there(c) || course.is_left_out(&c.address)));
                }
                sum.aborted += usize::from(ending.outcome == Outcome::Aborted);
                continue;
            }
            let visits = seen.entry(digest(&course)).or_default();
            if *visits < VISITS {
                *visits += 1;
                next.push_back(course);
            }
        }
    }
    sum.states += seen.len();
}

/// From the beginning, and from the beginning of every phase of a good course.
fn explore_all(architecture: Architecture) {
    let mut course = Course::of(architecture, 2, true);
    course.keeps_log = false;
    for capture in &mut course.captures {
        capture.tables = [2, 0];
    }
    let mut sum = Explored::default();
    let mut at = None;
    while !matches!(course.mode(), Mode::Ended(_)) {
        let cursor = course.engine.view().cursor;
        if cursor != at || sum.steps == 0 {
            at = cursor;
            explore(course.clone(), BUDGET, &mut sum);
        }
        course.pass(250, Spoil::default());
    }
    assert!(sum.states > 1_000 && sum.done > 0 && sum.aborted > 0, "{sum:?}");
}

#[test]
fn every_course_of_a_small_classic_cluster_keeps_the_promises() {
    explore_all(Architecture::Classic);
}

#[test]
fn every_course_of_a_small_cluster_of_the_new_architecture_keeps_the_promises() {
    explore_all(Architecture::New);
}
