//! The only async glue: it polls, calls, runs executors and feeds the engine.
//!
//! One actor owns the engine; pollers, calls and acts are tasks that send it inputs. It publishes the newest view on a
//! `watch` channel (a slow reader can never hold the rollout back) and facts on a bounded `broadcast`. It refuses to know
//! the screen, the command line and the simulator. One invariant: an effect is counted as outstanding before its task
//! is spawned, so *idle* never lies.

pub mod clock;
pub mod handle;
pub mod keeper;
pub mod link;
pub mod live;
pub mod poller;
pub mod servers;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cluster::Clock;
use crate::exec::Executor;
use crate::rollout::durable::Durable;
use crate::rollout::effect::{ActionOutcome, Cut, Effect, Input, Pace, Watch};
use crate::rollout::event::Event;
use crate::rollout::policy::Policy;
use crate::rollout::record::Record;
use crate::rollout::view::{Mode, View};
use crate::rollout::{Engine, Request, StepOutput};
use handle::{Handle, Order};
use keeper::{Desk, Keeper};
use poller::{Poller, Source};
use servers::Servers;

/// Everything a rollout runs with.
pub struct Setup {
    /// What is asked.
    pub request: Request,
    /// The numbers.
    pub policy: Policy,
    /// The servers.
    pub servers: Arc<dyn Servers>,
    /// How processes are restarted; watching needs none.
    pub executor: Option<Arc<dyn Executor>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Where it is kept; `None` keeps nothing, and then nothing can be resumed.
    pub keeper: Option<Box<dyn Keeper>>,
    /// What a journal kept of it before, where it goes on.
    pub resumed: Option<Durable>,
    /// Whether the cluster goes on being read after the end, for a screen that is still open.
    pub lingers: bool,
}

/// Inputs that may wait to be taken in.
const INPUTS: usize = 256;
/// Events a reader may be behind before it is told that it missed some.
const EVENTS: usize = 4_096;
/// How long calls in flight are waited for when the rollout is ended from outside.
pub const LAST_CALLS: Duration = Duration::from_secs(30);

/// A rollout under way.
pub struct Started {
    /// The readers' end.
    pub handle: Handle,
    /// Every event from the first one on.
    pub events: broadcast::Receiver<Event>,
    /// Ends with the last view.
    pub task: JoinHandle<Arc<View>>,
}

/// Starts a rollout.
pub fn start(mut setup: Setup) -> Started {
    let engine = match setup.resumed.take() {
        Some(durable) => Engine::resume(setup.request.clone(), setup.policy.clone(), durable, setup.clock.now()),
        None => Engine::new(setup.request.clone(), setup.policy.clone()),
    };
    let desk = Desk::new(setup.keeper.take());
    let (view_in, view_out) = watch::channel(Arc::new(engine.view()));
    let (events, first_events) = broadcast::channel(EVENTS);
    let (orders_in, orders) = mpsc::channel(16);
    let (inputs_in, inputs) = mpsc::channel(INPUTS);
    let (watch_in, watch_out) = watch::channel(Watch { pace: Pace::Moving, target: None });
    let (idle_in, idle_out) = watch::channel(false);
    let stop = CancellationToken::new();
    let handle = Handle::new(view_out, events.clone(), orders_in, idle_out, stop.clone(), Arc::clone(&setup.clock));
    let pollers = CancellationToken::new();
    let sources = [
        (Source::Cdc, true),
        (Source::Tidb, setup.request.has_tidb),
        (Source::Pd, setup.request.has_pd),
        (Source::Names, setup.request.has_tidb),
    ];
    for (source, _) in sources.into_iter().filter(|(_, is_wanted)| *is_wanted) {
        let poller = Poller {
            source,
            servers: Arc::clone(&setup.servers),
            clock: Arc::clone(&setup.clock),
            policy: setup.policy.clone(),
            watch: watch_out.clone(),
            inputs: inputs_in.clone(),
            stop: pollers.clone(),
            before: None,
        };
        tokio::spawn(poller.run());
    }
    let actor = Actor {
        engine,
        desk,
        setup,
        inputs,
        inputs_in,
        orders,
        view: view_in,
        events,
        watch: watch_in,
        idle: idle_in,
        handle: handle.clone(),
        outstanding: 0,
    };
    let task = tokio::spawn(async move {
        let last = actor.run(stop).await;
        pollers.cancel();
        last
    });
    Started { handle, events: first_events, task }
}

struct Actor {
    engine: Engine,
    desk: Desk,
    setup: Setup,
    inputs: mpsc::Receiver<Input>,
    inputs_in: mpsc::Sender<Input>,
    orders: mpsc::Receiver<Order>,
    view: watch::Sender<Arc<View>>,
    events: broadcast::Sender<Event>,
    watch: watch::Sender<Watch>,
    idle: watch::Sender<bool>,
    handle: Handle,
    outstanding: usize,
}

impl Actor {
    async fn run(mut self, stop: CancellationToken) -> Arc<View> {
        let mut wake = self.take(Input::Tick).await;
        loop {
            if self.is_over() && !self.setup.lingers {
                break;
            }
            let _ = self.idle.send_replace(self.outstanding == 0 && self.inputs.is_empty());
            tokio::select! {
                biased;
                () = stop.cancelled() => {
                    self.wind_up().await;
                    break;
                }
                Some(order) = self.orders.recv() => {
                    let now = self.setup.clock.now();
                    let (permission, out) = self.engine.command(now, &order.who, order.instruction);
                    wake = self.carry_out(out).await;
                    self.publish();
                    // A reader that has gone does not wait for its answer.
                    let _ = order.reply.send(permission);
                }
                Some(input) = self.inputs.recv() => {
                    wake = self.take(input).await;
                    // A burst of inputs costs one view.
                    while let Ok(input) = self.inputs.try_recv() {
                        wake = self.take(input).await;
                    }
                    self.publish();
                }
                () = tokio::time::sleep(wake) => {
                    wake = self.take(Input::Tick).await;
                    self.publish();
                }
            }
        }
        self.publish();
        let _ = self.idle.send_replace(true);
        Arc::clone(&self.view.borrow())
    }

    fn is_over(&self) -> bool {
        matches!(self.view.borrow().mode, Mode::Ended(_))
    }

    /// Ends from outside: nothing new starts, calls in flight are waited for, what is owed is said.
    async fn wind_up(&mut self) {
        if self.is_over() {
            return;
        }
        let (cut, reason) = self
            .handle
            .cut()
            .unwrap_or_else(|| (Cut::Interrupted, "Interrupted; the servers go on with what they have.".to_owned()));
        let who = crate::rollout::command::Who::new("signal");
        let now = self.setup.clock.now();
        let (_, out) = self.engine.command(now, &who, crate::rollout::command::Command::Pause);
        self.carry_out(out).await;
        let last = tokio::time::sleep(LAST_CALLS);
        tokio::pin!(last);
        while self.outstanding > 0 {
            tokio::select! {
                () = &mut last => break,
                Some(input) = self.inputs.recv() => { self.take(input).await; }
            }
        }
        self.take(Input::Cut { cut, reason }).await;
    }

    /// Gives the engine an input and does what it says; how long until it wants the time told.
    async fn take(&mut self, input: Input) -> Duration {
        if matches!(input, Input::Answer { .. } | Input::Outcome { .. }) {
            self.outstanding = self.outstanding.saturating_sub(1);
        }
        let now = self.setup.clock.now();
        let out = self.engine.step(now, input);
        self.carry_out(out).await
    }

    /// Does what the engine says: first all of it is kept, then facts are told and effects done. What could not be kept
    /// is not done, and the engine is told so.
    async fn carry_out(&mut self, out: StepOutput) -> Duration {
        let mut out = out;
        let mut wake_at;
        loop {
            wake_at = out.wake_at;
            let was_waiting = self.desk.has_waiting();
            let kept = self.keep(&out).await;
            for event in out.events {
                // Nobody listening is no error: the view says the same.
                let _ = self.events.send(event);
            }
            let told = match (kept, was_waiting) {
                (Ok(()), was_waiting) => {
                    out.effects.into_iter().for_each(|effect| self.perform(effect));
                    was_waiting.then_some(Input::Unwritten(None))
                }
                (Err(why), _) => {
                    out.effects.into_iter().for_each(|effect| self.refuse(effect));
                    // It was told already while it waits.
                    (!was_waiting).then(|| Input::Unwritten(Some(why)))
                }
            };
            let Some(input) = told else { break };
            out = self.engine.step(self.setup.clock.now(), input);
        }
        let now = self.setup.clock.now();
        wake_at.map_or(Duration::from_secs(5), |at| at.since(now)).max(Duration::from_millis(5))
    }

    async fn keep(&mut self, out: &StepOutput) -> Result<(), String> {
        let changes = out.changes.iter().cloned().map(Record::Change);
        let facts = out.events.iter().map(Record::of);
        let records = changes.chain(facts).collect();
        self.desk.keep(self.setup.clock.now(), records).await
    }

    /// An effect that is not done, since it could not be written down: the engine hears of it as of any other failure.
    fn refuse(&mut self, effect: Effect) {
        let sent_at = self.setup.clock.now();
        let input = match effect {
            Effect::Watch(watch) => {
                self.watch.send_replace(watch);
                return;
            }
            Effect::Call { id, call } => Input::Answer { id, sent_at, answer: call.not_sent() },
            Effect::Exec { id, .. } => {
                let message = "nothing was done: it could not be written down before".to_owned();
                Input::Outcome { id, outcome: ActionOutcome::Failed { message } }
            }
        };
        self.outstanding += 1;
        let inputs = self.inputs_in.clone();
        tokio::spawn(async move {
            let _ = inputs.send(input).await;
        });
    }

    fn perform(&mut self, effect: Effect) {
        let inputs = self.inputs_in.clone();
        match effect {
            Effect::Watch(watch) => {
                self.watch.send_replace(watch);
            }
            Effect::Call { id, call } => {
                self.outstanding += 1;
                let (servers, clock) = (Arc::clone(&self.setup.servers), Arc::clone(&self.setup.clock));
                tokio::spawn(async move {
                    let sent_at = clock.now();
                    let answer = servers.call(call).await;
                    let _ = inputs.send(Input::Answer { id, sent_at, answer }).await;
                });
            }
            Effect::Exec { id, action } => {
                self.outstanding += 1;
                let executor = self.setup.executor.clone();
                tokio::spawn(async move {
                    let outcome = match executor {
                        Some(executor) => executor.perform(action).await,
                        None => ActionOutcome::Failed { message: "there is no executor".to_owned() },
                    };
                    let _ = inputs.send(Input::Outcome { id, outcome }).await;
                });
            }
        }
    }

    fn publish(&self) {
        self.view.send_replace(Arc::new(self.engine.view()));
    }
}
