//! The life of a capture's process.

use super::types::Liveness;
use super::{Event, ProcessRef, World};

impl World {
    /// A process is started in a slot: refused for 0.1 to 0.15 s, listed by then, not ready for 0.1 to 0.3 s more
    /// (recorded).
    pub(super) fn spawn_capture(&mut self, slot: usize) {
        let overrides = self.take_overrides(ProcessRef::Capture(slot));
        let version = overrides.version.unwrap_or_else(|| self.slots[slot].version.clone());
        self.slots[slot].version.clone_from(&version);
        let instance = self.new_instance(slot, &version);
        let address = self.slots[slot].address.clone();
        *self.referee.restarts.entry(address).or_default() += 1;
        if overrides.no_return {
            self.plan(1_000, Event::Exit(instance));
            return;
        }
        let boot = self.rng.range(self.rates.boot_ms.min, self.rates.boot_ms.max) + overrides.slow_ms;
        if self.is_new(instance) {
            // It answers as soon as it listens, and is in no list yet (recorded/README 34).
            let joins = self.rng.range(100, 400);
            self.instances[instance].ready_at = self.now + boot;
            self.plan(boot, Event::Ready(instance));
            self.plan(boot, Event::Listen(instance));
            self.plan(boot + joins, Event::Register(instance));
            return;
        }
        let ready = self.rng.range(self.rates.ready_ms.min, self.rates.ready_ms.max);
        self.plan(boot.saturating_sub(10), Event::Register(instance));
        self.plan(boot, Event::Listen(instance));
        self.instances[instance].ready_at = self.now + boot + ready;
        self.plan(boot + ready, Event::Ready(instance));
    }

    pub(super) fn listen(&mut self, instance: usize) {
        self.instances[instance].listening = self.instances[instance].alive;
    }

    pub(super) fn register(&mut self, instance: usize) {
        if self.instances[instance].alive && !self.must_wait(instance) {
            self.enter_queue(instance);
            self.join(instance);
        }
    }

    pub(super) fn ready(&mut self, instance: usize) {
        if self.instances[instance].alive {
            self.instances[instance].ready = true;
            self.settled();
        }
    }

    /// A capture is told to end: within 11 to 58 ms it is gone, and it moves no table before (recorded).
    pub(super) fn stop_capture(&mut self, instance: usize) -> u64 {
        let in_ms = self.rng.range(11, 58);
        // It sets its own liveness, but is gone before a heartbeat could tell anybody.
        // In the new architecture it does not even do that (contract section 3.2).
        if self.is_owner(instance) && !self.is_new(instance) {
            self.instances[instance].liveness = Liveness::Stopping;
        }
        self.plan(in_ms, Event::Exit(instance));
        in_ms
    }

    /// A process has ended by itself: its keys are gone at once, the owner holds it in its list for 5 s more.
    pub(super) fn exit(&mut self, instance: usize) {
        if !self.instances[instance].alive {
            return;
        }
        let was_owner = self.is_owner(instance);
        let registered = self.instances[instance].registered;
        self.end_process(instance);
        self.instances[instance].registered = false;
        let cluster = self.instances[instance].cluster;
        if was_owner {
            self.vacate(cluster);
        } else if registered {
            let most = if self.is_new(instance) { 5_050 } else { 5_150 };
            let in_ms = self.rng.range(5_000, most);
            self.plan_drop(instance, in_ms);
        }
        self.wake_waiting(cluster);
        self.restall(cluster);
    }

    /// A process dies without a word: its keys stay until the lease lapses.
    pub(super) fn kill_capture(&mut self, instance: usize) {
        if !self.instances[instance].alive {
            return;
        }
        let was_owner = self.is_owner(instance);
        self.end_process(instance);
        if self.instances[instance].registered {
            // The lease runs from the last keepalive. The owner was missed for 8.0 to 9.5 s, others were listed for
            // 11.6 to 13.4 s with the owner's own hold (recorded; contract section 11).
            let in_ms = match (self.is_new(instance), was_owner) {
                (false, true) => self.rng.range(8_000, 9_500),
                (false, false) => self.rng.range(6_700, 8_300),
                (true, true) => self.rng.range(8_000, 9_200),
                // In the new architecture 13.2 to 13.4 s in all (recorded/README 20).
                (true, false) => self.rng.range(8_200, 8_300),
            };
            self.plan(in_ms, Event::LeaseLapse(instance));
        }
        let cluster = self.instances[instance].cluster;
        if was_owner {
            self.clusters[cluster].vacant_since.get_or_insert(self.now);
        }
        self.restall(cluster);
    }

    fn end_process(&mut self, instance: usize) {
        let cluster = self.instances[instance].cluster;
        for feed in self.clusters[cluster].feeds.clone() {
            self.settle_checkpoint(feed);
        }
        let it = &mut self.instances[instance];
        it.alive = false;
        it.listening = false;
        it.ready = false;
        let slot = it.slot;
        if self.slots[slot].current == Some(instance) {
            self.slots[slot].current = None;
            self.ending.remove(&ProcessRef::Capture(slot));
        }
        self.settled();
    }

    pub(super) fn lease_lapse(&mut self, instance: usize) {
        self.instances[instance].registered = false;
        if !self.is_new(instance) {
            // A coordinator that comes in sees a dead one all the same, a classic owner does not (recorded/README 32).
            self.instances[instance].rev = 0;
        }
        self.wake_waiting(self.instances[instance].cluster);
        if self.is_owner(instance) {
            self.vacate(self.instances[instance].cluster);
        } else {
            let in_ms = self.rng.range(5_000, 5_100);
            self.plan_drop(instance, in_ms);
        }
    }

    fn plan_drop(&mut self, instance: usize, in_ms: u64) {
        let cluster = self.instances[instance].cluster;
        let term = self.clusters[cluster].term();
        self.plan(in_ms, Event::Drop { cluster, term, instance });
    }

    /// Whether a capture holds the office, living or dead.
    pub(super) fn is_owner(&self, instance: usize) -> bool {
        self.clusters[self.instances[instance].cluster].office.as_ref().is_some_and(|office| office.owner == instance)
    }

    pub(super) fn names_of(&self, instance: usize) -> (String, String) {
        let slot = &self.slots[self.instances[instance].slot];
        (slot.name.clone(), slot.address.clone())
    }
}
