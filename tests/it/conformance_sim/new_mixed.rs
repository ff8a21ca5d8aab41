//! A node of the new architecture beside classic captures: it waits, answers, and is no member until the last one of
//! them has gone.

use serde_json::{Value, json};
use tiroll::sim::scenario::Scenario;

use super::exchanges::{Cast, compare};
use super::new_exchanges::MIXED;
use super::recorded;
use super::sequences::{Lab, rows, states};
use super::shape::body_shape;
use crate::sim_support::{get, served, try_ask};

/// The node that waits. In the recording it was started at the address where a drained classic capture had ended; here
/// it has an address of its own, and that capture ends at the same moment.
const NEW: usize = 3;

fn scenario() -> Scenario {
    let text = "
name: mixed
seed: 7
databases: [{ name: lab, tables: [{ prefix: t, count: 120 }] }]
clusters:
  - version: v8.5.3
    captures: 4
    versions: { capture-4: v8.5.4 }
    new_architecture: [capture-4]
    changefeeds:
      - { id: cf-a, databases: [lab] }
      - { id: cf-b, databases: [lab] }
tidb: { servers: 1, version: v8.5.3 }
pd: { versions: [v8.5.4] }
";
    Scenario::from_yaml("mixed.yaml", text).unwrap()
}

/// Ids in the list of a classic capture.
async fn listed(lab: &Lab, via: usize) -> Vec<String> {
    let list = get(lab.at(via), "/api/v2/captures").await.json();
    list["items"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_node_waits_beside_classic_captures_and_takes_over_after_them() {
    let lab = Lab::of(served(scenario()).await).await;
    lab.control("stop", NEW).await;
    let drained = lab.id(2);
    lab.drain(0, &drained).await;
    lab.advance(30_000).await;

    // 109: it starts while the classic one ends.
    let recording = recorded("cdc-new/109-mixed-new-arch-node-joins-classic-cluster");
    let columns = ["v2status", "v2health", "v2captures", "root"];
    let was = states(rows(&recording).iter().map(|run| {
        let answers = columns.map(|column| run[column].as_u64());
        // The two were not asked at the same moment.
        (answers, run["list_8300"].as_array().unwrap().len(), run["st_8300"].as_u64(), run["st_8301"].as_u64())
    }));
    let raw = rows(&recording).last().unwrap()["raw"].as_str().unwrap().to_owned();
    lab.control("stop", 2).await;
    let address = lab.at(NEW).to_owned();
    lab.sim.world(|world| world.start(&address, None).expect("it is down"));
    let mut is = Vec::new();
    let (mut ready_at, mut left_at) = (None, None);
    for n in 0..450_u64 {
        let mut answers = Vec::new();
        for path in ["/api/v2/status", "/api/v2/health", "/api/v2/captures", "/status"] {
            let answer = try_ask(&address, "GET", path, "").await.ok();
            if let Some(status) = answer.as_ref().filter(|_| path == "/api/v2/status") {
                assert_eq!(body_shape(&status.body), body_shape(&raw));
                assert!(!listed(&lab, 0).await.contains(&lab.id(NEW)), "in no list");
                assert!(!listed(&lab, NEW).await.contains(&lab.id(NEW)), "not in the one that it passes on either");
                ready_at = ready_at.or(Some(n * 100));
            }
            answers.push(answer.map(|it| u64::from(it.status)));
        }
        let list = listed(&lab, 0).await;
        left_at = left_at.or_else(|| (!list.contains(&drained)).then_some(n * 100));
        is.push((answers.try_into().unwrap(), list.len(), Some(200), Some(200)));
        lab.advance(100).await;
    }
    assert_eq!(states(is), was);
    let end = |run: usize, key: &str| rows(&recording)[run][key].as_u64().unwrap();
    assert!(ready_at.unwrap() <= end(1, "from_ms"), "{ready_at:?}");
    let left_at = left_at.unwrap();
    assert!((end(1, "to_ms")..=end(3, "from_ms") + 200).contains(&left_at), "{left_at}");

    // 110: both classic ones end at once.
    let recording = recorded("cdc-new/110-mixed-new-arch-node-after-classic-stopped");
    let samples = recording["samples"].as_array().unwrap();
    let was = states(samples.iter().map(|it| (it["new"].as_u64(), it["health"].as_u64())));
    for n in [0, 1] {
        let address = lab.at(n).to_owned();
        lab.sim.world(|world| world.stop(&address, false).expect("it runs"));
    }
    let mut is = Vec::new();
    let mut taken_at = None;
    let mut tables = Vec::new();
    for n in 0..200_u64 {
        let status = get(&address, "/api/v2/status").await;
        let health = get(&address, "/api/v2/health").await;
        // The first look was at an owner that had closed its port already; here it may answer until it is gone.
        if health.status != 200 || taken_at.is_some() || n * 10 > 60 {
            is.push((Some(u64::from(status.status)), Some(u64::from(health.status))));
            taken_at = taken_at.or_else(|| (health.status == 200).then_some(n * 10));
        }
        // 113: just after it took over, the maintainer is there and no table is.
        let answer = get(&address, "/api/v2/changefeeds/cf-a/tables").await;
        if answer.status == 200 {
            if tables.is_empty() {
                let cast =
                    Cast::of(&[("127.0.0.1:8302", &address), ("1c382cdb-81a3-4888-8d18-6ec4ccdf8361", &lab.id(NEW))]);
                compare("cdc-new", &MIXED, &cast).await;
            }
            tables.push(answer.json()["items"][0]["table_ids"].clone());
        }
        lab.advance(10).await;
    }
    assert_eq!(states(is), was);
    let taken_at = taken_at.expect("it takes over");
    assert!(taken_at <= 300, "{taken_at}");
    assert_eq!(tables.first(), Some(&json!([0])));
    lab.advance(10_000).await;
    let nodes = get(&address, "/api/v2/changefeeds/cf-a/tables").await.json();
    assert_eq!((&nodes["total"], nodes["items"][0]["table_ids"].as_array().map(Vec::len)), (&json!(1), Some(121)));
    assert_eq!(get(&address, "/api/v2/status").await.json()["is_owner"], Value::Bool(true));
}
