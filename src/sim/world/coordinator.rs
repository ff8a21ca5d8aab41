//! The coordinator of the new architecture and its drains (contract section 3.2; recordings cdc-new 59 to 83 and
//! cdc-new-more 06 to 09).
//!
//! A drain is a session in the memory of one coordinator, one at a time. It stays open until its target has left the
//! list, and it ends with the coordinator.

use std::collections::{BTreeMap, BTreeSet};

use crate::sim::scenario::FeedState;

use super::types::{Liveness, SpanState};
use super::{DrainAnswer, Event, Feed, SessionRef, World};

/// What a coordinator knows that nobody else does.
#[derive(Debug, Default)]
pub(crate) struct Coordinator {
    pub(super) session: Option<Session>,
    sessions: u64,
    /// The members are told that the last target is none any more; until then every drain is answered with 1.
    pub(super) clear_until: u64,
    /// When it has heard of all changefeeds.
    pub(super) ready_at: u64,
    /// When each member reports for the first time. One that is dead never does.
    pub(super) heard: BTreeMap<usize, u64>,
    /// Ids of targets whose drain came to its end.
    completed: BTreeSet<String>,
    /// Nothing is balanced before.
    pub(super) even_from: u64,
    /// It was told to resign: its own status says so before the list does (recorded/README 33).
    pub(crate) resigning: bool,
}

/// A drain.
#[derive(Debug)]
pub(super) struct Session {
    number: u64,
    pub(super) target: usize,
    /// Changefeeds that ran when it was opened.
    tracked: Vec<usize>,
    /// The ones of them whose maintainer knows of it.
    acknowledged: BTreeSet<usize>,
    /// What is answered.
    observed: usize,
    /// The target is about to be told that it is done.
    halting: bool,
    completed: bool,
}

impl Coordinator {
    fn has_heard(&self, member: usize, now: u64) -> bool {
        self.heard.get(&member).is_some_and(|at| *at <= now)
    }
}

/// Whether a drain counts a changefeed: also one that waits for a retry, unlike in classic.
fn counts(state: FeedState) -> bool {
    matches!(state, FeedState::Normal | FeedState::Warning | FeedState::Pending)
}

impl Feed {
    /// Moves off a capture that its maintainer has under way, the ones that have landed and are not noted yet included.
    fn moves_off(&self, target: usize, now: u64) -> usize {
        let flying = self.spans.iter().filter(|span| match span.state {
            SpanState::Leaving { from, .. } => from == target,
            SpanState::Flying { from, .. } => from == Some(target),
            _ => false,
        });
        let settling =
            self.maintainer.as_ref().map_or(0, |it| it.settling.iter().filter(|until| **until > now).count());
        flying.count() + settling
    }
}

impl World {
    pub(super) fn coordinator(&self, cluster: usize) -> Option<&Coordinator> {
        self.clusters[cluster].office.as_ref()?.coordinator.as_ref()
    }

    pub(super) fn coordinator_mut(&mut self, cluster: usize) -> Option<&mut Coordinator> {
        self.clusters[cluster].office.as_mut()?.coordinator.as_mut()
    }

    /// The target of the drain that is open, if the coordinator lives.
    pub(super) fn drain_target(&self, cluster: usize) -> Option<usize> {
        self.living_owner(cluster)?;
        Some(self.coordinator(cluster)?.session.as_ref()?.target)
    }

    /// Whether a new coordinator still answers that it is not initialized: only if the scenario wants it to.
    pub(crate) fn is_bootstrapping(&self, cluster: usize) -> bool {
        self.coordinator(cluster).is_some_and(|it| self.now < it.ready_at)
    }

    /// Whether no maintainer is placed: a member is leaving, and no drain of it is open. That is how it is after the
    /// coordinator changed in the middle of a drain, until somebody asks for the drain again or the member is gone.
    pub(super) fn placement_frozen(&self, cluster: usize) -> bool {
        let target = self.drain_target(cluster);
        self.members(cluster).iter().any(|member| Some(*member) != target && self.is_leaving(*member))
    }

    /// Whether a capture lives and is on its way out.
    pub(super) fn is_leaving(&self, instance: usize) -> bool {
        let it = &self.instances[instance];
        it.alive && it.liveness.is_leaving()
    }

    /// A drain request, in the order in which a coordinator decides.
    pub(super) fn coordinate_drain(&mut self, cluster: usize, owner: usize, id: &str) -> Option<DrainAnswer> {
        let slot = &self.slots[self.instances[owner].slot];
        if self.clusters[cluster].fake_drain && slot.first_version == self.instances[owner].version {
            let calls = &mut self.instances[owner].fake_drains;
            *calls += 1;
            return Some(DrainAnswer::Count(if calls.is_multiple_of(10) { 10 } else { 0 }));
        }
        if self.instances[owner].id == id {
            return Some(DrainAnswer::IsOwner);
        }
        let members = self.members(cluster);
        let coordinator = self.coordinator(cluster)?;
        let Some(target) = members.iter().copied().find(|member| self.instances[*member].id == id) else {
            let remembered = coordinator.completed.contains(id);
            return Some(if remembered { DrainAnswer::Count(0) } else { DrainAnswer::Unknown });
        };
        if let Some(session) = &coordinator.session {
            return Some(DrainAnswer::Count(if session.target == target { session.observed } else { 1 }));
        }
        let strange = members.iter().any(|member| !coordinator.has_heard(*member, self.now));
        if self.now < coordinator.clear_until || self.now < coordinator.ready_at || strange {
            return Some(DrainAnswer::Count(1));
        }
        if members.iter().any(|member| self.instances[*member].legacy && self.instances[*member].alive) {
            return Some(DrainAnswer::Count(0));
        }
        Some(DrainAnswer::Count(self.open_session(cluster, target)))
    }

    fn open_session(&mut self, cluster: usize, target: usize) -> usize {
        let feeds = self.clusters[cluster].feeds.clone();
        let tracked: Vec<usize> = feeds.into_iter().filter(|feed| counts(self.feeds[*feed].state)).collect();
        let term = self.clusters[cluster].term();
        let first = tracked.len().max(1);
        let Some(coordinator) = self.coordinator_mut(cluster) else {
            return first;
        };
        coordinator.sessions += 1;
        let number = coordinator.sessions;
        coordinator.session = Some(Session {
            number,
            target,
            tracked: tracked.clone(),
            acknowledged: BTreeSet::new(),
            observed: first,
            halting: false,
            completed: false,
        });
        let session = SessionRef { cluster, term, number };
        self.begin_drain(target);
        let in_ms = self.rng.range(100, 200);
        self.plan(in_ms, Event::Refresh(session));
        // Maintainers leave first, ten at a time.
        let mut turn = 0;
        for feed in tracked {
            if self.feeds[feed].maintainer.as_ref().is_some_and(|it| it.on == target) {
                let in_ms = self.rng.range(50, 150) + 500 * (turn / 10);
                turn += 1;
                self.plan(in_ms, Event::Oust { session, feed });
            } else {
                self.tell_of_drain(session, feed);
            }
        }
        first
    }

    fn tell_of_drain(&mut self, session: SessionRef, feed: usize) {
        let in_ms = self.rng.range(30, 400);
        self.plan(in_ms, Event::Acknowledge { session, feed });
    }

    /// Lets the maintainer of a changefeed that was just created know of the drain that is open.
    pub(super) fn tell_newcomer_of_drain(&mut self, feed: usize) {
        let cluster = self.feeds[feed].cluster;
        let term = self.clusters[cluster].term();
        let Some(session) = self.coordinator_mut(cluster).and_then(|it| it.session.as_mut()) else {
            return;
        };
        session.acknowledged.remove(&feed);
        let session = SessionRef { cluster, term, number: session.number };
        self.tell_of_drain(session, feed);
    }

    /// A session that is open under a coordinator that lives.
    fn session(&self, wanted: SessionRef) -> Option<&Session> {
        self.living_owner(wanted.cluster)?;
        let session = self.coordinator(wanted.cluster)?.session.as_ref()?;
        (self.clusters[wanted.cluster].term() == wanted.term && session.number == wanted.number).then_some(session)
    }

    fn session_mut(&mut self, wanted: SessionRef) -> Option<&mut Session> {
        self.session(wanted)?;
        self.coordinator_mut(wanted.cluster)?.session.as_mut()
    }

    /// The maintainer of a changefeed is moved away from the target of a drain.
    pub(super) fn oust(&mut self, session: SessionRef, feed: usize) {
        let Some(target) = self.session(session).map(|it| it.target) else {
            return;
        };
        if self.feeds[feed].maintainer.as_ref().is_some_and(|it| it.on == target) {
            // In between the tables call finds none (recorded: 0.2 to 0.45 s).
            self.dismiss(feed);
            self.order_maintainer(feed, 200, 450);
        }
    }

    pub(super) fn acknowledge(&mut self, session: SessionRef, feed: usize) {
        if !self.maintained(feed) {
            return;
        }
        let Some(it) = self.session_mut(session) else {
            return;
        };
        it.acknowledged.insert(feed);
        let target = it.target;
        let initial = self.feeds[feed].listed_on(target);
        if let Some(maintainer) = &mut self.feeds[feed].maintainer {
            maintainer.initial = initial;
        }
        self.plan_tick(feed);
    }

    /// The target that the maintainer of a changefeed moves tables away from.
    pub(super) fn acknowledged_target(&self, feed: usize) -> Option<usize> {
        let cluster = self.feeds[feed].cluster;
        self.living_owner(cluster)?;
        let session = self.coordinator(cluster)?.session.as_ref()?;
        session.acknowledged.contains(&feed).then_some(session.target)
    }

    /// What is left to do for a drain.
    fn remaining(&self, session: &Session) -> usize {
        let target = session.target;
        if self.instances[target].false_zero {
            return 0;
        }
        let (mut maintainers, mut tables, mut moves, mut silent) = (0, 0, 0, 0);
        for feed in &session.tracked {
            let it = &self.feeds[*feed];
            if !it.state.runs() {
                continue;
            }
            maintainers += usize::from(it.maintainer.as_ref().is_some_and(|it| it.on == target));
            if !session.acknowledged.contains(feed) || it.maintainer.is_none() {
                silent += 1;
                continue;
            }
            tables += it.listed_on(target);
            moves += it.moves_off(target, self.now);
        }
        [maintainers, tables, moves, silent].into_iter().max().unwrap_or(0)
    }

    /// About once a second a coordinator works out again what is left; at least 1 until the target was seen stopping.
    pub(super) fn refresh(&mut self, session: SessionRef) {
        let Some(it) = self.session(session) else {
            return;
        };
        let left = self.remaining(it);
        let believed = self.instances[it.target].false_zero;
        let Some(it) = self.session_mut(session) else {
            return;
        };
        if it.completed {
            return;
        }
        it.observed = left.max(1);
        let halts = left == 0 && !it.halting;
        it.halting |= halts;
        if halts {
            // Zero was answered 2.0 to 2.8 s after the last table had gone.
            let in_ms = if believed { self.rng.range(10, 100) } else { self.rng.range(1_200, 1_600) };
            self.plan(in_ms, Event::Halt(session));
        }
        let in_ms = self.rng.range(980, 1_080);
        self.plan(in_ms, Event::Refresh(session));
    }

    /// Nothing is left: the target is told to stop taking anything.
    pub(super) fn halt(&mut self, session: SessionRef) {
        let Some(it) = self.session(session) else {
            return;
        };
        let target = it.target;
        let done = self.remaining(it) == 0 && self.instances[target].alive;
        if !done {
            if let Some(it) = self.session_mut(session) {
                it.halting = false;
            }
            return;
        }
        self.instances[target].liveness = Liveness::Stopping;
        let in_ms = self.rng.range(10, 60);
        self.plan(in_ms, Event::Halted(session));
    }

    /// The target was seen stopping: from now on the answer is 0.
    pub(super) fn halted(&mut self, session: SessionRef) {
        let Some(it) = self.session_mut(session) else {
            return;
        };
        it.observed = 0;
        it.completed = true;
        let id = self.session(session).map(|it| self.instances[it.target].id.clone());
        if let Some(coordinator) = self.coordinator_mut(session.cluster) {
            coordinator.completed.extend(id);
        }
        self.settled();
    }

    /// A capture has left the list: a drain of it is over, completed or not, and everybody is told so.
    pub(super) fn close_session_of(&mut self, cluster: usize, instance: usize) {
        let handshake = self.now + self.rng.range(200, 500);
        let Some(coordinator) = self.coordinator_mut(cluster) else {
            return;
        };
        coordinator.heard.remove(&instance);
        if coordinator.session.as_ref().is_some_and(|it| it.target == instance) {
            coordinator.session = None;
            coordinator.clear_until = handshake;
        }
    }

    /// Tables are balanced, unless somebody leaves or the members or a drain changed not long ago: a node that was
    /// drained and started again stayed empty for more than 47 s (recorded/README 17).
    pub(super) fn even(&mut self, cluster: usize, term: u64) {
        if self.clusters[cluster].term() != term || self.living_owner(cluster).is_none() {
            return;
        }
        let Some(coordinator) = self.coordinator(cluster) else {
            return;
        };
        let leaving = self.members(cluster).iter().any(|member| self.is_leaving(*member));
        if leaving || coordinator.session.is_some() || self.now < coordinator.even_from {
            let in_ms = coordinator.even_from.saturating_sub(self.now).max(5_000);
            self.plan(in_ms, Event::Even { cluster, term });
            return;
        }
        for feed in self.clusters[cluster].feeds.clone() {
            if let Some(maintainer) = &mut self.feeds[feed].maintainer {
                maintainer.balancing = true;
                self.plan_tick(feed);
            }
        }
        self.plan(self.rates.balance_ms, Event::Even { cluster, term });
    }
}
