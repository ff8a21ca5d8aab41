//! The scheduler of a changefeed: who has which table, and how tables move.
//!
//! In each round the first of these that finds work wins: placing tables that nobody has, draining, balancing. At most
//! ten tables of a changefeed are on the move, and a new batch is ordered only once all of its tables are replicated
//! (contract section 3.1).

use crate::sim::scenario::Architecture;

use super::types::SpanState;
use super::{Event, World};

impl World {
    pub(super) fn plan_tick(&mut self, feed: usize) {
        if !self.feeds[feed].tick_planned {
            self.feeds[feed].tick_planned = true;
            // The owner works every 50 ms.
            let in_ms = self.rng.range(20, 70);
            self.plan(in_ms, Event::Tick(feed));
        }
    }

    fn may_schedule(&self, feed: usize) -> bool {
        let it = &self.feeds[feed];
        it.state.runs() && it.initialised() && self.living_owner(it.cluster).is_some() && !self.frozen(it.cluster)
    }

    pub(super) fn tick(&mut self, feed: usize) {
        self.feeds[feed].tick_planned = false;
        if self.clusters[self.feeds[feed].cluster].architecture == Architecture::New {
            self.maintainer_tick(feed);
            return;
        }
        if self.may_schedule(feed) && !self.place(feed) && !self.drain_round(feed) {
            self.balance(feed);
        }
    }

    /// Gives tables that nobody has to captures that take tables. Not bounded by the concurrency.
    fn place(&mut self, feed: usize) -> bool {
        let absent: Vec<usize> = (0..self.feeds[feed].spans.len())
            .filter(|span| self.feeds[feed].spans[*span].state == SpanState::Absent)
            .collect();
        if absent.is_empty() {
            return false;
        }
        let mut load = self.load(feed, |world, instance| !world.instances[instance].liveness.is_leaving());
        for span in absent {
            let Some(to) = self.emptiest(&mut load) else {
                return false;
            };
            let in_ms = self.rng.range(self.rates.place_ms.min, self.rates.place_ms.max);
            self.order(feed, span, SpanState::Adding(to), in_ms, false);
        }
        true
    }

    fn drain_round(&mut self, feed: usize) -> bool {
        let owner = self.living_owner(self.feeds[feed].cluster);
        if self.feeds[feed].sched.as_ref().and_then(|sched| sched.target).is_none() {
            let Some(sched) = &self.feeds[feed].sched else {
                return false;
            };
            let mut stopping: Vec<usize> = sched
                .captures
                .keys()
                .copied()
                .filter(|capture| self.instances[*capture].liveness.is_leaving() && Some(*capture) != owner)
                .collect();
            // Which of two stopping captures is drained first is a matter of chance: a map's order.
            self.rng.shuffle(&mut stopping);
            // An empty one disarms in the same round, and the other one's turn comes in the next; shortened here.
            let with_tables = stopping.iter().find(|capture| self.feeds[feed].primaries_on(**capture) > 0);
            let target = with_tables.copied();
            if let Some(sched) = &mut self.feeds[feed].sched {
                sched.target = target;
            }
        }
        let Some(target) = self.feeds[feed].sched.as_ref().and_then(|sched| sched.target) else {
            return false;
        };
        if !self.all_replicating(feed) {
            return true;
        }
        let spans = &self.feeds[feed].spans;
        let victims: Vec<usize> = (0..spans.len())
            .filter(|span| spans[*span].state == SpanState::Replicating(target))
            .take(self.rates.concurrency)
            .collect();
        // Any other capture may be the destination, also one that is stopping itself or that is gone and still listed:
        // that is how two drains move tables to and fro without end.
        let mut load = self.load(feed, |_, instance| instance != target);
        if victims.is_empty() || load.is_empty() {
            if let Some(sched) = &mut self.feeds[feed].sched {
                sched.target = None;
            }
            if victims.is_empty() {
                self.settled();
                // Another capture may be stopping too.
                if self.other_stopping_has_tables(feed, target) {
                    self.plan_tick(feed);
                    return true;
                }
            }
            return false;
        }
        for span in victims {
            let Some(to) = self.emptiest(&mut load) else {
                break;
            };
            let in_ms = self.rng.range(self.rates.move_ms.min, self.rates.move_ms.max);
            self.order(feed, span, SpanState::Moving { from: target, to }, in_ms, true);
        }
        true
    }

    fn other_stopping_has_tables(&self, feed: usize, target: usize) -> bool {
        let owner = self.living_owner(self.feeds[feed].cluster);
        self.feeds[feed].sched.as_ref().is_some_and(|sched| {
            sched.captures.keys().any(|capture| {
                *capture != target
                    && Some(*capture) != owner
                    && self.instances[*capture].liveness.is_leaving()
                    && self.feeds[feed].primaries_on(*capture) > 0
            })
        })
    }

    pub(super) fn balance_due(&mut self, feed: usize, term: u64) {
        if self.feeds[feed].sched.as_ref().is_none_or(|sched| sched.term != term) {
            return;
        }
        self.plan(self.rates.balance_ms, Event::Balance { feed, term });
        if self.somebody_stops(feed) {
            // Missed, and not made up for before the next turn.
            return;
        }
        if let Some(sched) = &mut self.feeds[feed].sched {
            sched.balancing = true;
        }
        self.plan_tick(feed);
    }

    fn somebody_stops(&self, feed: usize) -> bool {
        self.feeds[feed]
            .sched
            .as_ref()
            .is_some_and(|sched| sched.captures.keys().any(|capture| self.instances[*capture].liveness.is_leaving()))
    }

    fn balance(&mut self, feed: usize) {
        let wanted = self.feeds[feed].sched.as_ref().is_some_and(|sched| sched.balancing);
        if !wanted || self.somebody_stops(feed) || !self.all_replicating(feed) {
            return;
        }
        let mut load = self.load(feed, |_, _| true);
        let total = self.feeds[feed].spans.len();
        let most = total.div_ceil(load.len().max(1));
        let mut victims = Vec::new();
        for (instance, tables) in load.clone() {
            let spans = &self.feeds[feed].spans;
            let over = tables.saturating_sub(most);
            victims.extend(
                (0..spans.len())
                    .filter(|span| spans[*span].state == SpanState::Replicating(instance))
                    .take(over)
                    .map(|span| (span, instance)),
            );
        }
        self.rng.shuffle(&mut victims);
        victims.truncate(self.rates.concurrency);
        if let Some(sched) = &mut self.feeds[feed].sched {
            sched.balancing = !victims.is_empty();
        }
        for (span, from) in victims {
            if let Some(entry) = load.iter_mut().find(|(instance, _)| *instance == from) {
                entry.1 -= 1;
            }
            let Some(to) = self.emptiest(&mut load) else {
                break;
            };
            let in_ms = self.rng.range(self.rates.move_ms.min, self.rates.move_ms.max);
            self.order(feed, span, SpanState::Moving { from, to }, in_ms, false);
        }
    }

    fn all_replicating(&self, feed: usize) -> bool {
        self.feeds[feed].spans.iter().all(|span| matches!(span.state, SpanState::Replicating(_)))
    }

    /// Tables of a changefeed on each capture that its scheduler knows and that may take tables.
    fn load(&self, feed: usize, may: impl Fn(&Self, usize) -> bool) -> Vec<(usize, usize)> {
        let it = &self.feeds[feed];
        let Some(sched) = &it.sched else {
            return Vec::new();
        };
        sched
            .captures
            .keys()
            .copied()
            .filter(|capture| may(self, *capture))
            .map(|capture| (capture, it.listed_on(capture)))
            .collect()
    }

    /// The capture with the fewest tables, one more of which is noted; chance decides among equals.
    pub(super) fn emptiest(&mut self, load: &mut [(usize, usize)]) -> Option<usize> {
        let fewest = load.iter().map(|(_, tables)| *tables).min()?;
        let equals: Vec<usize> = (0..load.len()).filter(|index| load[*index].1 == fewest).collect();
        let chosen = equals[self.rng.index(equals.len())];
        load[chosen].1 += 1;
        Some(load[chosen].0)
    }

    pub(super) fn order(&mut self, feed: usize, span: usize, state: SpanState, in_ms: u64, for_drain: bool) {
        let it = &mut self.feeds[feed].spans[span];
        it.state = state;
        it.generation += 1;
        it.ripe = false;
        it.for_drain = for_drain;
        let generation = it.generation;
        self.plan(in_ms, Event::SpanDone { feed, span, generation });
    }

    /// A table is ready at its new place. Its move ends now, or, without an owner, once there is one again; never, if
    /// one of the two captures is gone or the table does not begin to replicate.
    pub(super) fn span_done(&mut self, feed: usize, span: usize, generation: u64) {
        let cluster = self.feeds[feed].cluster;
        let it = &mut self.feeds[feed].spans[span];
        if it.generation != generation || (it.stuck && matches!(it.state, SpanState::Moving { .. })) {
            return;
        }
        if matches!(it.state, SpanState::Leaving { .. } | SpanState::Flying { .. }) {
            self.step(feed, span);
            return;
        }
        let (alive, done) = match it.state {
            SpanState::Adding(to) => (self.instances[to].alive, to),
            SpanState::Moving { from, to } => (self.instances[from].alive && self.instances[to].alive, to),
            _ => return,
        };
        it.ripe = true;
        let ruled = self.feeds[feed].initialised() && self.living_owner(cluster).is_some() && !self.frozen(cluster);
        if !alive || !ruled {
            return;
        }
        let it = &mut self.feeds[feed].spans[span];
        let placed = matches!(it.state, SpanState::Adding(_));
        it.state = SpanState::Replicating(done);
        it.ripe = false;
        let counts = placed || it.for_drain;
        if placed {
            self.restall(cluster);
        }
        if counts {
            self.settled();
        }
        if self.all_replicating(feed) {
            self.plan_tick(feed);
        }
    }

    /// Ends the moves that only waited for an owner.
    pub(super) fn end_ripe(&mut self, feed: usize) {
        for span in 0..self.feeds[feed].spans.len() {
            let it = &self.feeds[feed].spans[span];
            if it.ripe {
                self.span_done(feed, span, it.generation);
            }
        }
    }
}
