//! Exhaustive exploration: every course of the engine against a small abstract cluster, states counted once.
//!
//! A state is the whole engine, the cluster, what is under way between them, and how many faults may still happen; two
//! states are one if [`digest`] says so. From each everything follows that may happen ([`world`]): time passes, a person
//! says whatever is permitted or does by hand what a question advises, or a fault strikes. In every state the promises
//! are judged ([`promises`]), and after the search two more over the whole graph ([`graph`]): from every state an end
//! with nothing owed can be reached without a fault and without giving anything up, and no rollout that is on its own
//! waits for ever.
//!
//! The search goes outward from a good course until a number of states is known. From each state that was not gone on
//! from, a sensible person is followed, who answers what is asked: that must end with nothing owed, too.
//!
//! `cargo test` explores a little. The large exploration, of a million states in all:
//!
//! ```text
//! TIROLL_STATES=1000000 cargo test --release --test it exhaustive -- --nocapture
//! ```
//!
//! Not in it: time that the program slept through, two clusters, PD, and a journal that cannot be written.

mod cluster;
mod digest;
mod graph;
mod promises;
mod sweeps;
mod world;

use tiroll::cluster::Architecture;

use graph::{Graph, Report};
use world::World;

/// States in all where nothing else is asked for.
const SMALL: usize = 480;

fn explore(architecture: Architecture, (captures, feeds): (usize, usize), faults: u8, limit: usize) -> Report {
    let graph = Graph::explore(World::new(architecture, captures, feeds, faults), limit);
    let word = architecture.word();
    println!("{word}, {captures} captures, {feeds} changefeeds, {faults} faults: {}", graph.report);
    graph.report
}

#[test]
fn every_course_of_a_small_cluster_keeps_the_promises() {
    let asked = std::env::var("TIROLL_STATES").ok().map(|text| text.parse().expect("TIROLL_STATES is a number"));
    let (limit, shapes): (usize, &[_]) =
        asked.map_or((SMALL, &[(2, 1)]), |states| (states, &[(2, 1), (2, 2), (3, 1), (3, 2)]));
    let each = limit.div_ceil(2 * shapes.len());
    for architecture in [Architecture::Classic, Architecture::New] {
        for shape in shapes {
            let report = explore(architecture, *shape, 2, each);
            assert!(report.states >= each && report.good_ends > 0 && report.cut > 0, "{report}");
        }
    }
}
