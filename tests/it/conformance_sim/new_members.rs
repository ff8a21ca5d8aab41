//! Members of the new architecture: resigns without a gap, nodes that end and die with tables, and one that is alone.

use super::new_lab::{FEEDS, at_rest, coordinator, counts, ended, home, listed, started};
use super::owners::{burst, resigned};
use super::recorded;
use super::sequences::{Lab, rows, states};
use crate::sim_support::{ask, get, try_ask};

#[tokio::test]
async fn a_resign_leaves_no_gap() {
    resigned(at_rest().await, "/api/v2/owner/resign", "cdc-new/87-v2-resign-watch").await;
    resigned(at_rest().await, "/api/v1/owner/resign", "cdc-new/89-v1-resign-watch").await;
}

#[tokio::test]
async fn right_after_a_resign_everything_is_answered_as_ever() {
    let ports = ["18301", "18300", "18302"];
    burst(&at_rest().await, "cdc-new/90-no-owner-burst", "08a4888d-5d13-46f2-a588-d2abc1b04dff", ports).await;
}

#[tokio::test]
async fn a_node_that_is_alone_coordinates_without_a_gap() {
    let was = states(
        rows(&recorded("cdc-new/107-resign-alone-watch")).iter().map(|run| (run["st"].as_u64(), run["owner"].clone())),
    );
    let lab = at_rest().await;
    lab.control("stop", 1).await;
    lab.control("stop", 2).await;
    lab.advance(20_000).await;
    ask(lab.at(0), "POST", "/api/v2/owner/resign", "").await;
    let mut is = Vec::new();
    for _ in 0..200 {
        let list = get(lab.at(0), "/api/v2/captures").await;
        let owners = list.json()["items"].as_array().unwrap().iter().map(|it| it["is_owner"].clone()).collect();
        is.push((Some(u64::from(list.status)), owners));
        lab.advance(20).await;
    }
    assert_eq!(states(is), was);
}

/// A node that does not coordinate, with or without a maintainer.
async fn other(lab: &Lab, with_maintainer: bool) -> usize {
    let homes = [home(lab, 0, FEEDS[0]).await, home(lab, 0, FEEDS[1]).await];
    (0..3).find(|n| *n != coordinator(lab) && homes.contains(n) == with_maintainer).expect("there is one")
}

#[tokio::test]
async fn a_killed_node_with_a_maintainer() {
    let recording = recorded("cdc-new/91-kill9-nonowner");
    let runs = rows(&recording);
    let answered = |run: &serde_json::Value| run["counts"].as_object().unwrap().values().all(|it| !it.is_null());
    let was = states(runs.iter().map(|run| {
        (run["listed"] == true, answered(run), run["proc"].as_u64(), run["proc_n"].as_u64(), run["health"].as_u64())
    }));
    let lab = at_rest().await;
    let n = other(&lab, true).await;
    let id = lab.id(n);
    lab.control("kill", n).await;
    let (mut is, mut left_at, mut back_at) = (Vec::new(), None, None);
    for step in 0..160_u64 {
        let is_listed = listed(&lab, 0).await.contains(&id);
        let counts = counts(&lab, 0, &FEEDS).await;
        let detail = get(lab.at(0), &format!("/api/v2/processors/cf-a/{id}")).await;
        let tables = detail.json()["table_ids"].as_array().map_or(0, |it| it.len() as u64);
        let health = get(lab.at(0), "/api/v2/health").await;
        let status = |status: u16| Some(u64::from(status));
        is.push((is_listed, counts.is_some(), status(detail.status), Some(tables), status(health.status)));
        left_at = left_at.or_else(|| (!is_listed).then_some(step * 100));
        back_at = back_at.or_else(|| (!is_listed && counts.is_some()).then_some(step * 100));
        lab.advance(100).await;
    }
    assert_eq!(states(is), was);
    // 13.2 to 13.4 s, and the tables call answers 0.2 to 0.8 s later.
    let (left_at, back_at) = (left_at.unwrap(), back_at.unwrap());
    let ms = |run: usize, key: &str| runs[run][key].as_u64().unwrap();
    assert!((ms(0, "to_ms")..=ms(1, "from_ms") + 100).contains(&left_at), "{left_at}");
    assert!(back_at > left_at && back_at - left_at <= ms(2, "from_ms") - ms(0, "to_ms"), "{left_at} to {back_at}");
    let after = counts(&lab, 0, &FEEDS).await.unwrap();
    assert_eq!((after.len(), after.values().sum::<usize>()), (2, 240), "the others took them");
    started(&lab, n, &id, &recorded("cdc-new/94-start-after-kill9")).await;
}

#[tokio::test]
async fn a_node_that_ends_with_its_tables() {
    let recording = recorded("cdc-new/98-sigterm-nonowner-with-tables");
    let runs = rows(&recording);
    // The others have the same all the time, and it is named to the last look, under its id when it is in no list.
    let counts_of = |run: &serde_json::Value| {
        let mut counts: Vec<u64> = run["counts"].as_object().unwrap().values().map(|it| it.as_u64().unwrap()).collect();
        counts.sort_unstable();
        counts
    };
    assert_eq!(states(runs.iter().map(counts_of)).len(), 1);
    assert!(runs.iter().all(|run| run["list_st"] == 200));
    let lab = at_rest().await;
    let n = other(&lab, false).await;
    let (id, before) = (lab.id(n), counts(&lab, 0, &FEEDS).await);
    assert!(before.as_ref().unwrap()[&id] > 0);
    {
        // The course of it, until it is in the list no more.
        let address = lab.at(n).to_owned();
        lab.sim.world(|world| world.stop(&address, false).expect("it runs"));
        let mut ms = 0;
        while listed(&lab, 0).await.contains(&id) {
            assert_eq!(counts(&lab, 0, &FEEDS).await, before, "nobody takes its tables before");
            assert!(ms < 60 || try_ask(lab.at(n), "GET", "/api/v2/status", "").await.is_err(), "it is gone");
            lab.advance(10).await;
            ms += 10;
        }
        let (last, gone) = (&runs[runs.len() - 2], &runs[runs.len() - 1]);
        let (last, gone) = (last["to_ms"].as_u64().unwrap(), gone["from_ms"].as_u64().unwrap());
        assert!((last - 10..=gone).contains(&ms), "{ms} of {last} to {gone}");
        assert_eq!(counts(&lab, 0, &FEEDS).await, before, "it is named a moment longer");
    }
    lab.advance(10_000).await;
    let after = counts(&lab, 0, &FEEDS).await.unwrap();
    assert_eq!((after.get(&id), after.values().sum::<usize>()), (None, 240), "the others took them");
    started(&lab, n, &id, &recorded("cdc-new/99-start-after-sigterm-nonowner")).await;
    // The same from the outside, as of those that were drained.
    let lab = at_rest().await;
    let n = other(&lab, false).await;
    ended(&lab, n, 0, &recording).await;
}
