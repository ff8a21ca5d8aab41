//! All that a reader of a rollout holds: the newest view, the events, and a way to give commands. The screen and the
//! headless mode are two readers of the same handle; there is no second path to the cluster.

use std::sync::{Arc, OnceLock};

use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::cluster::Clock;
use crate::rollout::command::{Instruction, Permission, Who};
use crate::rollout::effect::Cut;
use crate::rollout::event::{Event, Fact, Weight};
use crate::rollout::view::View;

/// A command on its way to the engine, with the place for its answer.
#[derive(Debug)]
pub struct Order {
    /// Who gives it.
    pub who: Who,
    /// Which.
    pub instruction: Instruction,
    /// Where the engine says whether it took it.
    pub reply: oneshot::Sender<Permission>,
}

/// A reader's end of a running rollout. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    view: watch::Receiver<Arc<View>>,
    events: broadcast::Sender<Event>,
    orders: mpsc::Sender<Order>,
    idle: watch::Receiver<bool>,
    stop: CancellationToken,
    cut: Arc<OnceLock<(Cut, String)>>,
    clock: Arc<dyn Clock>,
}

impl Handle {
    /// Joins the ends; the driver keeps the others.
    pub fn new(
        view: watch::Receiver<Arc<View>>,
        events: broadcast::Sender<Event>,
        orders: mpsc::Sender<Order>,
        idle: watch::Receiver<bool>,
        stop: CancellationToken,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { view, events, orders, idle, stop, cut: Arc::default(), clock }
    }

    /// The newest view. A slow reader misses views, never the newest one.
    pub fn view(&self) -> watch::Receiver<Arc<View>> {
        self.view.clone()
    }

    /// The events from now on. A slow reader is told how many it missed.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    /// Gives a command and waits for the engine's word on it.
    pub async fn command(&self, who: &Who, instruction: impl Into<Instruction>) -> Permission {
        let gone = || Err("the rollout has ended".to_owned());
        let (reply, answer) = oneshot::channel();
        let order = Order { who: who.clone(), instruction: instruction.into(), reply };
        if self.orders.send(order).await.is_err() {
            return gone();
        }
        answer.await.unwrap_or_else(|_| gone())
    }

    /// Says something to whoever reads the events: of the program, not of the cluster, so it is on no record.
    pub fn note(&self, weight: Weight, text: impl Into<String>) {
        let fact = Fact::Noted { weight, text: text.into() };
        // Nobody listening is no error.
        let _ = self.events.send(Event { at: self.clock.now(), fact });
    }

    /// The clock that ages are measured with.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// Whether nothing is under way: no effect outstanding, no input unread. Tests wait for it instead of sleeping.
    pub fn idle(&self) -> watch::Receiver<bool> {
        self.idle.clone()
    }

    /// Tells the driver to finish the calls in flight and end; nothing new starts.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Tells the driver to end for this reason; the first reason given counts.
    pub fn end(&self, cut: Cut, reason: impl Into<String>) {
        // A second reason changes nothing: the first one is what happened.
        let _ = self.cut.set((cut, reason.into()));
        self.stop.cancel();
    }

    /// Why the driver was told to end, if a reason was given.
    pub fn cut(&self) -> Option<(Cut, String)> {
        self.cut.get().cloned()
    }

    /// Resolves when the driver was told to end.
    pub fn stopped(&self) -> CancellationToken {
        self.stop.clone()
    }
}
