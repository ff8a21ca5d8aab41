//! A hundred captures with a hundred thousand tables of ten changefeeds, some of them on the move in every sweep.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tiroll::cluster::{CdcSweep, Timestamp};
use tiroll::rollout::effect::{CallAnswer, Effect, EffectId, Input};
use tiroll::rollout::policy::Policy;
use tiroll::rollout::view::PhaseKind;
use tiroll::rollout::{Engine, StepOutput};

use crate::cluster::{Cluster, copied, request};
use crate::measure::{each, mean, report};

/// How often the same stretch is gone through.
const ROUNDS: usize = 10;

/// An engine with its cluster, and what it has sent.
#[derive(Clone)]
struct Rollout {
    engine: Engine,
    cluster: Cluster,
    sent: Option<(EffectId, Timestamp)>,
    /// The last sweep, for the next one to share with.
    before: Option<Arc<CdcSweep>>,
}

impl Rollout {
    fn new(is_watch: bool) -> Self {
        let engine = Engine::new(request(is_watch), Policy::default());
        let mut rollout = Self { engine, cluster: Cluster::new(100, 100_000), sent: None, before: None };
        for _ in 0..10 {
            let sweep = rollout.sweep(true);
            rollout.tell(Input::Cdc(sweep));
        }
        rollout
    }

    /// The cluster a while later, as the program's own poller hands it over. Only the engine has the sweep before the
    /// last then, so that letting go of it counts.
    fn sweep(&mut self, has_moved: bool) -> Arc<CdcSweep> {
        self.cluster.pass(Duration::from_millis(500), has_moved);
        let sweep = self.cluster.sweep();
        let sweep = Arc::new(match self.before.take() {
            Some(before) => sweep.sharing(&before),
            None => sweep,
        });
        self.before = Some(Arc::clone(&sweep));
        sweep
    }

    fn tell(&mut self, input: Input) {
        let out = self.engine.step(self.cluster.now, input);
        self.take(&out);
    }

    fn take(&mut self, out: &StepOutput) {
        for effect in &out.effects {
            match effect {
                Effect::Call { id, .. } => self.sent = Some((*id, self.cluster.now)),
                Effect::Watch(watch) => self.cluster.target.clone_from(&watch.target),
                Effect::Exec { .. } => {}
            }
        }
    }

    fn answer(&mut self) -> Option<Input> {
        let (id, sent_at) = self.sent.take()?;
        Some(Input::Answer { id, sent_at, answer: CallAnswer::Drain(Ok(self.cluster.on_target())) })
    }
}

pub(crate) fn run() {
    let mut watching = Rollout::new(true);
    let mut draining = Rollout::new(false);
    while draining.sent.is_none() {
        let sweep = draining.sweep(true);
        draining.tell(Input::Cdc(sweep));
    }
    assert_eq!(draining.engine.view().current().map(|(_, phase)| phase.kind), Some(PhaseKind::Drain));
    println!("100 captures, 100,000 tables, 10 changefeeds");
    reference(&watching);
    steps("idle, tables at rest", &mut watching, false);
    steps("idle, tables on the move", &mut watching, true);
    steps("draining", &mut draining, true);
}

/// What it costs to copy the ids of a sweep, by capture: what is left to a step should be far from it.
fn reference(rollout: &Rollout) {
    let sweep = rollout.cluster.sweep();
    let times = each(100, || (), |()| drop(black_box(copied(&sweep))));
    report("  for comparison: copying all ids of a sweep", &times);
}

fn steps(name: &str, rollout: &mut Rollout, has_moved: bool) {
    let mut kinds: [(&str, Vec<Duration>); 3] = [("fresh sweep", vec![]), ("tick", vec![]), ("answer", vec![])];
    let mut all = Vec::new();
    for _ in 0..ROUNDS {
        // Where it goes on for longer, a person would be asked, and less would happen.
        let mut branch = rollout.clone();
        for _ in 0..40 {
            let sweep = branch.sweep(has_moved);
            let mut inputs = vec![(0, Input::Cdc(sweep)), (1, Input::Tick)];
            inputs.extend(branch.answer().map(|answer| (2, answer)));
            for (kind, input) in inputs {
                branch.cluster.now = branch.cluster.now.plus(Duration::from_millis(20));
                let begun = Instant::now();
                let out = branch.engine.step(branch.cluster.now, input);
                let took = begun.elapsed();
                branch.take(&out);
                kinds[kind].1.push(took);
                all.push(took);
            }
        }
    }
    for (kind, mut times) in kinds.into_iter().filter(|(_, times)| !times.is_empty()) {
        times.sort_unstable();
        report(&format!("  {name}, {kind} (mean {:.1?})", mean(&times)), &times);
    }
    let mean = mean(&all);
    println!("  {name}, all of these: mean {mean:.1?}, {:.0} steps a second", 1.0 / mean.as_secs_f64());
    let times = each(100, || (), |()| drop(black_box(rollout.engine.view())));
    report(&format!("  {name}, read model"), &times);
}
