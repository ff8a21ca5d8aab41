//! The wire answers inside the recorded sequences.
//!
//! A sequence was sampled by a script, which kept the whole body of an answer only where it was an error or a count.
//! Every body that is there goes through the client that asks the same question; what each file has was read from it
//! by hand. A body that no question claims fails the test.

use std::collections::BTreeSet;
use std::iter::chain;

use serde_json::Value;
use tiroll::api::cdc::{ApiVersion, Cdc};
use tiroll::api::tidb::Tidb;
use tiroll::cluster::{Architecture, CaptureId, ChangefeedId, Liveness, Reading};

use super::{architecture, http, new_architecture};
use crate::support::recording::{self, Exchange, Recording, Request, Response};
use crate::support::replay::Replay;

/// Every sequence and what is in it: question, status, and what the client makes of the answer. An empty list is one
/// whose samples keep no body.
#[rustfmt::skip]
pub(super) const SEQUENCES: &[(&str, &str, &[&str])] = &[
    ("cdc-classic", "57-v1-drain-once-watch", &[]),
    ("cdc-classic", "70-drained-never-restarted", &[]),
    ("cdc-classic", "71-sigterm-drained-capture", &[]),
    ("cdc-classic", "73-start-after-drain", &["drain 400 NoSuchCapture", "health 500 Unhealthy"]),
    ("cdc-classic", "74-rebalance-after-restart", &[]),
    ("cdc-classic", "75-v2-drain-repeated", &["drain 202 counted"]),
    ("cdc-classic", "77-v1-drain-second-via-drained-capture", &["drain 202 counted"]),
    ("cdc-classic", "78-liveness-both-drained", &["status 200 Alive", "status 200 Stopping"]),
    ("cdc-classic", "79-both-nonowners-drained-pingpong", &[]),
    ("cdc-classic", "80-pingpong-ended-by-restart-of-one", &[]),
    ("cdc-classic", "82-v2-resign-watch", &["captures 500 NoOwner", "health 500 NoOwner", "health 500 Unhealthy"]),
    ("cdc-classic", "84-v1-resign-watch", &["captures 500 NoOwner", "health 500 NoOwner", "health 500 Unhealthy"]),
    ("cdc-classic", "86-v2-resign-via-nonowner-watch", &[]),
    ("cdc-classic", "87-no-owner-burst", &[
        "captures 500 NoOwner", "changefeeds 500 NoOwner", "drain 500 NoOwner", "health 500 NoOwner", "tables 500 NoOwner",
        "drain 400 NoSuchCapture", "tables 400 NoSuchCapture", "health 500 Unhealthy", "health 200 accepted",
    ]),
    ("cdc-classic", "88-kill9-nonowner", &["tables 400 NoSuchCapture"]),
    ("cdc-classic", "91-start-after-kill9", STARTING),
    ("cdc-classic", "95-sigterm-nonowner-with-tables", &[]),
    ("cdc-classic", "96-start-after-sigterm-nonowner", STARTING),
    ("cdc-classic", "100-start-after-kill9-2", STARTING),
    ("cdc-classic", "106-resign-alone-watch", &["captures 500 NoOwner"]),
    ("cdc-classic", "107-v2-two-drains-at-once", &["drain 202 counted"]),
    ("cdc-classic", "108-resign-then-drain-old-owner-at-once", &["drain 202 counted", "drain 500 NoOwner"]),
    ("cdc-classic-more", "11-drain-with-one-stopped-changefeed", &["drain 202 counted"]),
    ("cdc-classic-more", "14-resume-while-a-capture-is-stopping", &[]),
    ("cdc-classic-more", "15-drain-of-an-empty-capture", &["drain 202 counted"]),
    ("cdc-classic-more", "16-owner-resigns-mid-drain", &["drain 202 counted", "drain 500 NoOwner", "resign 202 accepted"]),
    ("cdc-classic-more", "18-three-versions", &[
        "health 500 Unhealthy", "drain 400 NoSuchCapture", "resign 202 accepted", "captures 500 NoOwner",
        "health 500 NoOwner", "changefeeds 500 NoOwner", "health 200 accepted",
    ]),
    ("cdc-v7.5", "57-v1-drain-once-watch", &[]),
    ("tidb", "23-status-during-startup-of-2nd-tidb", &["tidb 500 Empty500", "tidb 200 v8.5.2"]),
];

/// A capture that starts: everything is refused as not ready, then the drain of its old id and the health.
const STARTING: &[&str] = &[
    "captures 503 NotReady",
    "drain 503 NotReady",
    "health 503 NotReady",
    "status 503 NotReady",
    "drain 400 NoSuchCapture",
    "health 500 Unhealthy",
];

/// The counts of the drains, in their order.
#[rustfmt::skip]
const COUNTS: &[(&str, &[u64])] = &[
    ("75-v2-drain-repeated", &[82, 62, 42, 22, 2, 0]),
    // Another capture is still drained: through 1 up to 121 again, and the zero at the end proves nothing.
    ("77-v1-drain-second-via-drained-capture",
        &[102, 82, 62, 42, 22, 2, 10, 30, 50, 70, 90, 110, 121, 112, 92, 72, 52, 12, 1, 0]),
    ("11-drain-with-one-stopped-changefeed", &[40, 30, 20, 10, 10, 0]),
    // Zeros that arm nothing.
    ("15-drain-of-an-empty-capture", &[0, 0, 0]),
    // The new owner counts one for each changefeed that is not ready, then the true number: it rises in between.
    ("16-owner-resigns-mid-drain", &[80, 80, 70, 60, 2, 21, 21, 21, 40, 30, 30, 20, 10, 10, 10, 0, 0]),
    // The same from the first moment on.
    ("108-resign-then-drain-old-owner-at-once", &[2, 80, 70, 65, 60, 50, 45, 40, 30, 25, 20, 10, 5, 0]),
];

/// The sampler cut successful lists of captures after so many characters: no answer of a server, and not read.
const CUT: &[(&str, usize)] = &[("18-three-versions", 8)];

/// One answer inside a sequence, and the question it answered.
#[derive(Debug)]
struct Wire {
    ask: &'static str,
    status: u16,
    raw: String,
}

/// The question behind a path, or behind the name of a field.
fn question(name: &str) -> &'static str {
    let asks = ["drain", "resign", "captures", "changefeeds", "processors", "health", "status"];
    let found = asks.iter().find(|ask| name.contains(*ask)).unwrap_or_else(|| panic!("what is `{name}`?"));
    if *found == "processors" { "tables" } else { found }
}

fn status(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|status| u16::try_from(status).ok())
}

/// The answers with a body, and the empty ones where that is what the server sends; in their order. `key` is the name
/// under which the value stands.
fn answers(folder: &str, key: &str, value: &Value, out: &mut Vec<Wire>) {
    let mut push = |ask, status, raw: &str| out.push(Wire { ask, status, raw: raw.to_owned() });
    match value {
        // `"health": [500, "…"]`.
        Value::Array(pair) if pair.len() == 2 && pair[1].is_string() && status(&pair[0]).is_some() => {
            let raw = pair[1].as_str().unwrap();
            if serde_json::from_str::<Value>(raw).is_ok() {
                push(question(key), status(&pair[0]).unwrap(), raw);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| answers(folder, key, value, out)),
        Value::Object(object) => {
            let text = |key: &str| object.get(key).and_then(Value::as_str);
            let what = text("what").or_else(|| text("event")).filter(|what| what.contains('/') || *what == "resign");
            let ask = match (what, key) {
                (Some(what), _) => question(what),
                (None, "drain" | "resign" | "status") => question(key),
                // The drain of one capture, over and over, or the list of captures.
                (None, _) if object.contains_key("body") => "drain",
                (None, _) => "captures",
            };
            if let Some(status) = object.get("st").and_then(status) {
                let body = object.get("body").filter(|body| body.is_object()).map(Value::to_string);
                let raw = body.or_else(|| text("raw").or_else(|| text("owner")).map(str::to_owned)).unwrap_or_default();
                // Of these two a success has no body in v1 of the classic architecture; other empty ones were not
                // kept by the sampler.
                let is_bare = matches!((ask, status), ("resign", 202) | ("health", 200))
                    && architecture(folder) == Architecture::Classic;
                if !raw.is_empty() || is_bare {
                    push(ask, status, &raw);
                }
            }
            if let (Some(status), Some(raw), "tidb") = (object.get("status").and_then(status), text("raw"), folder) {
                push("tidb", status, raw);
            }
            if let (Some(status), Some(raw)) = (object.get("v2status").and_then(status), text("raw")) {
                push("status", status, raw);
            }
            for (key, raw) in object.iter().filter_map(|(key, value)| Some((key, value.as_str()?))) {
                let name = key.strip_suffix("_body").or_else(|| key.strip_suffix("_raw"));
                match (name, key.as_str()) {
                    (Some(name), _) if !raw.is_empty() => push(question(name), status(&object[name]).unwrap(), raw),
                    (None, "proc_n") => push("tables", status(&object["proc"]).unwrap(), raw),
                    // The sampler left the status out; the same body came under 500 wherever it was kept.
                    (None, "cfs") => push("changefeeds", 500, raw),
                    _ => {}
                }
            }
            for (key, value) in object.iter().filter(|(key, _)| *key != "body") {
                answers(folder, key, value, out);
            }
        }
        _ => {}
    }
}

/// How many bodies the file has, whatever they stand under.
fn bodies(key: &str, value: &Value) -> usize {
    match value {
        Value::String(text) => usize::from(text.starts_with('{')),
        Value::Object(_) if key == "body" => 1,
        Value::Object(object) => object.iter().map(|(key, value)| bodies(key, value)).sum(),
        Value::Array(list) => list.iter().map(|value| bodies("", value)).sum(),
        _ => 0,
    }
}

/// A server that gives this answer to this question.
pub(super) async fn replay(folder: &str, method: &str, path: &str, status: u16, raw: &str) -> Replay {
    let headers = [("content-length".to_owned(), raw.len().to_string())].into();
    let exchange = Exchange {
        request: Request { method: method.into(), addr: String::new(), path: path.into(), body: None },
        response: Response { status, headers, raw: raw.to_owned() },
    };
    Replay::serve(super::with_companions(folder, exchange)).await
}

/// Gives an answer to the client that asks this question, and says what it makes of it.
async fn read(folder: &str, wire: &Wire) -> (String, Option<u64>) {
    let (method, path) = match wire.ask {
        "status" => ("GET", "/api/v1/status"),
        "captures" => ("GET", "/api/v1/captures"),
        "health" => ("GET", "/api/v1/health"),
        "changefeeds" => ("GET", "/api/v1/changefeeds"),
        "tables" => ("GET", "/api/v2/processors/cf-a/x"),
        "drain" => ("PUT", "/api/v1/captures/drain"),
        "resign" => ("POST", "/api/v2/owner/resign"),
        "tidb" => ("GET", "/status"),
        other => panic!("{other}"),
    };
    let replay = replay(folder, method, path, wire.status, &wire.raw).await;
    let (at, cdc, capture) = (&replay.address, Cdc::new(http()), CaptureId::new("x"));
    let mut count = None;
    let word = |()| "accepted".to_owned();
    let outcome: Reading<String> = match wire.ask {
        "status" => cdc.status(at, ApiVersion::V1).await.map(|status| {
            let liveness: Liveness = status.liveness.meaning.unwrap();
            format!("{liveness:?}")
        }),
        "captures" => cdc.captures(at, ApiVersion::V1).await.map(|list| format!("{} listed", list.len())),
        "health" => cdc.health(at, ApiVersion::V1).await.map(word),
        "changefeeds" => cdc.changefeeds(at, ApiVersion::V1, "default").await.map(|list| format!("{}", list.len())),
        "tables" => {
            let id = ChangefeedId::new("default", "cf-a");
            cdc.processor_tables(at, ApiVersion::V2, &id, &capture).await.map(|tables| format!("{}", tables.len()))
        }
        "drain" => cdc.drain(at, ApiVersion::V1, &capture).await.map(|n| {
            count = Some(n);
            "counted".to_owned()
        }),
        "resign" => cdc.resign(at, ApiVersion::V2).await.map(word),
        _ => Tidb::new(http()).status(at).await.map(|status| status.version.as_str().to_owned()),
    };
    let outcome = outcome.unwrap_or_else(|failure| {
        assert_eq!(failure.status, Some(wire.status), "{failure:?}");
        assert_eq!(&*failure.raw, wire.raw, "the body is kept for the screen");
        format!("{:?}", failure.kind)
    });
    (format!("{} {} {outcome}", wire.ask, wire.status), count)
}

async fn read_all(folder: &str, wires: &[Wire]) -> (BTreeSet<String>, Vec<u64>) {
    let mut outcomes = BTreeSet::new();
    let mut counts = Vec::new();
    for wire in wires {
        let (outcome, count) = read(folder, wire).await;
        outcomes.insert(outcome);
        counts.extend(count);
    }
    (outcomes, counts)
}

fn sequence(folder: &str, file: &str) -> Vec<Wire> {
    let Recording::Sequence(value) = recording::load(folder, file) else { panic!("{folder}/{file} is single") };
    let mut wires = Vec::new();
    answers(folder, "", &value, &mut wires);
    let read = wires.iter().filter(|wire| wire.raw.starts_with('{')).count();
    let cut = CUT.iter().find(|(name, _)| *name == file).map_or(0, |(_, n)| *n);
    assert_eq!(read + cut, bodies("", &value), "{folder}/{file} has bodies that no question claims, or too few");
    wires
}

#[tokio::test]
async fn every_answer_in_a_sequence_is_read_into_the_right_outcome() {
    for (folder, file, expected) in chain(SEQUENCES, new_architecture::SEQUENCES) {
        let (outcomes, _) = read_all(folder, &sequence(folder, file)).await;
        assert_eq!(outcomes, expected.iter().map(|outcome| (*outcome).to_owned()).collect(), "{folder}/{file}");
    }
}

#[tokio::test]
async fn the_counts_of_a_drain_are_read_as_they_came() {
    for (file, expected) in COUNTS {
        let (folder, ..) = SEQUENCES.iter().find(|(_, name, _)| name == file).unwrap();
        assert_eq!(read_all(folder, &sequence(folder, file)).await.1, *expected, "{file}");
    }
    let both = read_all("cdc-classic", &sequence("cdc-classic", "107-v2-two-drains-at-once")).await.1;
    assert_eq!((both.len(), both.contains(&0)), (54, false), "two drains at once never end");
}

/// The restart of three captures one after another: what each drain counted, and the resign before the last one.
#[tokio::test]
async fn the_answers_of_a_whole_rolling_restart_are_read() {
    let expected: [(&str, &[u64]); 3] = [
        ("127.0.0.1:8300", &[80, 65, 60, 40, 40, 20, 5, 0]),
        ("127.0.0.1:8301", &[82, 82, 62, 62, 42, 27, 22, 2, 2, 0]),
        ("127.0.0.1:8302", &[82, 62, 62, 42, 37, 22, 2, 2, 0]),
    ];
    let events = recording::rolling();
    let mut read = 0;
    for (target, counts) in expected {
        let mut wires = Vec::new();
        for event in events.iter().filter(|event| event["event"] == "drain" && event["target"] == target) {
            answers("rolling", "drain", event, &mut wires);
        }
        let (outcomes, counted) = read_all("rolling", &wires).await;
        assert_eq!((outcomes, &*counted), (BTreeSet::from(["drain 202 counted".to_owned()]), counts), "{target}");
        read += wires.len();
    }
    let mut wires = Vec::new();
    events
        .iter()
        .filter(|event| event["event"] == "resign")
        .for_each(|event| answers("rolling", "", event, &mut wires));
    assert_eq!(read_all("rolling", &wires).await.0, BTreeSet::from(["resign 200 accepted".to_owned()]));
    read += wires.len();
    assert_eq!(read, events.iter().map(|event| bodies("", event)).sum::<usize>(), "a body that no question claims");
}
