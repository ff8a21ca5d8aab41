//! Single exchanges: the same request in the same situation.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tiroll::sim::Running;

use super::recorded;
use super::shape::{body_shape, written};
use crate::sim_support::{ask, id_at, lab, owner, served};

/// Ids of the recordings that play no part in the cluster: nobody's, or gone.
const NOBODY: [&str; 2] = ["00000000-0000-0000-0000-000000000000", "nope"];

/// Up to here the servers know a body's length before they send it; longer ones go in chunks.
const WHOLE: usize = 2_048;

/// One situation and the recordings made in it, in their order.
pub(super) struct Situation {
    pub(super) names: &'static [&'static str],
}

const REST: Situation = Situation {
    names: &[
        "01-v1-status-owner",
        "02-v1-health-owner",
        "03-v1-captures-owner",
        "04-v1-status-nonowner",
        "05-v1-health-nonowner",
        "06-v1-captures-nonowner",
        "07-v1-changefeeds",
        "08-v1-changefeeds-via-nonowner",
        "09-v1-changefeeds-state-all",
        "10-v1-changefeed-detail",
        "11-v1-changefeed-missing",
        "12-v1-processors",
        "13-v1-processor-detail",
        "14-v1-processor-missing-capture",
        "15-v1-processor-missing-cf",
        "16-v2-status-owner",
        "17-v2-health-owner",
        "18-v2-captures-owner",
        "19-v2-status-nonowner",
        "20-v2-health-nonowner",
        "21-v2-captures-nonowner",
        "22-v2-changefeeds",
        "23-v2-changefeeds-via-nonowner",
        "24-v2-changefeeds-state-all",
        "25-v2-changefeed-detail",
        "26-v2-changefeed-missing",
        "27-v2-processors",
        "28-v2-processor-detail",
        "29-v2-processor-missing-capture",
        "30-v2-processor-missing-cf",
        "31-v2-changefeed-status",
        "33-root-status",
        "34-unknown-path",
        "35-wrong-method-captures",
        "38-v1-drain-owner",
        "39-v2-drain-owner",
        "40-v2-drain-owner-via-nonowner",
        "41-v1-drain-missing",
        "42-v2-drain-missing",
        "43-v2-drain-missing-via-nonowner",
        "44-v2-drain-garbage-id",
        "45-v1-drain-no-body",
        "46-v1-drain-malformed",
        "47-v1-drain-empty-object",
        "48-v1-drain-wrong-type",
        "49-v1-drain-malformed-via-nonowner",
        "50-v1-drain-post",
        "51-v2-drain-put",
        "52-v2-drain-get",
        "53-v1-resign-get",
        "54-v2-resign-put",
        "55-v2-status-before-drain",
        "56-v1-drain-once",
    ],
};

const DRAINED: Situation = Situation {
    names: &[
        "58-v2-status-after-drain",
        "59-v1-status-after-drain",
        "60-v2-health-after-drain",
        "61-v2-captures-after-drain",
        "62-v1-captures-after-drain",
        "63-v2-processors-after-drain",
        "64-v2-processor-drained",
        "65-v1-processor-drained",
        "66-v1-drain-again",
        "67-v2-drain-again",
        "68-v2-changefeeds-after-drain",
    ],
};

const GONE: Situation = Situation { names: &["72-v1-drain-of-gone-capture"] };
const SECOND: Situation = Situation { names: &["76-v2-drain-second-target-after"] };
const RESIGN: Situation = Situation { names: &["81-v2-resign"] };
const RESIGN_V1: Situation = Situation { names: &["83-v1-resign"] };
const RESIGN_VIA: Situation = Situation { names: &["85-v2-resign-via-nonowner"] };
const KILLED: Situation = Situation { names: &["89-v2-drain-of-killed-capture"] };
const ALONE: Situation = Situation {
    names: &[
        "101-v2-captures-alone",
        "102-v1-drain-alone-self",
        "103-v2-drain-alone-self",
        "104-v2-drain-alone-other",
        "105-v2-resign-alone",
    ],
};
const STOPPED: Situation = Situation {
    names: &[
        "01-pause-changefeed",
        "02-changefeeds-one-stopped",
        "03-changefeeds-one-stopped-v1",
        "04-changefeed-stopped-detail-v2",
        "05-changefeed-stopped-detail-v1",
        "06-processors-one-stopped-v2",
        "07-processors-one-stopped-v1",
        "08-processor-of-stopped-v1",
        "09-processor-of-stopped-v2",
        "10-health-one-stopped",
        "12-resume-changefeed-empty-body",
        "13-resume-changefeed",
    ],
};
const TIDB_ONE: Situation = Situation {
    names: &[
        "01-status",
        "02-info",
        "03-info-all",
        "04-upgrade-show-get",
        "05-upgrade-show-normal",
        "06-upgrade-finish-when-normal",
        "07-upgrade-start-get",
        "08-upgrade-start-put",
        "09-upgrade-unknown-op",
        "10-upgrade-no-op",
        "11-upgrade-start",
        "12-upgrade-start-again",
        "13-upgrade-show-upgrading",
        "14-status-upgrading",
        "15-info-upgrading",
        "18-upgrade-finish",
        "20-upgrade-finish-again",
        "21-upgrade-show-after-finish",
        "80-schema-databases",
        "81-schema-id-name-only",
        "82-db-table",
        "83-db-table-missing",
        "84-schema-table-ids",
        "85-schema-db-missing",
        "87-uni-status",
        "88-uni-info",
        "89-uni-info-all",
        "90-uni-upgrade-show",
        "91-uni-upgrade-start",
        "92-uni-upgrade-start-again",
        "93-uni-upgrade-show-2",
        "94-uni-upgrade-finish",
        "95-uni-upgrade-finish-again",
    ],
};
const TIDB_TWO: Situation = Situation {
    names: &[
        "24-info-all-two-versions",
        "25-upgrade-show-two-versions-normal",
        "26-upgrade-start-two",
        "29-upgrade-finish-at-b",
        "30-upgrade-show-after",
        "31-upgrade-start-at-nonowner",
        "32-upgrade-finish-at-a",
        "33-status-before-sigterm",
    ],
};

/// Every exchange, with its folder.
pub(crate) fn names() -> Vec<String> {
    let classic = [&REST, &DRAINED, &GONE, &SECOND, &RESIGN, &RESIGN_V1, &RESIGN_VIA, &KILLED, &ALONE];
    let of = |folder: &'static str, situation: &Situation| {
        situation.names.iter().map(move |name| format!("{folder}/{name}")).collect::<Vec<_>>()
    };
    let mut all: Vec<String> = classic.into_iter().flat_map(|situation| of("cdc-classic", situation)).collect();
    all.extend(of("cdc-classic-more", &STOPPED));
    all.extend(of("tidb", &TIDB_ONE));
    all.extend(of("tidb", &TIDB_TWO));
    all
}

/// Who plays whom: the addresses and ids of a recording, and those of the simulator.
#[derive(Default)]
pub(super) struct Cast {
    pub(super) texts: BTreeMap<String, String>,
}

impl Cast {
    pub(super) fn of(pairs: &[(&str, &str)]) -> Self {
        Self { texts: pairs.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect() }
    }

    /// In one pass, because a simulated id may look like a recorded one.
    pub(super) fn played(&self, text: &str) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while let Some(next) = rest.chars().next() {
            let found = self.texts.iter().find_map(|(from, to)| Some((to, rest.strip_prefix(from.as_str())?)));
            if let Some((to, after)) = found {
                out.push_str(to);
                rest = after;
            } else {
                out.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
        out
    }

    fn address(&self, recorded: &str) -> String {
        self.texts.get(recorded).unwrap_or_else(|| panic!("nobody plays {recorded}")).clone()
    }
}

/// Asks the simulator what was asked of the real server, and compares.
pub(super) async fn compare(folder: &str, situation: &Situation, cast: &Cast) {
    for name in situation.names {
        let recording = recorded(&format!("{folder}/{name}"));
        let request = &recording["request"];
        let at = cast.address(request["addr"].as_str().unwrap());
        let path = cast.played(request["path"].as_str().unwrap());
        let body = match &request["body"] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => cast.played(&other.to_string()),
        };
        let unplayed = NOBODY.iter().any(|id| path.contains(id) || body.contains(id));
        assert!(unplayed || !path.contains("-4") || path != request["path"], "{name}: nobody plays the id in {path}");
        let answer = ask(&at, request["method"].as_str().unwrap(), &path, &body).await;
        let expected = &recording["response"];
        assert_eq!(Some(u64::from(answer.status)), expected["status"].as_u64(), "{name}: {}", answer.body);
        assert_eq!(answer.header("content-type"), expected["headers"]["content-type"].as_str(), "{name}: content type");
        let raw = expected["raw"].as_str().map_or_else(|| expected["body"].to_string(), str::to_owned);
        let (is, was) = (body_shape(&answer.body), body_shape(&raw));
        assert_eq!(is, was, "{name}: shape of\n{}\nagainst\n{raw}", answer.body);
        if was.is_array() {
            assert_eq!(written(&answer.body), written(&raw), "{name}: order of keys and indentation");
        }
        let sniff = "x-content-type-options";
        assert_eq!(answer.header(sniff), expected["headers"][sniff].as_str(), "{name}: {sniff}");
        for (body, length, chunks) in [
            (&answer.body, answer.header("content-length"), answer.header("transfer-encoding")),
            (&raw, expected["headers"]["content-length"].as_str(), expected["headers"]["transfer-encoding"].as_str()),
        ] {
            let says = if body.len() > WHOLE { (None, Some("chunked")) } else { (Some(body.len()), None) };
            assert_eq!((length.map(|it| it.parse().unwrap()), chunks), says, "{name}: length or chunks");
        }
    }
}

async fn advance(sim: &Running, seconds: u64) {
    sim.advance(seconds * 1_000).await;
}

/// The lab at rest, and its cast as in `cdc-classic` 1 to 68: the owner at 8300.
async fn classic() -> (Running, Cast) {
    let sim = served(lab(120, 3, "")).await;
    advance(&sim, 120).await;
    let id = |n: usize| sim.world(|world| id_at(world, &sim.captures[n]));
    let cast = Cast::of(&[
        ("127.0.0.1:8300", &sim.captures[0]),
        ("127.0.0.1:8301", &sim.captures[1]),
        ("127.0.0.1:8302", &sim.captures[2]),
        ("abeadf4f-7995-43c6-9372-51d69d484aff", &id(0)),
        ("c66102a2-9deb-4c8b-b5c9-911ef1d80392", &id(1)),
        ("b1064984-18e3-4767-8cc4-c3c0150abe01", &id(2)),
    ]);
    (sim, cast)
}

#[tokio::test]
async fn a_cluster_at_rest_a_drained_capture_and_one_that_is_gone() {
    let (sim, cast) = classic().await;
    compare("cdc-classic", &REST, &cast).await;
    advance(&sim, 30).await;
    compare("cdc-classic", &DRAINED, &cast).await;
    ask(&sim.control, "POST", "/stop", &json!({ "address": sim.captures[1] }).to_string()).await;
    advance(&sim, 10).await;
    compare("cdc-classic", &GONE, &cast).await;
}

#[tokio::test]
async fn a_second_drain_beside_a_drained_capture() {
    let (sim, mut cast) = classic().await;
    let second = sim.world(|world| id_at(world, &sim.captures[1]));
    let first = sim.world(|world| id_at(world, &sim.captures[2]));
    ask(&sim.captures[0], "POST", &format!("/api/v2/captures/{first}/drain"), "").await;
    advance(&sim, 30).await;
    cast.texts.insert("5dcaccff-744b-429f-bd46-4a95e85d52e4".to_owned(), second);
    compare("cdc-classic", &SECOND, &cast).await;
}

#[tokio::test]
async fn resigns_by_v1_v2_and_through_another_capture() {
    let (sim, cast) = classic().await;
    compare("cdc-classic", &RESIGN, &cast).await;
    advance(&sim, 10).await;
    // In the recording the owner is at 8302 by now; here it is whoever was next in the queue.
    let now = sim.world(owner).expect("an owner");
    compare("cdc-classic", &RESIGN_V1, &Cast::of(&[("127.0.0.1:8302", &now)])).await;
    advance(&sim, 10).await;
    let now = sim.world(owner).expect("an owner");
    let other = sim.captures.iter().find(|address| **address != now).expect("another capture");
    compare("cdc-classic", &RESIGN_VIA, &Cast::of(&[("127.0.0.1:8300", other)])).await;
}

#[tokio::test]
async fn a_killed_capture_is_unknown_once_its_lease_ran_out() {
    let (sim, mut cast) = classic().await;
    let killed = sim.world(|world| id_at(world, &sim.captures[1]));
    ask(&sim.control, "POST", "/kill", &json!({ "address": sim.captures[1] }).to_string()).await;
    advance(&sim, 20).await;
    cast.texts.insert("abeadf4f-7995-43c6-9372-51d69d484aff".to_owned(), killed);
    compare("cdc-classic", &KILLED, &cast).await;
}

#[tokio::test]
async fn a_capture_that_is_alone() {
    let (sim, _) = classic().await;
    let own = sim.world(|world| id_at(world, &sim.captures[0]));
    let gone = sim.world(|world| id_at(world, &sim.captures[1]));
    for address in &sim.captures[1..] {
        ask(&sim.control, "POST", "/stop", &json!({ "address": address }).to_string()).await;
    }
    advance(&sim, 20).await;
    let cast = Cast::of(&[
        ("127.0.0.1:8302", &sim.captures[0]),
        ("67808e7f-7b1e-40fb-a704-74d80229f325", &own),
        ("102e968f-6cf1-4c76-8842-7043f49a636f", &gone),
    ]);
    compare("cdc-classic", &ALONE, &cast).await;
}

#[tokio::test]
async fn a_changefeed_is_paused_and_resumed() {
    let (sim, mut cast) = classic().await;
    let capture = sim.world(|world| id_at(world, &sim.captures[1]));
    cast.texts.insert("c644195c-0174-4cd1-9abc-348de4a55999".to_owned(), capture);
    for (n, name) in STOPPED.names.iter().enumerate() {
        compare("cdc-classic-more", &Situation { names: &STOPPED.names[n..=n] }, &cast).await;
        if *name == "01-pause-changefeed" {
            // Pausing is heard at once and done a moment later.
            advance(&sim, 5).await;
        }
    }
}

#[tokio::test]
async fn one_tidb_goes_into_the_upgrading_state_and_out() {
    let sim = served(one_tidb()).await;
    advance(&sim, 10).await;
    let list = ask(&sim.tidb[0], "GET", "/schema/lab?id_name_only=true", "").await.json();
    let id = |n: usize| list[n]["id"].to_string();
    let cast = Cast::of(&[("127.0.0.1:10080", &sim.tidb[0]), ("354", &id(0)), ("352", &id(1))]);
    compare("tidb", &TIDB_ONE, &cast).await;
}

fn one_tidb() -> tiroll::sim::scenario::Scenario {
    let text = "
name: lab
databases:
  - { name: test, tables: [] }
  - { name: lab, tables: [{ prefix: t, count: 120 }] }
clusters:
  - version: v8.5.3
    captures: 1
    changefeeds: [{ id: cf-a, databases: [lab] }]
tidb: { servers: 1, version: v8.5.3 }
pd: { versions: [v8.5.4] }
";
    tiroll::sim::scenario::Scenario::from_yaml("lab.yaml", text).unwrap()
}

#[tokio::test]
async fn two_tidb_of_different_versions() {
    let text = "
name: lab
databases: [{ name: lab, tables: [{ prefix: t, count: 12 }] }]
clusters:
  - version: v8.5.3
    captures: 1
    changefeeds: [{ id: cf-a, databases: [lab] }]
tidb: { servers: 2, version: v8.5.3, versions: { tidb-2: v8.5.2 } }
pd: { versions: [v8.5.4] }
";
    let sim = served(tiroll::sim::scenario::Scenario::from_yaml("lab.yaml", text).unwrap()).await;
    advance(&sim, 10).await;
    let cast = Cast::of(&[("127.0.0.1:10080", &sim.tidb[0]), ("127.0.0.1:10081", &sim.tidb[1])]);
    compare("tidb", &TIDB_TWO, &cast).await;
}
