//! The maintainers of the new architecture: one for each changefeed that runs, on any member. It knows where the tables
//! are, and the dispatcher of table id 0 is where it is (contract section 1.13; recorded/README 18).

use super::types::SpanState;
use super::{Carrying, Event, OwnerView, ProcessRef, World};

/// The maintainer of one changefeed.
#[derive(Debug)]
pub(crate) struct Maintainer {
    pub(crate) on: usize,
    /// Tables of the changefeed on the target when it heard of a drain.
    pub(super) initial: usize,
    /// Until when moves that have landed still count as under way.
    pub(super) settling: Vec<u64>,
    /// A balance that is not finished.
    pub(super) balancing: bool,
}

impl Maintainer {
    pub(super) fn new(on: usize) -> Self {
        Self { on, initial: 0, settling: Vec::new(), balancing: false }
    }
}

/// What comes of looking for the maintainer of a changefeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MaintainerView {
    /// The maintainer of this changefeed answers.
    Answers(usize),
    /// It was not found.
    Unknown,
    /// It is found at this address, where nothing listens.
    Refuses(String),
}

impl World {
    /// Looks for the maintainer of a changefeed as a capture does: it asks whoever listens at the `Host` it was given
    /// for the changefeed (contract section 1.13).
    pub(crate) fn maintainer_view(&self, host: &str, namespace: &str, id: &str) -> MaintainerView {
        let host = match host.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => host.to_owned(),
        };
        let asked = self.slots.iter().position(|slot| slot.address == host);
        let Some(asked) = asked.filter(|slot| self.is_listening(ProcessRef::Capture(*slot))) else {
            return MaintainerView::Unknown;
        };
        let OwnerView::Serving(cluster) = self.owner_view(asked) else {
            return MaintainerView::Unknown;
        };
        let feed = self.feed_index(cluster, namespace, id);
        let Some(feed) = feed.filter(|feed| !self.is_bootstrapping(cluster) && self.maintained(*feed)) else {
            return MaintainerView::Unknown;
        };
        let slot = self.feeds[feed].maintainer.as_ref().map(|it| self.instances[it.on].slot);
        match slot {
            Some(slot) if !self.is_listening(ProcessRef::Capture(slot)) => {
                MaintainerView::Refuses(self.slots[slot].address.clone())
            }
            _ => MaintainerView::Answers(feed),
        }
    }

    /// Whether a changefeed has a maintainer that lives.
    pub(super) fn maintained(&self, feed: usize) -> bool {
        self.feeds[feed].maintainer.as_ref().is_some_and(|it| self.instances[it.on].alive)
    }

    /// Where the maintainer of a changefeed listens. Also that of a dead one, as its coordinator does not know better.
    pub(crate) fn maintainer_address(&self, feed: usize) -> Option<&str> {
        let on = self.feeds[feed].maintainer.as_ref()?.on;
        Some(&self.slots[self.instances[on].slot].address)
    }

    /// Ends the maintainer of a changefeed; its tables go on as they were, and moves that are under way are lost.
    pub(super) fn dismiss(&mut self, feed: usize) {
        self.settle_checkpoint(feed);
        self.feeds[feed].maintainer = None;
        self.feeds[feed].maintainer_round += 1;
        self.restall(self.feeds[feed].cluster);
    }

    /// Lets a maintainer be created somewhere in a while.
    pub(super) fn order_maintainer(&mut self, feed: usize, least_ms: u64, most_ms: u64) {
        self.feeds[feed].maintainer_round += 1;
        let round = self.feeds[feed].maintainer_round;
        let in_ms = self.rng.range(least_ms, most_ms);
        self.plan(in_ms, Event::Maintain { feed, round });
    }

    /// Members that take maintainers and tables.
    pub(super) fn takers(&self, cluster: usize) -> Vec<usize> {
        use crate::sim::scenario::Architecture;
        let target = self.drain_target(cluster);
        let takes = |member: &usize| {
            let it = &self.instances[*member];
            let able = it.alive && !it.liveness.is_leaving() && it.architecture == Architecture::New;
            able && Some(*member) != target
        };
        self.members(cluster).into_iter().filter(takes).collect()
    }

    /// A maintainer is created, if there is a place for it.
    pub(super) fn maintain(&mut self, feed: usize, round: u64) {
        let it = &self.feeds[feed];
        let cluster = it.cluster;
        if it.maintainer_round != round || !it.state.runs() || it.maintainer.is_some() || !self.coordinated(cluster) {
            return;
        }
        let carried = |member: usize| {
            let feeds = self.clusters[cluster].feeds.iter();
            feeds.filter(|feed| self.feeds[**feed].maintainer.as_ref().is_some_and(|it| it.on == member)).count()
        };
        let mut load: Vec<(usize, usize)> =
            self.takers(cluster).into_iter().map(|member| (member, carried(member))).collect();
        let place = if self.placement_frozen(cluster) { None } else { self.emptiest(&mut load) };
        let Some(on) = place else {
            self.order_maintainer(feed, 450, 550);
            return;
        };
        self.settle_checkpoint(feed);
        self.feeds[feed].maintainer = Some(Maintainer::new(on));
        self.bootstrap(feed);
        self.tell_newcomer_of_drain(feed);
        self.settled();
    }

    /// A maintainer asks all members what they have: what is on none of them is nobody's, and moves begin anew.
    pub(super) fn bootstrap(&mut self, feed: usize) {
        let members = self.members(self.feeds[feed].cluster);
        for span in &mut self.feeds[feed].spans {
            let state = match span.state {
                SpanState::Leaving { from, .. } | SpanState::Moving { from, .. } => SpanState::Replicating(from),
                SpanState::Flying { .. } | SpanState::Adding(_) => SpanState::Absent,
                settled => settled,
            };
            if state != span.state {
                span.state = state;
                span.generation += 1;
            }
        }
        self.orphan(feed, |on| !members.contains(&on));
        self.plan_tick(feed);
        self.restall(self.feeds[feed].cluster);
    }

    /// The maintainers that live have heard that a node is gone for good. Until then the tables call names it
    /// (recording cdc-new 98).
    pub(super) fn lost(&mut self, cluster: usize, instance: usize) {
        for feed in self.clusters[cluster].feeds.clone() {
            if self.maintained(feed) {
                self.settle_checkpoint(feed);
                self.orphan(feed, |member| member == instance);
                self.plan_tick(feed);
            }
        }
        self.restall(cluster);
    }

    /// Table ids on every node that has any, 0 on the maintainer's. `None` while there is no maintainer that answers.
    pub fn dispatchers(&mut self, feed: usize) -> Option<Vec<Carrying>> {
        if !self.maintained(feed) {
            return None;
        }
        let it = &self.feeds[feed];
        let home = it.maintainer.as_ref()?.on;
        let mut nodes: Vec<usize> = it.spans.iter().filter_map(|span| span.state.primary()).chain([home]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let mut list = Vec::new();
        for node in nodes {
            let mut table_ids = self.table_ids(feed, node);
            if node == home {
                let place = self.order.index(table_ids.len() + 1);
                table_ids.insert(place, 0);
            }
            list.push(Carrying { capture_id: self.instances[node].id.clone(), table_ids });
        }
        self.order.shuffle(&mut list);
        Some(list)
    }
}
