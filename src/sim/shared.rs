//! What all tasks of a running simulator share: the world, its clock, its ports.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use super::gate::Gate;
use super::serve;
use super::world::{ProcessRef, World};

pub(super) struct Shared {
    pub(super) clock: Clock,
    world: Mutex<World>,
    /// Something was set in motion that may open or close a port.
    moved: Notify,
    gates: tokio::sync::Mutex<Vec<(ProcessRef, Gate)>>,
    pub(super) ended: CancellationToken,
}

impl Shared {
    pub(super) fn new(clock: Clock, world: World, gates: Vec<(ProcessRef, Gate)>) -> Self {
        Self {
            clock,
            world: Mutex::new(world),
            moved: Notify::new(),
            gates: tokio::sync::Mutex::new(gates),
            ended: CancellationToken::new(),
        }
    }

    /// Brings the world up to now and does something with it.
    pub(super) fn with_world<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        // A panic in a handler leaves the world as it was before its event, which is still a world.
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.advance_to(self.clock.now_ms());
        let before = world.planned();
        let result = act(&mut world);
        let moved = world.planned() != before;
        drop(world);
        if moved {
            self.moved.notify_one();
        }
        result
    }

    /// Lets virtual time pass. A manual clock stands still: with it answers come at once.
    pub(super) async fn pass(&self, ms: u64) {
        if ms > 0 && !self.clock.is_manual() {
            tokio::time::sleep(self.clock.real_duration(ms)).await;
        }
    }

    /// Waits until a virtual time has come; a manual clock is moved there.
    pub(super) async fn reach(self: &Arc<Self>, at_ms: u64) {
        self.clock.advance_to(at_ms);
        loop {
            let now = self.clock.now_ms();
            if now >= at_ms {
                break;
            }
            self.pass(at_ms - now).await;
        }
        self.settle_ports().await;
    }

    /// Opens and closes ports as the world has it now. When this is done, a process that is down refuses.
    pub(super) async fn settle_ports(self: &Arc<Self>) {
        let mut gates = self.gates.lock().await;
        let listeners: Vec<Option<usize>> =
            self.with_world(|world| gates.iter().map(|(process, _)| world.listener(*process)).collect());
        for ((process, gate), listener) in gates.iter_mut().zip(listeners) {
            let process = *process;
            // A port that cannot be opened now is tried again the next time.
            let _ = gate.set(listener, &self.ended, || serve::app(Arc::clone(self), process)).await;
        }
    }

    /// Closes every port for good.
    pub(super) async fn close_ports(&self) {
        for (_, gate) in self.gates.lock().await.iter_mut() {
            gate.close().await;
        }
    }

    /// Keeps the ports as the world has them while virtual time passes.
    pub(super) async fn keep(self: Arc<Self>) {
        loop {
            self.settle_ports().await;
            let next = self.with_world(|world| world.next_event_ms());
            let wait = match next {
                Some(at) if !self.clock.is_manual() => {
                    let ms = at.saturating_sub(self.clock.now_ms());
                    self.clock.real_duration(ms).clamp(Duration::from_millis(2), Duration::from_secs(1))
                }
                _ => Duration::from_secs(1),
            };
            tokio::select! {
                () = self.ended.cancelled() => return,
                () = self.moved.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}
