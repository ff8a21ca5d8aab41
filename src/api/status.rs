//! The document of `tiroll status`: one sweep, as JSON for scripts and as text for people. Its keys are fixed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::cluster::units::spoken;
use crate::cluster::{
    Address, CaptureEntry, CaptureId, CdcSweep, ChangefeedError, ClusterId, FailureKind, GroupSweep, NodeStatus,
    PdSweep, TidbSweep, Timestamp, UpgradeState,
};

/// What was read. `null` is "could not be read"; the reason is in `unknown`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StatusDocument {
    /// Captures, by address and id.
    pub captures: Option<Vec<Capture>>,
    /// Changefeeds, by cluster, namespace and id.
    pub changefeeds: Option<Vec<Changefeed>>,
    /// `TiDB`; null when it was not asked for.
    pub tidb: Option<Tidb>,
    /// PD; null when it was not asked for.
    pub pd: Option<Pd>,
    /// Everything that was asked for and could not be read.
    pub unknown: Vec<Unknown>,
}

/// A capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Capture {
    /// Its id.
    pub id: CaptureId,
    /// The address it advertises.
    pub address: Address,
    /// Its `TiCDC` cluster.
    pub cluster_id: ClusterId,
    /// Whether it owns.
    pub is_owner: bool,
    /// Its version.
    pub version: Option<String>,
    /// `alive`, `draining` or `stopping`.
    pub liveness: Option<&'static str>,
    /// The number it told.
    pub liveness_raw: Option<i64>,
    /// `classic` or `new`.
    pub architecture: Option<&'static str>,
    /// Its tables, over all running changefeeds.
    pub tables: Option<u64>,
    /// The same by `namespace/id`.
    pub tables_by_changefeed: Option<BTreeMap<String, u64>>,
    /// Milliseconds since its own status was asked for.
    pub age_ms: Option<u64>,
}

/// A changefeed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changefeed {
    /// Its name.
    pub id: String,
    /// Its namespace.
    pub namespace: String,
    /// Its `TiCDC` cluster.
    pub cluster_id: ClusterId,
    /// Its state, in the server's word.
    pub state: String,
    /// Its checkpoint, exact.
    pub checkpoint_ts: Option<u64>,
    /// How far that is behind the cluster's clock.
    pub lag_ms: Option<u64>,
    /// Its error or warning.
    pub error: Option<ChangefeedError>,
}

/// `TiDB`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tidb {
    /// `normal` or `upgrading`.
    pub state: Option<&'static str>,
    /// The servers, by status address.
    pub servers: Vec<TidbServer>,
}

/// A `TiDB` server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TidbServer {
    /// Its status address.
    pub address: Address,
    /// Its version, without the prefix for `MySQL` clients.
    pub version: Option<String>,
    /// Whether it owns DDL.
    pub is_ddl_owner: Option<bool>,
}

/// PD.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pd {
    /// The servers, by address.
    pub servers: Vec<PdServer>,
}

/// A PD server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PdServer {
    /// Its client address.
    pub address: Address,
    /// Its version.
    pub version: Option<String>,
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unknown {
    /// What.
    pub what: String,
    /// Where it was asked.
    pub address: Option<String>,
    /// Why it is unknown.
    pub why: String,
}

impl StatusDocument {
    /// Whether everything that was asked for was read.
    pub const fn is_complete(&self) -> bool {
        self.unknown.is_empty()
    }
}

/// Makes the document of one sweep.
pub fn document(cdc: &CdcSweep, tidb: Option<&TidbSweep>, pd: Option<&PdSweep>, now: Timestamp) -> StatusDocument {
    let mut unknown = Vec::new();
    let mut captures: Option<Vec<Capture>> = Some(Vec::new());
    let mut changefeeds: Option<Vec<Changefeed>> = Some(Vec::new());
    for group in &cdc.groups {
        let listed = read_captures(cdc, group, now, &mut unknown);
        captures = captures.zip(listed).map(|(mut all, more)| {
            all.extend(more);
            all
        });
        let rows = read_changefeeds(group, &mut unknown);
        changefeeds = changefeeds.zip(rows).map(|(mut all, more)| {
            all.extend(more);
            all
        });
    }
    for node in &cdc.nodes {
        if let Err(why) = &node.status {
            // A ghost has been named with its id already.
            let at = Some(node.address.to_string());
            if !unknown.iter().any(|known| known.address == at) {
                unknown.push(Unknown { what: "capture".to_owned(), address: at, why: why.to_string() });
            }
        }
    }
    if let Some(captures) = &mut captures {
        captures.sort_by(|a, b| (&a.address, &a.id).cmp(&(&b.address, &b.id)));
    }
    if let Some(changefeeds) = &mut changefeeds {
        changefeeds.sort_by(|a, b| (&a.cluster_id, &a.namespace, &a.id).cmp(&(&b.cluster_id, &b.namespace, &b.id)));
    }
    let tidb = tidb.map(|sweep| read_tidb(sweep, &mut unknown));
    let pd = pd.map(|sweep| read_pd(sweep, &mut unknown));
    StatusDocument { captures, changefeeds, tidb, pd, unknown }
}

fn read_captures(
    cdc: &CdcSweep,
    group: &GroupSweep,
    now: Timestamp,
    unknown: &mut Vec<Unknown>,
) -> Option<Vec<Capture>> {
    let list = match &group.captures {
        Ok(list) => list,
        Err(why) => {
            unknown.push(Unknown { what: "captures".to_owned(), address: None, why: why.to_string() });
            return None;
        }
    };
    for (feed, reading) in &group.placement {
        if let Err(why) = reading {
            unknown.push(Unknown { what: format!("tables of changefeed {feed}"), address: None, why: why.to_string() });
        }
    }
    let read = |entry: &CaptureEntry| {
        let own = cdc.node_of(&entry.id);
        if own.is_none() {
            unknown.push(Unknown {
                what: format!("capture {}", entry.id),
                address: Some(entry.address.to_string()),
                why: why_silent(cdc, entry),
            });
        }
        let status: Option<&NodeStatus> = own.map(|(_, status)| status);
        let by_changefeed = tables_of(group, &entry.id);
        Capture {
            id: entry.id.clone(),
            address: entry.address.clone(),
            cluster_id: group.cluster_id.clone(),
            is_owner: entry.is_owner,
            version: status.map(|status| status.version_text.to_string()),
            liveness: status.and_then(|status| status.liveness.meaning).map(crate::cluster::Liveness::word),
            liveness_raw: status.and_then(|status| status.liveness.raw),
            architecture: status.map(|status| status.architecture.word()),
            tables: by_changefeed.as_ref().map(|tables| tables.values().sum()),
            tables_by_changefeed: by_changefeed,
            age_ms: own.map(|(node, _)| u64::try_from(now.since(node.at).as_millis()).unwrap_or(u64::MAX)),
        }
    };
    Some(list.iter().map(read).collect())
}

/// Why a listed capture did not answer as itself.
fn why_silent(cdc: &CdcSweep, entry: &CaptureEntry) -> String {
    match cdc.node_at(&entry.address).map(|node| &node.status) {
        Some(Ok(status)) => {
            let other = status.id.as_ref().map_or("a process without an id", |id| id.short());
            format!(
                "that address is answered by {other}: the listed process has left, and its entry lapses in a few seconds"
            )
        }
        Some(Err(why)) if why.kind == FailureKind::Refused => {
            format!("{why}; if it has stopped, its entry lapses in a few seconds (after a crash in about 13 s)")
        }
        Some(Err(why)) => why.to_string(),
        None => "it was not asked".to_owned(),
    }
}

/// Tables of a capture by changefeed, with a zero for every running one; `None` if any could not be read.
fn tables_of(group: &GroupSweep, id: &CaptureId) -> Option<BTreeMap<String, u64>> {
    group.changefeeds.as_ref().ok()?;
    group
        .placement
        .iter()
        .map(|(feed, reading)| {
            let count = reading.as_ref().ok()?.get(id).map_or(0, Vec::len);
            Some((feed.to_string(), u64::try_from(count).ok()?))
        })
        .collect()
}

fn read_changefeeds(group: &GroupSweep, unknown: &mut Vec<Unknown>) -> Option<Vec<Changefeed>> {
    let rows = match &group.changefeeds {
        Ok(rows) => rows,
        Err(why) => {
            unknown.push(Unknown { what: "changefeeds".to_owned(), address: None, why: why.to_string() });
            return None;
        }
    };
    let now = match &group.cluster_time {
        Ok(now) => Some(*now),
        Err(why) => {
            unknown.push(Unknown {
                what: "the cluster's clock, and so every lag".to_owned(),
                address: None,
                why: why.to_string(),
            });
            None
        }
    };
    let read = |row: &crate::cluster::ChangefeedRow| Changefeed {
        id: row.id.name.to_string(),
        namespace: row.id.namespace.to_string(),
        cluster_id: group.cluster_id.clone(),
        state: row.state.word().to_owned(),
        checkpoint_ts: row.checkpoint.map(crate::cluster::Tso::get),
        lag_ms: row
            .checkpoint
            .zip(now)
            .map(|(checkpoint, now)| u64::try_from(checkpoint.lag_behind(now).as_millis()).unwrap_or(u64::MAX)),
        error: row.error.clone(),
    };
    Some(rows.iter().map(read).collect())
}

fn read_tidb(sweep: &TidbSweep, unknown: &mut Vec<Unknown>) -> Tidb {
    let state = match &sweep.state {
        Ok(UpgradeState::Normal) => Some("normal"),
        Ok(UpgradeState::Upgrading { .. }) => Some("upgrading"),
        Err(why) => {
            unknown.push(Unknown { what: "tidb state".to_owned(), address: None, why: why.to_string() });
            None
        }
    };
    let servers = sweep
        .servers
        .iter()
        .map(|server| {
            if let Err(why) = &server.info {
                let at = Some(server.address.to_string());
                unknown.push(Unknown { what: "tidb".to_owned(), address: at, why: why.to_string() });
            }
            let info = server.info.as_ref().ok();
            TidbServer {
                address: server.address.clone(),
                version: info.map(|info| info.version.to_string()),
                is_ddl_owner: info.and_then(|info| info.is_ddl_owner),
            }
        })
        .collect();
    Tidb { state, servers }
}

fn read_pd(sweep: &PdSweep, unknown: &mut Vec<Unknown>) -> Pd {
    let servers = sweep
        .servers
        .iter()
        .map(|server| {
            if let Err(why) = &server.version {
                let at = Some(server.address.to_string());
                unknown.push(Unknown { what: "pd".to_owned(), address: at, why: why.to_string() });
            }
            let version = server.version.as_ref().ok().map(ToString::to_string);
            PdServer { address: server.address.clone(), version }
        })
        .collect();
    Pd { servers }
}

/// The document for people.
pub fn render_text(document: &StatusDocument) -> String {
    let mut out = String::new();
    captures_text(&mut out, document.captures.as_deref());
    changefeeds_text(&mut out, document.changefeeds.as_deref());
    if let Some(tidb) = &document.tidb {
        let _ = writeln!(out, "\nTiDB: {}", tidb.state.unwrap_or("state unknown"));
        let rows = tidb.servers.iter().map(|server| {
            let owner = if server.is_ddl_owner == Some(true) { "DDL owner" } else { "" };
            vec![server.address.to_string(), server.version.clone().unwrap_or_else(|| "?".into()), owner.into()]
        });
        table(&mut out, &["ADDRESS", "VERSION", ""], rows.collect());
    }
    if let Some(pd) = &document.pd {
        let _ = writeln!(out, "\nPD");
        let rows = pd
            .servers
            .iter()
            .map(|server| vec![server.address.to_string(), server.version.clone().unwrap_or_else(|| "?".into())]);
        table(&mut out, &["ADDRESS", "VERSION"], rows.collect());
    }
    if !document.unknown.is_empty() {
        let _ = writeln!(out, "\nCould not be read, so nothing is known of it:");
        for unknown in &document.unknown {
            let at = unknown.address.as_ref().map_or_else(String::new, |at| format!(" at {at}"));
            let _ = writeln!(out, "  {}{at}: {}", unknown.what, unknown.why);
        }
    }
    out
}

fn captures_text(out: &mut String, captures: Option<&[Capture]>) {
    let Some(captures) = captures else {
        let _ = writeln!(out, "TiCDC captures: unknown");
        return;
    };
    let _ = writeln!(out, "TiCDC captures");
    let rows = captures.iter().map(|capture| {
        let state = match (capture.liveness, capture.is_owner) {
            (Some(liveness), true) => format!("{liveness}, owner"),
            (Some(liveness), false) => liveness.to_owned(),
            (None, _) => "?".to_owned(),
        };
        vec![
            capture.address.to_string(),
            capture.id.short().to_owned(),
            capture.version.clone().unwrap_or_else(|| "?".to_owned()),
            state,
            capture.tables.map_or_else(|| "?".to_owned(), |tables| tables.to_string()),
            capture.cluster_id.to_string(),
        ]
    });
    table(out, &["ADDRESS", "ID", "VERSION", "STATE", "TABLES", "CLUSTER"], rows.collect());
}

fn changefeeds_text(out: &mut String, changefeeds: Option<&[Changefeed]>) {
    let Some(changefeeds) = changefeeds else {
        let _ = writeln!(out, "\nChangefeeds: unknown");
        return;
    };
    let _ = writeln!(out, "\nChangefeeds");
    let rows = changefeeds.iter().map(|feed| {
        let lag = feed.lag_ms.map_or_else(|| "?".to_owned(), |ms| spoken(std::time::Duration::from_millis(ms)));
        let error = feed.error.as_ref().map_or_else(String::new, |error| format!("{} {}", error.code, error.message));
        let state = if feed.state.is_empty() { "starting".to_owned() } else { feed.state.clone() };
        vec![format!("{}/{}", feed.namespace, feed.id), state, lag, super::error::one_line(&error)]
    });
    table(out, &["CHANGEFEED", "STATE", "LAG", "ERROR"], rows.collect());
}

/// Columns as wide as their widest cell.
fn table(out: &mut String, head: &[&str], rows: Vec<Vec<String>>) {
    let mut all = vec![head.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>()];
    all.extend(rows);
    let widths: Vec<usize> = (0..head.len())
        .map(|column| all.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0))
        .collect();
    for row in all {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}", width = *width)).collect();
        let _ = writeln!(out, "  {}", cells.join("  ").trim_end());
    }
}
