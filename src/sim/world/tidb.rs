//! `TiDB` servers: their processes, the DDL owner, the upgrading state and the schema changes it holds back.
//!
//! Facts: contract section 7 and the recordings tidb 01 to 95.

use crate::sim::rng::hex_of;
use crate::sim::scenario::{Ddl, Scenario};

use super::types::Span;
use super::{Addresses, Event, ProcessRef, Table, World};

/// The `TiDB` part of a world.
#[derive(Debug, Default)]
pub(crate) struct TidbWorld {
    pub(crate) servers: Vec<TidbServer>,
    pub(crate) instances: Vec<TidbInstance>,
    /// The instance that owns DDL, also one that crashed until its lease lapses.
    pub(crate) ddl_owner: Option<usize>,
    pub(crate) upgrading: bool,
    /// A start changed the state and no finish changed it back.
    pub(crate) finish_owed: bool,
    pub(crate) jobs: Vec<Job>,
}

/// The place of a `TiDB` server.
#[derive(Debug)]
pub(crate) struct TidbServer {
    pub(crate) name: String,
    pub(crate) sql: String,
    pub(crate) status: String,
    /// What the next process runs.
    pub(crate) version: String,
    pub(crate) current: Option<usize>,
    pub(crate) refuse_until: Option<u64>,
}

/// One process of a `TiDB` server.
#[derive(Debug)]
pub(crate) struct TidbInstance {
    pub(crate) server: usize,
    pub(crate) ddl_id: String,
    pub(crate) version: String,
    pub(crate) git_hash: String,
    /// Seconds since 1970.
    pub(crate) start_timestamp: u64,
    pub(crate) server_id: u64,
    pub(crate) health: Health,
    /// Whether its server info is in etcd.
    pub(crate) known: bool,
}

/// How far a `TiDB` process has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Health {
    /// Started, not listening.
    Booting,
    /// `/status` is 500 with an empty body: just before it is ready, or while it waits to close.
    Unready,
    /// Serving.
    Serving,
    /// Its listeners are closed, the process lives on.
    Closed,
    /// Gone.
    Gone,
}

/// A schema change of a user.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) database: String,
    pub(crate) table: String,
    pub(crate) done: bool,
}

/// What can happen to `TiDB` later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TidbEvent {
    Unready(usize),
    Serve(usize),
    Close(usize),
    Exit(usize),
    /// The session of a crashed one ends.
    Forget(usize),
    Campaign,
    Submit(usize),
    Job(usize),
}

/// What `/upgrade/start` comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartOutcome {
    /// The state changed, and the DDL owner confirms it after this many milliseconds.
    Started(u64),
    /// It was upgrading already.
    Duplicated,
    /// The state changed, but no DDL owner confirms it in time: an error, after this many milliseconds.
    Unconfirmed(u64),
}

impl TidbWorld {
    pub(crate) fn current(&self, server: usize) -> Option<&TidbInstance> {
        self.servers[server].current.map(|current| &self.instances[current])
    }

    /// Every instance whose info is in etcd, crashed ones included.
    pub(crate) fn known(&self) -> impl Iterator<Item = &TidbInstance> {
        self.instances.iter().filter(|instance| instance.known)
    }

    pub(crate) fn owner_id(&self) -> String {
        self.ddl_owner.map(|owner| self.instances[owner].ddl_id.clone()).unwrap_or_default()
    }
}

impl World {
    pub(crate) fn tidb(&self) -> &TidbWorld {
        &self.tidb
    }

    pub(super) fn found_tidb(&mut self, scenario: &Scenario, addresses: &Addresses) {
        for index in 0..scenario.tidb.servers {
            let name = format!("tidb-{}", index + 1);
            let version = scenario.tidb.versions.get(&name).unwrap_or(&scenario.tidb.version).to_string();
            let (sql, status) = addresses.tidb.get(index).cloned().unwrap_or_default();
            self.tidb.servers.push(TidbServer { name, sql, status, version, current: None, refuse_until: None });
            let instance = self.new_tidb(index);
            self.tidb.instances[instance].health = Health::Serving;
            self.tidb.instances[instance].known = true;
        }
        self.tidb.ddl_owner = (scenario.tidb.servers > 0).then_some(0);
        self.tidb.upgrading = scenario.tidb.upgrading;
        for Ddl { at_ms, database, table } in scenario.tidb.ddl.clone() {
            self.plan(at_ms, Event::Tidb(TidbEvent::Submit(self.tidb.jobs.len())));
            self.tidb.jobs.push(Job { database, table, done: false });
        }
    }

    fn new_tidb(&mut self, server: usize) -> usize {
        let index = self.tidb.instances.len();
        let ddl_id = self.rng.uuid();
        let server_id = self.rng.range(1, 2_047);
        let version = self.tidb.servers[server].version.clone();
        self.tidb.instances.push(TidbInstance {
            server,
            ddl_id,
            git_hash: hex_of(&version, 10),
            version,
            start_timestamp: self.clock_ms() / 1_000,
            server_id,
            health: Health::Booting,
            known: false,
        });
        self.tidb.servers[server].current = Some(index);
        index
    }

    pub(super) fn tidb_listens(&self, server: usize, now: u64) -> bool {
        let it = &self.tidb.servers[server];
        let open = |instance: &TidbInstance| matches!(instance.health, Health::Unready | Health::Serving);
        it.refuse_until.is_none_or(|until| until <= now) && self.tidb.current(server).is_some_and(open)
    }

    pub(super) fn spawn_tidb(&mut self, server: usize) {
        let overrides = self.take_overrides(ProcessRef::Tidb(server));
        if let Some(version) = overrides.version {
            self.tidb.servers[server].version = version;
        }
        let instance = self.new_tidb(server);
        let address = self.tidb.servers[server].status.clone();
        *self.referee.restarts.entry(address).or_default() += 1;
        if overrides.no_return {
            self.plan(1_000, Event::Tidb(TidbEvent::Exit(instance)));
            return;
        }
        let boot = self.rng.range(self.rates.boot_ms.min, self.rates.boot_ms.max) + overrides.slow_ms;
        self.plan(boot, Event::Tidb(TidbEvent::Unready(instance)));
        let serve = boot + self.rng.range(60, 140);
        self.plan(serve, Event::Tidb(TidbEvent::Serve(instance)));
    }

    /// Ends a `TiDB` server: 500 while it waits, then refused, then gone, its keys with it.
    pub(super) fn stop_tidb(&mut self, server: usize) -> u64 {
        let Some(instance) = self.tidb.servers[server].current else {
            return 0;
        };
        let (wait, close) = (self.rates.tidb_graceful_wait_ms, self.rates.tidb_close_ms);
        if self.tidb.instances[instance].health == Health::Serving {
            self.tidb.instances[instance].health = Health::Unready;
        }
        self.plan(wait, Event::Tidb(TidbEvent::Close(instance)));
        self.plan(wait + close, Event::Tidb(TidbEvent::Exit(instance)));
        wait + close
    }

    pub(super) fn kill_tidb(&mut self, server: usize) {
        let Some(instance) = self.tidb.servers[server].current.take() else {
            return;
        };
        self.ending.remove(&ProcessRef::Tidb(server));
        self.tidb.instances[instance].health = Health::Gone;
        if self.tidb.instances[instance].known {
            // Its info is bound to a session of 90 s, its ownership of DDL to one of 60 s.
            self.plan(90_000, Event::Tidb(TidbEvent::Forget(instance)));
        }
        if self.tidb.ddl_owner == Some(instance) {
            self.plan(60_000, Event::Tidb(TidbEvent::Campaign));
        }
        self.settled();
    }

    pub(super) fn tidb_event(&mut self, event: TidbEvent) {
        match event {
            TidbEvent::Unready(instance) => {
                self.set_health(instance, Health::Booting, Health::Unready);
            }
            TidbEvent::Serve(instance) => {
                self.set_health(instance, Health::Unready, Health::Serving);
                if self.tidb.instances[instance].health == Health::Serving {
                    self.tidb.instances[instance].known = true;
                    self.settled();
                    if self.tidb.ddl_owner.is_none() {
                        self.plan(100, Event::Tidb(TidbEvent::Campaign));
                    }
                }
            }
            TidbEvent::Close(instance) => {
                if self.tidb.instances[instance].health != Health::Gone {
                    self.tidb.instances[instance].health = Health::Closed;
                }
            }
            TidbEvent::Exit(instance) => self.tidb_gone(instance),
            TidbEvent::Forget(instance) => self.tidb.instances[instance].known = false,
            TidbEvent::Campaign => self.campaign(),
            TidbEvent::Submit(job) => self.submit(job),
            TidbEvent::Job(job) => self.run_job(job),
        }
    }

    fn set_health(&mut self, instance: usize, from: Health, to: Health) {
        let it = &mut self.tidb.instances[instance];
        if it.health == from {
            it.health = to;
        }
    }

    fn tidb_gone(&mut self, instance: usize) {
        let it = &mut self.tidb.instances[instance];
        if it.health == Health::Gone {
            return;
        }
        it.health = Health::Gone;
        it.known = false;
        let server = it.server;
        if self.tidb.servers[server].current == Some(instance) {
            self.tidb.servers[server].current = None;
            self.ending.remove(&ProcessRef::Tidb(server));
        }
        if self.tidb.ddl_owner == Some(instance) {
            self.tidb.ddl_owner = None;
            let in_ms = self.rng.range(50, 300);
            self.plan(in_ms, Event::Tidb(TidbEvent::Campaign));
        }
        self.settled();
    }

    /// The next server that serves owns DDL, the one that serves longest first.
    fn campaign(&mut self) {
        let held = self.tidb.ddl_owner.filter(|owner| self.tidb.instances[*owner].health != Health::Gone);
        if held.is_some() {
            return;
        }
        self.tidb.ddl_owner =
            (0..self.tidb.instances.len()).find(|index| self.tidb.instances[*index].health == Health::Serving);
        for job in 0..self.tidb.jobs.len() {
            self.plan(100, Event::Tidb(TidbEvent::Job(job)));
        }
    }

    /// `/ddl/owner/resign` at one server. False when it does not own DDL.
    pub(crate) fn resign_ddl(&mut self, server: usize) -> bool {
        let current = self.tidb.servers[server].current;
        if current.is_none() || self.tidb.ddl_owner != current {
            return false;
        }
        self.note_mutation();
        let next = (0..self.tidb.instances.len())
            .find(|index| Some(*index) != current && self.tidb.instances[*index].health == Health::Serving);
        self.tidb.ddl_owner = next.or(current);
        true
    }

    /// `/upgrade/start`: the state changes at once, the answer comes when the DDL owner has seen it.
    pub(crate) fn start_upgrading(&mut self) -> StartOutcome {
        self.note_mutation();
        if self.tidb.upgrading {
            return StartOutcome::Duplicated;
        }
        self.tidb.upgrading = true;
        self.tidb.finish_owed = true;
        self.trigger_upgrade_start();
        let owner = self.tidb.ddl_owner.is_some_and(|owner| self.tidb.instances[owner].health != Health::Gone);
        if !owner {
            return StartOutcome::Unconfirmed(10_000);
        }
        // Recorded: 2, 405, 809 and 1004 ms; the owner is asked every 200 ms.
        let rounds = self.rng.range(0, 5);
        StartOutcome::Started(2 + 200 * rounds)
    }

    /// `/upgrade/finish`. False when the state was normal already.
    pub(crate) fn finish_upgrading(&mut self) -> bool {
        self.note_mutation();
        if !self.tidb.upgrading {
            return false;
        }
        self.tidb.upgrading = false;
        self.tidb.finish_owed = false;
        for job in 0..self.tidb.jobs.len() {
            let in_ms = self.rng.range(100, 800);
            self.plan(in_ms, Event::Tidb(TidbEvent::Job(job)));
        }
        true
    }

    fn submit(&mut self, job: usize) {
        let in_ms = self.rng.range(30, 80);
        self.plan(in_ms, Event::Tidb(TidbEvent::Job(job)));
    }

    /// Runs a user's schema change, unless the upgrading state pauses it or nobody owns DDL.
    fn run_job(&mut self, job: usize) {
        let it = &self.tidb.jobs[job];
        if it.done || self.tidb.upgrading || self.tidb.ddl_owner.is_none() {
            return;
        }
        let (database, name) = (it.database.clone(), it.table.clone());
        self.tidb.jobs[job].done = true;
        let Some(index) = self.databases.iter().position(|(_, known)| *known == database) else {
            return;
        };
        let id = self.tables.iter().map(|table| table.id).max().unwrap_or(200) + 2;
        self.tables.push(Table { id, database: index, name });
        for feed in 0..self.feeds.len() {
            if self.feeds[feed].databases.contains(&database) {
                self.settle_checkpoint(feed);
                self.feeds[feed].spans.push(Span::absent(self.tables.len() - 1));
                self.restall(self.feeds[feed].cluster);
                self.plan_tick(feed);
            }
        }
    }

    /// How many schema changes of users wait: paused by the upgrading state, or without a DDL owner.
    pub fn waiting_ddl(&self) -> usize {
        self.tidb.jobs.iter().filter(|job| !job.done).count()
    }
}
