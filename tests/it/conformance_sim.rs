//! The simulator held to real servers: put into the situation of a recording it must give the same status, content type
//! and JSON shape, and go through the same states in the same order.
//!
//! Every file under `tests/fixtures/recorded` but those of `cdc-v7.5` is accounted for by name: as an exchange, as a
//! sequence, or among those left out with the reason. `rolling.jsonl` has a test of its own.

mod exchanges;
mod new_drains;
mod new_exchanges;
mod new_lab;
mod new_members;
mod new_mixed;
mod owners;
mod rolling;
mod sequences;
mod shape;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The folders the simulator is held to. `cdc-v7.5` is another release, which only the clients have to read.
pub(crate) const FOLDERS: [&str; 5] = ["tidb", "cdc-classic", "cdc-classic-more", "cdc-new", "cdc-new-more"];

/// What a recording may be of that this test cannot be about. None of these is in the fixtures.
const LEFT_OUT: &[(&str, &str)] = &[
    ("cdc-classic/32-v2-changefeed-synced", "`synced` is not served: no client of ours asks it"),
    ("cdc-classic/36-metrics-head", "metrics"),
    ("cdc-classic/37-etcd-keys", "a dump of etcd"),
    ("cdc-classic/69-etcd-after-drain", "a dump of etcd"),
    ("cdc-classic/90-etcd-after-kill9", "a dump of etcd"),
    ("tidb/16-ddl-during-upgrading", "a transcript of SQL"),
    ("tidb/17-etcd-during-upgrading", "a dump of etcd"),
    ("tidb/19-ddl-queued-then-finish", "a transcript of SQL"),
    ("tidb/22-ddl-jobs-after-finish", "a transcript of SQL"),
    ("tidb/86-ddl-history", "`/ddl/history`"),
];

/// Fixtures that this test is not about: a client has read them, or may read them one day, and the simulator has none
/// of it.
pub(crate) const NOT_SERVED: &[(&str, &str)] = &[
    ("cdc-new/36-metrics-head", "metrics"),
    ("cdc-new/37-etcd-keys", "a dump of etcd"),
    ("cdc-new/41-debug-info", "a text for developers, with a dump of etcd in it"),
    ("cdc-new/68-etcd-after-drain", "a dump of etcd"),
    ("cdc-new/93-etcd-after-kill9", "a dump of etcd"),
];

pub(crate) fn recorded(name: &str) -> Value {
    let path = root().join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recorded")
}

#[test]
fn every_recording_is_accounted_for_by_name() {
    let mut files = BTreeSet::new();
    for folder in FOLDERS {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            files.insert(format!("{folder}/{}", path.file_stem().unwrap().to_string_lossy()));
        }
    }
    let sequences: Vec<&str> = [sequences::NAMES, new_lab::SEQUENCES].concat();
    let mut named: Vec<String> = exchanges::names();
    named.extend(new_exchanges::names());
    named.extend(sequences.iter().map(|name| (*name).to_owned()));
    named.extend(NOT_SERVED.iter().map(|(name, _)| (*name).to_owned()));
    let once: BTreeSet<String> = named.iter().cloned().collect();
    assert_eq!(once.len(), named.len(), "a recording is named twice");
    for (name, why) in LEFT_OUT {
        assert!(!files.contains(*name), "{name} is a fixture although it is left out: {why}");
    }
    // A sequence is not only listed: some test reads it.
    let sources = [
        include_str!("conformance_sim/sequences.rs"),
        include_str!("conformance_sim/owners.rs"),
        include_str!("conformance_sim/rolling.rs"),
        include_str!("conformance_sim/new_lab.rs"),
        include_str!("conformance_sim/new_drains.rs"),
        include_str!("conformance_sim/new_members.rs"),
        include_str!("conformance_sim/new_mixed.rs"),
    ];
    for name in sequences {
        let stem = name.split('/').nth(1).unwrap();
        let times: usize = sources.iter().map(|source| source.matches(stem).count()).sum();
        assert!(times > 1, "no test reads {name}");
    }
    let mut tops: Vec<_> =
        std::fs::read_dir(root()).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    tops.sort();
    let all = ["cdc-classic", "cdc-classic-more", "cdc-new", "cdc-new-more", "cdc-v7.5", "rolling.jsonl", "tidb"];
    assert_eq!(tops, all);
    let missing: Vec<_> = files.difference(&once).collect();
    let unknown: Vec<_> = once.difference(&files).collect();
    assert!(missing.is_empty(), "no test accounts for {missing:?}");
    assert!(unknown.is_empty(), "no recording is named {unknown:?}");
}
