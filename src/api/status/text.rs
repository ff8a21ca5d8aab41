//! The document as aligned text.

use std::fmt::Write as _;
use std::time::Duration;

use super::{CaptureRow, ChangefeedStatus, StatusDocument, Unknown};
use crate::cluster::units::{grouped, spoken};
use crate::cluster::{Architecture, ClusterId};

/// What stands where nothing is known.
const NOT_KNOWN: &str = "?";

pub(super) fn render(document: &StatusDocument) -> String {
    let mut out = String::new();
    section(&mut out, "Captures", document.captures.as_deref().map(capture_table));
    section(&mut out, "Changefeeds", document.changefeeds.as_deref().map(changefeed_table));
    if let Some(tidb) = &document.tidb {
        let mut table = vec![vec!["ADDRESS".to_owned(), "VERSION".to_owned(), "DDL OWNER".to_owned()]];
        table.extend(tidb.servers.iter().map(|server| {
            vec![server.address.to_string(), or_unknown(server.version.as_ref()), yes(server.is_ddl_owner)]
        }));
        section(&mut out, &format!("TiDB ({})", tidb.state.unwrap_or("state unknown")), Some(table));
    }
    if let Some(pd) = &document.pd {
        let mut table = vec![vec!["ADDRESS".to_owned(), "VERSION".to_owned()]];
        table.extend(
            pd.servers.iter().map(|server| vec![server.address.to_string(), or_unknown(server.version.as_ref())]),
        );
        section(&mut out, "PD", Some(table));
    }
    if !document.unknown.is_empty() {
        out.push_str("Unknown\n");
        for unknown in &document.unknown {
            let place = unknown.address.as_ref().map(|a| format!("{a}: ")).unwrap_or_default();
            let _ = writeln!(out, "  {place}{} - {}", unknown.what, unknown.why);
            if let Some(advice) = advice(unknown) {
                let _ = writeln!(out, "    {advice}");
            }
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// What a person can do about it, where something can be said.
fn advice(unknown: &Unknown) -> Option<&'static str> {
    let why = |text: &str| unknown.why.contains(text);
    match () {
        () if why("refuses connections") => Some("Is the process running, and is this its address and port?"),
        () if why("did not answer in time") || why("could not be reached") => {
            Some("Is there a firewall between here and there, and is the host up?")
        }
        () if why("is starting") || why("no owner to ask") || why("not placed yet") => {
            Some("This passes by itself within seconds; ask again.")
        }
        () if why("finds no maintainer") => Some(
            "The maintainer moves (seconds; up to 15 s after a crash), the changefeed has just been stopped, or no \
             capture can reach itself at the address named here.",
        ),
        () if why("answers as capture") => {
            Some("The entry of a process that is gone; it leaves the list within 5 to 15 s.")
        }
        () if why("own machine") => Some("Add the capture with --cdc at an address reachable from here."),
        () if why("does not know this call") => Some("Is this the right port, and is the server new enough?"),
        () if why("TLS") => Some("The server speaks TLS, or its certificate is not trusted here."),
        () => None,
    }
}

fn capture_table(rows: &[CaptureRow]) -> Vec<Vec<String>> {
    let has_clusters = rows.iter().any(|row| row.cluster_id != ClusterId::default());
    // One version can be either, so it is said wherever one capture is of the new one.
    let has_new = rows.iter().any(|row| row.architecture == Some(Architecture::New));
    let mut head = vec!["ADDRESS", "ID", "OWNER", "VERSION", "LIVENESS", "TABLES", "AGE"];
    if has_new {
        head.push("ARCHITECTURE");
    }
    if has_clusters {
        head.push("CLUSTER");
    }
    let mut table = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    table.extend(rows.iter().map(|row| {
        let mut cells = vec![
            row.address.to_string(),
            row.id.as_ref().map_or_else(|| NOT_KNOWN.to_owned(), ToString::to_string),
            yes(row.is_owner),
            or_unknown(row.version.as_ref()),
            row.liveness.map_or(NOT_KNOWN, |liveness| liveness.word()).to_owned(),
            row.tables.map_or_else(|| NOT_KNOWN.to_owned(), grouped),
            age(row.age_ms),
        ];
        if has_new {
            cells.push(row.architecture.map_or(NOT_KNOWN, Architecture::word).to_owned());
        }
        if has_clusters {
            cells.push(row.cluster_id.to_string());
        }
        cells
    }));
    table
}

fn changefeed_table(rows: &[ChangefeedStatus]) -> Vec<Vec<String>> {
    let mut table = vec![["CHANGEFEED", "STATE", "CHECKPOINT", "LAG", "ERROR"].map(str::to_owned).to_vec()];
    table.extend(rows.iter().map(|row| {
        let space = row.namespace.as_ref().or(row.keyspace.as_ref()).map(String::as_str).unwrap_or_default();
        vec![
            if space == "default" { row.id.clone() } else { format!("{space}/{}", row.id) },
            if row.state.is_empty() { "starting".to_owned() } else { row.state.clone() },
            row.checkpoint_ts.map_or_else(|| "none yet".to_owned(), |ts| ts.to_string()),
            age(row.lag_ms),
            row.error.as_ref().map(|error| format!("{} {}", error.code, error.message)).unwrap_or_default(),
        ]
    }));
    table
}

fn section(out: &mut String, title: &str, table: Option<Vec<Vec<String>>>) {
    let _ = writeln!(out, "{title}");
    match table {
        None => out.push_str("  unknown\n"),
        Some(table) if table.len() < 2 => out.push_str("  none\n"),
        Some(table) => aligned(out, &table),
    }
    out.push('\n');
}

fn aligned(out: &mut String, table: &[Vec<String>]) {
    let columns = table.first().map_or(0, Vec::len);
    let width =
        |column: usize| table.iter().filter_map(|row| row.get(column)).map(|cell: &String| cell.chars().count()).max();
    let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for row in table {
        let mut line = String::from(" ");
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, " {cell:width$} ");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn or_unknown<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(|| NOT_KNOWN.to_owned(), ToString::to_string)
}

fn yes(value: Option<bool>) -> String {
    match value {
        Some(true) => "yes",
        Some(false) => "",
        None => NOT_KNOWN,
    }
    .to_owned()
}

fn age(ms: Option<u64>) -> String {
    ms.map_or_else(|| NOT_KNOWN.to_owned(), |ms| spoken(Duration::from_millis(ms)))
}
