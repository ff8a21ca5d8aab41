//! How a maintainer of the new architecture moves tables: stopped on the origin, then created on the destination, so that
//! a table is never at two places (contract section 3.2; recording cdc-new 59).

use super::types::SpanState;
use super::{Event, World};

impl World {
    pub(super) fn maintainer_tick(&mut self, feed: usize) {
        if !self.feeds[feed].state.runs() || !self.maintained(feed) {
            return;
        }
        let now = self.now;
        if let Some(maintainer) = &mut self.feeds[feed].maintainer {
            maintainer.settling.retain(|until| *until > now);
        }
        self.place_lost(feed);
        match self.acknowledged_target(feed) {
            Some(target) => self.move_off(feed, target),
            None => self.level(feed),
        }
        if self.under_way(feed) == 0 && self.feeds[feed].drag_ms > 0 {
            self.settle_checkpoint(feed);
            self.feeds[feed].drag_ms = 0;
        }
    }

    /// Moves of a changefeed that are not noted as finished.
    fn under_way(&self, feed: usize) -> usize {
        let it = &self.feeds[feed];
        let moving =
            |state: SpanState| matches!(state, SpanState::Leaving { .. } | SpanState::Flying { from: Some(_), .. });
        let settling = it.maintainer.as_ref().map_or(0, |it| it.settling.len());
        it.spans.iter().filter(|span| moving(span.state)).count() + settling
    }

    fn load_of_takers(&self, feed: usize) -> Vec<(usize, usize)> {
        let it = &self.feeds[feed];
        let arriving = |member: usize| {
            let is_bound = |state: SpanState| match state {
                SpanState::Leaving { to, .. } | SpanState::Flying { to, .. } => to == member,
                _ => false,
            };
            it.spans.iter().filter(|span| is_bound(span.state)).count()
        };
        let takers = self.takers(it.cluster);
        takers.into_iter().map(|member| (member, it.listed_on(member) + arriving(member))).collect()
    }

    /// Creates tables that nobody has.
    fn place_lost(&mut self, feed: usize) {
        let spans = &self.feeds[feed].spans;
        let lost: Vec<usize> = (0..spans.len()).filter(|span| spans[*span].state == SpanState::Absent).collect();
        if lost.is_empty() {
            return;
        }
        let mut load = self.load_of_takers(feed);
        for span in lost {
            let Some(to) = self.emptiest(&mut load) else {
                self.plan(500, Event::Tick(feed));
                return;
            };
            let in_ms = self.rng.range(self.rates.place_ms.min, self.rates.place_ms.max);
            self.order(feed, span, SpanState::Flying { from: None, to }, in_ms, false);
        }
    }

    /// At least ten at a time, or one in a hundred of those that were there in the beginning.
    fn move_off(&mut self, feed: usize, target: usize) {
        if self.instances[target].false_zero {
            return;
        }
        let initial = self.feeds[feed].maintainer.as_ref().map_or(0, |it| it.initial);
        let limit = self.rates.concurrency.max(initial.div_ceil(100));
        let free = limit.saturating_sub(self.under_way(feed));
        self.begin_moves(feed, |state| state == SpanState::Replicating(target), free, true);
    }

    /// Orders moves of so many tables that are where they are not wanted.
    fn begin_moves(&mut self, feed: usize, wanted: impl Fn(SpanState) -> bool, most: usize, for_drain: bool) {
        let spans = &self.feeds[feed].spans;
        let victims: Vec<usize> = (0..spans.len()).filter(|span| wanted(spans[*span].state)).take(most).collect();
        if victims.is_empty() {
            return;
        }
        let mut load = self.load_of_takers(feed);
        self.drag(feed);
        for span in victims {
            let SpanState::Replicating(from) = self.feeds[feed].spans[span].state else {
                continue;
            };
            let Some(to) = self.emptiest(&mut load) else {
                self.plan(500, Event::Tick(feed));
                return;
            };
            let whole = self.rng.range(self.rates.move_ms.min, self.rates.move_ms.max);
            self.order(feed, span, SpanState::Leaving { from, to }, whole.saturating_sub(125), for_drain);
        }
    }

    /// Moving tables costs lag: up to 8.2 s while a drain went on, half of the time less than 3.2 s (recorded/README
    /// 36).
    fn drag(&mut self, feed: usize) {
        self.settle_checkpoint(feed);
        let much = self.rng.range(0, 9) >= 7;
        self.feeds[feed].drag_ms = if much { self.rng.range(1_500, 5_000) } else { self.rng.range(200, 1_500) };
    }

    /// Balances, ten tables at a time.
    fn level(&mut self, feed: usize) {
        let cluster = self.feeds[feed].cluster;
        let wanted = self.feeds[feed].maintainer.as_ref().is_some_and(|it| it.balancing);
        if !wanted || self.under_way(feed) > 0 {
            return;
        }
        let leaving = self.members(cluster).iter().any(|member| self.is_leaving(*member));
        let load = self.load_of_takers(feed);
        let most = self.feeds[feed].spans.len().div_ceil(load.len().max(1));
        let fullest = load.iter().copied().max_by_key(|(_, tables)| *tables).filter(|(_, tables)| *tables > most);
        let Some((from, tables)) = fullest.filter(|_| !leaving && self.drain_target(cluster).is_none()) else {
            if let Some(maintainer) = &mut self.feeds[feed].maintainer {
                maintainer.balancing = false;
            }
            return;
        };
        let batch = self.rates.concurrency.min(tables - most);
        self.begin_moves(feed, |state| state == SpanState::Replicating(from), batch, false);
    }

    /// The next step of a table's way: off its origin, then there. Nothing goes on without a maintainer that lives, nor
    /// from or to a node that is dead: that ends when the dead one has left the list.
    pub(super) fn step(&mut self, feed: usize, span: usize) {
        let it = &self.feeds[feed].spans[span];
        let (state, stuck, for_drain) = (it.state, it.stuck, it.for_drain);
        if !self.maintained(feed) {
            return;
        }
        match state {
            SpanState::Leaving { from, to } => {
                if stuck || !self.instances[from].alive || !self.instances[to].alive {
                    return;
                }
                let in_ms = self.rng.range(50, 200);
                self.order(feed, span, SpanState::Flying { from: Some(from), to }, in_ms, for_drain);
            }
            SpanState::Flying { from, to } if self.instances[to].alive => {
                self.feeds[feed].spans[span].state = SpanState::Replicating(to);
                if from.is_some() {
                    let noted_in = self.rng.range(300, 700);
                    let until = self.now + noted_in;
                    if let Some(maintainer) = &mut self.feeds[feed].maintainer {
                        maintainer.settling.push(until);
                    }
                    self.plan(noted_in, Event::Tick(feed));
                } else {
                    self.restall(self.feeds[feed].cluster);
                }
                if from.is_none() || for_drain {
                    self.settled();
                }
            }
            _ => {}
        }
    }
}
