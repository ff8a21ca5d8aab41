//! The search: breadth first, so that the way to a broken promise is a shortest one; then backward from the good ends.

use std::collections::{HashMap, VecDeque};
use std::fmt::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use tiroll::rollout::view::Mode;

use super::digest::Digester;
use super::world::{Move, Way, World};

/// States of one chunk: expanded together by all threads, so bounded for the room their successors take.
const CHUNK: usize = 16;
/// Longest course of a sensible person from a state that was not gone on from.
const PATIENCE: usize = 200;

/// A state that was found.
struct Node {
    from: u32,
    by: Move,
    /// Where the plain passing of time leads.
    next: u32,
    /// It has ended with nothing owed.
    is_good_end: bool,
    is_end: bool,
    /// Nobody is asked and nobody paused: the rollout is on its own.
    is_on_its_own: bool,
}

const NONE: u32 = u32::MAX;

/// A state by its number.
type State = (u32, Box<World>);
/// One successor of a state, its digest, and itself where it may be new.
type Found = (Move, u128, Option<Box<World>>);

/// Shares the states out among the processors.
fn in_parallel<T: Send>(states: &[State], work: impl Fn(&[State]) -> Vec<T> + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let parts = states.chunks(states.len().div_ceil(threads).max(1));
        let parts: Vec<_> = parts.map(|part| scope.spawn(|| work(part))).collect();
        parts.into_iter().flat_map(|part| part.join().expect("a promise is broken; see above")).collect()
    })
}

/// What was explored.
pub(super) struct Graph {
    root: World,
    nodes: Vec<Node>,
    known: HashMap<u128, u32>,
    /// Steps that are no fault and give nothing up, as (to, from).
    edges: Vec<(u32, u32)>,
    pub(super) report: Report,
}

/// What an exploration came to.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    pub(super) states: usize,
    pub(super) edges: usize,
    pub(super) ends: usize,
    pub(super) good_ends: usize,
    /// States that were not gone on from. From each a sensible person was followed to a good end.
    pub(super) cut: usize,
    took: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { states, edges, ends, good_ends, cut, took } = self;
        write!(f, "{states} states, {edges} edges, {ends} ends ({good_ends} with nothing owed), ")?;
        write!(f, "{cut} closed by continuation, {:.1} s", took.as_secs_f64())
    }
}

impl Graph {
    /// Explores until so many states are known: outward from every state of a good course at once, so that each phase is
    /// gone into equally far.
    #[expect(clippy::disallowed_methods, reason = "how long it took is told")]
    pub(super) fn explore(root: World, limit: usize) -> Self {
        let begun = Instant::now();
        let mut graph = Self {
            nodes: Vec::new(),
            known: HashMap::new(),
            edges: Vec::new(),
            report: Report::default(),
            root: root.clone(),
        };
        let mut frontier = VecDeque::new();
        let (mut world, mut from, mut by) = (root, NONE, Move::Pass(Way::Plain));
        while !world.is_over() {
            from = graph.add(Digester::default().of(&world, world.now), &world, from, by);
            frontier.push_back((from, Box::new(world.clone())));
            by = world.sensible();
            world = world.after(by).unwrap_or_else(|broken| graph.breaks(from, &[by], &broken));
        }
        // In no order of time, so that a small exploration sees something of every phase.
        frontier.make_contiguous().sort_by_key(|(id, _)| (id * 7) % 31);
        while !frontier.is_empty() && graph.nodes.len() < limit {
            let chunk: Vec<_> = frontier.drain(..frontier.len().min(CHUNK)).collect();
            for (from, found) in in_parallel(&chunk, |part| graph.expand(part)) {
                for (by, digest, world) in found {
                    graph.report.edges += 1;
                    let known = graph.known.get(&digest).copied();
                    let to = known.unwrap_or_else(|| {
                        let world = world.expect("what was known stays known");
                        let to = graph.add(digest, &world, from, by);
                        if !world.is_over() {
                            frontier.push_back((to, world));
                        }
                        to
                    });
                    graph.connect(from, by, to);
                }
            }
        }
        graph.report.states = graph.nodes.len();
        graph.report.ends = graph.nodes.iter().filter(|node| node.is_end).count();
        graph.report.good_ends = graph.nodes.iter().filter(|node| node.is_good_end).count();
        graph.close(frontier.make_contiguous());
        graph.check_nobody_waits_for_ever();
        graph.check_ends_are_reachable();
        graph.report.took = begun.elapsed();
        graph
    }

    fn add(&mut self, digest: u128, world: &World, from: u32, by: Move) -> u32 {
        let id = u32::try_from(self.nodes.len()).unwrap();
        self.nodes.push(Node {
            from,
            by,
            next: NONE,
            is_good_end: world.is_over() && world.kept.0.obligations.is_empty(),
            is_end: world.is_over(),
            is_on_its_own: world.is_free() || world.engine.mode() == Mode::Reading,
        });
        self.known.insert(digest, id);
        id
    }

    fn connect(&mut self, from: u32, by: Move, to: u32) {
        if by == Move::Pass(Way::Plain) {
            self.nodes[from as usize].next = to;
        }
        if !by.is_fault() && !by.gives_up() && from != to {
            self.edges.push((to, from));
        }
    }

    /// Everything that follows each of these states.
    fn expand(&self, states: &[State]) -> Vec<(u32, Vec<Found>)> {
        let mut digester = Digester::default();
        let expand = |(from, world): &State| {
            let after = |by: Move| {
                let next = world.after(by).unwrap_or_else(|broken| self.breaks(*from, &[by], &broken));
                let digest = digester.of(&next, next.now);
                (by, digest, (!self.known.contains_key(&digest)).then(|| Box::new(next)))
            };
            (*from, world.moves().into_iter().map(after).collect())
        };
        states.iter().map(expand).collect()
    }

    /// The states that were not gone on from: without further faults a sensible person must bring each to a good end,
    /// or to a state that was gone on from, of which the backward search tells.
    fn close(&mut self, states: &[State]) {
        self.report.cut = states.len();
        for (id, lead) in in_parallel(states, |part| self.follow(part)) {
            match lead {
                Some(known) => self.edges.push((known, id)),
                None => self.nodes[id as usize].is_good_end = true,
            }
        }
    }

    /// Where a sensible person comes from each of these states: to a good end, or to a state that was gone on from.
    fn follow(&self, states: &[State]) -> Vec<(u32, Option<u32>)> {
        let mut digester = Digester::default();
        // Where the states lead that were passed by one before.
        let mut leads: HashMap<u128, Option<u32>> = HashMap::new();
        let follow = |(id, world): &State| {
            let mut world = World::clone(world);
            world.faults = 0;
            let (mut passed, mut course) = (Vec::new(), Vec::new());
            let lead = loop {
                if world.is_over() && world.kept.0.obligations.is_empty() {
                    break None;
                }
                if world.is_over() || passed.len() > PATIENCE {
                    self.breaks(*id, &course, "a sensible person comes to an end with nothing owed");
                }
                let digest = digester.of(&world, world.now);
                let known = self.known.get(&digest).filter(|known| self.nodes[**known as usize].next != NONE);
                if let Some(lead) = leads.get(&digest).copied().or_else(|| known.map(|known| Some(*known))) {
                    break lead;
                }
                // Who looked again, and saw the same, lets time pass.
                let next = if passed.last() == Some(&digest) { Move::Pass(Way::Plain) } else { world.sensible() };
                passed.push(digest);
                course.push(next);
                world = world.after(next).unwrap_or_else(|broken| self.breaks(*id, &course, &broken));
            };
            leads.extend(passed.into_iter().map(|digest| (digest, lead)));
            (*id, lead)
        };
        states.iter().map(follow).collect()
    }

    /// From every state a good end can be reached without a fault and without giving anything up.
    fn check_ends_are_reachable(&mut self) {
        self.edges.sort_unstable();
        let mut reaches: Vec<_> = self.nodes.iter().map(|node| node.is_good_end).collect();
        let mut todo: Vec<_> = (0..reaches.len()).filter(|n| reaches[*n]).collect();
        while let Some(to) = todo.pop() {
            let to = u32::try_from(to).unwrap();
            let first = self.edges.partition_point(|edge| edge.0 < to);
            for (_, from) in self.edges[first..].iter().take_while(|edge| edge.0 == to) {
                let from = *from as usize;
                if !std::mem::replace(&mut reaches[from], true) {
                    todo.push(from);
                }
            }
        }
        let lost = self.nodes.iter().zip(&reaches).position(|(node, reaches)| !node.is_end && !reaches);
        if let Some(lost) = lost {
            self.breaks(u32::try_from(lost).unwrap(), &[], "an end with nothing owed can be reached");
        }
    }

    /// No rollout that is on its own waits for ever: as time passes it ends or asks.
    fn check_nobody_waits_for_ever(&self) {
        let mut seen_by = vec![NONE; self.nodes.len()];
        for start in 0..u32::try_from(self.nodes.len()).unwrap() {
            let mut at = start;
            while at != NONE && seen_by[at as usize] == NONE && self.nodes[at as usize].is_on_its_own {
                seen_by[at as usize] = start;
                at = self.nodes[at as usize].next;
            }
            if at != NONE && seen_by[at as usize] == start {
                self.breaks(at, &[], "a rollout on its own ends or asks, and does not wait for ever");
            }
        }
    }

    fn breaks(&self, at: u32, course: &[Move], promise: &str) -> ! {
        panic!("does not hold: {promise} (state {at})\n{}", self.path(at, course));
    }

    /// The shortest way there, as one can follow it.
    fn path(&self, at: u32, course: &[Move]) -> String {
        let mut moves: Vec<_> = course.iter().rev().copied().collect();
        let mut node = at;
        while self.nodes[node as usize].from != NONE {
            moves.push(self.nodes[node as usize].by);
            node = self.nodes[node as usize].from;
        }
        let mut text = String::new();
        let mut world = self.root.clone();
        for by in moves.into_iter().rev() {
            let Ok(next) = world.after(by) else {
                writeln!(text, "  {by:?}: breaks it").unwrap();
                break;
            };
            world = next;
            let view = world.engine.view();
            let phase = view.current().map(|(step, phase)| format!("{} of {}", phase.kind.word(), step.target));
            let waits_for = view.current().map(|(_, phase)| phase.note.clone()).unwrap_or_default();
            let (mode, asked) = (view.mode.word(), world.asked());
            let wire = world.wire.as_ref().map(|(_, sent)| format!("{sent:?}"));
            writeln!(text, "  {by:?}: {mode} {phase:?} {asked:?} sends {wire:?} ({waits_for})").unwrap();
        }
        write!(text, "{:#?}", world.cluster).unwrap();
        text
    }
}
