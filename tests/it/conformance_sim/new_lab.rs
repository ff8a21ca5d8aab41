//! The lab of `cdc-new` and `cdc-new-more`: three nodes of the new architecture, two changefeeds over the same tables.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tiroll::sim::scenario::Scenario;

use super::sequences::{Lab, rows, states};
use crate::sim_support::{ask, get, owner, served, try_ask};

/// Every sequence of the new architecture, with its folder.
pub(super) const SEQUENCES: &[&str] = &[
    "cdc-new/59-v1-drain-repeated",
    "cdc-new/67-drained-not-restarted-30s",
    "cdc-new/69-sigterm-nonowner-while-another-is-drained",
    "cdc-new/71-start-while-another-is-drained",
    "cdc-new/72-no-rebalance-while-another-is-drained",
    "cdc-new/73-v1-drain-refused-while-another-is-drained",
    "cdc-new/74-sigterm-nonowner-while-another-is-drained",
    "cdc-new/76-start-while-another-is-drained",
    "cdc-new/77-sigterm-drained-capture",
    "cdc-new/79-start-after-drain",
    "cdc-new/80-rebalance-after-restart",
    "cdc-new/82-sigterm-drained-capture",
    "cdc-new/84-start-after-drain",
    "cdc-new/85-rebalance-after-restart",
    "cdc-new/87-v2-resign-watch",
    "cdc-new/89-v1-resign-watch",
    "cdc-new/90-no-owner-burst",
    "cdc-new/91-kill9-nonowner",
    "cdc-new/94-start-after-kill9",
    "cdc-new/98-sigterm-nonowner-with-tables",
    "cdc-new/99-start-after-sigterm-nonowner",
    "cdc-new/107-resign-alone-watch",
    "cdc-new/109-mixed-new-arch-node-joins-classic-cluster",
    "cdc-new/110-mixed-new-arch-node-after-classic-stopped",
    "cdc-new-more/06-drain-with-one-stopped-changefeed",
    "cdc-new-more/08-coordinator-resigns-mid-drain",
    "cdc-new-more/09-coordinator-killed-mid-drain",
];

/// Both changefeeds.
pub(super) const FEEDS: [&str; 2] = ["cf-a", "cf-b"];

/// All tables of both.
pub(super) const ALL: usize = 240;

pub(super) fn scenario(seed: u64) -> Scenario {
    let text = format!(
        "
name: lab
architecture: new
seed: {seed}
databases: [{{ name: lab, tables: [{{ prefix: t, count: 120 }}] }}]
clusters:
  - version: v8.5.4
    captures: 3
    changefeeds:
      - {{ id: cf-a, databases: [lab], sink_uri: \"blackhole:\" }}
      - {{ id: cf-b, databases: [lab], sink_uri: \"blackhole:\" }}
tidb: {{ servers: 1, version: v8.5.3 }}
pd: {{ versions: [v8.5.4] }}
"
    );
    Scenario::from_yaml("lab.yaml", &text).unwrap()
}

/// The lab at rest: the coordinator is the first node, and each has 80 tables.
pub(super) async fn at_rest() -> Lab {
    with_seed(7).await
}

pub(super) async fn with_seed(seed: u64) -> Lab {
    let lab = Lab::of(served(scenario(seed)).await).await;
    let counts = counts(&lab, 0, &FEEDS).await.unwrap();
    assert_eq!((0..3).map(|n| counts[&lab.id(n)]).collect::<Vec<_>>(), [80, 80, 80]);
    assert_eq!(coordinator(&lab), 0);
    lab
}

/// How many tables the maintainers of these changefeeds name on each node, by its id; table id 0 is none of them. `None`
/// if one of them does not answer. No table may be named twice.
pub(super) async fn counts(lab: &Lab, via: usize, feeds: &[&str]) -> Option<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    for feed in feeds {
        let answer = try_ask(lab.at(via), "GET", &format!("/api/v2/changefeeds/{feed}/tables"), "").await.ok()?;
        if answer.status != 200 {
            assert_eq!(answer.status, 500, "{}", answer.body);
            return None;
        }
        let mut seen = BTreeSet::new();
        for node in answer.json()["items"].as_array().unwrap() {
            let ids = node["table_ids"].as_array().unwrap();
            assert!(!ids.is_empty(), "a node without a table is not there");
            for id in ids {
                assert!(seen.insert(id.as_u64().unwrap()), "{feed}: table {id} is named twice");
            }
            let tables = ids.iter().filter(|id| **id != 0).count();
            *counts.entry(node["node_id"].as_str().unwrap().to_owned()).or_insert(0) += tables;
        }
    }
    Some(counts)
}

/// The number of the node where the maintainer of a changefeed is.
pub(super) async fn home(lab: &Lab, via: usize, feed: &str) -> usize {
    let nodes = get(lab.at(via), &format!("/api/v2/changefeeds/{feed}/tables")).await.json();
    let mut nodes = nodes["items"].as_array().unwrap().iter();
    let home = nodes.find(|node| node["table_ids"].as_array().unwrap().contains(&json!(0))).unwrap();
    (0..3).find(|n| home["node_id"] == lab.id(*n)).unwrap()
}

/// The number of the node that coordinates.
pub(super) fn coordinator(lab: &Lab) -> usize {
    let address = lab.sim.world(owner).expect("a coordinator");
    lab.sim.captures.iter().position(|it| *it == address).unwrap()
}

/// Lets this node coordinate.
pub(super) async fn let_coordinate(lab: &Lab, wanted: usize) {
    for _ in 0..3 {
        if coordinator(lab) != wanted {
            ask(lab.at(0), "POST", "/api/v2/owner/resign", "").await;
            lab.advance(2_000).await;
        }
    }
    assert_eq!(coordinator(lab), wanted);
}

/// Ids in the list, as a node gives it.
pub(super) async fn listed(lab: &Lab, via: usize) -> BTreeSet<String> {
    let list = get(lab.at(via), "/api/v2/captures").await.json();
    list["items"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
}

/// The liveness of the three.
pub(super) async fn liveness(lab: &Lab) -> Vec<i64> {
    vec![lab.liveness(0).await, lab.liveness(1).await, lab.liveness(2).await]
}

/// Begins to end a node, and looks at once and then every 50 ms: it answers no more at once, and leaves the list of
/// `via` when it did in the recording.
pub(super) async fn ended(lab: &Lab, n: usize, via: usize, recording: &Value) {
    let runs = rows(recording);
    let was = states(runs.iter().map(|run| (run["alive"] == true, run["listed"] == true)));
    let liveness: Vec<i64> = states(runs.iter().filter_map(|run| run["liveness"].as_i64()));
    let (id, address) = (lab.id(n), lab.at(n).to_owned());
    lab.sim.world(|world| world.stop(&address, false).expect("it runs"));
    let process = lab.sim.world(|world| world.find(&address).unwrap());
    let (mut is, mut is_liveness) = (Vec::new(), Vec::new());
    for _ in 0..110 {
        let alive = lab.sim.world(|world| world.is_running(process));
        let is_listed = listed(lab, via).await.contains(&id);
        if let Some(status) = try_ask(&address, "GET", "/api/v2/status", "").await.ok().filter(|it| it.status == 200) {
            is_liveness.extend(status.json()["liveness"].as_i64());
        }
        is.push((alive, is_listed));
        lab.advance(50).await;
    }
    // Of some the port was closed already in the first look.
    assert!(liveness.is_empty() || states(is_liveness) == liveness);
    // From its end to the first look that missed it. All was sampled, there and here.
    let dead = is.iter().position(|it| !it.0).unwrap() as u64;
    let gone = is.iter().position(|it| !it.1).expect("it leaves the list") as u64;
    let held = (gone - dead) * 50;
    let ms = |run: usize, key: &str| runs[run][key].as_u64().unwrap();
    let seen = runs.iter().rposition(|run| run["listed"] == true).unwrap();
    let (least, most) = (ms(seen, "to_ms") - ms(1, "from_ms"), ms(seen + 1, "from_ms") - ms(0, "to_ms"));
    assert!((least - 50..=most + 50).contains(&held), "{held} of {least} to {most}");
    assert_eq!(states(is), was);
}

/// Starts a node where one ended, and looks every 10 ms: refused, then everything is answered, and then it is in the
/// list. A drain of the one that was there before is answered as in the recording.
pub(super) async fn started(lab: &Lab, n: usize, old: &str, recording: &Value) {
    let runs = rows(recording);
    let body = json!({ "capture_id": old }).to_string();
    let probes = [
        ("v2status", "GET", "/api/v2/status"),
        ("v1status", "GET", "/api/v1/status"),
        ("v2health", "GET", "/api/v2/health"),
        ("v2captures", "GET", "/api/v2/captures"),
        ("v1drain", "PUT", "/api/v1/captures/drain"),
        ("rootstatus", "GET", "/status"),
    ];
    let address = lab.at(n).to_owned();
    lab.sim.world(|world| world.start(&address, None).expect("it is down"));
    let via = usize::from(n == 0);
    let before = listed(lab, via).await;
    let mut seen = vec![Vec::new(); probes.len()];
    let (mut members, mut ready_at) = (Vec::new(), None);
    for step in 0..150_u64 {
        for (seen, (_, method, path)) in seen.iter_mut().zip(probes) {
            let answer = try_ask(&address, method, path, if method == "PUT" { &body } else { "" }).await;
            seen.push(answer.ok().map(|it| u64::from(it.status)));
        }
        let status = try_ask(&address, "GET", "/api/v2/status", "").await.ok().map_or(Value::Null, |it| it.json());
        let id = status["id"].as_str();
        let list = listed(lab, via).await;
        let is_listed = id.is_some_and(|id| list.contains(id));
        assert!(is_listed || list == before, "it answers before it is in a list");
        members.push((status["liveness"].as_i64(), status["is_owner"].as_bool(), is_listed));
        if id.is_some() && ready_at.is_none() {
            ready_at = Some(step * 10);
        }
        lab.advance(10).await;
    }
    assert_ne!(lab.id(n), old, "a new id each start");
    for (seen, (name, ..)) in seen.into_iter().zip(probes) {
        let was = states(runs.iter().map(|run| run[name].as_u64()));
        assert_eq!(states(seen), was, "{name}");
    }
    let last = runs.last().unwrap();
    let said = last["v1drain_body"].as_str().unwrap().replace(recording["old"]["id"].as_str().unwrap(), old);
    assert_eq!(ask(&address, "PUT", "/api/v1/captures/drain", &body).await.body, said);
    // Whether it was in the list by the first answer differs from start to start.
    let member = |listed| (last["liveness"].as_i64(), last["owner"].as_bool(), listed);
    assert_eq!(states(members), [(None, None, false), member(false), member(true)]);
    let (refused, answered) = (runs[0]["to_ms"].as_u64().unwrap(), last["from_ms"].as_u64().unwrap());
    let ready_at = ready_at.unwrap();
    assert!((refused..=answered).contains(&ready_at), "ready at {ready_at} of {refused} to {answered}");
}
