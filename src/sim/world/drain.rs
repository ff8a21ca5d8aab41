//! A drain request as the owner of the classic architecture carries it out (contract section 3.1).

use crate::sim::scenario::FeedState;

use super::types::{Liveness, SpanState};
use super::{Event, World};

/// What the owner makes of a drain request, in the order in which it checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrainAnswer {
    /// It knows one capture only.
    OnlyOne,
    /// It knows no such capture.
    Unknown,
    /// The target is the owner itself.
    IsOwner,
    /// `current_table_count`: tables with their primary there in normal changefeeds, one more for each changefeed that
    /// is not ready to answer.
    Count(usize),
}

impl World {
    /// The checks that come before the request is queued for the owner. `None` when it passes.
    pub(crate) fn drain_refusal(&self, cluster: usize, id: &str) -> Option<DrainAnswer> {
        let office = self.clusters[cluster].office.as_ref()?;
        if office.members.len() <= 1 {
            return Some(DrainAnswer::OnlyOne);
        }
        match office.members.iter().find(|member| self.instances[**member].id == id) {
            None => Some(DrainAnswer::Unknown),
            Some(member) if *member == office.owner => Some(DrainAnswer::IsOwner),
            Some(_) => None,
        }
    }

    /// Asks the owner of a cluster to drain a capture. `None` without an owner that lives.
    pub fn drain(&mut self, cluster: usize, id: &str) -> Option<DrainAnswer> {
        self.note_mutation();
        let owner = self.living_owner(cluster)?;
        if self.is_new(owner) {
            return self.coordinate_drain(cluster, owner, id);
        }
        if let Some(refusal) = self.drain_refusal(cluster, id) {
            return Some(refusal);
        }
        let members = &self.clusters[cluster].office.as_ref()?.members;
        let target = members.iter().copied().find(|member| self.instances[*member].id == id)?;
        let mut count = 0;
        let mut armed = false;
        for feed in self.clusters[cluster].feeds.clone() {
            if self.feeds[feed].state != FeedState::Normal {
                continue;
            }
            if !self.feeds[feed].initialised() {
                count += 1;
                continue;
            }
            let tables = self.feeds[feed].primaries_on(target);
            count += tables;
            if tables == 0 || target == owner {
                continue;
            }
            if let Some(sched) = &mut self.feeds[feed].sched {
                // With another target armed the request is ignored, and answered all the same.
                if sched.target.is_none() {
                    sched.target = Some(target);
                }
                armed |= sched.target == Some(target);
            }
            self.plan_tick(feed);
        }
        if armed {
            self.begin_drain(target);
        }
        Some(DrainAnswer::Count(count))
    }

    pub(super) fn begin_drain(&mut self, target: usize) {
        let tables = self.tables_by_feed(target);
        let has_tables = tables.iter().sum::<usize>() > 0;
        if has_tables && self.instances[target].drained_from.is_none() {
            self.instances[target].drained_from = Some(tables);
            let (name, address) = self.names_of(target);
            self.trigger_drain(&name, &address);
        }
        if !self.instances[target].liveness.is_leaving() {
            let in_ms = if self.is_new(target) {
                // The command goes out at once: the first sample of a recording had it or had it not.
                self.rng.range(1, 100)
            } else {
                // The next heartbeat carries it: about 0.1 s after the answer (recorded).
                self.rng.range(80, 130)
            };
            self.plan(in_ms, Event::Flip(target));
        }
    }

    /// How many tables of each changefeed of its cluster a capture carries.
    pub(super) fn tables_by_feed(&self, instance: usize) -> Vec<usize> {
        self.clusters[self.instances[instance].cluster]
            .feeds
            .iter()
            .map(|feed| self.feeds[*feed].listed_on(instance))
            .collect()
    }

    /// A capture learns that it is to stop. Its liveness never goes back; every scheduler sees it and drains it.
    pub(super) fn flip(&mut self, instance: usize) {
        if !self.instances[instance].alive || self.instances[instance].liveness.is_leaving() {
            return;
        }
        if self.is_new(instance) {
            self.instances[instance].liveness = Liveness::Draining;
            return;
        }
        self.instances[instance].liveness = Liveness::Stopping;
        for feed in self.clusters[self.instances[instance].cluster].feeds.clone() {
            self.plan_tick(feed);
        }
    }

    /// Lets one table begin to replicate nowhere else. Says which, if there was one.
    pub(super) fn stick(&mut self, instance: Option<usize>, table: Option<&str>) -> Option<(usize, usize)> {
        for feed in 0..self.feeds.len() {
            for span in 0..self.feeds[feed].spans.len() {
                let it = &self.feeds[feed].spans[span];
                let named = table.is_none_or(|name| self.table_name(it.table) == name);
                let there = instance.is_none_or(|instance| match it.state {
                    SpanState::Replicating(on) => on == instance,
                    SpanState::Moving { from, .. } | SpanState::Leaving { from, .. } => from == instance,
                    SpanState::Absent | SpanState::Adding(_) | SpanState::Flying { .. } => false,
                });
                if named && there && !it.stuck {
                    self.feeds[feed].spans[span].stuck = true;
                    return Some((feed, span));
                }
            }
        }
        None
    }

    /// It may begin elsewhere again; if it is on its way, that takes its time from now on.
    pub(super) fn unstick(&mut self, feed: usize, span: usize) {
        let it = &mut self.feeds[feed].spans[span];
        it.stuck = false;
        let (state, for_drain) = (it.state, it.for_drain);
        if matches!(state, SpanState::Moving { .. } | SpanState::Leaving { .. }) {
            let in_ms = self.rng.range(self.rates.move_ms.min, self.rates.move_ms.max);
            self.order(feed, span, state, in_ms, for_drain);
        }
    }
}
