//! PD servers: all that is asked of them is their version.

use crate::sim::scenario::Scenario;

use super::{Addresses, Event, ProcessRef, World};

/// A PD server.
#[derive(Debug)]
pub(crate) struct PdServer {
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) version: String,
    pub(crate) next_version: String,
    pub(crate) running: bool,
    /// How often it came up.
    pub(crate) starts: usize,
    pub(crate) refuse_until: Option<u64>,
}

impl World {
    pub(super) fn found_pd(&mut self, scenario: &Scenario, addresses: &Addresses) {
        for (index, version) in scenario.pd.versions.iter().enumerate() {
            self.pd.push(PdServer {
                name: format!("pd-{}", index + 1),
                address: addresses.pd.get(index).cloned().unwrap_or_default(),
                version: version.to_string(),
                next_version: version.to_string(),
                running: true,
                starts: 0,
                refuse_until: None,
            });
        }
    }

    pub(crate) fn pd_version(&self, server: usize) -> &str {
        &self.pd[server].version
    }

    pub(super) fn spawn_pd(&mut self, server: usize) {
        let overrides = self.take_overrides(ProcessRef::Pd(server));
        *self.referee.restarts.entry(self.pd[server].address.clone()).or_default() += 1;
        if overrides.no_return {
            return;
        }
        if let Some(version) = overrides.version {
            self.pd[server].next_version = version;
        }
        let in_ms = self.rng.range(self.rates.boot_ms.min, self.rates.boot_ms.max) + overrides.slow_ms;
        self.plan(in_ms, Event::PdUp(server));
    }

    pub(super) fn pd_up(&mut self, server: usize) {
        let it = &mut self.pd[server];
        it.running = true;
        it.starts += 1;
        it.version.clone_from(&it.next_version);
        self.settled();
    }

    pub(super) fn stop_pd(&mut self, server: usize) -> u64 {
        self.pd[server].running = false;
        self.ending.remove(&ProcessRef::Pd(server));
        0
    }
}
