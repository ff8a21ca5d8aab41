//! One sweep over a cluster: everything that was asked together, each part with its own failure.
//!
//! The design calls a sweep of `TiCDC` a *round*: captures list, every listed capture's own status, changefeed list
//! and the target's tables, all read between two moments. What a round proves is judged by the rollout core.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use super::answer::{Failure, Reading};
use super::cdc::{Architecture, CaptureEntry, ChangefeedRow, NodeStatus};
use super::ids::{Address, ByCapture, CaptureId, ChangefeedId, ClusterId, TableId};
use super::pd::PdReading;
use super::placement::Placements;
use super::tidb::{TidbAll, TidbInfo, TidbStatus, UpgradeState};
use super::units::{Timestamp, Tso};

/// One sweep over all `TiCDC` nodes, whichever cluster ids they have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CdcSweep {
    /// When the first request was sent.
    pub begun: Timestamp,
    /// When the last answer was in.
    pub ended: Timestamp,
    /// Every configured address and every other listed one, asked for itself; ordered by address.
    pub nodes: Nodes,
    /// One entry for each `TiCDC` cluster id found, ordered by it. If no node told its cluster, one group under
    /// `default` carries the failures.
    pub groups: Vec<GroupSweep>,
}

/// The nodes of a sweep, and which of them each capture is. They can only be replaced as a whole, so that the one cannot
/// come apart from the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    list: Vec<NodeReading>,
    /// The place in the list of the first node that names this capture as itself.
    by_capture: ByCapture<usize>,
}

impl Nodes {
    /// Whether every node is asked and answers as in the other list, whenever that was.
    pub fn say_the_same(&self, other: &Self) -> bool {
        let is_same = |(a, b): (&NodeReading, &NodeReading)| a.address == b.address && a.status == b.status;
        self.len() == other.len() && self.iter().zip(other).all(is_same)
    }
}

impl From<Vec<NodeReading>> for Nodes {
    fn from(list: Vec<NodeReading>) -> Self {
        let mut by_capture = ByCapture::default();
        for (place, node) in list.iter().enumerate() {
            if let Some(id) = node.capture() {
                by_capture.entry(id.clone()).or_insert(place);
            }
        }
        Self { list, by_capture }
    }
}

impl Deref for Nodes {
    type Target = [NodeReading];

    fn deref(&self) -> &Self::Target {
        &self.list
    }
}

impl<'a> IntoIterator for &'a Nodes {
    type Item = &'a NodeReading;
    type IntoIter = std::slice::Iter<'a, NodeReading>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

/// The captures at which each changefeed has a processor; no changefeed without any.
pub type Processors = Arc<BTreeMap<ChangefeedId, BTreeSet<CaptureId>>>;

/// One node's own answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReading {
    /// The address it was asked at: the configured one where there is one, never replaced by an advertised one.
    pub address: Address,
    /// Whether the operator named this address, as against found in a list.
    pub is_configured: bool,
    /// Its `/api/v1/status`.
    pub status: Reading<NodeStatus>,
    /// When this request was sent.
    pub at: Timestamp,
}

/// What the owner of one `TiCDC` cluster says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSweep {
    /// The cluster.
    pub cluster_id: ClusterId,
    /// The architecture of the captures in its list, by their own words; `None` where none of them answers or they
    /// contradict each other. A node that answers and is in no list does not count: one of the new architecture waits
    /// beside classic captures until the last of them is gone (recorded/README 21).
    pub architecture: Option<Architecture>,
    /// The list of captures, in the order of address and id.
    pub captures: Reading<Vec<CaptureEntry>>,
    /// The health call: `Ok` is healthy.
    pub health: Reading<()>,
    /// The changefeeds of all namespaces, hidden ones included (`state=all`), ordered by id.
    pub changefeeds: Reading<Vec<ChangefeedRow>>,
    /// The changefeeds that have processors, by the processors list: a check on the list above. Not asked in the new
    /// architecture, where the list is always empty and says nothing (recorded/README 18): then it is
    /// [`FailureKind::NotAsked`](super::answer::FailureKind::NotAsked), never an empty list.
    pub processors: Reading<Processors>,
    /// Where the tables of each changefeed that may run are, over all captures. In the new architecture a capture
    /// that is not named carries none, and one may be named that is gone from the list (contract section 11).
    pub placement: Placements,
    /// The tables of the capture that was asked for by name, if one was.
    pub target: Option<TargetTables>,
    /// The cluster's own clock; lag is unknown without it.
    pub cluster_time: Reading<Tso>,
}

/// The tables of one capture, changefeed by changefeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetTables {
    /// The capture asked for.
    pub capture: CaptureId,
    /// For each changefeed in the list: its tables there. The names of changefeeds that are at rest are present too:
    /// in the classic architecture with whatever the server answered unless the processors list says that there is
    /// none; in the new one as empty, by their state in this same sweep, since a changefeed at rest has no maintainer
    /// who could be asked (recorded cdc-new-more 04) and nothing else tells of it.
    pub by_changefeed: BTreeMap<ChangefeedId, Reading<Vec<TableId>>>,
}

impl NodeReading {
    /// The capture it says it is.
    pub fn capture(&self) -> Option<&CaptureId> {
        self.status.as_ref().ok()?.id.as_ref()
    }
}

impl CdcSweep {
    /// The node whose own status names this capture.
    pub fn node_of(&self, capture: &CaptureId) -> Option<(&NodeReading, &NodeStatus)> {
        let node = self.nodes.get(*self.nodes.by_capture.get(capture)?)?;
        Some((node, node.status.as_ref().ok()?))
    }

    /// The same sweep, in the memory of the one before as far as that says the same. Most of a cluster is as it was a
    /// moment ago; what is shared is compared by its place, and letting go of the older sweep is no walk through
    /// everything that was read.
    #[must_use]
    pub fn sharing(self, before: &Self) -> Self {
        let nodes = self.nodes.list.into_iter().map(|node| {
            let same = before.node_at(&node.address).map(|before| &before.status).filter(|same| **same == node.status);
            NodeReading { status: same.cloned().unwrap_or(node.status), ..node }
        });
        let groups = self.groups.into_iter().map(|group| match before.group(&group.cluster_id) {
            Some(before) => group.sharing(before),
            None => group,
        });
        Self { nodes: nodes.collect::<Vec<_>>().into(), groups: groups.collect(), ..self }
    }

    /// What the node at this address answered.
    pub fn node_at(&self, address: &Address) -> Option<&NodeReading> {
        self.nodes.iter().find(|node| &node.address == address)
    }

    /// The group of this cluster id.
    pub fn group(&self, cluster_id: &ClusterId) -> Option<&GroupSweep> {
        self.groups.iter().find(|group| &group.cluster_id == cluster_id)
    }
}

impl GroupSweep {
    /// A group of which nothing could be read, each part for the same reason.
    pub fn unread(cluster_id: ClusterId, why: &Failure) -> Self {
        Self {
            cluster_id,
            architecture: None,
            captures: Err(why.clone()),
            health: Err(why.clone()),
            changefeeds: Err(why.clone()),
            processors: Err(why.clone()),
            placement: Placements::default(),
            target: None,
            cluster_time: Err(why.clone()),
        }
    }

    fn sharing(mut self, before: &Self) -> Self {
        if self.captures == before.captures {
            self.captures.clone_from(&before.captures);
        }
        if self.processors == before.processors {
            self.processors.clone_from(&before.processors);
        }
        self.placement = self.placement.sharing(&before.placement);
        self
    }

    /// The owner, if the list was read and names exactly one.
    pub fn owner(&self) -> Option<&CaptureEntry> {
        let list = self.captures.as_ref().ok()?;
        let mut owners = list.iter().filter(|entry| entry.is_owner);
        owners.next().filter(|_| owners.next().is_none())
    }
}

/// One sweep over all `TiDB` servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TidbSweep {
    /// When the first request was sent.
    pub begun: Timestamp,
    /// When the last answer was in.
    pub ended: Timestamp,
    /// Every configured server, asked for itself; ordered by address.
    pub servers: Vec<TidbReading>,
    /// `/info/all`, from any of them.
    pub all: Reading<TidbAll>,
    /// `/upgrade/show`, from any of them.
    pub state: Reading<UpgradeState>,
}

impl TidbSweep {
    /// What the server with this status address answered.
    pub fn server_at(&self, address: &Address) -> Option<&TidbReading> {
        self.servers.iter().find(|server| &server.address == address)
    }
}

/// One `TiDB` server's own answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TidbReading {
    /// The status address it was asked at.
    pub address: Address,
    /// `/status`.
    pub status: Reading<TidbStatus>,
    /// `/info`.
    pub info: Reading<TidbInfo>,
}

/// One sweep over all PD servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PdSweep {
    /// When the first request was sent.
    pub begun: Timestamp,
    /// When the last answer was in.
    pub ended: Timestamp,
    /// Every configured server, ordered by address.
    pub servers: Vec<PdReading>,
}
