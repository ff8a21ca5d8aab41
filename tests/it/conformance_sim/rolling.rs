//! One rolling restart of three captures to v8.5.4, as `rolling.jsonl` was made: what happened to each, in order, and
//! what a client saw meanwhile.

use serde_json::{Value, json};

use super::sequences::{Lab, alive_and_listed, assert_falls, states};
use crate::sim_support::{ask, get, try_ask};
use crate::support::recording;

/// An event and who it was about. The owner of the beginning is 0, the others are 1 and 2 in the order of their turns.
type Event = (String, usize);

/// Events that are not part of the course: samples and counts are many and looked at otherwise, and the simulator
/// has no etcd to look into.
const OTHER: [&str; 4] = ["sample", "begin", "end", "etcd-key-after-exit"];

fn role(address: &Value) -> usize {
    let ports = ["127.0.0.1:8302", "127.0.0.1:8300", "127.0.0.1:8301"];
    ports.iter().position(|it| address == it).expect("one of the three")
}

/// What a client saw of each capture, by column, each state once.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// Entries of the list at its address, and whether one of them is the owner.
    listed: [Vec<(usize, bool)>; 3],
    /// Its version, liveness and whether it says that it owns; only where it answered 200.
    said: [Vec<(String, i64, bool)>; 3],
    /// Whether it carries no table.
    is_empty: [Vec<bool>; 3],
}

fn note<T: PartialEq>(column: &mut Vec<T>, state: T) {
    if column.last() != Some(&state) {
        column.push(state);
    }
}

fn said(status: &Value, is_owner: &str) -> Option<(String, i64, bool)> {
    Some((status["version"].as_str()?.to_owned(), status["liveness"].as_i64()?, status[is_owner].as_bool()?))
}

fn recorded_samples(events: &[Value]) -> Seen {
    let mut seen = Seen::default();
    for event in events.iter().filter(|event| event["event"] == "sample") {
        for (address, status) in event["status"].as_object().unwrap() {
            let n = role(&json!(address));
            let entries: Vec<_> = event["listed"].as_array().unwrap().iter().filter(|it| it["a"] == *address).collect();
            note(&mut seen.listed[n], (entries.len(), entries.iter().any(|it| it["o"] == true)));
            if let Some(said) = said(status, "owner") {
                note(&mut seen.said[n], said);
            }
            if let Some(tables) = event["tables"][address].as_u64() {
                note(&mut seen.is_empty[n], tables == 0);
            }
        }
        for feed in event["changefeeds"].as_array().unwrap() {
            assert_eq!(feed["state"], "normal");
        }
    }
    seen
}

impl Seen {
    async fn look(&mut self, lab: &Lab) {
        // As the recording did, ask whoever answers: one of them may be down, or not ready.
        let mut list = None;
        for n in [1, 2, 0] {
            let answer = try_ask(lab.at(n), "GET", "/api/v1/captures", "").await.ok().filter(|it| it.status == 200);
            list = list.or(answer);
        }
        for n in 0..3 {
            // In the gap of the resign there is no list. The recording looked once a second and did not meet it.
            if let Some(list) = &list {
                let list = list.json();
                let entries: Vec<_> = list.as_array().unwrap().iter().filter(|it| it["address"] == lab.at(n)).collect();
                note(&mut self.listed[n], (entries.len(), entries.iter().any(|it| it["is_owner"] == true)));
            }
            let status = try_ask(lab.at(n), "GET", "/api/v1/status", "").await.ok().filter(|it| it.status == 200);
            if let Some(said) = status.and_then(|it| said(&it.json(), "is_owner")) {
                note(&mut self.said[n], said);
            }
            note(&mut self.is_empty[n], lab.tables(n) == 0);
        }
    }
}

#[tokio::test]
async fn a_whole_rolling_restart_goes_through_the_recorded_events() {
    let events = recording::rolling();
    let mut target = 1;
    let mut was: Vec<Event> = Vec::new();
    let mut was_counts = [const { Vec::new() }; 3];
    for event in events.iter().filter(|it| OTHER.iter().all(|other| it["event"] != *other)) {
        // Some events name nobody: they are about the one whose turn it is.
        if !event["target"].is_null() {
            target = role(&event["target"]);
        }
        let name = event["event"].as_str().unwrap();
        match name {
            "drain" => {
                assert_eq!(event["st"], 202);
                was_counts[target].push(event["body"]["current_table_count"].as_u64().unwrap());
            }
            "resign" => target = 0,
            _ => {}
        }
        let about = if name == "new-owner" { role(&event["owner"]["address"]) } else { target };
        was.push((name.to_owned(), about));
    }
    for counts in &was_counts {
        assert_falls(counts);
    }

    let lab = Lab::at_rest().await;
    let mut seen = Seen::default();
    let mut is: Vec<Event> = Vec::new();
    for n in [1, 2, 0] {
        let mut event = |name: &str, about: usize| is.push((name.to_owned(), about));
        let via = if n == 1 { 2 } else { 1 };
        if n == 0 {
            assert_eq!(ask(lab.at(0), "POST", "/api/v2/owner/resign", "").await.status, 200);
            event("resign", 0);
            let mut wanted = vec!["new-owner", "healthy-again"];
            while !wanted.is_empty() {
                let list = get(lab.at(1), "/api/v1/captures").await.json();
                let owner = list.as_array().and_then(|list| list.iter().find(|it| it["is_owner"] == true).cloned());
                let owner = owner.and_then(|it| (0..3).find(|n| it["address"] == lab.at(*n)));
                if let Some(owner) = owner.filter(|owner| *owner != 0 && take(&mut wanted, "new-owner")) {
                    event("new-owner", owner);
                }
                if get(lab.at(1), "/api/v2/health").await.status == 200 && take(&mut wanted, "healthy-again") {
                    event("healthy-again", 0);
                }
                seen.look(&lab).await;
                lab.advance(20).await;
            }
        }
        let id = lab.id(n);
        let mut counts = Vec::new();
        while counts.last() != Some(&0) {
            let (status, count) = lab.drain(via, &id).await;
            assert_eq!(status, 202);
            event("drain", n);
            counts.push(u64::try_from(count).expect("a count"));
            seen.look(&lab).await;
            lab.advance(600).await;
        }
        assert_falls(&counts);
        assert_eq!(lab.tables(n), 0);
        event("drained", n);
        event("sigterm", n);
        lab.control("stop", n).await;
        event("exited", n);
        let address = lab.at(n).to_owned();
        lab.sim.world(|world| world.start(&address, Some("v8.5.4")).expect("it is down"));
        event("started", n);
        // What follows happens by itself; each is noted when it is first seen.
        let mut wanted = vec!["status-ok", "health-ok", "old-entry-gone", "balanced"];
        for step in 0..8_000 {
            let is_ok = async |path| try_ask(&address, "GET", path, "").await.is_ok_and(|it| it.status == 200);
            for name in wanted.clone() {
                let is_so = match name {
                    "status-ok" => is_ok("/api/v1/status").await,
                    "health-ok" => is_ok("/api/v2/health").await,
                    "old-entry-gone" => !alive_and_listed(&lab, n, &id, via).await.1,
                    _ => lab.tables(n) >= 78,
                };
                if is_so && take(&mut wanted, name) {
                    event(name, n);
                }
            }
            if wanted.is_empty() {
                break;
            }
            seen.look(&lab).await;
            // Closely while it starts, then once in a while, as the balance takes up to a minute.
            lab.advance(if step < 100 { 20 } else { 250 }).await;
        }
        assert!(wanted.is_empty(), "{wanted:?} never came");
        let status = get(&address, "/api/v1/status").await.json();
        assert_ne!(status["id"], id.as_str(), "a new id each start");
        for feed in get(lab.at(via), "/api/v2/changefeeds").await.json()["items"].as_array().unwrap() {
            assert_eq!(feed["state"], "normal");
        }
    }
    assert_eq!(states(is), states(was));
    let was = recorded_samples(&events);
    assert_eq!(seen.listed, was.listed);
    assert_eq!(seen.said, was.said);
    assert_eq!(seen.is_empty, was.is_empty);
}

/// Takes a name off the list of what is waited for.
fn take(wanted: &mut Vec<&str>, name: &str) -> bool {
    let before = wanted.len();
    wanted.retain(|it| *it != name);
    wanted.len() < before
}
