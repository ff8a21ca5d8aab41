//! Who is a member of the new architecture, and how the office of its coordinator changes hands (recorded/README 18, 20,
//! 21, 32 to 34).

use crate::sim::scenario::Architecture;

use super::coordinator::Coordinator;
use super::{Event, World};

impl World {
    pub(super) fn is_new(&self, instance: usize) -> bool {
        self.instances[instance].architecture == Architecture::New
    }

    /// Whether what runs at a capture's address is of the new architecture.
    pub(crate) fn runs_new_architecture(&self, capture: usize) -> bool {
        self.slots[capture].architecture == Architecture::New
    }

    /// Whether a cluster has a coordinator that lives.
    pub(crate) fn coordinated(&self, cluster: usize) -> bool {
        self.living_owner(cluster).is_some_and(|owner| self.is_new(owner))
    }

    /// The captures in the owner's view, ghosts included.
    pub(super) fn members(&self, cluster: usize) -> Vec<usize> {
        self.clusters[cluster].office.as_ref().map(|office| office.members.clone()).unwrap_or_default()
    }

    /// The coordinator that is found in office: everybody is known to it.
    pub(super) fn found_coordinator(&mut self, cluster: usize, owner: usize, members: &[usize]) -> Option<Coordinator> {
        if !self.is_new(owner) {
            return None;
        }
        let term = self.clusters[cluster].terms;
        let due = self.rng.range(1_000, self.rates.balance_ms.max(1_001));
        self.plan(due, Event::Even { cluster, term });
        let mut coordinator = Coordinator::default();
        coordinator.heard.extend(members.iter().map(|member| (*member, 0)));
        Some(coordinator)
    }

    fn classic_is_registered(&self, cluster: usize) -> bool {
        self.instances
            .iter()
            .any(|it| it.cluster == cluster && it.registered && it.architecture == Architecture::Classic)
    }

    /// A capture of the new architecture does not join while one classic capture is registered.
    pub(super) fn must_wait(&mut self, instance: usize) -> bool {
        let waits = self.is_new(instance) && self.classic_is_registered(self.instances[instance].cluster);
        self.instances[instance].waiting = waits;
        waits
    }

    /// The keys of a capture are gone from etcd. Was it the last classic one, those that wait for that join.
    pub(super) fn wake_waiting(&mut self, cluster: usize) {
        if self.classic_is_registered(cluster) {
            return;
        }
        for instance in 0..self.instances.len() {
            let it = &self.instances[instance];
            if it.cluster == cluster && it.alive && it.waiting {
                let in_ms = self.rng.range(100, 250);
                self.plan(in_ms, Event::Register(instance));
            }
        }
    }

    /// A capture has joined: it reports to the coordinator soon, and gets no tables for long.
    pub(super) fn greet(&mut self, instance: usize) {
        let cluster = self.instances[instance].cluster;
        if self.coordinator(cluster).is_none() {
            return;
        }
        let hears_at = self.now + self.rng.range(50, 150);
        let even_from = self.now + self.rates.balance_ms;
        if let Some(coordinator) = self.coordinator_mut(cluster) {
            coordinator.heard.insert(instance, hears_at);
            coordinator.even_from = even_from;
        }
    }

    /// The coordinator was told to resign: its own status says so at once, the list a moment later.
    pub(super) fn begin_resign(&mut self, cluster: usize) {
        let term = self.clusters[cluster].term();
        let in_ms = self.rng.range(20, 80);
        if let Some(coordinator) = self.coordinator_mut(cluster).filter(|it| !it.resigning) {
            coordinator.resigning = true;
            self.plan(in_ms, Event::Resigned { cluster, term });
        }
    }

    pub(super) fn resigned(&mut self, cluster: usize, term: u64) {
        if self.clusters[cluster].term() != term {
            return;
        }
        if let Some(owner) = self.living_owner(cluster) {
            self.enter_queue(owner);
            self.vacate(cluster);
        }
    }

    /// A new coordinator comes in. A drain of the one before is lost with it; maintainers stay where they are, ones on
    /// a dead member too until that has left the list.
    pub(super) fn take_coordination(&mut self, cluster: usize, term: u64) {
        let members = self.members(cluster);
        let mut coordinator = Coordinator::default();
        for member in members.iter().copied().filter(|member| self.instances[*member].alive) {
            coordinator.heard.insert(member, self.now + self.rng.range(20, 80));
        }
        if members.iter().any(|member| self.is_leaving(*member)) {
            coordinator.clear_until = self.now + self.rng.range(200, 500);
        }
        if self.rates.bootstrap_ms.max > 0 {
            coordinator.ready_at = self.now + self.rng.range(self.rates.bootstrap_ms.min, self.rates.bootstrap_ms.max);
        }
        coordinator.even_from = self.now + self.rates.balance_ms;
        if let Some(office) = &mut self.clusters[cluster].office {
            office.coordinator = Some(coordinator);
        }
        self.plan(self.rates.balance_ms, Event::Even { cluster, term });
        for feed in self.clusters[cluster].feeds.clone() {
            if !self.feeds[feed].state.runs() {
                continue;
            }
            match self.feeds[feed].maintainer.as_ref().map(|it| it.on) {
                Some(on) if members.contains(&on) => {
                    self.orphan(feed, |member| !members.contains(&member));
                    self.plan_tick(feed);
                }
                _ => {
                    self.dismiss(feed);
                    self.order_maintainer(feed, 200, 600);
                }
            }
        }
    }

    /// The hold on a member that is gone has passed.
    pub(super) fn forget_member(&mut self, cluster: usize, instance: usize) {
        self.close_session_of(cluster, instance);
        let even_from = self.now + self.rates.balance_ms;
        if let Some(coordinator) = self.coordinator_mut(cluster) {
            coordinator.even_from = even_from;
        }
        for feed in self.clusters[cluster].feeds.clone() {
            if self.feeds[feed].maintainer.as_ref().is_some_and(|it| it.on == instance) {
                self.dismiss(feed);
                self.order_maintainer(feed, 200, 600);
            }
        }
        let in_ms = self.rng.range(50, 300);
        self.plan(in_ms, Event::Lost { cluster, instance });
        self.settled();
    }
}
