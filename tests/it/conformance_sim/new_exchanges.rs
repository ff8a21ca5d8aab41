//! Single exchanges of the new architecture: the same request in the same situation.

use serde_json::json;
use tiroll::sim::Running;

use super::exchanges::{Cast, Situation, compare};
use super::new_lab::{at_rest, coordinator, home, let_coordinate};
use super::sequences::Lab;
use super::{NOT_SERVED, recorded};
use crate::sim_support::{ask, get};

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
        "32-v2-changefeed-synced",
        "33-root-status",
        "34-unknown-path",
        "35-wrong-method-captures",
        "38-v2-cf-tables-owner",
        "39-v2-cf-tables-nonowner",
        "40-v2-cf-dispatcher-count",
        "42-v1-drain-owner",
        "43-v2-drain-owner",
        "44-v2-drain-owner-via-nonowner",
        "45-v1-drain-missing",
        "46-v2-drain-missing",
        "47-v2-drain-missing-via-nonowner",
        "48-v2-drain-garbage-id",
        "49-v1-drain-no-body",
        "50-v1-drain-malformed",
        "51-v1-drain-empty-object",
        "52-v1-drain-wrong-type",
        "53-v1-drain-malformed-via-nonowner",
        "54-v1-drain-post",
        "55-v2-drain-put",
        "56-v2-drain-get",
        "57-v1-resign-get",
        "58-v2-resign-put",
    ],
};

const DRAINED: Situation = Situation {
    names: &[
        "60-v2-status-after-drain",
        "61-v2-health-after-drain",
        "62-v2-captures-after-drain",
        "63-v2-tables-after-drain",
        "64-v1-drain-again",
        "65-v1-drain-again-via-nonowner",
        "66-v1-drain-other-while-first-not-removed",
    ],
};

pub(super) const OTHER_GONE: Situation = Situation { names: &["70-v1-drain-of-gone-capture-while-another-is-drained"] };
pub(super) const NEXT_GONE: Situation = Situation { names: &["75-v1-drain-of-gone-capture-while-another-is-drained"] };
pub(super) const DRAINED_GONE: Situation = Situation { names: &["78-v1-drain-of-gone-capture"] };
pub(super) const SECOND_GONE: Situation = Situation { names: &["83-v1-drain-of-gone-capture"] };
const RESIGN: Situation = Situation { names: &["86-v2-resign"] };
const RESIGN_V1: Situation = Situation { names: &["88-v1-resign"] };
const KILLED: Situation = Situation { names: &["92-v2-drain-of-killed-capture"] };
const ALONE: Situation = Situation {
    names: &[
        "102-v2-captures-alone",
        "103-v1-drain-alone-self",
        "104-v2-drain-alone-self",
        "105-v2-drain-alone-other",
        "106-v2-resign-alone",
    ],
};
pub(super) const MIXED: Situation = Situation {
    names: &[
        "111-mixed-new-arch-after-classic-gone-captures",
        "112-mixed-new-arch-after-classic-gone-changefeeds",
        "113-mixed-new-arch-after-classic-gone-tables",
    ],
};
const DEAD: Situation = Situation {
    names: &[
        "114-v2-tables-while-maintainer-node-dead",
        "115-v2-changefeed-while-maintainer-node-dead",
        "116-v2-changefeeds-while-maintainer-node-dead",
    ],
};
const PAUSE: Situation = Situation { names: &["01-pause-changefeed"] };
const STOPPED: Situation = Situation {
    names: &[
        "02-changefeeds-one-stopped",
        "03-changefeed-stopped-detail",
        "04-tables-of-stopped",
        "05-health-one-stopped",
        "07-resume-changefeed",
    ],
};

/// Every exchange, with its folder.
pub(super) fn names() -> Vec<String> {
    let new = [
        REST,
        DRAINED,
        OTHER_GONE,
        NEXT_GONE,
        DRAINED_GONE,
        SECOND_GONE,
        RESIGN,
        RESIGN_V1,
        KILLED,
        ALONE,
        MIXED,
        DEAD,
    ];
    let new = new.iter().flat_map(|it| it.names).map(|name| format!("cdc-new/{name}"));
    let more = [PAUSE, STOPPED];
    let more = more.iter().flat_map(|it| it.names).map(|name| format!("cdc-new-more/{name}"));
    new.chain(more).collect()
}

/// The cast of the beginning: the coordinator at 18300.
pub(super) fn cast_of(lab: &Lab) -> Cast {
    let mut cast = addresses(&lab.sim);
    for (n, id) in [
        "08a4888d-5d13-46f2-a588-d2abc1b04dff",
        "93ebfa50-0c5b-481c-ae0d-99229cfe6526",
        "f4520485-e2e6-44eb-80d1-f003e07174d6",
    ]
    .into_iter()
    .enumerate()
    {
        cast.texts.insert(id.to_owned(), lab.id(n));
    }
    cast
}

fn addresses(sim: &Running) -> Cast {
    Cast::of(&[
        ("127.0.0.1:18300", &sim.captures[0]),
        ("127.0.0.1:18301", &sim.captures[1]),
        ("127.0.0.1:18302", &sim.captures[2]),
    ])
}

#[tokio::test]
async fn nodes_at_rest_and_one_that_is_drained() {
    let lab = at_rest().await;
    let cast = cast_of(&lab);
    compare("cdc-new", &REST, &cast).await;
    let status = get(lab.at(0), "/api/v2/changefeeds/cf-a/status").await.json();
    assert_eq!(status["resolved_ts"], status["checkpoint_ts"], "no more than the checkpoint, as in 31");
    let count = get(lab.at(0), "/api/v2/changefeeds/cf-a/get_dispatcher_count").await;
    assert_eq!(Some(count.body.as_str()), recorded("cdc-new/40-v2-cf-dispatcher-count")["response"]["raw"].as_str());
    let id = lab.id(2);
    while lab.drain(0, &id).await != (202, 0) {
        lab.advance(1_000).await;
    }
    compare("cdc-new", &DRAINED, &cast).await;
    for name in ["64-v1-drain-again", "66-v1-drain-other-while-first-not-removed"] {
        let recording = recorded(&format!("cdc-new/{name}"));
        let asked = cast.played(&recording["request"]["body"].to_string());
        let answer = ask(lab.at(0), "PUT", "/api/v1/captures/drain", &asked).await;
        assert_eq!(Some(answer.body.as_str()), recording["response"]["raw"].as_str(), "{name}: the same number");
    }
}

#[tokio::test]
async fn what_is_not_served_is_an_unknown_path() {
    let lab = at_rest().await;
    for (name, why) in NOT_SERVED {
        let path = recorded(name)["request"]["path"].as_str().map(str::to_owned);
        if let Some(path) = path {
            assert_eq!(get(lab.at(0), &path).await.status, 404, "{name} is served, although it is left out: {why}");
        }
    }
}

#[tokio::test]
async fn resigns_by_v2_and_v1() {
    let lab = at_rest().await;
    compare("cdc-new", &RESIGN, &addresses(&lab.sim)).await;
    lab.advance(5_000).await;
    let now = coordinator(&lab);
    assert_ne!(now, 0);
    compare("cdc-new", &RESIGN_V1, &Cast::of(&[("127.0.0.1:18302", lab.at(now))])).await;
    lab.advance(5_000).await;
    assert_ne!(coordinator(&lab), now);
}

#[tokio::test]
async fn a_killed_node_is_no_path_for_a_v2_drain() {
    let lab = at_rest().await;
    let mut cast = addresses(&lab.sim);
    cast.texts.insert("1e8979c6-3471-4cec-8ef4-ebb2473a971b".to_owned(), lab.id(2));
    lab.control("kill", 2).await;
    lab.advance(20_000).await;
    compare("cdc-new", &KILLED, &cast).await;
}

#[tokio::test]
async fn a_node_that_is_alone() {
    let lab = at_rest().await;
    let (own, gone) = (lab.id(0), lab.id(1));
    lab.control("stop", 1).await;
    lab.control("stop", 2).await;
    lab.advance(20_000).await;
    let cast = Cast::of(&[
        ("127.0.0.1:18302", lab.at(0)),
        ("8bc4babf-0232-442b-83ce-48160de50e12", &own),
        ("19c7a967-108a-4750-ba7d-0aaa84e9d769", &gone),
    ]);
    compare("cdc-new", &ALONE, &cast).await;
}

#[tokio::test]
async fn the_node_of_the_coordinator_and_of_a_maintainer_is_dead() {
    let lab = at_rest().await;
    let dead = home(&lab, 0, "cf-a").await;
    let_coordinate(&lab, dead).await;
    let other = (dead + 1) % 3;
    lab.control("kill", dead).await;
    lab.advance(1_000).await;
    let cast = Cast::of(&[("127.0.0.1:18300", lab.at(other)), ("127.0.0.1:18301", lab.at(dead))]);
    compare("cdc-new", &DEAD, &cast).await;
    // Who is not there is named.
    let answer = get(lab.at(other), "/api/v2/changefeeds").await;
    let was = recorded("cdc-new/116-v2-changefeeds-while-maintainer-node-dead");
    assert_eq!(answer.body, was["response"]["raw"].as_str().unwrap().replace("127.0.0.1:18301", lab.at(dead)));
}

#[tokio::test]
async fn a_changefeed_is_paused_and_resumed() {
    let lab = at_rest().await;
    let cast = addresses(&lab.sim);
    compare("cdc-new-more", &PAUSE, &cast).await;
    lab.advance(5_000).await;
    compare("cdc-new-more", &STOPPED, &cast).await;
    lab.advance(10_000).await;
    let feeds = get(lab.at(0), "/api/v2/changefeeds").await.json();
    assert!(feeds["items"].as_array().unwrap().iter().all(|feed| feed["state"] == json!("normal")));
}
