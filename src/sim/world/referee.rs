//! The referee: what truly happened, whatever a client believed.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Component, ProcessRef, World};
use crate::sim::scenario::Span;

/// What the world wrote down of a rollout. Times are virtual milliseconds.
#[derive(Debug, Clone, Default)]
pub struct Referee {
    /// Every process of `TiCDC` and `TiDB` that was stopped or killed, in order.
    pub stops: Vec<Stop>,
    /// How often a process was started again, by address (for `TiDB` the status address).
    pub restarts: BTreeMap<String, u64>,
    /// The longest time that a `TiCDC` cluster was without an owner that lives.
    pub max_no_owner_ms: u64,
    /// The largest checkpoint lag of a changefeed that was running.
    pub worst_lag_ms: u64,
    /// Least time the stops that happened can take one after another.
    pub minimum_ms: u64,
    /// When the first request came that changes something.
    pub first_at: Option<u64>,
    /// When the last effect of one came to its end.
    pub settled_at: Option<u64>,
    /// Requests by method and route template.
    pub requests: BTreeMap<String, u64>,
}

/// A process that was stopped or killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stop {
    /// `ticdc` or `tidb`.
    pub component: Component,
    /// Its address (for `TiDB` the status address).
    pub address: String,
    /// Tables it carried at that moment, prepared ones included; 0 for `TiDB`.
    pub tables: usize,
    /// Whether it owned its `TiCDC` cluster; false for `TiDB`.
    pub was_owner: bool,
    /// Whether the client said that it means it.
    pub forced: bool,
    /// When.
    pub at_ms: u64,
}

impl Referee {
    /// From the first request that changes something to the end of the last effect.
    pub fn elapsed_ms(&self) -> u64 {
        match (self.first_at, self.settled_at) {
            (Some(first), Some(last)) => last.saturating_sub(first),
            _ => 0,
        }
    }
}

impl World {
    /// What truly happened so far.
    pub fn referee(&self) -> &Referee {
        &self.referee
    }

    /// Addresses of captures that run and are stopping.
    pub fn left_stopping(&self) -> Vec<String> {
        let mut left: Vec<String> = self
            .slots
            .iter()
            .filter(|slot| slot.current.is_some_and(|current| self.instances[current].liveness.is_leaving()))
            .map(|slot| slot.address.clone())
            .collect();
        left.sort();
        left
    }

    /// The longest time without an owner, one that lasts included.
    pub fn max_no_owner_ms(&self) -> u64 {
        let lasting = self.clusters.iter().filter_map(|cluster| cluster.vacant_since).map(|since| self.now - since);
        lasting.chain([self.referee.max_no_owner_ms]).max().unwrap_or(0)
    }

    /// Counts a request, by method and route template.
    pub fn count_request(&mut self, method_and_route: &str) {
        *self.referee.requests.entry(method_and_route.to_owned()).or_default() += 1;
    }

    /// A request came that changes something.
    pub(super) fn note_mutation(&mut self) {
        self.referee.first_at.get_or_insert(self.now);
        self.settled();
    }

    /// Adds the least time that a stop can take: the tables the capture had when its drain began at the rates of the
    /// scenario, then restart and registration.
    pub(super) fn add_minimum(&mut self, component: Component, is_new: bool, drained_from: &[usize]) {
        let rates = &self.rates;
        let mean = |span: Span| u64::midpoint(span.min, span.max);
        let own = match component {
            Component::Ticdc if is_new => {
                let drain = drained_from.iter().map(|tables| self.least_flow_ms(*tables)).max();
                // The drain is over about two seconds after the last table has gone, and the next one can begin once the
                // old process has left the list: the restart falls into that time.
                let hold = 5_000_u64.saturating_sub(mean(rates.restart_ms) + mean(rates.boot_ms));
                drain.map_or(0, |ms| ms + 2_000) + hold
            }
            Component::Ticdc => {
                let drain = drained_from.iter().map(|tables| self.least_drain_ms(*tables)).max();
                drain.unwrap_or(0) + mean(rates.ready_ms) + mean(rates.registration_ms)
            }
            Component::Tidb => rates.tidb_graceful_wait_ms + rates.tidb_close_ms + 100,
            Component::Pd => 0,
        };
        self.referee.minimum_ms += own + mean(rates.restart_ms) + mean(rates.boot_ms);
    }

    /// How long a changefeed needs to move this many tables, ten at a time: a batch lasts as long as its slowest one.
    fn least_drain_ms(&self, tables: usize) -> u64 {
        let full = u64::try_from(tables / self.rates.concurrency).unwrap_or(0);
        let rest = tables % self.rates.concurrency;
        full * self.batch_ms(self.rates.concurrency) + if rest > 0 { self.batch_ms(rest) } else { 0 }
    }

    /// The same for a maintainer of the new architecture, which orders the next move as soon as one has ended: only the
    /// last ones have to be waited for.
    fn least_flow_ms(&self, tables: usize) -> u64 {
        let Some(before) = tables.checked_sub(1) else {
            return 0;
        };
        let full = u64::try_from(before / self.rates.concurrency).unwrap_or(0);
        let last = before % self.rates.concurrency + 1;
        full * u64::midpoint(self.rates.move_ms.min, self.rates.move_ms.max) + self.batch_ms(last)
    }

    fn batch_ms(&self, size: usize) -> u64 {
        let width = self.rates.move_ms.max - self.rates.move_ms.min;
        let size = u64::try_from(size).unwrap_or(0);
        self.rates.move_ms.min + width * size / (size + 1)
    }

    /// Whether anything is running at this process that could be stopped: for the control server's answers.
    pub fn instance_of(&self, process: ProcessRef) -> (Option<String>, Option<String>) {
        match process {
            ProcessRef::Capture(slot) => {
                let current = self.slots[slot].current.map(|current| &self.instances[current]);
                (current.map(|instance| instance.id.clone()), current.map(|instance| instance.version.clone()))
            }
            ProcessRef::Tidb(server) => {
                let current = self.tidb.current(server);
                (current.map(|instance| instance.ddl_id.clone()), current.map(|instance| instance.version.clone()))
            }
            ProcessRef::Pd(server) => {
                let it = &self.pd[server];
                (None, it.running.then(|| it.version.clone()))
            }
        }
    }
}
