//! The tables of the new architecture, as the maintainers tell them.

use std::collections::BTreeMap;

use super::Owner;
use crate::api::clients::in_order;
use crate::cluster::{
    Architecture, CaptureEntry, CaptureId, ChangefeedId, ChangefeedRow, Failure, FailureKind, NodeReading, Placement,
    Reading, TargetTables,
};

impl Owner<'_> {
    /// The tables of every changefeed that may run, one question each. One at rest has no maintainer and is not asked
    /// (recorded cdc-new-more 04).
    pub(super) async fn placement_by_maintainers(
        &self,
        changefeeds: &Reading<Vec<ChangefeedRow>>,
    ) -> BTreeMap<ChangefeedId, Reading<Placement>> {
        let running = changefeeds.iter().flatten().filter(|row| !row.state.is_at_rest());
        let placement = in_order(running, |row| async move {
            (row.id.clone(), self.ask(|at| self.clients.cdc.tables(at, &row.id)).await)
        });
        placement.await.into_iter().collect()
    }
}

/// The tables of one capture out of the same readings, without a second question that might be answered otherwise.
/// A capture that a maintainer does not name carries none of its tables (recorded/README 18). `None` as in the classic
/// architecture: where the changefeeds are unknown or the capture is not in the list.
pub(super) fn tables_of(
    capture: &CaptureId,
    captures: &[CaptureEntry],
    changefeeds: &Reading<Vec<ChangefeedRow>>,
    placement: &BTreeMap<ChangefeedId, Reading<Placement>>,
) -> Option<TargetTables> {
    let rows = changefeeds.as_ref().ok()?;
    if !captures.iter().any(|entry| entry.id == *capture) {
        return None;
    }
    let tables = |row: &ChangefeedRow| match placement.get(&row.id) {
        _ if row.state.is_at_rest() => Ok(Vec::new()),
        Some(Ok(placement)) => Ok(placement.get(capture).cloned().unwrap_or_default()),
        Some(Err(failure)) => Err(failure.clone()),
        None => Err(Failure::local(FailureKind::NotAsked, format!("the tables of changefeed {} are unknown", row.id))),
    };
    let by_changefeed = rows.iter().map(|row| (row.id.clone(), tables(row))).collect();
    Some(TargetTables { capture: capture.clone(), by_changefeed })
}

/// The architecture of a cluster: that of the nodes whose own status names an id in its list, if they agree.
pub(super) fn architecture_of(captures: &[CaptureEntry], nodes: &[NodeReading]) -> Option<Architecture> {
    let of = |entry: &CaptureEntry| {
        let statuses = nodes.iter().filter_map(|node| node.status.as_ref().ok());
        statuses.filter(|status| status.id.as_ref() == Some(&entry.id)).map(|status| status.architecture).next()
    };
    let mut kinds = captures.iter().filter_map(of);
    let first = kinds.next()?;
    kinds.all(|kind| kind == first).then_some(first)
}

/// What stands for the tables of a cluster whose architecture is unknown: unknown, never empty.
pub(super) fn unplaced(changefeeds: &Reading<Vec<ChangefeedRow>>) -> BTreeMap<ChangefeedId, Reading<Placement>> {
    let why = "which architecture runs there is unknown, and each names its tables by another call";
    let rows = changefeeds.iter().flatten();
    rows.map(|row| (row.id.clone(), Err(Failure::local(FailureKind::NotAsked, why)))).collect()
}

/// What stands for the processors where there are none to list.
pub(super) fn no_processors() -> Failure {
    Failure::local(FailureKind::NotAsked, "only classic captures have processors")
}
