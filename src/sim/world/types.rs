//! The things a world is made of.

use std::collections::BTreeMap;

use crate::sim::scenario::{Architecture, Changefeed, FeedState};

use super::coordinator::Coordinator;
use super::maintainer::Maintainer;

/// A table of the `TiDB` cluster.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) id: u64,
    /// Index of its database.
    pub(crate) database: usize,
    pub(crate) name: String,
}

/// The place of a capture: an address at which one process after another runs.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) cluster: usize,
    /// What the next process runs.
    pub(crate) version: String,
    /// What the first one ran.
    pub(crate) first_version: String,
    pub(crate) architecture: Architecture,
    /// Whether a process of the first version knows no drains.
    pub(crate) legacy: bool,
    /// The process that runs now.
    pub(crate) current: Option<usize>,
    /// A fault lets it refuse connections until then.
    pub(crate) refuse_until: Option<u64>,
}

/// One process of a capture, from its start to its end, and what remains of it afterwards.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts, seen by different observers")]
pub(crate) struct Instance {
    pub(crate) id: String,
    pub(crate) slot: usize,
    pub(crate) cluster: usize,
    pub(crate) version: String,
    pub(crate) git_hash: String,
    pub(crate) pid: u64,
    /// Whether the process exists.
    pub(crate) alive: bool,
    pub(crate) listening: bool,
    /// Whether the routes under `/api` are open.
    pub(crate) ready: bool,
    /// When they open, or opened.
    pub(crate) ready_at: u64,
    /// Whether its keys are in etcd. They outlive a crash until the lease lapses.
    pub(crate) registered: bool,
    pub(crate) architecture: Architecture,
    /// It only ever goes on, never back.
    pub(crate) liveness: Liveness,
    /// Whether it is of a build that knows no drains (new architecture).
    pub(crate) legacy: bool,
    /// Whether it is one of the new architecture that waits for the last classic one to leave.
    pub(crate) waiting: bool,
    /// A fault: the coordinator believes that nothing is on it.
    pub(crate) false_zero: bool,
    /// Drains it answered, in a build in which they are a fake.
    pub(crate) fake_drains: u64,
    /// Create revision of its key in the election; the lowest one owns.
    pub(crate) rev: u64,
    /// How many tables of each changefeed it had when its drain began: for the referee's minimum.
    pub(crate) drained_from: Option<Vec<usize>>,
}

impl Instance {
    /// The number on the wire: classic knows 0 and 1, the new architecture 0, 1 and 2 (recorded/README 16).
    pub(crate) fn liveness_raw(&self) -> u64 {
        match (self.liveness, self.architecture) {
            (Liveness::Alive, _) => 0,
            (Liveness::Draining, _) | (Liveness::Stopping, Architecture::Classic) => 1,
            (Liveness::Stopping, Architecture::New) => 2,
        }
    }
}

/// Whether a capture is to stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Liveness {
    /// It is.
    Alive,
    /// It gives its tables away: the new architecture only.
    Draining,
    /// It takes nothing and is to be stopped.
    Stopping,
}

impl Liveness {
    /// Whether it is on its way out.
    pub(crate) fn is_leaving(self) -> bool {
        self != Self::Alive
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Draining => "draining",
            Self::Stopping => "stopping",
        }
    }
}

/// One `TiCDC` cluster id.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) id: String,
    /// That of its owner, or of the one before.
    pub(crate) architecture: Architecture,
    /// Whether drains are a fake in the build that runs.
    pub(crate) fake_drain: bool,
    pub(crate) office: Option<Office>,
    /// Why nobody answers as the owner, while nobody does.
    pub(crate) vacancy: Vacancy,
    pub(crate) vacant_since: Option<u64>,
    /// The one that owned last: its own status still says so while nobody does.
    pub(crate) last_owner: Option<usize>,
    /// Counts elections, so that a planned one can be called off.
    pub(crate) round: u64,
    /// Counts terms of office, so that what an owner planned ends with it.
    pub(crate) terms: u64,
    pub(crate) next_rev: u64,
    pub(crate) feeds: Vec<usize>,
}

impl Cluster {
    pub(crate) fn new(id: &str, architecture: Architecture, fake_drain: bool) -> Self {
        Self {
            id: id.to_owned(),
            architecture,
            fake_drain,
            office: None,
            vacancy: Vacancy::Handover,
            vacant_since: None,
            last_owner: None,
            round: 0,
            terms: 0,
            next_rev: 1,
            feeds: Vec::new(),
        }
    }

    pub(crate) fn term(&self) -> u64 {
        self.office.as_ref().map_or(0, |office| office.term)
    }
}

/// What the calls of a cluster without an owner are answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vacancy {
    /// A new owner is not serving yet, or may not serve because of a third version: `ErrOwnerNotFound`.
    Handover,
    /// Nobody is able to own: `election: no leader`.
    Nobody,
}

/// A term of office.
#[derive(Debug)]
pub(crate) struct Office {
    pub(crate) owner: usize,
    pub(crate) term: u64,
    /// The captures in the owner's view, ghosts included.
    pub(crate) members: Vec<usize>,
    /// Only in the new architecture.
    pub(crate) coordinator: Option<Coordinator>,
}

/// A changefeed.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) cluster: usize,
    pub(crate) namespace: String,
    pub(crate) id: String,
    pub(crate) sink_uri: String,
    /// Databases whose tables it replicates, new ones too.
    pub(crate) databases: Vec<String>,
    pub(crate) state: FeedState,
    pub(crate) error: Option<FeedError>,
    pub(crate) create_ms: u64,
    pub(crate) creator_version: String,
    pub(crate) spans: Vec<Span>,
    /// Only under an owner, once that has set it up; none in the new architecture.
    pub(crate) sched: Option<Sched>,
    /// Only in the new architecture, while it has one.
    pub(crate) maintainer: Option<Maintainer>,
    /// Counts the orders for a maintainer, so that an old one means nothing.
    pub(crate) maintainer_round: u64,
    /// What moving tables adds to its lag at the moment (new architecture).
    pub(crate) drag_ms: u64,
    /// Checkpoint in milliseconds since 1970.
    pub(crate) checkpoint_ms: u64,
    /// Where in the half second its checkpoints fall.
    pub(crate) phase: u64,
    /// Whether its checkpoint stands still.
    pub(crate) stalled: bool,
    /// Additional lag of a fault.
    pub(crate) extra_lag_ms: u64,
    pub(crate) tick_planned: bool,
}

impl Feed {
    pub(crate) fn new(cluster: usize, change: &Changefeed, phase: u64, create_ms: u64) -> Self {
        Self {
            cluster,
            namespace: change.namespace.clone(),
            id: change.id.clone(),
            sink_uri: change.sink_uri.clone(),
            databases: change.databases.clone(),
            state: change.state,
            error: None,
            create_ms,
            creator_version: String::new(),
            spans: Vec::new(),
            sched: None,
            maintainer: None,
            maintainer_round: 0,
            drag_ms: 0,
            checkpoint_ms: 0,
            phase,
            stalled: false,
            extra_lag_ms: 0,
            tick_planned: false,
        }
    }

    /// Tables that are listed for a capture: the ones it replicates and the ones it prepares.
    pub(crate) fn listed_on(&self, instance: usize) -> usize {
        self.spans.iter().filter(|span| span.state.is_on(instance)).count()
    }

    /// Tables whose primary is there: what a drain counts.
    pub(crate) fn primaries_on(&self, instance: usize) -> usize {
        self.spans.iter().filter(|span| span.state.primary() == Some(instance)).count()
    }

    /// Whether every capture in the scheduler's view has answered it.
    pub(crate) fn initialised(&self) -> bool {
        self.sched.as_ref().is_some_and(|sched| sched.captures.values().all(|known| *known))
    }
}

/// The error a changefeed shows.
#[derive(Debug, Clone)]
pub(crate) struct FeedError {
    pub(crate) at_ms: u64,
    pub(crate) addr: String,
    pub(crate) code: String,
    pub(crate) message: String,
}

/// The scheduler of one changefeed under one owner.
#[derive(Debug)]
pub(crate) struct Sched {
    pub(crate) term: u64,
    /// Captures it knows, and whether they have answered.
    pub(crate) captures: BTreeMap<usize, bool>,
    /// The capture it drains.
    pub(crate) target: Option<usize>,
    /// A balance that is not finished.
    pub(crate) balancing: bool,
}

impl Sched {
    pub(crate) fn new(term: u64) -> Self {
        Self { term, captures: BTreeMap::new(), target: None, balancing: false }
    }

    pub(crate) fn found(term: u64, members: &[usize]) -> Self {
        Self { captures: members.iter().map(|member| (*member, true)).collect(), ..Self::new(term) }
    }
}

/// A table in a changefeed.
#[derive(Debug)]
pub(crate) struct Span {
    /// Index of the table.
    pub(crate) table: usize,
    pub(crate) state: SpanState,
    /// Counts its orders, so that an old one's end means nothing.
    pub(crate) generation: u64,
    /// It never begins to replicate elsewhere.
    pub(crate) stuck: bool,
    /// Its move would be over, but there was no owner to end it.
    pub(crate) ripe: bool,
    /// It moves because of a drain, not to balance.
    pub(crate) for_drain: bool,
}

impl Span {
    pub(crate) fn absent(table: usize) -> Self {
        Self { table, state: SpanState::Absent, generation: 0, stuck: false, ripe: false, for_drain: false }
    }
}

/// Where a table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanState {
    /// Nowhere.
    Absent,
    /// Being prepared where nobody had it.
    Adding(usize),
    /// Replicated.
    Replicating(usize),
    /// Replicated at one capture while another prepares it: classic only.
    Moving { from: usize, to: usize },
    /// Replicated at one capture that is told to stop it: the new architecture only.
    Leaving { from: usize, to: usize },
    /// Stopped, or had by nobody, and not created yet at the next capture, so listed nowhere: the new architecture only.
    Flying { from: Option<usize>, to: usize },
}

impl SpanState {
    /// The capture that replicates it.
    pub(crate) fn primary(self) -> Option<usize> {
        match self {
            Self::Replicating(on) => Some(on),
            Self::Moving { from, .. } | Self::Leaving { from, .. } => Some(from),
            Self::Absent | Self::Adding(_) | Self::Flying { .. } => None,
        }
    }

    /// Whether a capture lists it.
    pub(crate) fn is_on(self, instance: usize) -> bool {
        match self {
            Self::Replicating(on) | Self::Adding(on) => on == instance,
            Self::Moving { from, to } => from == instance || to == instance,
            Self::Leaving { from, .. } => from == instance,
            Self::Absent | Self::Flying { .. } => false,
        }
    }
}
