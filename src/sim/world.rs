//! The pure model of a cluster: deterministic, seeded, in virtual milliseconds, moved on by [`World::advance_to`] only.
//!
//! Nothing here waits, reads a clock or knows of HTTP. Whatever happens later is an event in one queue, ordered by time
//! and then by the order in which it was planned, so the same seed and the same requests give the same history.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use super::rng::{Rng, hex_of};
use super::scenario::{Architecture, Fault, Rates, Scenario};

mod capture;
mod coordinator;
mod drain;
mod fault;
mod feed;
mod maintainer;
mod membership;
mod moves;
mod office;
mod pd;
mod process;
mod referee;
mod schedule;
mod snapshot;
mod tidb;
mod types;
mod view;

pub use drain::DrainAnswer;
pub use process::{ActionError, Component, Planned, ProcessRef};
pub use referee::{Referee, Stop};
pub use snapshot::{CaptureState, FeedSnapshot, PdState, State, TidbState};
pub use view::{CaptureView, Carrying, OwnerView};

pub(crate) use maintainer::MaintainerView;

pub(crate) use fault::Altered;
pub(crate) use feed::Change;
pub(crate) use snapshot::tso;
pub(crate) use tidb::{Health, StartOutcome, TidbInstance};
pub(crate) use types::{Feed, FeedError, Instance};

use fault::Rule;
use maintainer::Maintainer;
use pd::PdServer;
use process::Overrides;
use tidb::{TidbEvent, TidbWorld};
use types::{Cluster, Liveness, Sched, Slot, Span, SpanState, Table};

/// Where the processes listen.
#[derive(Debug, Clone, Default)]
pub struct Addresses {
    /// One for each capture, in the order of the scenario.
    pub captures: Vec<String>,
    /// For each `TiDB` server the address of its SQL port and of its status port.
    pub tidb: Vec<(String, String)>,
    /// One for each PD server.
    pub pd: Vec<String>,
}

impl Addresses {
    /// The addresses a small installation on one machine would have: for worlds that are not served.
    pub fn usual(scenario: &Scenario) -> Self {
        let at = |port: usize| format!("127.0.0.1:{port}");
        Self {
            captures: (0..scenario.captures()).map(|i| at(8300 + i)).collect(),
            tidb: (0..scenario.tidb.servers).map(|i| (at(4000 + i), at(10080 + i))).collect(),
            pd: (0..scenario.pd.versions.len()).map(|i| at(2379 + 10 * i)).collect(),
        }
    }
}

/// A drain session of a coordinator, so that what was planned for one means nothing to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SessionRef {
    cluster: usize,
    term: u64,
    number: u64,
}

/// What is planned to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Spawn(ProcessRef),
    Listen(usize),
    Register(usize),
    Ready(usize),
    Exit(usize),
    LeaseLapse(usize),
    Drop { cluster: usize, term: u64, instance: usize },
    Elect { cluster: usize, round: u64 },
    Built { feed: usize, term: u64 },
    Init { feed: usize, term: u64, instance: usize },
    Tick(usize),
    Balance { feed: usize, term: u64 },
    SpanDone { feed: usize, span: usize, generation: u64 },
    Flip(usize),
    Resigned { cluster: usize, term: u64 },
    Refresh(SessionRef),
    Halt(SessionRef),
    Halted(SessionRef),
    Oust { session: SessionRef, feed: usize },
    Acknowledge { session: SessionRef, feed: usize },
    Maintain { feed: usize, round: u64 },
    Lost { cluster: usize, instance: usize },
    Even { cluster: usize, term: u64 },
    Tidb(TidbEvent),
    PdUp(usize),
    Fault(usize),
    Unstick { feed: usize, span: usize },
    Wake,
}

/// A simulated cluster.
#[derive(Debug)]
pub struct World {
    now: u64,
    epoch_ms: u64,
    rng: Rng,
    order: Rng,
    planned: u64,
    lag_noted: u64,
    queue: BinaryHeap<Reverse<(u64, u64, Event)>>,
    rates: Rates,
    tables: Vec<Table>,
    databases: Vec<(u64, String)>,
    clusters: Vec<Cluster>,
    slots: Vec<Slot>,
    instances: Vec<Instance>,
    feeds: Vec<Feed>,
    tidb: TidbWorld,
    pd: Vec<PdServer>,
    overrides: BTreeMap<ProcessRef, Overrides>,
    /// Processes that end, to be started again.
    restarting: BTreeSet<ProcessRef>,
    /// Processes that were told to end and are not gone yet.
    ending: BTreeSet<ProcessRef>,
    faults: Vec<Option<Fault>>,
    rules: Vec<Rule>,
    referee: Referee,
}

impl World {
    /// A cluster as it is found: every process up, tables spread evenly, the first capture of each cluster the owner.
    ///
    /// `epoch_ms` is what the cluster's clock (milliseconds since 1970) says at virtual time 0.
    pub fn new(scenario: &Scenario, addresses: &Addresses, epoch_ms: u64) -> Self {
        let mut rng = Rng::new(scenario.seed);
        let order = Rng::new(rng.next_u64());
        let mut world = Self {
            now: 0,
            epoch_ms,
            rng,
            order,
            planned: 0,
            lag_noted: 0,
            queue: BinaryHeap::new(),
            rates: scenario.rates.clone(),
            tables: Vec::new(),
            databases: Vec::new(),
            clusters: Vec::new(),
            slots: Vec::new(),
            instances: Vec::new(),
            feeds: Vec::new(),
            tidb: TidbWorld::default(),
            pd: Vec::new(),
            overrides: BTreeMap::new(),
            restarting: BTreeSet::new(),
            ending: BTreeSet::new(),
            faults: Vec::new(),
            rules: Vec::new(),
            referee: Referee::default(),
        };
        world.found_databases(scenario);
        world.found_captures(scenario, addresses);
        world.found_tidb(scenario, addresses);
        world.found_pd(scenario, addresses);
        for fault in &scenario.faults {
            world.add_fault(fault.clone());
        }
        world
    }

    /// Virtual milliseconds since the start.
    pub fn now_ms(&self) -> u64 {
        self.now
    }

    /// Milliseconds since 1970 by the cluster's own clock.
    pub fn clock_ms(&self) -> u64 {
        self.epoch_ms + self.now
    }

    /// When the next thing happens by itself, in virtual milliseconds.
    pub fn next_event_ms(&self) -> Option<u64> {
        self.queue.peek().map(|Reverse((at, _, _))| *at)
    }

    /// Lets everything happen that is due until `at_ms`. Going back in time does nothing.
    pub fn advance_to(&mut self, at_ms: u64) {
        while let Some(Reverse((at, _, _))) = self.queue.peek()
            && *at <= at_ms
        {
            let Some(Reverse((at, _, event))) = self.queue.pop() else {
                break;
            };
            self.now = self.now.max(at);
            self.happen(event);
        }
        self.now = self.now.max(at_ms);
        // Looking at every table each time would be felt with 10,000 of them; what makes lag end is noted by itself.
        if self.now >= self.lag_noted + 200 {
            self.lag_noted = self.now;
            self.note_lag();
        }
    }

    /// How much has been planned so far: a higher number after a call means that something was set in motion.
    pub(crate) fn planned(&self) -> u64 {
        self.planned
    }

    fn plan(&mut self, in_ms: u64, event: Event) {
        self.planned += 1;
        self.queue.push(Reverse((self.now + in_ms, self.planned, event)));
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Spawn(process) => self.spawn(process),
            Event::Listen(instance) => self.listen(instance),
            Event::Register(instance) => self.register(instance),
            Event::Ready(instance) => self.ready(instance),
            Event::Exit(instance) => self.exit(instance),
            Event::LeaseLapse(instance) => self.lease_lapse(instance),
            Event::Drop { cluster, term, instance } => self.drop_member(cluster, term, instance),
            Event::Elect { cluster, round } => self.elect(cluster, round),
            Event::Built { feed, term } => self.built(feed, term),
            Event::Init { feed, term, instance } => self.init(feed, term, instance),
            Event::Tick(feed) => self.tick(feed),
            Event::Balance { feed, term } => self.balance_due(feed, term),
            Event::SpanDone { feed, span, generation } => self.span_done(feed, span, generation),
            Event::Flip(instance) => self.flip(instance),
            Event::Resigned { cluster, term } => self.resigned(cluster, term),
            Event::Refresh(session) => self.refresh(session),
            Event::Halt(session) => self.halt(session),
            Event::Halted(session) => self.halted(session),
            Event::Oust { session, feed } => self.oust(session, feed),
            Event::Acknowledge { session, feed } => self.acknowledge(session, feed),
            Event::Maintain { feed, round } => self.maintain(feed, round),
            Event::Lost { cluster, instance } => self.lost(cluster, instance),
            Event::Even { cluster, term } => self.even(cluster, term),
            Event::Tidb(event) => self.tidb_event(event),
            Event::PdUp(server) => self.pd_up(server),
            Event::Fault(index) => self.set_off(index),
            Event::Unstick { feed, span } => self.unstick(feed, span),
            Event::Wake => {}
        }
        self.check_table_triggers();
    }

    /// Something that a rollout causes has come to its end.
    fn settled(&mut self) {
        self.referee.settled_at = Some(self.now);
    }

    fn found_databases(&mut self, scenario: &Scenario) {
        // TiDB gives even ids to databases and tables alike, as they come; the system has the ones up to 112.
        let mut id = 112;
        for (index, database) in scenario.databases.iter().enumerate() {
            id += 2;
            self.databases.push((id, database.name.clone()));
            for group in &database.tables {
                for number in 1..=group.count {
                    id += 2;
                    self.tables.push(Table { id, database: index, name: format!("{}{number:03}", group.prefix) });
                }
            }
        }
    }

    fn found_captures(&mut self, scenario: &Scenario, addresses: &Addresses) {
        let mut number = 0;
        for (index, wanted) in scenario.clusters.iter().enumerate() {
            self.clusters.push(Cluster::new(&wanted.id, scenario.architecture, wanted.fake_drain));
            let mut takers = Vec::new();
            let mut members = Vec::new();
            for _ in 0..wanted.captures {
                let address = addresses.captures.get(number).cloned().unwrap_or_default();
                number += 1;
                let name = format!("capture-{number}");
                let version = wanted.versions.get(&name).unwrap_or(&wanted.version).to_string();
                let drained = wanted.drained.contains(&name);
                let waiting = scenario.architecture == Architecture::Classic && wanted.new_architecture.contains(&name);
                if !waiting && !drained && !wanted.empty.contains(&name) {
                    takers.push(self.instances.len());
                }
                let legacy = wanted.legacy.contains(&name);
                self.slots.push(Slot {
                    name,
                    address,
                    cluster: index,
                    version: version.clone(),
                    first_version: version.clone(),
                    architecture: if waiting { Architecture::New } else { scenario.architecture },
                    legacy,
                    current: None,
                    refuse_until: None,
                });
                let instance = self.new_instance(self.slots.len() - 1, &version);
                let found = &mut self.instances[instance];
                found.listening = true;
                found.ready = true;
                found.waiting = waiting;
                if drained {
                    found.liveness = Liveness::Stopping;
                }
                if !waiting {
                    members.push(instance);
                    self.enter_queue(instance);
                }
            }
            self.found_feeds(wanted, index, &members, &takers);
        }
    }

    fn found_feeds(&mut self, wanted: &super::scenario::Cluster, cluster: usize, members: &[usize], takers: &[usize]) {
        self.install_found_owner(cluster, members);
        for change in &wanted.changefeeds {
            let mut spans: Vec<Span> = Vec::new();
            for (index, table) in self.tables.iter().enumerate() {
                if change.databases.contains(&self.databases[table.database].1) {
                    spans.push(Span::absent(index));
                }
            }
            let phase = self.rng.range(0, 499);
            let mut feed = Feed::new(cluster, change, phase, self.clock_ms().saturating_sub(86_400_000));
            feed.checkpoint_ms = self.clock_ms().saturating_sub(2_300);
            if change.state.runs() && !takers.is_empty() {
                let mut order: Vec<usize> = (0..spans.len()).collect();
                self.rng.shuffle(&mut order);
                // Each changefeed begins at another capture, so that the remainders do not add up on one.
                let first = self.rng.index(takers.len());
                for (turn, span) in order.into_iter().enumerate() {
                    spans[span].state = SpanState::Replicating(takers[(first + turn) % takers.len()]);
                }
                if self.clusters[cluster].architecture == Architecture::New {
                    let on = takers[self.rng.index(takers.len())];
                    feed.maintainer = Some(Maintainer::new(on));
                } else {
                    let term = self.clusters[cluster].term();
                    feed.sched = Some(Sched::found(term, members));
                    let due = self.rng.range(1_000, self.rates.balance_ms.max(1_001));
                    self.plan(due, Event::Balance { feed: self.feeds.len(), term });
                }
            }
            feed.spans = spans;
            feed.creator_version = wanted.version.to_string();
            self.clusters[cluster].feeds.push(self.feeds.len());
            self.feeds.push(feed);
        }
    }

    fn new_instance(&mut self, slot: usize, version: &str) -> usize {
        let index = self.instances.len();
        let pid = 20_000 + self.rng.range(0, 9) + 37 * u64::try_from(index).unwrap_or(0);
        self.instances.push(Instance {
            id: self.rng.uuid(),
            slot,
            cluster: self.slots[slot].cluster,
            version: version.to_owned(),
            git_hash: hex_of(version, 40),
            pid,
            alive: true,
            listening: false,
            ready: false,
            ready_at: 0,
            registered: false,
            architecture: self.slots[slot].architecture,
            liveness: Liveness::Alive,
            legacy: self.slots[slot].legacy && self.slots[slot].first_version == version,
            waiting: false,
            false_zero: false,
            fake_drains: 0,
            rev: 0,
            drained_from: None,
        });
        self.slots[slot].current = Some(index);
        index
    }
}
