//! From an observed cluster and a target version to an ordered, visible list of steps, or to a refusal.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::picture::Picture;
use super::view::{PhaseKind, PhaseState, StepKind};
use crate::cluster::units::counted;
use crate::cluster::{Address, Architecture, CaptureId, ClusterId, Liveness, NodeStatus, Timestamp, Version};

/// One node's visit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What it is about.
    pub kind: StepKind,
    /// The node.
    pub target: Target,
    /// A remark for people.
    pub note: String,
    /// What is done there.
    pub phases: Vec<Phase>,
    /// Whether its node has been looked at and its first phase begun. Going back to that phase is no new beginning.
    pub is_open: bool,
    /// Whether a person left it out by name: its node is not asked for in the end.
    #[serde(default)]
    pub is_left_out: bool,
}

/// What a step is done to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// A capture, by the address it is asked at. Its id is looked up when the step begins.
    Capture {
        /// Its cluster.
        cluster: ClusterId,
        /// Its address.
        address: Address,
    },
    /// A `TiDB` server, by its status address.
    Tidb(Address),
    /// The cluster as a whole.
    Cluster(Arc<str>),
}

impl Target {
    /// The target as people and scripts see it.
    pub fn label(&self) -> String {
        match self {
            Self::Capture { address, .. } | Self::Tidb(address) => address.to_string(),
            Self::Cluster(word) => word.to_string(),
        }
    }

    /// The process it is about, where it is about one.
    pub fn address(&self) -> Option<&Address> {
        match self {
            Self::Capture { address, .. } | Self::Tidb(address) => Some(address),
            Self::Cluster(_) => None,
        }
    }
}

/// One thing done inside a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Which.
    pub kind: PhaseKind,
    /// How far it is.
    pub state: PhaseState,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// What it waits for, or what ended it.
    pub note: String,
}

impl Phase {
    /// A phase that has not begun.
    pub const fn new(kind: PhaseKind) -> Self {
        Self { kind, state: PhaseState::Waiting, started_at: None, ended_at: None, note: String::new() }
    }

    /// It is not done, for this reason.
    pub fn leave_out(&mut self, why: &str) {
        self.state = PhaseState::Skipped;
        why.clone_into(&mut self.note);
    }
}

impl Step {
    /// A step of these phases, none begun.
    pub fn new(kind: StepKind, target: Target, note: impl Into<String>, phases: &[PhaseKind]) -> Self {
        Self {
            kind,
            target,
            note: note.into(),
            phases: phases.iter().copied().map(Phase::new).collect(),
            is_open: false,
            is_left_out: false,
        }
    }

    /// A step that is not needed, and why.
    fn skipped(kind: StepKind, target: Target, note: impl Into<String>, phases: &[PhaseKind]) -> Self {
        let mut step = Self::new(kind, target, note, phases);
        for phase in &mut step.phases {
            phase.state = PhaseState::Skipped;
        }
        step
    }
}

/// The phases of a capture that is not the owner.
pub const CAPTURE_PHASES: [PhaseKind; 4] = [PhaseKind::Drain, PhaseKind::Restart, PhaseKind::Verify, PhaseKind::Settle];
/// The phases of the owner.
pub const OWNER_PHASES: [PhaseKind; 5] =
    [PhaseKind::Resign, PhaseKind::Drain, PhaseKind::Restart, PhaseKind::Verify, PhaseKind::Settle];
const TIDB_PHASES: [PhaseKind; 2] = [PhaseKind::Restart, PhaseKind::Verify];

/// What looking at the cluster came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Planned {
    /// These steps.
    Steps {
        /// The oldest version found.
        from: Option<Version>,
        /// The steps, in order.
        steps: Vec<Step>,
    },
    /// Everything is at the target already.
    NothingToDo,
    /// The cluster cannot be rolled as asked.
    Refused {
        /// A stable name.
        reason: &'static str,
        /// The node it is about, or nothing where it is about none.
        target: String,
        /// What is there.
        what: String,
        /// What to do.
        advice: String,
    },
    /// Not enough has been read yet: this is missing.
    Unread(String),
}

fn refused(reason: &'static str, target: &str, what: String, advice: impl Into<String>) -> Planned {
    Planned::Refused { reason, target: target.to_owned(), what, advice: advice.into() }
}

/// One live capture.
struct Live {
    cluster: ClusterId,
    id: CaptureId,
    address: Address,
    version: Version,
    architecture: Architecture,
    is_owner: bool,
    liveness: Option<Liveness>,
}

/// Makes the plan for an upgrade to `target`. `has_tidb` says whether `TiDB` servers were named.
pub fn plan_upgrade(picture: &Picture, target: &Version, has_tidb: bool) -> Planned {
    if let Some(refusal) = mixed_architectures(picture) {
        return refusal;
    }
    let captures = match live_captures(picture) {
        Ok(captures) => captures,
        Err(missing) => return Planned::Unread(missing),
    };
    let servers = match tidb_servers(picture, has_tidb) {
        Ok(servers) => servers,
        Err(missing) => return Planned::Unread(missing),
    };
    let versions = captures.iter().map(|c| &c.version).chain(servers.iter().map(|s| &s.version));
    if let Some(newer) = versions.clone().find(|version| target.is_older_than(version)) {
        let at = captures
            .iter()
            .find(|c| &c.version == newer)
            .map(|c| c.address.to_string())
            .or_else(|| servers.iter().find(|s| &s.version == newer).map(|s| s.address.to_string()))
            .unwrap_or_default();
        return refused(
            "target_is_older",
            &at,
            format!("{at} runs {newer}, which is newer than the target {target}."),
            "tiroll does not take a cluster back. Name a target that no running server is ahead of.",
        );
    }
    let from = versions.clone().min().cloned();
    if captures.iter().all(|c| c.version.is_same_release(target))
        && servers.iter().all(|s| s.version.is_same_release(target))
    {
        return leftovers(picture, &captures).unwrap_or(Planned::NothingToDo);
    }
    if let Some(refusal) = third_version(picture, &captures, target).or_else(|| leftovers(picture, &captures)) {
        return refusal;
    }
    let mut steps = capture_steps(&captures, target);
    steps.extend(tidb_steps(&servers, target));
    Planned::Steps { from, steps }
}

/// From classic to new is a switch of the whole cluster and no rolling operation: a node of the new architecture answers
/// everything and joins only when no classic capture is registered any more (recorded/README 21).
fn mixed_architectures(picture: &Picture) -> Option<Planned> {
    let sweep = picture.cdc.as_ref()?;
    sweep.groups.iter().find_map(|group| {
        let of = |architecture: Architecture| {
            let is_of = move |status: &NodeStatus| {
                status.architecture == architecture && status.cluster() == group.cluster_id
            };
            let nodes = sweep.nodes.iter().filter(move |node| node.status.as_ref().is_ok_and(is_of));
            nodes.map(|node| node.address.to_string()).collect::<Vec<_>>()
        };
        let (classic, new) = (of(Architecture::Classic), of(Architecture::New));
        let first = new.first().filter(|_| !classic.is_empty())?;
        Some(refused(
            "mixed_architectures",
            first,
            format!(
                "{} of the new TiCDC architecture beside {} of the classic one, in cluster {}. A new one joins only when every classic one is gone, so from one to the other there is no rolling upgrade.",
                new.join(", "),
                classic.join(", "),
                group.cluster_id
            ),
            format!(
                "To change to the new architecture: pause every changefeed, stop all classic captures, start all nodes of the new one, resume the changefeeds. To stay with the classic one: stop {}, and start again without it.",
                new.join(", ")
            ),
        ))
    })
}

fn live_captures(picture: &Picture) -> Result<Vec<Live>, String> {
    let sweep = picture.cdc.as_ref().ok_or("TiCDC has not answered yet")?;
    for node in &sweep.nodes {
        if let Err(why) = &node.status {
            return Err(format!("{} {why}", node.address));
        }
    }
    let mut captures = Vec::new();
    for group in &sweep.groups {
        let list = group.captures.as_ref().map_err(|why| format!("the captures list could not be read: it {why}"))?;
        if list.is_empty() {
            return Err("the captures list is empty although captures answer".to_owned());
        }
        if group.owner().is_none() {
            return Err("no single owner is named".to_owned());
        }
        group.changefeeds.as_ref().map_err(|why| format!("the changefeeds could not be read: it {why}"))?;
        for entry in list {
            let Some((node, status)) = sweep.node_of(&entry.id) else {
                let (at, id) = (&entry.address, entry.id.short());
                return Err(format!("{at} is listed as {id} and does not answer as that (a process that has left?)"));
            };
            let Some(version) = status.version.clone() else {
                return Err(format!("{} says it is version `{}`, which is none", node.address, status.version_text));
            };
            captures.push(Live {
                cluster: group.cluster_id.clone(),
                id: entry.id.clone(),
                address: node.address.clone(),
                version,
                architecture: status.architecture,
                is_owner: entry.is_owner,
                liveness: status.liveness.meaning,
            });
        }
    }
    for node in &sweep.nodes {
        let id = node.status.as_ref().ok().and_then(|status| status.id.as_ref());
        if !captures.iter().any(|capture| Some(&capture.id) == id) {
            return Err(format!("{} answers and is in no captures list", node.address));
        }
    }
    Ok(captures)
}

struct LiveTidb {
    address: Address,
    version: Version,
    is_ddl_owner: bool,
}

fn tidb_servers(picture: &Picture, has_tidb: bool) -> Result<Vec<LiveTidb>, String> {
    if !has_tidb {
        return Ok(Vec::new());
    }
    let sweep = picture.tidb.as_ref().ok_or("TiDB has not answered yet")?;
    sweep.state.as_ref().map_err(|why| format!("the TiDB upgrade state could not be read: it {why}"))?;
    sweep
        .servers
        .iter()
        .map(|server| {
            let info = server.info.as_ref().map_err(|why| format!("TiDB {} {why}", server.address))?;
            Ok(LiveTidb {
                address: server.address.clone(),
                version: info.version.clone(),
                is_ddl_owner: info.is_ddl_owner == Some(true),
            })
        })
        .collect()
}

/// At most two version strings among the captures of one cluster, ghosts included (contract section 5): with three the
/// owner stops ticking every changefeed. A target that would be the third is refused.
fn third_version(picture: &Picture, captures: &[Live], target: &Version) -> Option<Planned> {
    let clusters: BTreeSet<_> = captures.iter().map(|c| &c.cluster).collect();
    for cluster in clusters {
        let listed = picture.groups.get(cluster).and_then(|group| group.captures.last())?;
        let mut versions: BTreeSet<String> = BTreeSet::new();
        for entry in listed {
            let known =
                picture.statuses.get(&entry.id).and_then(|status| status.last()).map(|s| s.version_text.to_string());
            versions.insert(known.unwrap_or_else(|| format!("unknown ({})", entry.id.short())));
        }
        let present: Vec<_> = versions.iter().cloned().collect();
        // TiCDC compares texts: a build with a suffix is another version to it than the one without.
        let text = |version: &Version| version.as_str().trim_start_matches('v').to_owned();
        let is_new = !captures.iter().any(|c| &c.cluster == cluster && text(&c.version) == text(target));
        if versions.len() + usize::from(is_new) > 2 {
            return Some(refused(
                "third_version",
                "",
                format!(
                    "Among the captures of cluster {cluster} run {}; with {target} there would be a third version, and TiCDC then stops every changefeed.",
                    present.join(" and ")
                ),
                "Bring all captures to one of the versions that run now, then upgrade from there.",
            ));
        }
    }
    None
}

/// A capture that was drained and never restarted: tables would bounce between it and the next one drained.
fn leftovers(picture: &Picture, captures: &[Live]) -> Option<Planned> {
    let left: Vec<_> =
        captures.iter().filter(|c| matches!(c.liveness, Some(Liveness::Draining | Liveness::Stopping))).collect();
    if left.is_empty() {
        if let Some(mute) = captures.iter().find(|c| c.liveness.is_none()) {
            return Some(refused(
                "liveness_unknown",
                &mute.address.to_string(),
                format!("Capture {} does not tell whether it takes tables.", mute.address),
                "A capture without a liveness is too old to be drained, or of a kind this version does not know.",
            ));
        }
        return None;
    }
    let names: Vec<_> = left
        .iter()
        .map(|c| {
            let word = c.liveness.map_or("?", Liveness::word);
            let tables = match picture.groups.get(&c.cluster).and_then(|group| group.tables.get(&c.id)?.seen.known()) {
                Some(tables) => counted(tables.count(), "table"),
                None => "it is not known how many tables".to_owned(),
            };
            format!("{} ({}), {word} with {tables} on it", c.address, c.id.short())
        })
        .collect();
    let first = left.first().map(|c| c.address.to_string()).unwrap_or_default();
    Some(refused(
        "leftover",
        &first,
        format!(
            "Capture {} was drained before and never restarted. {}",
            names.join(" and "),
            match left.first().map(|c| c.architecture) {
                Some(Architecture::New) =>
                    "While it runs its drain is held open: every other one is answered 1 without end and moves nothing.",
                _ =>
                    "While it runs, a drain of another capture would send tables back and forth between the two without end.",
            }
        ),
        format!(
            "Wait until no table is on {first} (`tiroll status` tells; if some stay, pause the changefeeds they belong to). Then restart it on the binary it has (systemctl restart, tiup cluster restart -N, or kubectl delete pod), wait until it is listed with a new id, and start again."
        ),
    ))
}

fn capture_steps(captures: &[Live], target: &Version) -> Vec<Step> {
    let mut ordered: Vec<&Live> = captures.iter().collect();
    ordered
        .sort_by(|a, b| (&a.cluster, a.is_owner, &a.address, &a.id).cmp(&(&b.cluster, b.is_owner, &b.address, &b.id)));
    ordered
        .into_iter()
        .map(|capture| {
            let to = Target::Capture { cluster: capture.cluster.clone(), address: capture.address.clone() };
            let phases: &[PhaseKind] = if capture.is_owner { &OWNER_PHASES } else { &CAPTURE_PHASES };
            if capture.version.is_same_release(target) {
                let note = format!("already {}", capture.version);
                Step::skipped(StepKind::Capture, to, note, phases)
            } else {
                let note = if capture.is_owner { owner_note(capture.architecture) } else { "" };
                Step::new(StepKind::Capture, to, note, phases)
            }
        })
        .collect()
}

/// The remark on the step of the capture that owns.
pub(super) const fn owner_note(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::Classic => "owner, last",
        Architecture::New => "coordinator, last",
    }
}

fn tidb_steps(servers: &[LiveTidb], target: &Version) -> Vec<Step> {
    if servers.iter().all(|server| server.version.is_same_release(target)) {
        return servers
            .iter()
            .map(|server| {
                let note = format!("already {}", server.version);
                Step::skipped(StepKind::Tidb, Target::Tidb(server.address.clone()), note, &TIDB_PHASES)
            })
            .collect();
    }
    let mut steps = vec![Step::new(
        StepKind::HandOver,
        Target::Cluster(Arc::from("PD and TiKV")),
        "with your cluster manager",
        &[PhaseKind::HandOver],
    )];
    let is_smooth = target.has_upgrade_api() && servers.iter().all(|server| server.version.has_upgrade_api());
    if is_smooth {
        steps.push(Step::new(
            StepKind::EnterUpgrading,
            Target::Cluster(Arc::from("TiDB")),
            "user DDL waits from here",
            &[PhaseKind::EnterUpgrading],
        ));
    }
    let mut ordered: Vec<&LiveTidb> = servers.iter().collect();
    ordered.sort_by(|a, b| (a.is_ddl_owner, &a.address).cmp(&(b.is_ddl_owner, &b.address)));
    for server in ordered {
        let to = Target::Tidb(server.address.clone());
        if server.version.is_same_release(target) {
            let note = format!("already {}", server.version);
            steps.push(Step::skipped(StepKind::Tidb, to, note, &TIDB_PHASES));
        } else {
            let note = if server.is_ddl_owner { "DDL owner, last" } else { "" };
            steps.push(Step::new(StepKind::Tidb, to, note, &TIDB_PHASES));
        }
    }
    if is_smooth {
        steps.push(Step::new(
            StepKind::LeaveUpgrading,
            Target::Cluster(Arc::from("TiDB")),
            "user DDL runs again",
            &[PhaseKind::LeaveUpgrading],
        ));
    }
    steps
}
