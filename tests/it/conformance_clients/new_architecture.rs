//! The recorded sequences of the new architecture: what is in them, and what they teach of counts, liveness and tables.

use std::collections::BTreeMap;
use std::iter::chain;

use serde_json::Value;
use tiroll::api::cdc::{ApiVersion, Cdc};
use tiroll::cluster::{Address, Architecture, CaptureId, Liveness, LivenessReading};

use super::expected_new::WAITED;
use super::http;
use super::sequences::replay;
use crate::support::recording::{self, Recording};
use crate::support::replay::Replay;

/// Every sequence and what is in it, as [`super::sequences::SEQUENCES`].
#[rustfmt::skip]
pub(super) const SEQUENCES: &[(&str, &str, &[&str])] = &[
    ("cdc-new", "37-etcd-keys", &[]),
    ("cdc-new", "59-v1-drain-repeated", &["drain 202 counted"]),
    ("cdc-new", "67-drained-not-restarted-30s", &[]),
    ("cdc-new", "68-etcd-after-drain", &[]),
    ("cdc-new", "69-sigterm-nonowner-while-another-is-drained", &[]),
    ("cdc-new", "71-start-while-another-is-drained", &["drain 400 NoSuchCapture"]),
    ("cdc-new", "72-no-rebalance-while-another-is-drained", &[]),
    ("cdc-new", "73-v1-drain-refused-while-another-is-drained", &["drain 202 counted"]),
    ("cdc-new", "74-sigterm-nonowner-while-another-is-drained", &[]),
    ("cdc-new", "76-start-while-another-is-drained", &["drain 400 NoSuchCapture"]),
    ("cdc-new", "77-sigterm-drained-capture", &[]),
    ("cdc-new", "79-start-after-drain", &["drain 202 counted"]),
    ("cdc-new", "80-rebalance-after-restart", &[]),
    ("cdc-new", "82-sigterm-drained-capture", &[]),
    ("cdc-new", "84-start-after-drain", &["drain 202 counted"]),
    ("cdc-new", "85-rebalance-after-restart", &[]),
    ("cdc-new", "87-v2-resign-watch", &[]),
    ("cdc-new", "89-v1-resign-watch", &[]),
    // The v2 drain is unknown there.
    ("cdc-new", "90-no-owner-burst", &["drain 400 NoSuchCapture", "drain 404 NoRoute"]),
    ("cdc-new", "91-kill9-nonowner", &[]),
    ("cdc-new", "93-etcd-after-kill9", &[]),
    ("cdc-new", "94-start-after-kill9", &["drain 400 NoSuchCapture"]),
    ("cdc-new", "98-sigterm-nonowner-with-tables", &[]),
    ("cdc-new", "99-start-after-sigterm-nonowner", &["drain 400 NoSuchCapture"]),
    ("cdc-new", "107-resign-alone-watch", &[]),
    ("cdc-new", "109-mixed-new-arch-node-joins-classic-cluster", &["status 200 Alive"]),
    ("cdc-new", "110-mixed-new-arch-node-after-classic-stopped", &[]),
    ("cdc-new-more", "06-drain-with-one-stopped-changefeed", &["drain 202 counted"]),
    ("cdc-new-more", "08-coordinator-resigns-mid-drain", &["drain 202 counted"]),
    ("cdc-new-more", "09-coordinator-killed-mid-drain", &["drain 202 counted", "drain 500 NoOwner"]),
];

/// Counts, each with how often it came in a row.
type Runs = &'static [(u64, usize)];

/// The counts of the drains, each with how often it came in a row: they are no numbers of tables and do not only fall.
#[rustfmt::skip]
const COUNTS: &[(&str, &str, Runs)] = &[
    ("cdc-new", "59-v1-drain-repeated",
        &[(2, 1), (80, 5), (60, 5), (48, 6), (22, 5), (20, 6), (5, 5), (1, 7), (0, 1)]),
    // The stopped changefeed is not counted; the first number is that of the running ones.
    ("cdc-new-more", "06-drain-with-one-stopped-changefeed",
        &[(1, 4), (40, 2), (30, 3), (19, 2), (10, 2), (8, 2), (1, 3), (0, 1)]),
    // After the resign the new coordinator begins with the changefeeds again.
    ("cdc-new-more", "08-coordinator-resigns-mid-drain",
        &[(2, 1), (40, 2), (2, 1), (26, 2), (16, 3), (10, 3), (6, 2), (1, 1), (0, 1)]),
    ("cdc-new-more", "09-coordinator-killed-mid-drain", &[(2, 1), (60, 1), (1, 11), (0, 1)]),
];

/// One sample: what the drain counted, what the target said of itself, and the tables that the maintainers named
/// there.
#[derive(Debug)]
struct Sample {
    count: Option<u64>,
    liveness: Option<Liveness>,
    tables: Option<u64>,
    total: Option<u64>,
}

fn sequence(folder: &str, file: &str) -> Value {
    let Recording::Sequence(value) = recording::load(folder, file) else { panic!("{folder}/{file} is single") };
    value
}

/// The count that the client reads from an accepted drain.
async fn drained(folder: &str, body: &str) -> u64 {
    let replay = replay(folder, "PUT", "/api/v1/captures/drain", 202, body).await;
    Cdc::new(http()).drain(&replay.address, ApiVersion::V1, &CaptureId::new("x")).await.unwrap()
}

/// The samples of a drain, each count read by the client from the answer that carried it.
async fn samples(folder: &str, file: &str) -> Vec<Sample> {
    let value = sequence(folder, file);
    let target = value["target"]["address"].as_str().unwrap();
    let mut samples = Vec::new();
    for row in value["rows"].as_array().unwrap() {
        let drain = &row["drain"];
        let count = match drain["st"].as_u64() {
            Some(202) => Some(drained(folder, &drain["body"].to_string()).await),
            _ => None,
        };
        let liveness = if row["liveness"].is_object() { &row["liveness"][target] } else { &row["liveness"] };
        let tables: Option<BTreeMap<&str, u64>> = row["counts"]
            .as_object()
            .and_then(|counts| counts.iter().map(|(at, n)| Some((at.as_str(), n.as_u64()?))).collect());
        samples.push(Sample {
            count,
            liveness: LivenessReading::new(liveness.as_i64(), Architecture::New).meaning,
            tables: tables.as_ref().and_then(|tables| tables.get(target).copied()),
            total: tables.as_ref().map(|tables| tables.values().sum()),
        });
    }
    samples
}

#[tokio::test]
async fn the_counts_of_a_drain_are_read_as_they_came() {
    for (folder, file, expected) in COUNTS {
        let counts: Vec<_> = samples(folder, file).await.into_iter().filter_map(|sample| sample.count).collect();
        let runs: Vec<_> = counts.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
        assert_eq!(runs, *expected, "{file}");
    }
}

/// Recorded cdc-new 59 and cdc-new-more 06, 08: liveness only ever goes up, from alive over draining to stopping; the
/// count is zero with stopping and not before, however long the tables have been gone.
#[tokio::test]
async fn a_drain_ends_with_zero_and_stopping_together() {
    for (folder, file, has_tables) in [
        ("cdc-new", "59-v1-drain-repeated", true),
        ("cdc-new-more", "06-drain-with-one-stopped-changefeed", false),
        ("cdc-new-more", "08-coordinator-resigns-mid-drain", true),
    ] {
        let samples = samples(folder, file).await;
        assert!(samples.is_sorted_by_key(|sample| sample.liveness), "{file}");
        assert!(samples.iter().all(|sample| sample.liveness.is_some()), "{file}");
        for sample in &samples {
            let is_stopping = sample.liveness == Some(Liveness::Stopping);
            assert_eq!(sample.count == Some(0), is_stopping, "{file}: {sample:?}");
            assert_eq!(sample.tables.is_some(), has_tables, "{file}: {sample:?}");
            assert!(!is_stopping || sample.tables.is_none_or(|n| n == 0), "{file}: {sample:?}");
        }
        assert_eq!(samples.last().unwrap().count, Some(0), "{file}");
    }
    let samples = samples("cdc-new", "59-v1-drain-repeated").await;
    let words = [Liveness::Alive, Liveness::Draining, Liveness::Stopping];
    assert!(words.iter().all(|word| samples.iter().any(|sample| sample.liveness == Some(*word))));
    assert!(samples.iter().all(|sample| sample.total == Some(240)), "each is named once, also while it moves");
    let empty_since = samples.iter().position(|sample| sample.tables == Some(0)).unwrap();
    assert!(samples[empty_since].count == Some(20) && samples.len() - empty_since > 10, "the count is no table count");
}

/// Recorded cdc-new-more 08: nothing moves while nobody asks, though the target stays draining.
#[tokio::test]
async fn a_drain_that_nobody_asks_for_again_stands_still() {
    let samples = samples("cdc-new-more", "08-coordinator-resigns-mid-drain").await;
    let unasked: Vec<_> = samples.iter().filter(|sample| sample.count.is_none()).collect();
    assert!(unasked.len() > 30);
    assert!(unasked.iter().all(|sample| sample.tables == Some(26) && sample.liveness == Some(Liveness::Draining)));
}

/// Recorded cdc-new-more 09: zero and stopping with 110 tables on the target. Only the tables call tells, and while it
/// does not answer nothing may be taken for empty.
#[tokio::test]
async fn zero_and_stopping_prove_nothing_while_the_tables_are_there() {
    let samples = samples("cdc-new-more", "09-coordinator-killed-mid-drain").await;
    let last = samples.last().unwrap();
    assert_eq!((last.count, last.liveness, last.tables), (Some(0), Some(Liveness::Stopping), Some(110)));
    let unread: Vec<_> = samples.iter().filter(|sample| sample.tables.is_none()).collect();
    assert_eq!(unread.len(), 29);
    // Nobody owns first, then the new coordinator counts one while no maintainer answers.
    assert!(unread.iter().all(|sample| matches!(sample.count, None | Some(1))));
    assert!(samples.iter().all(|sample| sample.tables != Some(0)), "at no moment was the target empty");
}

/// Recorded cdc-new 67 and 73: while a drained capture is a member, the drain of another is one for ever, and its own
/// is zero.
#[tokio::test]
async fn a_second_drain_waits_with_one_until_the_first_has_left() {
    let waiting = sequence("cdc-new", "67-drained-not-restarted-30s");
    for run in waiting["runs"].as_array().unwrap() {
        assert_eq!(drained("cdc-new", &run["other"].to_string()).await, 1);
        let first = waiting["target"]["address"].as_str().unwrap();
        let liveness = LivenessReading::new(run["liv"][first].as_i64(), Architecture::New);
        assert_eq!((liveness.meaning, run["counts"][first].as_u64()), (Some(Liveness::Stopping), Some(0)));
        assert_eq!(run["to_ms"].as_u64(), Some(29_010));
    }
    let rows = sequence("cdc-new", "73-v1-drain-refused-while-another-is-drained");
    let rows = rows["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 285);
    for row in rows {
        let mut counts = Vec::new();
        for drain in [&row["first"], &row["second"]] {
            counts.push(drained("cdc-new", &drain["body"].to_string()).await);
        }
        assert_eq!(counts, [1, 0], "{row}");
    }
}

/// Recorded cdc-new 98: a node that is gone from the list is still named by the maintainers, with its tables.
#[test]
fn a_node_may_be_named_that_is_gone_from_the_list() {
    let runs = sequence("cdc-new", "98-sigterm-nonowner-with-tables");
    let last = runs["runs"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((last["listed"].as_bool(), last["counts"]["gone:637cf29e"].as_u64()), (Some(false), Some(40)));
}

/// Recorded cdc-new 109 and 111: a node of the new architecture answers for itself with an id that is in no list as
/// long as classic captures are there, and is the only member after them.
#[tokio::test]
async fn a_node_that_waits_answers_and_is_in_no_list() {
    let joins = sequence("cdc-new", "109-mixed-new-arch-node-joins-classic-cluster");
    let runs: Vec<_> = joins["runs"].as_array().unwrap().iter().filter(|run| run["raw"].is_string()).collect();
    for run in &runs {
        let replay = replay("cdc-new", "GET", "/api/v1/status", 200, run["raw"].as_str().unwrap()).await;
        let status = Cdc::new(http()).status(&replay.address, ApiVersion::V1).await.unwrap();
        assert_eq!((status.id, status.architecture), (Some(CaptureId::new(WAITED)), Architecture::New));
        assert_eq!(status.liveness.meaning, Some(Liveness::Alive));
        assert!(!status.is_owner);
        assert_eq!((run["v2health"].as_u64(), run["v2captures"].as_u64()), (Some(200), Some(200)), "it passes them on");
    }
    // At first its address is still listed, under the id it had before; then not at all, to the end.
    assert_ne!(joins["old_id"].as_str(), Some(WAITED));
    let listed = |run: &Value| run["list_8301"].as_array().unwrap().iter().any(|port| port == "8302");
    assert_eq!(runs.iter().map(|run| listed(run)).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(runs.last().unwrap()["to_ms"].as_u64(), Some(44_965));

    let after = recording::exchange("cdc-new", "111-mixed-new-arch-after-classic-gone-captures");
    let replay = Replay::serve(vec![after]).await;
    let list = Cdc::new(http()).captures(&replay.address, ApiVersion::V2).await.unwrap();
    let [only] = &list[..] else { panic!("{list:?}") };
    assert_eq!((only.id.as_str(), &only.address, only.is_owner), (WAITED, &Address::new("127.0.0.1", 8302), true));
}

/// The etcd dumps, by which a person can check who is a member: no client reads them.
#[test]
fn every_member_in_etcd_says_that_it_is_of_the_new_architecture() {
    let dumps = ["37-etcd-keys", "68-etcd-after-drain", "93-etcd-after-kill9"];
    let keys = dumps.map(|file| sequence("cdc-new", file)["kvs"].as_array().unwrap().clone());
    let captures =
        chain(&keys[0], chain(&keys[1], &keys[2])).filter(|entry| entry["key"].as_str().unwrap().contains("/capture/"));
    assert!(captures.map(|entry| entry["value"]["is-new-arch"].as_bool()).all(|is_new| is_new == Some(true)));
}
