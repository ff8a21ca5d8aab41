//! The wire answers inside the recorded sequences.
//!
//! A sequence was sampled by a script, which kept the whole body of an answer only where it was an error or a count.
//! Every body that is there goes through the clients again; which outcomes each file has was read from it by hand.

use std::collections::BTreeSet;

use serde_json::Value;
use tiroll::api::cdc::{ApiVersion, Cdc};
use tiroll::api::tidb::Tidb;
use tiroll::cluster::{CaptureId, FailureKind};

use super::http;
use crate::support::recording::{self, Exchange, Recording, Request, Response};
use crate::support::replay::Replay;

/// What the answers of a sequence are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    /// 202 with a count.
    Counted,
    /// A node's own status.
    Status,
    /// A failure of this kind, by its number in the list below.
    Fails(&'static str),
}

use Outcome::{Counted, Fails, Status};

/// Every sequence and its outcomes. An empty list is one whose samples keep no body.
#[rustfmt::skip]
pub(super) const SEQUENCES: &[(&str, &str, &[Outcome])] = &[
    ("cdc-classic", "57-v1-drain-once-watch", &[]),
    ("cdc-classic", "70-drained-never-restarted", &[]),
    ("cdc-classic", "71-sigterm-drained-capture", &[]),
    ("cdc-classic", "73-start-after-drain", &[Fails("NoSuchCapture"), Fails("Unhealthy")]),
    ("cdc-classic", "74-rebalance-after-restart", &[]),
    ("cdc-classic", "75-v2-drain-repeated", &[Counted]),
    ("cdc-classic", "77-v1-drain-second-via-drained-capture", &[Counted]),
    ("cdc-classic", "78-liveness-both-drained", &[Status]),
    ("cdc-classic", "79-both-nonowners-drained-pingpong", &[]),
    ("cdc-classic", "80-pingpong-ended-by-restart-of-one", &[]),
    ("cdc-classic", "82-v2-resign-watch", &[Fails("NoOwner"), Fails("Unhealthy")]),
    ("cdc-classic", "84-v1-resign-watch", &[Fails("NoOwner"), Fails("Unhealthy")]),
    ("cdc-classic", "86-v2-resign-via-nonowner-watch", &[]),
    ("cdc-classic", "87-no-owner-burst", &[Fails("NoOwner"), Fails("NoSuchCapture"), Fails("Unhealthy")]),
    ("cdc-classic", "88-kill9-nonowner", &[]),
    ("cdc-classic", "91-start-after-kill9", &[Fails("NoSuchCapture"), Fails("NotReady"), Fails("Unhealthy")]),
    ("cdc-classic", "95-sigterm-nonowner-with-tables", &[]),
    ("cdc-classic", "96-start-after-sigterm-nonowner", &[Fails("NoSuchCapture"), Fails("NotReady"), Fails("Unhealthy")]),
    ("cdc-classic", "100-start-after-kill9-2", &[Fails("NoSuchCapture"), Fails("NotReady"), Fails("Unhealthy")]),
    ("cdc-classic", "106-resign-alone-watch", &[Fails("NoOwner")]),
    ("cdc-classic", "107-v2-two-drains-at-once", &[Counted]),
    ("cdc-classic", "108-resign-then-drain-old-owner-at-once", &[Counted, Fails("NoOwner")]),
    ("cdc-classic-more", "11-drain-with-one-stopped-changefeed", &[Counted]),
    ("cdc-classic-more", "14-resume-while-a-capture-is-stopping", &[]),
    ("cdc-classic-more", "15-drain-of-an-empty-capture", &[Counted]),
    ("cdc-classic-more", "16-owner-resigns-mid-drain", &[Counted, Fails("NoOwner")]),
    ("cdc-classic-more", "18-three-versions", &[Fails("NoSuchCapture"), Fails("Unhealthy")]),
    ("cdc-v7.5", "57-v1-drain-once-watch", &[]),
    ("tidb", "23-status-during-startup-of-2nd-tidb", &[Status, Fails("Empty500")]),
];

/// Counts of the one drain that passes the gap of a resign: not the old owner's, then one for each changefeed that is
/// not ready to answer, then the true number, falling to zero.
const COUNTS_AFTER_RESIGN: [u64; 14] = [2, 80, 70, 65, 60, 50, 45, 40, 30, 25, 20, 10, 5, 0];

/// One answer inside a sequence.
struct Wire {
    status: u16,
    raw: String,
}

/// The answers with a body, in their order.
fn answers(value: &Value, out: &mut Vec<Wire>) {
    let mut push = |status: Option<&Value>, raw: String| {
        let status = status.and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok()).unwrap();
        out.push(Wire { status, raw });
    };
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    if let Value::Object(object) = value {
        let status = object.get("st").filter(|status| status.is_u64());
        if status.is_some() {
            for raw in ["raw", "owner"].iter().filter_map(|key| object.get(*key).and_then(text)) {
                push(status, raw);
            }
            if let Some(body @ Value::Object(_)) = object.get("body") {
                push(status, body.to_string());
            }
        }
        // Of a `TiDB` the empty body of a 500 is the answer.
        if let (Some(status), Some(raw)) = (object.get("status").filter(|s| s.is_u64()), object.get("raw")) {
            push(Some(status), raw.as_str().unwrap().to_owned());
        }
        for (key, value) in object {
            let name = key.strip_suffix("_body").or_else(|| key.strip_suffix("_raw"));
            if let (Some(name), Some(raw)) = (name, text(value)) {
                push(object.get(name), raw);
            }
        }
    }
    match value {
        Value::Object(object) => object.values().for_each(|value| answers(value, out)),
        Value::Array(list) => list.iter().for_each(|value| answers(value, out)),
        _ => {}
    }
}

/// Gives an answer to a client and says what it makes of it.
async fn read(folder: &str, wire: Wire) -> (Outcome, Option<u64>) {
    let is_status = wire.raw.contains("liveness") || folder == "tidb";
    let (method, path) = match (folder, is_status) {
        ("tidb", _) => ("GET", "/status"),
        (_, true) => ("GET", "/api/v1/status"),
        (_, false) => ("PUT", "/api/v1/captures/drain"),
    };
    let expected = serde_json::from_str::<Value>(&wire.raw).ok().and_then(|body| body["current_table_count"].as_u64());
    let exchange = Exchange {
        request: Request { method: method.into(), addr: String::new(), path: path.into(), body: None },
        response: Response {
            status: wire.status,
            headers: [("content-length".to_owned(), wire.raw.len().to_string())].into(),
            raw: wire.raw,
        },
    };
    let replay = Replay::serve(super::with_companions(folder, exchange)).await;
    let at = &replay.address;
    let cdc = Cdc::new(http());
    let failure = match (folder, is_status) {
        ("tidb", _) => match Tidb::new(http()).status(at).await {
            Ok(_) => return (Status, None),
            Err(failure) => failure,
        },
        (_, true) => match cdc.status(at, ApiVersion::V1).await {
            Ok(_) => return (Status, None),
            Err(failure) => failure,
        },
        (_, false) => match cdc.drain(at, ApiVersion::V1, &CaptureId::new("x")).await {
            Ok(count) => {
                assert_eq!(Some(count), expected);
                return (Counted, Some(count));
            }
            Err(failure) => failure,
        },
    };
    let name = match failure.kind {
        FailureKind::NoOwner => "NoOwner",
        FailureKind::NoSuchCapture => "NoSuchCapture",
        FailureKind::Unhealthy => "Unhealthy",
        FailureKind::NotReady => "NotReady",
        FailureKind::Empty500 => "Empty500",
        _ => panic!("{failure:?}"),
    };
    (Fails(name), None)
}

async fn read_all(folder: &str, value: &Value) -> (BTreeSet<Outcome>, Vec<u64>) {
    let mut wires = Vec::new();
    answers(value, &mut wires);
    let mut outcomes = BTreeSet::new();
    let mut counts = Vec::new();
    for wire in wires {
        let (outcome, count) = read(folder, wire).await;
        outcomes.insert(outcome);
        counts.extend(count);
    }
    counts.dedup();
    (outcomes, counts)
}

#[tokio::test]
async fn every_answer_in_a_sequence_is_read_into_the_right_outcome() {
    for (folder, file, expected) in SEQUENCES {
        let Recording::Sequence(value) = recording::load(folder, file) else { panic!("{folder}/{file} is single") };
        let (outcomes, counts) = read_all(folder, &value).await;
        assert_eq!(outcomes, expected.iter().copied().collect(), "{folder}/{file}");
        if file.starts_with("108-") {
            assert_eq!(counts, COUNTS_AFTER_RESIGN, "{folder}/{file}");
        }
        if file.starts_with("15-") {
            assert_eq!(counts, [0], "a zero that arms nothing");
        }
    }
}

#[tokio::test]
async fn the_drains_of_a_whole_rolling_restart_end_in_zero() {
    let drains: Vec<_> = recording::rolling().into_iter().filter(|event| event["event"] == "drain").collect();
    assert_eq!(drains.len(), 27);
    let mut last = std::collections::BTreeMap::new();
    for drain in &drains {
        let (outcomes, counts) = read_all("rolling", drain).await;
        assert_eq!(outcomes, BTreeSet::from([Counted]));
        last.insert(drain["target"].as_str().unwrap().to_owned(), counts[0]);
    }
    assert_eq!(last.into_values().collect::<Vec<_>>(), [0, 0, 0]);
}
