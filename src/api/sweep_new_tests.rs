use super::super::clients::Endpoints;
use super::super::fake::{Fake, Routes, Still, json};
use super::super::http::Options;
use super::super::status::StatusDocument;
use super::*;
use crate::cluster::Liveness;

/// Three nodes that can be of either architecture, of which `listed` are in the list; the first is the coordinator.
struct Cluster {
    routes: Vec<Routes>,
    fakes: Vec<Fake>,
}

const IDS: [&str; 3] = ["cap-0", "cap-1", "cap-2"];
const NO_MAINTAINER: &str = r#"{"error_msg":"Can't not find maintainer for changefeed: a","error_code":""}"#;
const TABLES_OF_A: &str = "GET /api/v2/changefeeds/a/tables";
const TABLES_OF_B: &str = "GET /api/v2/changefeeds/b/tables?keyspace=ks";

impl Cluster {
    async fn new() -> Self {
        let (mut routes, mut fakes) = (Vec::new(), Vec::new());
        for _ in IDS {
            let (route, fake) = Routes::serve().await;
            routes.push(route);
            fakes.push(fake);
        }
        let cluster = Self { routes, fakes };
        for n in 0..IDS.len() {
            cluster.is(n, Architecture::New, 0);
        }
        cluster.lists(&[0, 1, 2]);
        cluster.all_say("GET /api/v1/health", "{}");
        cluster.feeds("normal", "warning");
        // Whoever asks finds no processor, and would take every capture for empty.
        cluster.all_say("GET /api/v1/processors", "[]");
        cluster.all_say("POST /api/v2/tso", r#"{"timestamp":1796072632050,"logic_time":1}"#);
        cluster.all_say(
            TABLES_OF_A,
            r#"{"total":2,"items":[{"node_id":"cap-1","table_ids":[0,4,2]},{"node_id":"cap-0","table_ids":[6]}]}"#,
        );
        cluster.all_say(
            TABLES_OF_B,
            r#"{"total":2,"items":[{"node_id":"cap-0","table_ids":[0]},{"node_id":"gone","table_ids":[8]}]}"#,
        );
        cluster
    }

    fn is(&self, n: usize, architecture: Architecture, liveness: u8) {
        let short = format!(r#"{{"version":"v8.5.4","git_hash":"g","id":"{}","pid":1,"is_owner":{}"#, IDS[n], n == 0);
        let full = format!(r#"{short},"cluster_id":"default","liveness":{liveness}}}"#);
        let (root, config) = match architecture {
            Architecture::New => (full.clone(), r#"{"newarch":true}"#),
            Architecture::Classic => (format!("{short}}}"), "{}"),
        };
        self.routes[n].ok("GET /api/v1/status", full).ok("GET /status", root).ok("GET /config", config);
    }

    fn lists(&self, listed: &[usize]) {
        let entry = |n: &usize| {
            let address = &self.fakes[*n].address;
            format!(r#"{{"id":"{}","is_owner":{},"address":"{address}","cluster_id":"default"}}"#, IDS[*n], *n == 0)
        };
        self.all_say("GET /api/v1/captures", &format!("[{}]", listed.iter().map(entry).collect::<Vec<_>>().join(",")));
    }

    fn feeds(&self, a: &str, b: &str) {
        let row = |space: &str, id: &str, state: &str| {
            format!(r#"{{"keyspace":"{space}","id":"{id}","state":"{state}","checkpoint_tso":470829664056115205}}"#)
        };
        self.all_say(
            "GET /api/v1/changefeeds?state=all",
            &format!("[{},{}]", row("default", "a", a), row("ks", "b", b)),
        );
    }

    /// What any node answers, since it forwards the question.
    fn all_say(&self, line: &str, body: &str) {
        for routes in &self.routes {
            routes.ok(line, body);
        }
    }

    fn all_fail(&self, line: &str, body: &str) {
        for routes in &self.routes {
            routes.set(line, json(500, body));
        }
    }

    fn asked(&self, line: &str) -> usize {
        self.fakes.iter().flat_map(Fake::requests).filter(|asked| asked == line).count()
    }

    fn clients(&self, configured: &[usize]) -> Clients {
        let cdc = configured.iter().map(|n| self.fakes[*n].address.clone()).collect();
        Clients::new(Endpoints { cdc, ..Endpoints::default() }, &Options::default()).unwrap()
    }

    async fn sweep(&self, placement: bool, target: Option<&str>) -> CdcSweep {
        let ask = SweepAsk { target: target.map(CaptureId::new), placement };
        self.clients(&[0, 1, 2]).sweep_cdc(&ask, &Still).await
    }
}

fn a() -> ChangefeedId {
    ChangefeedId::new("default", "a")
}

fn b() -> ChangefeedId {
    ChangefeedId::new("ks", "b")
}

fn ids(ids: &[i64]) -> Vec<TableId> {
    ids.iter().copied().map(TableId).collect()
}

fn target(sweep: &CdcSweep) -> &BTreeMap<ChangefeedId, Reading<Vec<TableId>>> {
    &sweep.groups[0].target.as_ref().unwrap().by_changefeed
}

#[tokio::test]
async fn a_cluster_of_the_new_architecture_is_read_whole_with_one_question_a_changefeed() {
    let cluster = Cluster::new().await;
    cluster.is(1, Architecture::New, 1);
    let sweep = cluster.sweep(true, Some("cap-1")).await;
    let [group] = &sweep.groups[..] else { panic!("{sweep:?}") };
    assert_eq!(group.architecture, Some(Architecture::New));
    assert_eq!((group.owner().unwrap().id.as_str(), &group.health), ("cap-0", &Ok(())));
    assert_eq!(sweep.node_of(&CaptureId::new("cap-1")).unwrap().1.liveness.meaning, Some(Liveness::Draining));
    let named = |id| {
        let captures = group.placement.by_capture().iter();
        captures.filter_map(|(at, tables)| Some((at.clone(), tables.by_changefeed().get(&id)?.to_vec()))).collect()
    };
    let (of_a, of_b): (Placement, Placement) = (named(a()), named(b()));
    assert_eq!(of_a, Placement::from([(CaptureId::new("cap-0"), ids(&[6])), (CaptureId::new("cap-1"), ids(&[2, 4]))]));
    // A node that is gone from the list is still named, and its tables are nowhere else.
    assert_eq!(of_b[&CaptureId::new("gone")], ids(&[8]));
    assert_eq!(*target(&sweep), BTreeMap::from([(a(), Ok(ids(&[2, 4]))), (b(), Ok(vec![]))]));
    assert_eq!((cluster.asked(TABLES_OF_A), cluster.asked(TABLES_OF_B)), (1, 1), "one question for both");
    assert_eq!(cluster.asked("GET /api/v1/processors"), 0);
    assert_eq!(group.processors.as_ref().unwrap_err().kind, FailureKind::NotAsked);
    for fake in &cluster.fakes {
        assert!(fake.hosts().iter().all(|host| *host == fake.address.to_string()), "{:?}", fake.hosts());
    }
}

#[tokio::test]
async fn the_tables_of_a_target_are_asked_for_without_the_placement_too_and_nothing_if_neither_is_wanted() {
    let cluster = Cluster::new().await;
    let sweep = cluster.sweep(false, None).await;
    assert!(sweep.groups[0].placement.is_empty() && sweep.groups[0].target.is_none());
    assert_eq!(cluster.asked(TABLES_OF_A), 0);
    let sweep = cluster.sweep(false, Some("cap-0")).await;
    assert_eq!(*target(&sweep), BTreeMap::from([(a(), Ok(ids(&[6]))), (b(), Ok(vec![]))]));
}

#[tokio::test]
async fn a_changefeed_whose_tables_cannot_be_read_is_unknown_and_the_others_are_read() {
    let cluster = Cluster::new().await;
    cluster.all_fail(TABLES_OF_A, NO_MAINTAINER);
    let sweep = cluster.sweep(true, Some("cap-2")).await;
    let group = &sweep.groups[0];
    assert_eq!(group.placement[&a()].as_ref().unwrap_err().kind, FailureKind::NoMaintainer);
    assert!(group.placement[&b()].is_ok());
    assert_eq!(target(&sweep)[&a()].as_ref().unwrap_err().kind, FailureKind::NoMaintainer);
    assert_eq!(target(&sweep)[&b()], Ok(vec![]));
    assert_eq!(cluster.asked(TABLES_OF_A), 3, "each has another address to look the maintainer up at");

    cluster.all_say(TABLES_OF_A, r#"{"total":0,"items":[]}"#);
    let sweep = cluster.sweep(true, Some("cap-2")).await;
    assert_eq!(target(&sweep)[&a()].as_ref().unwrap_err().kind, FailureKind::NotInitialized);
}

#[tokio::test]
async fn a_node_that_does_not_reach_itself_at_its_address_is_passed_over() {
    let cluster = Cluster::new().await;
    let order = cluster.clients(&[0, 1, 2]).endpoints().cdc.clone();
    let first = cluster.fakes.iter().position(|fake| fake.address == order[0]).unwrap();
    cluster.routes[first].set(TABLES_OF_A, json(500, NO_MAINTAINER));
    let sweep = cluster.sweep(true, Some("cap-1")).await;
    assert_eq!(target(&sweep)[&a()], Ok(ids(&[2, 4])));
}

#[tokio::test]
async fn a_changefeed_at_rest_has_no_maintainer_to_ask_and_carries_nothing() {
    let cluster = Cluster::new().await;
    for state in ["stopped", "failed", "finished", "removed"] {
        cluster.feeds(state, "normal");
        cluster.all_fail(TABLES_OF_A, NO_MAINTAINER);
        let sweep = cluster.sweep(true, Some("cap-1")).await;
        assert_eq!(sweep.groups[0].placement.keys().collect::<Vec<_>>(), [&b()], "{state}");
        assert_eq!(target(&sweep)[&a()], Ok(vec![]), "{state}");
        assert_eq!(cluster.asked(TABLES_OF_A), 0, "{state}");
    }
    // A word that nobody knows, and none at all, may run.
    for state in ["", "pending", "resuming"] {
        cluster.feeds(state, "normal");
        let sweep = cluster.sweep(true, Some("cap-1")).await;
        assert_eq!(target(&sweep)[&a()].as_ref().unwrap_err().kind, FailureKind::NoMaintainer, "{state}");
    }
}

#[tokio::test]
async fn a_node_that_waits_beside_classic_captures_does_not_make_the_cluster_new() {
    let cluster = Cluster::new().await;
    cluster.is(0, Architecture::Classic, 0);
    cluster.is(1, Architecture::Classic, 0);
    cluster.lists(&[0, 1]);
    cluster.feeds("normal", "stopped");
    let detail = r#"{"state":"normal","checkpoint_ts":9,"task_status":[{"capture_id":"cap-0","table_ids":[2]},
        {"capture_id":"cap-1","table_ids":[3]}]}"#;
    // The waiting node answers by itself, and wrongly.
    for (n, detail) in [(0, detail), (1, detail), (2, r#"{"state":"normal","checkpoint_ts":9,"task_status":[]}"#)] {
        cluster.routes[n].ok("GET /api/v2/changefeeds/a?namespace=default", detail);
    }
    let sweep = cluster.sweep(true, None).await;
    let group = &sweep.groups[0];
    assert_eq!(group.architecture, Some(Architecture::Classic));
    assert_eq!(**group.placement.at(&CaptureId::new("cap-1"), &a()).unwrap(), ids(&[3]));
    assert_eq!(group.processors, Ok(Processors::default()));
    assert_eq!(cluster.asked(TABLES_OF_A), 0);
    let asked = cluster.fakes[2].requests();
    assert!(!asked.iter().any(|line| line.contains("processors") || line.contains("/a?")), "{asked:?}");

    let document = StatusDocument::new(&sweep, None, None, Still.now());
    let waiting = document.unknown.iter().find(|unknown| unknown.what == "membership").unwrap();
    assert_eq!(waiting.address.as_ref(), Some(&cluster.fakes[2].address));
    assert_eq!(waiting.why, "in no list: a node of the new architecture waits until every classic capture is gone");
    assert_eq!(document.unknown.len(), 1, "{:?}", document.unknown);
}

#[tokio::test]
async fn two_architectures_in_one_list_and_a_list_of_which_nobody_answers_are_unknown() {
    let cluster = Cluster::new().await;
    cluster.is(1, Architecture::Classic, 0);
    let sweep = cluster.sweep(true, Some("cap-1")).await;
    let group = &sweep.groups[0];
    assert_eq!((group.architecture, &group.target), (None, &None));
    let kinds: Vec<_> = group.placement.values().map(|placement| placement.as_ref().unwrap_err().kind).collect();
    assert_eq!(kinds, [FailureKind::NotAsked; 2]);

    // The contradiction is seen even if the one who makes it was found in the list only.
    let ask = SweepAsk { target: None, placement: true };
    assert_eq!(cluster.clients(&[0]).sweep_cdc(&ask, &Still).await.groups[0].architecture, None);

    // Only one that waits answers, and it is in no list.
    cluster.lists(&[0, 1]);
    for n in [0, 1] {
        cluster.routes[n].set("GET /api/v1/status", json(500, ""));
    }
    let sweep = cluster.sweep(true, Some("cap-1")).await;
    let group = &sweep.groups[0];
    assert_eq!((group.architecture, &group.target), (None, &None));
    assert!(group.placement.values().all(Result::is_err) && !group.placement.is_empty());
    let document = StatusDocument::new(&sweep, None, None, Still.now());
    assert!(document.unknown.iter().any(|unknown| unknown.what == "architecture of TiCDC cluster default"));
}

#[tokio::test]
async fn while_the_lease_of_a_dead_coordinator_runs_everything_is_unknown_and_nothing_empty() {
    let cluster = Cluster::new().await;
    let broken = |call: &str| {
        format!(
            r#"{{"error_msg":"Get \"http://127.0.0.1:1/{call}\": dial tcp 127.0.0.1:1: connect: connection refused","error_code":""}}"#
        )
    };
    for call in ["captures", "health", "changefeeds?state=all"] {
        cluster.all_fail(&format!("GET /api/v1/{call}"), &broken(&format!("api/v1/{call}")));
    }
    cluster.all_fail(TABLES_OF_A, NO_MAINTAINER);
    let sweep = cluster.sweep(true, Some("cap-1")).await;
    let group = &sweep.groups[0];
    assert_eq!(group.captures.as_ref().unwrap_err().kind, FailureKind::NoOwner);
    assert_eq!((group.architecture, &group.target, group.placement.len()), (None, &None, 0));
    assert!(group.health.is_err() && group.changefeeds.is_err() && group.processors.is_err());
    assert_eq!(sweep.nodes.iter().filter(|node| node.status.is_ok()).count(), 3);
}

#[tokio::test]
async fn a_target_that_is_not_in_the_list_is_not_empty_but_unknown() {
    let cluster = Cluster::new().await;
    assert_eq!(cluster.sweep(true, Some("gone")).await.groups[0].target, None);
}
