//! Sequences: the same course of events, compared as the order of states, each state once. Times are not compared: the
//! recordings were sampled, and a state shorter than their step may be missing there; where that shows it is said.

use serde_json::{Value, json};
use tiroll::sim::Running;

use super::recorded;
use crate::sim_support::{ask, get, id_at, lab, lab_with, served, tables, try_ask};

/// Every sequence, with its folder. `rolling.jsonl` is in none; its test has a file of its own.
pub(crate) const NAMES: &[&str] = &[
    "cdc-classic/57-v1-drain-once-watch",
    "cdc-classic/70-drained-never-restarted",
    "cdc-classic/71-sigterm-drained-capture",
    "cdc-classic/73-start-after-drain",
    "cdc-classic/74-rebalance-after-restart",
    "cdc-classic/75-v2-drain-repeated",
    "cdc-classic/77-v1-drain-second-via-drained-capture",
    "cdc-classic/78-liveness-both-drained",
    "cdc-classic/79-both-nonowners-drained-pingpong",
    "cdc-classic/80-pingpong-ended-by-restart-of-one",
    "cdc-classic/82-v2-resign-watch",
    "cdc-classic/84-v1-resign-watch",
    "cdc-classic/86-v2-resign-via-nonowner-watch",
    "cdc-classic/87-no-owner-burst",
    "cdc-classic/88-kill9-nonowner",
    "cdc-classic/91-start-after-kill9",
    "cdc-classic/95-sigterm-nonowner-with-tables",
    "cdc-classic/96-start-after-sigterm-nonowner",
    "cdc-classic/100-start-after-kill9-2",
    "cdc-classic/106-resign-alone-watch",
    "cdc-classic/107-v2-two-drains-at-once",
    "cdc-classic/108-resign-then-drain-old-owner-at-once",
    "cdc-classic-more/11-drain-with-one-stopped-changefeed",
    "cdc-classic-more/14-resume-while-a-capture-is-stopping",
    "cdc-classic-more/15-drain-of-an-empty-capture",
    "cdc-classic-more/16-owner-resigns-mid-drain",
    "cdc-classic-more/18-three-versions",
    "tidb/23-status-during-startup-of-2nd-tidb",
];

/// Consecutive equal states as one.
pub(crate) fn states<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found: Vec<T> = Vec::new();
    for state in all {
        if found.last() != Some(&state) {
            found.push(state);
        }
    }
    found
}

/// The samples of a recording.
pub(crate) fn rows(recording: &Value) -> Vec<Value> {
    recording.get("rows").or_else(|| recording.get("runs")).and_then(Value::as_array).expect("samples").clone()
}

/// The lab at rest: the owner is the first capture.
pub(crate) struct Lab {
    pub(crate) sim: Running,
}

impl Lab {
    pub(crate) async fn at_rest() -> Self {
        Self::of(served(lab(120, 3, "")).await).await
    }

    pub(crate) async fn of(sim: Running) -> Self {
        sim.advance(120_000).await;
        Self { sim }
    }

    pub(crate) fn at(&self, n: usize) -> &str {
        &self.sim.captures[n]
    }

    pub(crate) fn id(&self, n: usize) -> String {
        self.sim.world(|world| id_at(world, self.at(n)))
    }

    pub(crate) fn tables(&self, n: usize) -> usize {
        self.sim.world(tables).get(self.at(n)).copied().unwrap_or(0)
    }

    pub(crate) async fn liveness(&self, n: usize) -> i64 {
        get(self.at(n), "/api/v1/status").await.json()["liveness"].as_i64().expect("a number")
    }

    /// A drain of the capture with this id, asked at capture `via`: status, and the count or `-1`.
    pub(crate) async fn drain(&self, via: usize, id: &str) -> (u16, i64) {
        let body = json!({ "capture_id": id }).to_string();
        let answer = ask(self.at(via), "PUT", "/api/v1/captures/drain", &body).await;
        let count = answer.json()["current_table_count"].as_i64().unwrap_or(-1);
        (answer.status, count)
    }

    pub(crate) async fn control(&self, verb: &str, n: usize) {
        let body = json!({ "address": self.at(n) }).to_string();
        let answer = ask(&self.sim.control, "POST", &format!("/{verb}"), &body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }

    /// Drains capture `n` until it is empty.
    async fn drained(&self, n: usize) {
        let id = self.id(n);
        self.drain(0, &id).await;
        self.advance(30_000).await;
        assert_eq!(self.tables(n), 0);
    }

    pub(crate) async fn advance(&self, ms: u64) {
        self.sim.advance(ms).await;
    }
}

#[tokio::test]
async fn one_drain_request_is_enough() {
    let recording = recorded("cdc-classic/57-v1-drain-once-watch");
    let was = states(rows(&recording).iter().map(|row| (row["liveness"].as_i64(), row["target_tables"] == 0)));
    let lab = Lab::at_rest().await;
    let id = lab.id(1);
    let mut is = vec![(Some(lab.liveness(1).await), lab.tables(1) == 0)];
    lab.drain(0, &id).await;
    for _ in 0..100 {
        lab.advance(200).await;
        is.push((Some(lab.liveness(1).await), lab.tables(1) == 0));
    }
    assert_eq!(states(is), was);
}

#[tokio::test]
async fn a_drained_capture_stays_as_it_is() {
    let recording = recorded("cdc-classic/70-drained-never-restarted");
    let was =
        states(rows(&recording).iter().map(|run| (run["liveness"].as_i64(), run["counts"]["127.0.0.1:8301"] == 0)));
    let lab = Lab::at_rest().await;
    lab.drained(1).await;
    let mut is = Vec::new();
    for _ in 0..50 {
        lab.advance(3_000).await;
        is.push((Some(lab.liveness(1).await), lab.tables(1) == 0));
    }
    assert_eq!(states(is), was);
}

/// Whether the process answers, and whether its id is listed by another capture.
pub(crate) async fn alive_and_listed(lab: &Lab, n: usize, id: &str, via: usize) -> (bool, bool) {
    let alive = try_ask(lab.at(n), "GET", "/api/v1/status", "").await.is_ok();
    let list = get(lab.at(via), "/api/v1/captures").await.json();
    (alive, list.as_array().expect("a list").iter().any(|entry| entry["id"] == id))
}

#[tokio::test]
async fn an_ended_capture_is_listed_for_five_seconds() {
    let recording = recorded("cdc-classic/71-sigterm-drained-capture");
    let was = states(rows(&recording).iter().map(|run| (run["alive"] == true, run["listed"] == true)));
    let lab = Lab::at_rest().await;
    lab.drained(1).await;
    let id = lab.id(1);
    lab.control("stop", 1).await;
    let mut is = Vec::new();
    for _ in 0..70 {
        is.push(alive_and_listed(&lab, 1, &id, 0).await);
        lab.advance(100).await;
    }
    assert_eq!(states(is), was);
}

/// What a starting capture answers, column by column: the status, and the code of an error where the body was kept.
fn starting(runs: &[Value], column: &str) -> Vec<String> {
    states(runs.iter().map(|run| match &run[column] {
        Value::Number(status) => {
            let body = run[format!("{column}_body")].as_str().unwrap_or_default();
            format!("{status} {}", code(body)).trim_end().to_owned()
        }
        _ => "refused".to_owned(),
    }))
}

/// The error code of a body, or nothing for a success.
pub(crate) fn code(body: &str) -> String {
    let value: Option<Value> = serde_json::from_str(body).ok();
    value.and_then(|value| value["error_code"].as_str().map(str::to_owned)).unwrap_or_default()
}

#[tokio::test]
async fn a_capture_starts_in_the_recorded_order() {
    let names =
        ["73-start-after-drain", "91-start-after-kill9", "96-start-after-sigterm-nonowner", "100-start-after-kill9-2"];
    let lab = Lab::at_rest().await;
    let old = lab.id(1);
    lab.control("stop", 1).await;
    lab.advance(10_000).await;
    let body = json!({ "capture_id": old }).to_string();
    // Of the last two the recording kept no bodies.
    let probes: [(&str, &str, &str, &str, bool); 6] = [
        ("v2status", "GET", "/api/v2/status", "", true),
        ("v2health", "GET", "/api/v2/health", "", true),
        ("v2captures", "GET", "/api/v2/captures", "", true),
        ("v1drain", "PUT", "/api/v1/captures/drain", &body, true),
        ("v1status", "GET", "/api/v1/status", "", false),
        ("rootstatus", "GET", "/status", "", false),
    ];
    let address = lab.at(1).to_owned();
    lab.sim.world(|world| world.start(&address, None).expect("it is down"));
    let mut seen: Vec<Vec<String>> = vec![Vec::new(); probes.len()];
    let mut members = Vec::new();
    for _ in 0..150 {
        for (column, (_, method, path, body, has_body)) in seen.iter_mut().zip(&probes) {
            column.push(match try_ask(&address, method, path, body).await {
                Ok(answer) if *has_body => format!("{} {}", answer.status, code(&answer.body)).trim_end().to_owned(),
                Ok(answer) => answer.status.to_string(),
                Err(_) => "refused".to_owned(),
            });
        }
        let list = get(lab.at(0), "/api/v2/captures").await.json();
        let of_address = list["items"].as_array().unwrap().iter().filter(|it| it["address"] == address.as_str());
        let status = try_ask(&address, "GET", "/api/v2/status", "").await.ok().filter(|it| it.status == 200);
        let status = status.map_or(Value::Null, |it| it.json());
        members.push(json!([of_address.count(), status["liveness"], status["is_owner"]]));
        lab.advance(10).await;
    }
    // The list was asked last in each sample of the recording, so it may be a step ahead, and the id is in it before
    // the status is anything but 503.
    let members = states(members);
    assert_eq!(members, [json!([0, null, null]), json!([1, null, null]), json!([1, 0, false])]);
    for recording in names {
        let runs = rows(&recorded(&format!("cdc-classic/{recording}")));
        let member = |run: &Value| json!([run["in_list"].as_array().unwrap().len(), run["liveness"], run["owner"]]);
        assert_eq!(states(runs.iter().map(member)), members, "{recording}");
        assert!(runs.iter().all(|run| run["id"].is_null() || run["id"] == run["in_list"][0]), "{recording}");
    }
    for (column, (name, ..)) in seen.into_iter().zip(&probes) {
        let is = states(column);
        for recording in names {
            let was = starting(&rows(&recorded(&format!("cdc-classic/{recording}"))), name);
            // The recording looked about every 30 to 200 ms and one start (73) was over between two looks: what it saw
            // must come in this order, and begin and end the same.
            let mut rest = is.iter();
            assert!(was.iter().all(|state| rest.any(|it| it == state)), "{recording} {name}: {was:?} in {is:?}");
            assert_eq!((is.first(), is.last()), (was.first(), was.last()), "{recording} {name}");
        }
        assert!(is.len() <= 4, "{name} wavers: {is:?}");
    }
    assert_ne!(lab.id(1), old, "a new id each start");
}

#[tokio::test]
async fn tables_come_back_by_the_balance_check() {
    let recording = recorded("cdc-classic/74-rebalance-after-restart");
    let spread = |counts: Vec<u64>| counts.iter().max().unwrap() - counts.iter().min().unwrap();
    let was = spread(recording["counts"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).collect());
    assert!(recording["seconds"].as_f64().unwrap() < 61.0);
    let lab = Lab::at_rest().await;
    lab.drained(1).await;
    lab.control("restart", 1).await;
    lab.advance(90_000).await;
    let is = spread((0..3).map(|n| lab.tables(n) as u64).collect());
    assert!(is <= was.max(2), "{is} apart");
}

#[tokio::test]
async fn a_repeated_drain_falls_to_zero_and_stays_there() {
    let recording = recorded("cdc-classic/75-v2-drain-repeated");
    let was = states(rows(&recording).iter().map(|row| {
        let drain = &row["drain"];
        (drain["st"].as_u64(), drain["body"]["current_table_count"] == 0, row["liveness"].as_i64())
    }));
    let counts: Vec<u64> =
        rows(&recording).iter().filter_map(|row| row["drain"]["body"]["current_table_count"].as_u64()).collect();
    assert_falls(&counts);
    let lab = Lab::at_rest().await;
    let id = lab.id(2);
    let (mut is, mut counts) = (Vec::new(), Vec::new());
    for _ in 0..80 {
        let answer = ask(lab.at(0), "POST", &format!("/api/v2/captures/{id}/drain"), "").await;
        let count = answer.json()["current_table_count"].as_u64();
        is.push((Some(u64::from(answer.status)), count == Some(0), Some(lab.liveness(2).await)));
        counts.extend(count);
        lab.advance(200).await;
    }
    assert_eq!(states(is), was);
    assert_falls(&counts);
}

/// Counts of a drain that is left alone: from some tables down to none, never up, by ten of each of the two changefeeds
/// a second or so.
pub(crate) fn assert_falls(counts: &[u64]) {
    assert!(counts.first() > Some(&60) && counts.last() == Some(&0), "{counts:?}");
    assert!(counts.windows(2).all(|pair| pair[1] <= pair[0] && pair[0] - pair[1] <= 20), "{counts:?}");
}

/// Whether a count passed through zero and was more again.
fn passes_zero(counts: impl IntoIterator<Item = bool>) -> bool {
    let order = states(counts);
    order.windows(2).any(|pair| pair == [true, false])
}

#[tokio::test]
async fn two_drained_captures_send_tables_back_and_forth_until_one_is_restarted() {
    let lab = Lab::at_rest().await;
    lab.drained(2).await;
    let second = lab.id(1);

    // 77: the second one drained through the first; its count passes through zero without being done.
    let recording = recorded("cdc-classic/77-v1-drain-second-via-drained-capture");
    let zero = |row: &Value| row["drain"]["body"]["current_table_count"] == 0;
    let was_back = rows(&recording).iter().any(|row| row["counts"]["127.0.0.1:8302"].as_u64() > Some(0));
    assert!(was_back && rows(&recording).iter().any(zero));
    let mut counts = Vec::new();
    let mut first_got_tables = false;
    for _ in 0..60 {
        let (status, count) = lab.drain(2, &second).await;
        assert_eq!(status, 202);
        counts.push(count == 0);
        first_got_tables |= lab.tables(2) > 0;
        lab.advance(1_000).await;
    }
    assert!(first_got_tables, "tables went to the capture that was drained before");
    assert!(passes_zero(counts), "the count passed through zero and rose again");

    // 78: both say so, the owner does not.
    let recording = recorded("cdc-classic/78-liveness-both-drained");
    let was: Vec<_> = recording["status"].as_array().unwrap().iter().map(|s| s["body"]["liveness"].as_i64()).collect();
    let is = vec![Some(lab.liveness(0).await), Some(lab.liveness(1).await), Some(lab.liveness(2).await)];
    assert_eq!(is, was);

    // 79: nobody asks any more, and it goes on.
    let recording = recorded("cdc-classic/79-both-nonowners-drained-pingpong");
    let was = rows(&recording);
    let falls_and_rises = |counts: Vec<u64>| {
        counts.windows(2).any(|pair| pair[1] > pair[0]) && counts.windows(2).any(|pair| pair[1] < pair[0])
    };
    assert!(falls_and_rises(was.iter().filter_map(|row| row["counts"]["127.0.0.1:8301"].as_u64()).collect()));
    let mut is = Vec::new();
    for _ in 0..was.len() {
        lab.advance(1_000).await;
        is.push(lab.tables(1) as u64);
        assert!(lab.tables(1) + lab.tables(2) > 0, "the tables stay between the two");
    }
    assert!(falls_and_rises(is));

    // 80: one of them is restarted; the other one empties by itself.
    let recording = recorded("cdc-classic/80-pingpong-ended-by-restart-of-one");
    let last = rows(&recording).last().unwrap().clone();
    lab.control("restart", 2).await;
    lab.advance(60_000).await;
    let is = json!({ "8301 is empty": lab.tables(1) == 0, "8302 carries": lab.tables(2) > 0 });
    let was = json!({
        "8301 is empty": last["counts"]["127.0.0.1:8301"] == 0,
        "8302 carries": last["counts"]["127.0.0.1:8302"].as_u64() > Some(0),
    });
    assert_eq!(is, was);
    assert_eq!(Some(lab.liveness(1).await), last["liveness"]["127.0.0.1:8301"].as_i64());
    assert_eq!(Some(lab.liveness(2).await), last["liveness"]["127.0.0.1:8302"].as_i64());
}

/// A look at two captures that are drained in turn: who was asked, its liveness, and the tables of the two.
type Row = (usize, Option<i64>, [u64; 2]);

#[tokio::test]
async fn two_drains_at_once_do_the_same() {
    let recording = recorded("cdc-classic/107-v2-two-drains-at-once");
    let was = rows(&recording);
    assert!(was.iter().all(|row| row["drain"]["st"] == 202));
    let both_never_empty = |rows: &[Row]| rows.iter().all(|(_, _, [a, b])| a + b > 0);
    // The second one is armed only when the first one has been empty, or all but so between two looks.
    let in_turn = |rows: &[Row]| {
        let armed = |n| rows.iter().position(|row| row.0 == n && row.1 == Some(1)).expect("it is armed in the end");
        let first_empty = rows.iter().position(|row| row.2[0] <= 11).expect("the first one is emptied");
        assert!(armed(0) <= first_empty && first_empty < armed(1), "{rows:?}");
    };
    let liveness = |rows: &[Row], n| states(rows.iter().filter(|row| row.0 == n).map(|row| row.1));
    let was: Vec<Row> = was
        .iter()
        .map(|row| {
            let counts = ["127.0.0.1:8301", "127.0.0.1:8302"].map(|at| row["counts"][at].as_u64().unwrap());
            (usize::from(row["target"] == "127.0.0.1:8302"), row["liveness"].as_i64(), counts)
        })
        .collect();
    assert!(both_never_empty(&was));
    in_turn(&was);
    let lab = Lab::at_rest().await;
    let ids = [lab.id(1), lab.id(2)];
    let mut is: Vec<Row> = Vec::new();
    for n in 0..was.len() {
        let (status, _) = lab.drain(0, &ids[n % 2]).await;
        assert_eq!(status, 202);
        is.push((n % 2, Some(lab.liveness(1 + n % 2).await), [lab.tables(1) as u64, lab.tables(2) as u64]));
        lab.advance(1_000).await;
    }
    assert!(both_never_empty(&is), "{is:?}");
    in_turn(&is);
    for n in 0..2 {
        assert_eq!(liveness(&is, n), liveness(&was, n));
    }
}

#[tokio::test]
async fn a_killed_capture_keeps_its_tables_until_it_leaves_the_list() {
    let recording = recorded("cdc-classic/88-kill9-nonowner");
    let was = states(rows(&recording).iter().map(|run| {
        (run["listed"] == true, run["proc"].as_u64(), run["proc_n"].as_u64() > Some(0), run["health"].as_u64())
    }));
    let lab = Lab::at_rest().await;
    let id = lab.id(1);
    lab.control("kill", 1).await;
    let mut is = Vec::new();
    for _ in 0..100 {
        let (_, listed) = alive_and_listed(&lab, 1, &id, 0).await;
        let detail = get(lab.at(0), &format!("/api/v2/processors/cf-a/{id}")).await;
        let health = get(lab.at(0), "/api/v2/health").await;
        let carries = detail.json()["table_ids"].as_array().is_some_and(|ids| !ids.is_empty());
        is.push((listed, Some(u64::from(detail.status)), carries, Some(u64::from(health.status))));
        let others = lab.tables(0) + lab.tables(2);
        assert!(!listed || others == 160, "nobody takes its tables before");
        lab.advance(200).await;
    }
    assert_eq!(states(is), was);
    assert_eq!(lab.tables(0) + lab.tables(2), 240, "the others took them");
}

#[tokio::test]
async fn tables_of_an_undrained_capture_stand_still_until_it_leaves_the_list() {
    let recording = recorded("cdc-classic/95-sigterm-nonowner-with-tables");
    // The moment at 5.5 s, listed by one answer and gone from the next, is one probe of the recording, not a state.
    let settled =
        rows(&recording).into_iter().filter(|run| !run["counts"]["127.0.0.1:8300"].is_null() || run["listed"] == false);
    let was = states(settled.map(|run| (run["listed"] == true, run["counts"]["127.0.0.1:8300"].as_u64().is_some())));
    let lab = Lab::at_rest().await;
    let (id, before) = (lab.id(1), lab.tables(1));
    lab.control("stop", 1).await;
    let mut is = Vec::new();
    for _ in 0..80 {
        let (_, listed) = alive_and_listed(&lab, 1, &id, 0).await;
        let detail = get(lab.at(0), &format!("/api/v2/processors/cf-a/{id}")).await;
        is.push((listed, detail.status == 200));
        assert!(!listed || lab.tables(0) + lab.tables(2) + before == 240, "nobody takes its tables before");
        lab.advance(100).await;
    }
    assert_eq!(states(is), was);
    lab.advance(5_000).await;
    assert!(before > 0);
    assert_eq!(lab.tables(0) + lab.tables(2), 240, "the others took them");
}

/// An answer to a drain, told apart: the error's code; as many as there are changefeeds; more; zero.
pub(crate) fn kind(status: u64, body: &Value) -> String {
    match body["current_table_count"].as_u64() {
        Some(0) => "zero".to_owned(),
        Some(2) => "not ready".to_owned(),
        Some(_) => "counted".to_owned(),
        None => format!("{status} {}", body["error_code"].as_str().unwrap_or_default()),
    }
}

#[tokio::test]
async fn a_drain_right_after_the_resign_is_not_ready_first() {
    let recording = recorded("cdc-classic/108-resign-then-drain-old-owner-at-once");
    let was = states(rows(&recording).iter().map(|run| kind(run["st"].as_u64().unwrap(), &run["body"])));
    let lab = Lab::at_rest().await;
    let id = lab.id(0);
    let body = json!({ "capture_id": id }).to_string();
    ask(lab.at(0), "POST", "/api/v2/owner/resign", "").await;
    let mut is = Vec::new();
    for _ in 0..1_000 {
        let answer = ask(lab.at(0), "PUT", "/api/v1/captures/drain", &body).await;
        is.push(kind(u64::from(answer.status), &answer.json()));
        lab.advance(20).await;
    }
    // Two tables left at the end look like "not ready" to this test: only the first answers are about that.
    let end = |mut order: Vec<String>| {
        let at = order.iter().position(|it| it == "counted").unwrap_or(0);
        let tail: Vec<_> = order.split_off(at).into_iter().filter(|it| it != "not ready").collect();
        order.extend(states(tail));
        order
    };
    assert_eq!(end(states(is)), end(was));
}

#[tokio::test]
async fn a_drain_beside_a_stopped_changefeed_counts_the_normal_one() {
    let recording = recorded("cdc-classic-more/11-drain-with-one-stopped-changefeed");
    let state = |liveness: Option<i64>, zero: bool| (liveness, zero);
    let was = states(rows(&recording).iter().map(|row| {
        state(row["liveness"]["127.0.0.1:8301"].as_i64(), row["drain"]["body"]["current_table_count"] == 0)
    }));
    let lab = Lab::at_rest().await;
    ask(lab.at(0), "POST", "/api/v2/changefeeds/cf-b/pause", "").await;
    lab.advance(5_000).await;
    let id = lab.id(1);
    let mut is = Vec::new();
    for _ in 0..40 {
        let (_, count) = lab.drain(0, &id).await;
        assert!(count <= 40, "only cf-a is counted");
        is.push(state(Some(lab.liveness(1).await), count == 0));
        lab.advance(500).await;
    }
    assert_eq!(states(is), was);

    // 14: the other one is resumed; its tables go to the others only.
    let recording = recorded("cdc-classic-more/14-resume-while-a-capture-is-stopping");
    let was = states(rows(&recording).iter().map(|row| row["counts"]["127.0.0.1:8301"].as_u64()));
    ask(lab.at(0), "POST", "/api/v2/changefeeds/cf-b/resume", "{}").await;
    let mut is = Vec::new();
    for _ in 0..20 {
        lab.advance(2_000).await;
        is.push(Some(lab.tables(1) as u64));
    }
    assert_eq!(states(is), was);
    assert_eq!((lab.tables(0), lab.tables(2)), (120, 120));
}

#[tokio::test]
async fn a_zero_that_arms_nothing_is_followed_by_tables() {
    let recording = recorded("cdc-classic-more/15-drain-of-an-empty-capture");
    let was = states(
        rows(&recording)
            .iter()
            .map(|row| (row["liveness"]["127.0.0.1:8301"].as_i64(), row["counts"]["127.0.0.1:8301"] == 0)),
    );
    // Not a lab at rest: the balancer would have come by already.
    let lab = Lab { sim: served(lab_with(120, 3, "    empty: [capture-2]", "")).await };
    let id = lab.id(1);
    let mut is = Vec::new();
    for n in 0..60 {
        if n < 3 {
            assert_eq!(lab.drain(0, &id).await, (202, 0));
        }
        is.push((Some(lab.liveness(1).await), lab.tables(1) == 0));
        lab.advance(2_000).await;
    }
    assert_eq!(states(is), was);
}

#[tokio::test]
async fn an_owner_that_resigns_in_the_middle_of_a_drain() {
    let recording = recorded("cdc-classic-more/16-owner-resigns-mid-drain");
    // 21 of the recording is "not ready" for one changefeed and counted for the other: counted, here.
    let was = states(rows(&recording).iter().map(|row| {
        let liveness = row["liveness"]["127.0.0.1:8301"].as_i64();
        let owner = row["owner"][0].as_str().map(|it| if it == "127.0.0.1:8300" { "old" } else { "new" });
        (kind(row["drain"]["st"].as_u64().unwrap(), &row["drain"]["body"]), liveness, owner)
    }));
    let lab = Lab::at_rest().await;
    let id = lab.id(1);
    let body = json!({ "capture_id": id }).to_string();
    let mut is = Vec::new();
    for n in 0..900 {
        if n == 100 {
            ask(lab.at(2), "POST", "/api/v1/owner/resign", "").await;
        }
        let answer = ask(lab.at(2), "PUT", "/api/v1/captures/drain", &body).await;
        let list = get(lab.at(2), "/api/v1/captures").await;
        let owner = list.json().as_array().and_then(|list| list.iter().find(|it| it["is_owner"] == true).cloned());
        let owner = owner.map(|it| if it["address"] == lab.at(0) { "old" } else { "new" });
        is.push((kind(u64::from(answer.status), &answer.json()), Some(lab.liveness(1).await), owner));
        lab.advance(10).await;
    }
    // Two tables left at the end look like "not ready" to this test.
    let real = is.into_iter().enumerate().filter(|(n, (kind, ..))| *n < 250 || kind != "not ready");
    let is = states(real.map(|(_, it)| it));
    assert_eq!(is, was);
}

#[tokio::test]
async fn a_tidb_starts_in_the_recorded_order() {
    let recording = recorded("tidb/23-status-during-startup-of-2nd-tidb");
    let was = states(rows(&recording).iter().map(|run| run["status"].as_u64()));
    let lab = Lab::at_rest().await;
    let address = lab.sim.tidb[1].clone();
    ask(&lab.sim.control, "POST", "/stop", &json!({ "address": address }).to_string()).await;
    lab.advance(30_000).await;
    lab.sim.world(|world| world.start(&address, None).expect("it is down"));
    let mut is = Vec::new();
    for _ in 0..200 {
        is.push(try_ask(&address, "GET", "/status", "").await.ok().map(|answer| u64::from(answer.status)));
        lab.advance(10).await;
    }
    assert_eq!(states(is), was);
}
