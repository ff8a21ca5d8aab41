//! The abstract cluster: as small as it can be and still do what real ones were seen doing. Time is counted in steps and
//! every number in it is small.

use std::sync::OnceLock;

use tiroll::cluster::{Address, Architecture, CaptureId, ChangefeedId, Failure, FailureKind, Reading, Version};

/// The wall time of the beginning, in milliseconds.
pub(super) const EPOCH: u64 = 1_796_072_400_000;
/// How long an entry of an ended process stays listed, in steps.
const GHOST: u8 = 3;
/// How long a restarted process is down.
const DOWN: u8 = 2;
/// A process that is down until somebody starts it.
pub(super) const DEAD: u8 = u8::MAX;
/// More processes than any capture has in a course.
const GENERATIONS: usize = 40;

/// A capture.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// How many processes it has had before.
    pub(super) generation: usize,
    /// Whether it runs the target version.
    pub(super) is_new: bool,
    /// Its liveness on the wire.
    pub(super) liveness: u8,
    /// Its tables by changefeed.
    pub(super) tables: [u8; 2],
    /// For so long it is down.
    pub(super) down: u8,
    /// Whether the rollout drained this process.
    pub(super) is_drained_by_us: bool,
    /// Whether the rollout ended the process before, and this one has not come up.
    pub(super) is_stopped_by_us: bool,
    /// Whether something befell it, or its tables, since the cluster was last read.
    pub(super) is_news: bool,
}

impl Node {
    pub(super) const fn is_up(&self) -> bool {
        self.down == 0
    }

    /// Whether it could take tables and duty.
    pub(super) const fn is_able(&self) -> bool {
        self.is_up() && self.liveness == 0
    }

    fn sum(&self) -> u64 {
        self.tables.iter().map(|tables| u64::from(*tables)).sum()
    }
}

/// A drain of the new architecture, in the coordinator's memory.
#[derive(Clone, Debug, PartialEq)]
struct Session {
    of: (usize, usize),
    /// For how long it has had no table.
    empty: u8,
    /// The first answer counts changefeeds.
    has_counted: bool,
}

/// The cluster.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    pub(super) architecture: Architecture,
    pub(super) feeds: usize,
    pub(super) nodes: Vec<Node>,
    /// Ended processes that are still listed, and for how long.
    pub(super) ghosts: Vec<(usize, usize, u8)>,
    /// Who owns, or will.
    pub(super) owner: usize,
    /// For so long nobody owns.
    pub(super) ownerless: u8,
    /// Whether the owner changed since the cluster was last read.
    pub(super) is_owner_news: bool,
    session: Option<Session>,
    /// How often the `TiDB` server was started.
    pub(super) tidb_starts: i64,
    pub(super) is_tidb_new: bool,
    pub(super) tidb_down: u8,
    pub(super) is_upgrading: bool,
    /// Whether the rollout put it there.
    pub(super) is_upgrading_by_us: bool,
}

/// Everything that has a name, made once: sweeps are made by the million.
pub(super) struct Names {
    pub(super) ids: Vec<Vec<CaptureId>>,
    pub(super) addresses: Vec<Address>,
    pub(super) tidb: Address,
    pub(super) old: Version,
    pub(super) new: Version,
    pub(super) feeds: [ChangefeedId; 2],
}

pub(super) fn names() -> &'static Names {
    static NAMES: OnceLock<Names> = OnceLock::new();
    NAMES.get_or_init(|| Names {
        ids: (0..3).map(|n| (0..GENERATIONS).map(|g| CaptureId::new(format!("c{n}g{g}"))).collect()).collect(),
        addresses: (0..3).map(|n| Address::new("10.0.1.1", 8300 + n)).collect(),
        tidb: Address::new("10.0.2.1", 10_080),
        old: Version::parse("v8.5.3").unwrap(),
        new: Version::parse("v8.5.4").unwrap(),
        feeds: [ChangefeedId::new("default", "dwh"), ChangefeedId::new("default", "orders")],
    })
}

impl Cluster {
    /// All of the old version, the first one owns; each carries a table of every changefeed.
    pub(super) fn new(architecture: Architecture, captures: usize, feeds: usize) -> Self {
        let node = Node {
            generation: 0,
            is_new: false,
            liveness: 0,
            tables: [1, u8::from(feeds > 1)],
            down: 0,
            is_drained_by_us: false,
            is_stopped_by_us: false,
            is_news: false,
        };
        Self {
            architecture,
            feeds,
            nodes: vec![node; captures],
            ghosts: Vec::new(),
            owner: 0,
            ownerless: 0,
            is_owner_news: false,
            session: None,
            tidb_starts: 1,
            is_tidb_new: false,
            tidb_down: 0,
            is_upgrading: false,
            is_upgrading_by_us: false,
        }
    }

    pub(super) fn is_classic(&self) -> bool {
        self.architecture == Architecture::Classic
    }

    pub(super) fn id(&self, n: usize) -> &'static CaptureId {
        &names().ids[n][self.nodes[n].generation]
    }

    /// The running process with this id.
    pub(super) fn of(&self, id: &CaptureId) -> Option<usize> {
        (0..self.nodes.len()).find(|n| self.id(*n) == id && self.nodes[*n].is_up())
    }

    pub(super) fn at(address: &Address) -> usize {
        names().addresses.iter().position(|at| at == address).unwrap()
    }

    pub(super) fn owns(&self, n: usize) -> bool {
        self.owner == n && self.ownerless == 0 && self.nodes[n].is_up()
    }

    /// Who takes what this one gives away.
    fn heir_of(&self, n: usize) -> Option<usize> {
        (0..self.nodes.len()).find(|m| *m != n && self.nodes[*m].is_able())
    }

    /// One step passes.
    pub(super) fn live(&mut self) {
        for (_, _, left) in &mut self.ghosts {
            *left -= 1;
        }
        self.ghosts.retain(|(_, _, left)| *left > 0);
        for node in self.nodes.iter_mut().filter(|node| node.down != DEAD) {
            node.down = node.down.saturating_sub(1);
            node.is_stopped_by_us &= node.down > 0;
        }
        self.tidb_down = self.tidb_down.saturating_sub(1);
        if self.ownerless > 0 {
            self.ownerless -= 1;
            if self.ownerless == 0 {
                self.elect(self.owner);
            }
        }
        for n in 0..self.nodes.len() {
            let (of, node) = ((n, self.nodes[n].generation), &self.nodes[n]);
            let is_open = self.is_classic() || self.session.as_ref().is_some_and(|session| session.of == of);
            if node.liveness > 0
                && node.is_up()
                && is_open
                && self.ownerless == 0
                && let Some(heir) = self.heir_of(n)
            {
                for feed in 0..2 {
                    let moves = self.nodes[n].tables[feed].min(1);
                    self.nodes[n].tables[feed] -= moves;
                    self.nodes[heir].tables[feed] += moves;
                }
            }
        }
        self.live_session();
    }

    fn live_session(&mut self) {
        let Some(session) = &mut self.session else { return };
        let (n, generation) = session.of;
        let node = &mut self.nodes[n];
        if node.generation != generation || !node.is_up() {
            if !self.ghosts.iter().any(|(of, old, _)| (*of, *old) == session.of) {
                self.session = None;
            }
        } else if node.sum() == 0 {
            if session.empty >= 1 {
                node.liveness = 2;
            }
            session.empty = 1;
        } else {
            session.empty = 0;
        }
    }

    /// This one owns from now on, or the next that is able; where none is, nobody does. What a coordinator had in memory
    /// is gone either way.
    pub(super) fn elect(&mut self, first: usize) {
        let count = self.nodes.len();
        let mut able = (first..first + count).map(|n| n % count).filter(|n| self.nodes[*n].is_able());
        match able.next() {
            Some(next) => self.owner = next,
            None => self.ownerless = 1,
        }
        self.is_owner_news = true;
        self.session = None;
    }

    /// A process ends, and another one comes up after so many steps; its tables go to whoever can take them.
    pub(super) fn restart(&mut self, n: usize, is_new: bool, is_by_us: bool, stays_down: bool) {
        if self.nodes[n].is_up() {
            self.ghosts.push((n, self.nodes[n].generation, GHOST));
        }
        let orphans = std::mem::take(&mut self.nodes[n].tables);
        let node = &mut self.nodes[n];
        node.generation += 1;
        node.is_new = is_new;
        node.liveness = 0;
        node.down = if stays_down { DEAD } else { DOWN };
        node.is_drained_by_us = false;
        node.is_stopped_by_us = is_by_us;
        node.is_news = true;
        let heir = self.heir_of(n).unwrap_or(n);
        for (tables, orphans) in self.nodes[heir].tables.iter_mut().zip(orphans) {
            *tables += orphans;
        }
        self.nodes[heir].is_news |= orphans != [0, 0];
        if self.owner == n && self.ownerless == 0 {
            self.ownerless = 2;
            self.is_owner_news = true;
            self.owner = (n + 1) % self.nodes.len();
            self.session = None;
        }
    }

    /// Tables are given to a capture, whatever its liveness; says whether there were any.
    pub(super) fn give(&mut self, n: usize) -> bool {
        let from = (0..self.nodes.len()).find(|m| *m != n && self.nodes[*m].tables[0] > 0);
        let Some(from) = from else { return false };
        self.nodes[from].tables[0] -= 1;
        self.nodes[n].tables[0] += 1;
        self.nodes[n].is_news = true;
        true
    }

    /// The drain call arrives. `is_false` answers 0 whatever is there; in the new architecture the capture has been seen
    /// calling itself stopping beside that.
    pub(super) fn drain(&mut self, id: &CaptureId, is_false: bool) -> Reading<u64> {
        let fail = |kind| Err(Failure::local(kind, "as the contract says"));
        if self.ownerless > 0 {
            return fail(FailureKind::NoOwner);
        }
        let Some(n) = self.of(id) else { return fail(FailureKind::NoSuchCapture) };
        if self.nodes.iter().filter(|node| node.is_up()).count() < 2 {
            return fail(FailureKind::OnlyOneCapture);
        }
        if n == self.owner {
            return fail(FailureKind::CannotDrainOwner);
        }
        let (is_classic, of) = (self.is_classic(), (n, self.nodes[n].generation));
        let node = &mut self.nodes[n];
        let left = node.sum();
        if is_classic {
            if left > 0 {
                node.liveness = 1;
                node.is_drained_by_us = true;
            }
            return Ok(if is_false { 0 } else { left });
        }
        if self.session.as_ref().is_some_and(|session| session.of != of) {
            return Ok(1);
        }
        node.liveness = node.liveness.max(if is_false { 2 } else { 1 });
        node.is_drained_by_us = true;
        let session = self.session.get_or_insert(Session { of, empty: 0, has_counted: false });
        if is_false {
            return Ok(0);
        }
        if !std::mem::replace(&mut session.has_counted, true) {
            return Ok(2);
        }
        Ok(if left == 0 && node.liveness == 2 { 0 } else { left.max(1) })
    }

    /// The `TiDB` server ends and is started again.
    pub(super) fn restart_tidb(&mut self, is_new: bool) {
        self.tidb_starts += 1;
        self.is_tidb_new = is_new;
        self.tidb_down = DOWN;
    }

    /// It was read: nothing is news any more.
    pub(super) fn was_read(&mut self) {
        self.is_owner_news = false;
        self.nodes.iter_mut().for_each(|node| node.is_news = false);
    }
}
