//! Election and office: who owns a `TiCDC` cluster, whom the owner sees, and what is left when it goes.
//!
//! Every capture has a key in the election, the lowest create revision owns, one that resigned goes to the end of the
//! queue (contract section 11). A capture that is stopping never campaigns.

use semver::Version;

use crate::sim::scenario::Architecture;

use super::types::{Office, Sched, SpanState, Vacancy};
use super::{Event, World};

impl World {
    pub(super) fn install_found_owner(&mut self, cluster: usize, members: &[usize]) {
        let Some(owner) = members.first() else { return };
        self.clusters[cluster].terms += 1;
        let coordinator = self.found_coordinator(cluster, *owner, members);
        let it = &mut self.clusters[cluster];
        it.last_owner = Some(*owner);
        it.office = Some(Office { owner: *owner, term: it.terms, members: members.to_vec(), coordinator });
    }

    /// Puts a capture's keys into etcd, its election key at the end of the queue.
    pub(super) fn enter_queue(&mut self, instance: usize) {
        let cluster = &mut self.clusters[self.instances[instance].cluster];
        self.instances[instance].registered = true;
        self.instances[instance].rev = cluster.next_rev;
        cluster.next_rev += 1;
    }

    /// The owner of a cluster, if there is one and its process lives.
    pub(super) fn living_owner(&self, cluster: usize) -> Option<usize> {
        let office = self.clusters[cluster].office.as_ref()?;
        self.instances[office.owner].alive.then_some(office.owner)
    }

    /// Whether the versions in the owner's view are more than may run together: the owner then stops working while its
    /// lists still answer (contract section 5; recording cdc-classic-more 18). Classic only.
    pub(super) fn frozen(&self, cluster: usize) -> bool {
        let it = &self.clusters[cluster];
        it.architecture == Architecture::Classic
            && it.office.as_ref().is_some_and(|office| self.too_many_versions(&office.members))
    }

    fn too_many_versions(&self, members: &[usize]) -> bool {
        let mut versions: Vec<&str> = members.iter().map(|member| self.instances[*member].version.as_str()).collect();
        versions.sort_unstable();
        versions.dedup();
        match versions.as_slice() {
            [] | [_] => false,
            [_, _] => !versions.iter().all(|version| rolls(version)),
            _ => true,
        }
    }

    /// `/owner/resign`: answered before anything has happened, also when the role is gone already.
    pub fn resign(&mut self, cluster: usize) {
        self.note_mutation();
        match self.living_owner(cluster) {
            Some(owner) if self.is_new(owner) => self.begin_resign(cluster),
            Some(owner) => {
                self.enter_queue(owner);
                self.vacate(cluster);
            }
            None => {}
        }
        let id = self.clusters[cluster].id.clone();
        self.trigger_resign(&id);
    }

    /// The owner is gone, whether it resigned or its process ended.
    pub(super) fn vacate(&mut self, cluster: usize) {
        for feed in self.clusters[cluster].feeds.clone() {
            self.lose_scheduler(feed);
        }
        let it = &mut self.clusters[cluster];
        if let Some(office) = it.office.take() {
            it.last_owner = Some(office.owner);
        }
        it.vacancy = Vacancy::Handover;
        it.vacant_since.get_or_insert(self.now);
        self.restall(cluster);
        let able = self.candidates(cluster);
        // Alone, the same capture owns again after 150 ms (recording cdc-classic 106). The new architecture shows no gap
        // (recorded/README 20).
        let gap = if self.clusters[cluster].architecture == Architecture::New {
            0
        } else if able.len() == 1 && Some(able[0]) == self.clusters[cluster].last_owner {
            150
        } else {
            self.rng.range(self.rates.handover_ms.min, self.rates.handover_ms.max)
        };
        self.call_election(cluster, gap);
    }

    pub(super) fn call_election(&mut self, cluster: usize, in_ms: u64) {
        self.clusters[cluster].round += 1;
        let round = self.clusters[cluster].round;
        self.plan(in_ms, Event::Elect { cluster, round });
    }

    fn candidates(&self, cluster: usize) -> Vec<usize> {
        let mut able: Vec<usize> = (0..self.instances.len())
            .filter(|index| {
                let it = &self.instances[*index];
                it.cluster == cluster && it.registered && it.alive && !it.liveness.is_leaving()
            })
            .collect();
        able.sort_by_key(|index| self.instances[*index].rev);
        able
    }

    pub(super) fn elect(&mut self, cluster: usize, round: u64) {
        if self.clusters[cluster].round != round || self.clusters[cluster].office.is_some() {
            return;
        }
        let Some(owner) = self.candidates(cluster).first().copied() else {
            self.clusters[cluster].vacancy = Vacancy::Nobody;
            return;
        };
        let mut members: Vec<usize> = (0..self.instances.len())
            .filter(|index| self.instances[*index].cluster == cluster && self.instances[*index].registered)
            .collect();
        // The keys of an owner that ended by itself vanish as the next one comes in, which still sees it for the hold.
        // One that crashed lost its place in the queue with its lease, and is never listed (recorded).
        let ghost = self.clusters[cluster].last_owner.filter(|last| {
            let it = &self.instances[*last];
            // A classic one is not seen by the first coordinator after it.
            !it.alive && !it.registered && it.rev != 0 && it.architecture == self.instances[owner].architecture
        });
        members.extend(ghost);
        if !self.is_new(owner) && self.too_many_versions(&members) {
            // The elected one never gets through its first round, so it never answers; it heals by itself once the set
            // of versions is legal again (recording cdc-classic-more 18).
            self.clusters[cluster].vacancy = Vacancy::Handover;
            self.forget_ghost(cluster);
            self.call_election(cluster, 500);
            return;
        }
        let it = &mut self.clusters[cluster];
        it.terms += 1;
        let term = it.terms;
        it.last_owner = Some(owner);
        it.architecture = self.instances[owner].architecture;
        it.office = Some(Office { owner, term, members, coordinator: None });
        if let Some(since) = it.vacant_since.take() {
            self.referee.max_no_owner_ms = self.referee.max_no_owner_ms.max(self.now - since);
        }
        if let Some(ghost) = ghost {
            self.instances[ghost].rev = 0;
            let hold = self.rng.range(4_850, 5_050);
            self.plan(hold, Event::Drop { cluster, term, instance: ghost });
        }
        if self.is_new(owner) {
            self.take_coordination(cluster, term);
        } else {
            for feed in self.clusters[cluster].feeds.clone() {
                if self.feeds[feed].maintainer.is_some() {
                    self.dismiss(feed);
                }
                if self.feeds[feed].state.runs() {
                    let in_ms = self.rng.range(60, 500);
                    self.plan(in_ms, Event::Built { feed, term });
                }
            }
        }
        self.restall(cluster);
        self.settled();
    }

    fn forget_ghost(&mut self, cluster: usize) {
        if let Some(last) = self.clusters[cluster].last_owner
            && !self.instances[last].alive
        {
            self.instances[last].rev = 0;
        }
    }

    /// A capture has registered while somebody owns: the owner sees it at once.
    pub(super) fn join(&mut self, instance: usize) {
        let cluster = self.instances[instance].cluster;
        let Some(office) = self.clusters[cluster].office.as_mut() else {
            if self.is_new(instance) {
                self.call_election(cluster, 0);
            } else if self.clusters[cluster].vacancy == Vacancy::Nobody {
                let gap = self.rng.range(50, 150);
                self.call_election(cluster, gap);
            }
            return;
        };
        office.members.push(instance);
        self.greet(instance);
        self.learn(cluster);
        self.restall(cluster);
    }

    /// Lets every scheduler know the captures it does not know yet. Not while the versions are illegal.
    pub(super) fn learn(&mut self, cluster: usize) {
        if self.frozen(cluster) {
            return;
        }
        let Some(office) = &self.clusters[cluster].office else {
            return;
        };
        let (members, term) = (office.members.clone(), office.term);
        for feed in self.clusters[cluster].feeds.clone() {
            for member in &members {
                let Some(sched) = &mut self.feeds[feed].sched else {
                    continue;
                };
                if sched.captures.contains_key(member) {
                    continue;
                }
                sched.captures.insert(*member, false);
                // It answers once it is ready, so that health is bad for a moment after its own status is good.
                let ready_in = self.instances[*member].ready_at.saturating_sub(self.now);
                let answers_in = self.rng.range(self.rates.registration_ms.min, self.rates.registration_ms.max);
                self.plan(ready_in + answers_in, Event::Init { feed, term, instance: *member });
            }
        }
    }

    /// The hold on a capture that is gone has passed: it leaves the owner's view, and its tables are nobody's.
    pub(super) fn drop_member(&mut self, cluster: usize, term: u64, instance: usize) {
        let Some(office) = &mut self.clusters[cluster].office else {
            return;
        };
        if office.term != term {
            return;
        }
        office.members.retain(|member| *member != instance);
        if office.coordinator.is_some() {
            self.forget_member(cluster, instance);
            return;
        }
        for feed in self.clusters[cluster].feeds.clone() {
            self.settle_checkpoint(feed);
            let it = &mut self.feeds[feed];
            if let Some(sched) = &mut it.sched {
                sched.captures.remove(&instance);
                if sched.target == Some(instance) {
                    sched.target = None;
                }
            }
            self.orphan(feed, |member| member == instance);
            // It may have been the last one that had not answered.
            self.take_over(feed);
        }
        self.learn(cluster);
        self.restall(cluster);
        self.settled();
    }

    /// Takes tables away from captures that are not there any more.
    pub(super) fn orphan(&mut self, feed: usize, gone: impl Fn(usize) -> bool) {
        for span in 0..self.feeds[feed].spans.len() {
            let it = &mut self.feeds[feed].spans[span];
            let (before, prepared) = (it.state, it.ripe);
            it.state = match before {
                SpanState::Replicating(on) | SpanState::Adding(on) if gone(on) => SpanState::Absent,
                SpanState::Moving { from, to } if gone(from) && gone(to) => SpanState::Absent,
                SpanState::Moving { from, to } if gone(to) => SpanState::Replicating(from),
                SpanState::Moving { from, to } if gone(from) => SpanState::Adding(to),
                SpanState::Leaving { from, .. } if gone(from) => SpanState::Absent,
                SpanState::Leaving { from, to } if gone(to) => SpanState::Replicating(from),
                SpanState::Flying { to, .. } if gone(to) => SpanState::Absent,
                unchanged => unchanged,
            };
            if it.state == before {
                continue;
            }
            it.generation += 1;
            it.ripe = false;
            if let SpanState::Adding(_) = it.state {
                // It is half prepared already.
                let generation = it.generation;
                let in_ms = if prepared { 50 } else { self.rates.place_ms.min };
                self.plan(in_ms, Event::SpanDone { feed, span, generation });
            }
        }
    }

    pub(super) fn built(&mut self, feed: usize, term: u64) {
        let cluster = self.feeds[feed].cluster;
        if self.clusters[cluster].term() != term || !self.feeds[feed].state.runs() || self.feeds[feed].sched.is_some() {
            return;
        }
        if self.frozen(cluster) {
            self.plan(500, Event::Built { feed, term });
            return;
        }
        self.feeds[feed].sched = Some(Sched::new(term));
        let members = self.clusters[cluster].office.as_ref().map(|office| office.members.clone());
        // A scheduler hears of all captures in about the same moment; one in four is late (recording cdc-classic-more
        // 16, where the second changefeed took a second longer).
        let late = if self.rng.range(0, 3) == 0 { 600 } else { 0 };
        for instance in members.unwrap_or_default() {
            if let Some(sched) = &mut self.feeds[feed].sched {
                sched.captures.insert(instance, false);
            }
            let in_ms = self.rng.range(50, 150) + late;
            self.plan(in_ms, Event::Init { feed, term, instance });
        }
        self.plan(self.rates.balance_ms, Event::Balance { feed, term });
    }

    /// A capture answers a scheduler for the first time. One that is gone never does.
    pub(super) fn init(&mut self, feed: usize, term: u64, instance: usize) {
        let cluster = self.feeds[feed].cluster;
        if self.clusters[cluster].term() != term || !self.instances[instance].alive {
            return;
        }
        if self.frozen(cluster) {
            self.plan(500, Event::Init { feed, term, instance });
            return;
        }
        let Some(sched) = &mut self.feeds[feed].sched else {
            return;
        };
        match sched.captures.get_mut(&instance) {
            Some(known) if !*known => *known = true,
            _ => return,
        }
        self.take_over(feed);
        self.restall(cluster);
    }

    /// Once every capture has answered, a scheduler knows where tables are: what nobody has is nobody's.
    fn take_over(&mut self, feed: usize) {
        if !self.feeds[feed].initialised() {
            return;
        }
        self.settle_checkpoint(feed);
        let known: Vec<usize> =
            self.feeds[feed].sched.as_ref().map(|sched| sched.captures.keys().copied().collect()).unwrap_or_default();
        self.orphan(feed, |on| !known.contains(&on));
        self.end_ripe(feed);
        self.plan_tick(feed);
        self.settled();
    }
}

/// Whether a version may run beside one other version.
fn rolls(text: &str) -> bool {
    let Ok(version) = Version::parse(text.trim_start_matches('v')) else {
        return false;
    };
    let (low, high) = (Version::new(6, 3, 0), Version::new(10, 0, 0));
    version >= low && version < high
}
