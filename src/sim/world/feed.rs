//! Changefeeds: state, checkpoint, lag.

use crate::sim::scenario::{Architecture, FeedState};

use super::types::{FeedError, SpanState};
use super::{Event, Feed, World};

/// What pausing or resuming a changefeed came to. A change that is not possible is dropped in silence, as the servers
/// do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Pause,
    Resume,
}

impl World {
    /// The checkpoint of a changefeed now, in milliseconds since 1970.
    pub(crate) fn checkpoint_of(&mut self, feed: usize) -> u64 {
        self.settle_checkpoint(feed);
        self.feeds[feed].checkpoint_ms
    }

    /// Brings a checkpoint up to now, if it moves at all. To be called before anything changes what it depends on.
    pub(super) fn settle_checkpoint(&mut self, feed: usize) {
        let clock = self.clock_ms();
        let it = &mut self.feeds[feed];
        if !it.state.runs() || it.stalled {
            return;
        }
        // Usually 2.3 s behind, up to 3.1 s while tables move, in steps of half a second (recorded).
        let moving = it.spans.iter().any(|span| matches!(span.state, SpanState::Moving { .. }));
        let behind = if moving { 2_550 } else { 2_050 } + it.extra_lag_ms + it.drag_ms;
        let reached = clock.saturating_sub(behind + it.phase) / 500 * 500 + it.phase;
        it.checkpoint_ms = it.checkpoint_ms.max(reached);
    }

    /// Works out again for all changefeeds of a cluster whether their checkpoints stand still.
    pub(super) fn restall(&mut self, cluster: usize) {
        let ruled = self.living_owner(cluster).is_some() && !self.frozen(cluster);
        for feed in self.clusters[cluster].feeds.clone() {
            let it = &self.feeds[feed];
            let served = it.spans.iter().all(|span| match span.state {
                SpanState::Replicating(on)
                | SpanState::Moving { from: on, .. }
                | SpanState::Leaving { from: on, .. } => self.instances[on].alive,
                // A pause that is felt as lag only.
                SpanState::Flying { from, .. } => from.is_some(),
                SpanState::Absent | SpanState::Adding(_) => false,
            });
            let led = match self.clusters[cluster].architecture {
                Architecture::Classic => ruled && it.initialised(),
                // The maintainer goes on by itself while there is no coordinator.
                Architecture::New => self.maintained(feed),
            };
            let stalled = it.state.runs() && !(led && served);
            if stalled != it.stalled {
                self.settle_checkpoint(feed);
                self.note_lag_of(feed);
                self.feeds[feed].stalled = stalled;
            }
        }
    }

    pub(super) fn note_lag(&mut self) {
        for feed in 0..self.feeds.len() {
            self.note_lag_of(feed);
        }
    }

    fn note_lag_of(&mut self, feed: usize) {
        if !self.feeds[feed].state.runs() {
            return;
        }
        self.settle_checkpoint(feed);
        let lag = self.clock_ms().saturating_sub(self.feeds[feed].checkpoint_ms);
        self.referee.worst_lag_ms = self.referee.worst_lag_ms.max(lag);
    }

    /// The owner of a changefeed is gone; its tables go on as they were.
    pub(super) fn lose_scheduler(&mut self, feed: usize) {
        self.settle_checkpoint(feed);
        self.feeds[feed].sched = None;
    }

    /// Index of a changefeed by namespace and id.
    pub(crate) fn feed_index(&self, cluster: usize, namespace: &str, id: &str) -> Option<usize> {
        self.clusters[cluster]
            .feeds
            .iter()
            .copied()
            .find(|feed| self.feeds[*feed].id == id && self.feeds[*feed].namespace == namespace)
    }

    pub(crate) fn feed(&self, index: usize) -> &Feed {
        &self.feeds[index]
    }

    /// Pauses or resumes a changefeed, if it is in a state for it.
    pub(crate) fn change_feed(&mut self, feed: usize, change: Change) {
        self.note_mutation();
        let state = self.feeds[feed].state;
        let next = match (change, state) {
            (Change::Pause, FeedState::Normal | FeedState::Warning | FeedState::Pending) => FeedState::Stopped,
            (Change::Resume, FeedState::Failed | FeedState::Stopped | FeedState::Finished) => FeedState::Normal,
            _ => return,
        };
        self.set_feed_state(feed, next, None);
    }

    pub(super) fn set_feed_state(&mut self, feed: usize, state: FeedState, error: Option<(String, String)>) {
        self.settle_checkpoint(feed);
        let cluster = self.feeds[feed].cluster;
        let addr = self
            .living_owner(cluster)
            .map(|owner| self.slots[self.instances[owner].slot].address.clone())
            .unwrap_or_default();
        let at_ms = self.clock_ms();
        let it = &mut self.feeds[feed];
        let (ran, runs) = (it.state.runs(), state.runs());
        it.state = state;
        it.error = error.map(|(code, message)| FeedError { at_ms, addr, code, message });
        if ran && !runs {
            // The scheduler is closed and every processor with it.
            it.sched = None;
            it.maintainer = None;
            it.maintainer_round += 1;
            it.drag_ms = 0;
            it.stalled = false;
            for span in &mut it.spans {
                span.state = SpanState::Absent;
                span.generation += 1;
                span.ripe = false;
            }
        }
        if !ran && runs && self.clusters[cluster].architecture == Architecture::New {
            self.order_maintainer(feed, 200, 600);
        } else if !ran && runs {
            let term = self.clusters[cluster].term();
            let in_ms = self.rng.range(100, 250);
            self.plan(in_ms, Event::Built { feed, term });
        }
        self.restall(cluster);
        self.settled();
    }
}
