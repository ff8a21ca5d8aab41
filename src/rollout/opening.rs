//! Opening a node's step: looking at the node afresh, going on without it where nothing is left to do there, and
//! looking at every server once more before the rollout is called done.

use super::engine::{Engine, FeedBefore, Visit};
use super::obligation::Debt;
use super::phase::question;
use super::plan::{Phase, Step, Target, owner_note};
use super::view::{PhaseKind, PhaseState, StepKind};
use crate::cluster::{Address, ClusterId};

/// The reason of the question about a node that cannot be read before its step.
const NODE_UNREAD: &str = "node_unread";
/// The reason of the question asked when every step is over and yet something is not as it should be.
const NOT_ALL_THERE: &str = "not_all_there";

impl Engine {
    /// Whether nothing is left to do: every server of the plan still says so, and nothing is owed. What somebody else
    /// did meanwhile must not end as done.
    pub(super) fn is_all_there(&mut self) -> bool {
        let to = self.request.target.clone();
        let mut behind = Vec::new();
        for step in self.plan.iter().filter(|step| !step.is_left_out) {
            let version = match &step.target {
                Target::Capture { address, .. } => self
                    .picture
                    .cdc
                    .as_ref()
                    .and_then(|sweep| sweep.node_at(address)?.status.as_ref().ok()?.version.clone()),
                Target::Tidb(address) => {
                    self.picture.tidb_versions.get(address).and_then(|version| version.known().cloned())
                }
                Target::Cluster(_) => continue,
            };
            match version {
                Some(version) if version.is_same_release(&to) => {}
                Some(version) => behind.push(format!("{} runs {version}", step.target.label())),
                None => behind.push(format!("{} does not answer", step.target.label())),
            }
        }
        behind.extend(self.obligations.iter().map(|obligation| obligation.view().what));
        if behind.is_empty() {
            self.opening_since = None;
            if self.state.question().is_some_and(|question| question.reason == NOT_ALL_THERE) {
                self.state.withdraw();
            }
            return true;
        }
        let since = *self.opening_since.get_or_insert(self.now);
        if self.state.question().is_none() && self.now.since(since) >= self.policy.unknown_asks {
            let question = question(
                NOT_ALL_THERE,
                format!("Every step is over, and yet: {}.", behind.join("; ")),
                "The rollout is not called done while that is so.",
                "See to what is named here; it ends by itself when it is mended.",
                &[(super::command::Command::Retry, "look again")],
            );
            self.ask(question);
        }
        false
    }

    /// Why a step that has not begun need not be taken any more.
    pub(super) fn why_needless(&self, step: usize) -> Option<String> {
        let step = self.plan.get(step)?;
        let to = &self.request.target;
        match (&step.target, step.kind) {
            (Target::Capture { address, .. }, StepKind::Recover) => {
                self.drained_at(address).is_none().then(|| "nothing is owed there any more".to_owned())
            }
            (Target::Capture { cluster, address }, StepKind::Capture) if self.is_fresh() => {
                let sweep = self.picture.cdc.as_ref()?;
                let status = sweep.node_at(address)?.status.as_ref().ok()?;
                let version = status.version.as_ref().filter(|version| version.is_same_release(to))?;
                let list = sweep.group(cluster)?.captures.as_ref().ok()?;
                let is_listed = list.iter().any(|entry| Some(&entry.id) == status.id.as_ref());
                (is_listed && status.liveness.meaning == Some(crate::cluster::Liveness::Alive))
                    .then(|| format!("already {version}"))
            }
            (Target::Tidb(address), _) => {
                let sweep = self.picture.tidb.as_ref()?;
                let server = sweep.server_at(address)?;
                let version = &server.info.as_ref().ok().filter(|info| info.version.is_same_release(to))?.version;
                let is_fresh = self.now.since(sweep.begun) <= self.policy.stale_after;
                (is_fresh && server.status.is_ok()).then(|| format!("already {version}"))
            }
            _ => None,
        }
    }

    pub(super) fn skip_step(&mut self, step: usize, why: &str) {
        let Some(step) = self.plan.get_mut(step) else { return };
        for phase in step.phases.iter_mut().filter(|phase| !phase.state.is_over()) {
            phase.state = PhaseState::Skipped;
        }
        why.clone_into(&mut step.note);
        let label = step.target.label();
        self.note(format!("{label}: {why}"));
    }

    /// The drained capture that is owed a restart at this address.
    pub(super) fn drained_at(&self, at: &Address) -> Option<&crate::cluster::CaptureId> {
        self.obligations.iter().find_map(|obligation| match &obligation.debt {
            Debt::Drain { address, capture, .. } if address == at => Some(capture),
            Debt::Drain { .. } | Debt::Start { .. } | Debt::Finish => None,
        })
    }

    /// A node that could not be read when its step was to begin, and a person was asked about, may answer by now.
    pub(super) fn reconsider(&mut self, step: usize) {
        let is_about_opening = self.state.question().is_some_and(|question| question.reason == NODE_UNREAD);
        if is_about_opening && self.why_closed(step).is_none() {
            self.state.withdraw();
            self.waits_for.clear();
            let phase = self.cursor.1;
            if let Some(phase) = self.phase_mut(step, phase) {
                phase.state = PhaseState::Waiting;
            }
        }
    }

    /// The step's node cannot be read: says so, and asks a person when that lasts.
    pub(super) fn wait_to_open(&mut self, step: usize) {
        let Some(why) = self.why_closed(step) else { return };
        let since = *self.opening_since.get_or_insert(self.now);
        self.waits_for = format!("waiting: {why}");
        if self.now.since(since) < self.policy.unknown_asks {
            return;
        }
        let question = question(
            NODE_UNREAD,
            format!("The next step cannot begin: {why}."),
            "A node is only touched when it, its owner and its changefeeds have just been read.",
            "See to the node; the step begins by itself when it answers.",
            &[(super::command::Command::Retry, "look again")],
        );
        self.ask(question);
    }

    /// Why a step on this node may not begin now.
    fn why_closed(&self, step: usize) -> Option<String> {
        let step = self.plan.get(step)?;
        let Target::Capture { cluster, address } = &step.target else { return None };
        let Some(sweep) = &self.picture.cdc else { return Some("TiCDC was not read".to_owned()) };
        match sweep.node_at(address).map(|node| &node.status) {
            Some(Ok(_)) => {}
            Some(Err(why)) => return Some(format!("{address} {why}")),
            None => return Some(format!("{address} was not asked")),
        }
        if self.picture.owner(cluster).is_none() {
            return Some("TiCDC names no owner".to_owned());
        }
        if !self.is_fresh() {
            return Some("the last reading of TiCDC is too old".to_owned());
        }
        let Some(visit) = self.look_at(cluster, address, step.kind) else {
            return Some(format!(
                "the id, the version or the changefeeds of {address} could not be read, or it is in no list"
            ));
        };
        if step.kind == StepKind::Recover && self.drained_at(address).is_some_and(|drained| drained != &visit.old_id) {
            return Some(format!(
                "a new process answers at {address}, and the old id is not gone or it is not alive yet"
            ));
        }
        None
    }

    /// Looks at a node afresh before its step; says whether the step may begin.
    pub(super) fn open_step(&mut self, step: usize) -> bool {
        let Some(Step { kind, target, .. }) = self.plan.get(step) else { return false };
        let kind = *kind;
        let Target::Capture { cluster, address } = target.clone() else {
            self.visit.set(None);
            return true;
        };
        if self.why_closed(step).is_some() {
            return false;
        }
        let Some(visit) = self.look_at(&cluster, &address, kind) else { return false };
        let owner = self.picture.owner(&cluster).map(|(id, _)| id.clone());
        let Some(owner) = owner else { return false };
        let is_owner = owner == visit.old_id;
        let later = self.plan.iter().enumerate().skip(step + 1).rfind(|(_, other)| {
            let is_same = matches!(&other.target, Target::Capture { cluster: c, .. } if c == &cluster);
            is_same && other.kind == StepKind::Capture && other.phases.iter().any(|phase| !phase.state.is_over())
        });
        if is_owner
            && kind == StepKind::Capture
            && let Some((last, _)) = later
        {
            self.note(format!("{address} owns now; it goes last"));
            let moved = self.plan.remove(step);
            self.plan.insert(last, moved);
            return self.open_step(step);
        }
        if let Some(step) = self.plan.get_mut(step) {
            let has_resign = step.phases.first().is_some_and(|phase| phase.kind == PhaseKind::Resign);
            match (is_owner, has_resign) {
                (true, false) => step.phases.insert(0, Phase::new(PhaseKind::Resign)),
                (false, true) => {
                    step.phases.remove(0);
                }
                _ => {}
            }
            if is_owner {
                owner_note(visit.architecture).clone_into(&mut step.note);
            } else if step.kind == StepKind::Capture {
                step.note.clear();
            }
        }
        self.drain = None;
        if let Some(group) = self.picture.groups.get_mut(&visit.cluster) {
            group.most.clone_from(&group.totals);
        }
        self.visit.set(Some(visit));
        true
    }

    pub(super) fn look_at(&self, cluster: &ClusterId, address: &Address, kind: StepKind) -> Option<Visit> {
        let sweep = self.picture.cdc.as_ref()?;
        let status = sweep.node_at(address)?.status.as_ref().ok()?;
        let group = self.picture.groups.get(cluster)?;
        // What answers and is in no list is no member: it has not joined yet, or is of the other architecture.
        let id = status.id.clone()?;
        if !group.captures.known()?.iter().any(|entry| entry.id == id) {
            return None;
        }
        let rows = group.changefeeds.known()?;
        let feeds = rows
            .iter()
            .map(|row| {
                let still = group.moved.get(&row.id).map(|(_, since)| self.now.since(*since));
                let before = FeedBefore {
                    state: row.state.clone(),
                    checkpoint: row.checkpoint,
                    lag: group.lag(row),
                    tables: group.totals.get(&row.id).copied(),
                    stood_still: still.is_some_and(|still| still >= self.policy.lag_limit),
                };
                (row.id.clone(), before)
            })
            .collect();
        Some(Visit {
            cluster: cluster.clone(),
            old_id: id,
            address: address.clone(),
            architecture: status.architecture,
            old_version: status.version.clone()?,
            old_pid: status.pid,
            to: (kind == StepKind::Capture).then(|| self.request.target.clone()),
            feeds,
            owner_refusals: 0,
            returned_at: None,
        })
    }

    /// Whether a drained capture can be restarted with care: not once another process answers at its address, which is
    /// then only waited for.
    pub(super) fn may_recover(&self, address: &Address, capture: &crate::cluster::CaptureId) -> bool {
        let node = self.picture.cdc.as_ref().and_then(|sweep| sweep.node_at(address));
        let id = node.and_then(|node| node.status.as_ref().ok()).and_then(|status| status.id.as_ref());
        id.is_none_or(|id| id == capture)
    }
}
