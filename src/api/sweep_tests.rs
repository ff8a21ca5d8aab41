use super::super::clients::Endpoints;
use super::super::fake::{Fake, Routes, Still, json, nowhere, reply};
use super::super::http::Options;
use super::super::status::StatusDocument;
use super::*;

/// A classic cluster of two captures whose answers can be changed one by one.
struct Cluster {
    routes: [Routes; 2],
    fakes: [Fake; 2],
}

const IDS: [&str; 2] = ["cap-0", "cap-1"];

impl Cluster {
    async fn new() -> Self {
        let ((r0, f0), (r1, f1)) = (Routes::serve().await, Routes::serve().await);
        let cluster = Self { routes: [r0, r1], fakes: [f0, f1] };
        for (n, id) in IDS.iter().enumerate() {
            cluster.status(n, id, "default");
        }
        let entry = |n: usize| {
            let address = &cluster.fakes[n].address;
            format!(r#"{{"id":"{}","is_owner":{},"address":"{address}","cluster_id":"default"}}"#, IDS[n], n == 0)
        };
        cluster.owner_says("GET /api/v1/captures", &format!("[{},{}]", entry(1), entry(0)));
        cluster.owner_says("GET /api/v1/health", "");
        cluster.owner_says("GET /api/v1/changefeeds?state=all", &changefeeds(&[("a", "normal")]));
        cluster.owner_says("GET /api/v1/processors", &processors(&["a"]));
        cluster.owner_says("POST /api/v2/tso", r#"{"timestamp":1796072632050,"logic_time":1}"#);
        cluster.owner_says(
            "GET /api/v2/changefeeds/a?namespace=default",
            r#"{"state":"normal","checkpoint_ts":9,"task_status":[{"capture_id":"cap-0","table_ids":[2,1]},
                {"capture_id":"cap-1"}]}"#,
        );
        cluster
    }

    fn status(&self, n: usize, id: &str, cluster: &str) {
        let root = format!(r#"{{"version":"v8.5.3","git_hash":"g","id":"{id}","pid":1,"is_owner":{}"#, n == 0);
        self.routes[n]
            .ok("GET /api/v1/status", format!(r#"{root},"cluster_id":"{cluster}","liveness":0}}"#))
            .ok("GET /status", format!("{root}}}"))
            .ok("GET /config", "{}");
    }

    /// What any node answers, since it forwards the question.
    fn owner_says(&self, line: &str, body: &str) {
        for routes in &self.routes {
            routes.ok(line, body);
        }
    }

    fn clients(&self) -> Clients {
        let cdc = self.fakes.iter().map(|fake| fake.address.clone()).collect();
        Clients::new(Endpoints { cdc, ..Endpoints::default() }, &Options::default()).unwrap()
    }

    async fn sweep(&self, target: Option<&str>) -> CdcSweep {
        let ask = SweepAsk { target: target.map(CaptureId::new), placement: true };
        self.clients().sweep_cdc(&ask, &Still).await
    }
}

fn changefeeds(rows: &[(&str, &str)]) -> String {
    let row = |(id, state): &(&str, &str)| {
        format!(r#"{{"namespace":"default","id":"{id}","state":"{state}","checkpoint_tso":470829664056115205}}"#)
    };
    format!("[{}]", rows.iter().map(row).collect::<Vec<_>>().join(","))
}

fn processors(ids: &[&str]) -> String {
    let row = |id: &str, capture: &str| {
        format!(r#"{{"namespace":"default","changefeed_id":"{id}","capture_id":"{capture}"}}"#)
    };
    let rows: Vec<_> = ids.iter().flat_map(|id| IDS.map(|capture| row(id, capture))).collect();
    format!("[{}]", rows.join(","))
}

fn cf(name: &str) -> ChangefeedId {
    ChangefeedId::new("default", name)
}

const ABNORMAL: &str = r#"{"error_msg":"[CDC:ErrAPIInvalidParam]abnormal","error_code":"CDC:ErrAPIInvalidParam"}"#;

#[tokio::test]
async fn a_healthy_cluster_is_read_whole_and_in_order() {
    let cluster = Cluster::new().await;
    let tables = [("cap-0", "[2,1]"), ("cap-1", "[]")];
    for (capture, ids) in tables {
        let line = format!("GET /api/v2/processors/a/{capture}?namespace=default");
        cluster.owner_says(&line, &format!(r#"{{"table_ids":{ids}}}"#));
    }
    let sweep = cluster.sweep(Some("cap-1")).await;
    assert!(sweep.nodes.is_sorted_by_key(|node| node.address.clone()) && sweep.nodes.iter().all(|n| n.status.is_ok()));
    let [group] = &sweep.groups[..] else { panic!("{sweep:?}") };
    assert_eq!(group.owner().unwrap().id.as_str(), "cap-0");
    assert_eq!(group.health, Ok(()));
    assert_eq!(group.processors.as_ref().unwrap()[&cf("a")].len(), 2);
    assert!(group.placement[&cf("a")].is_ok());
    assert_eq!(**group.placement.at(&CaptureId::new("cap-0"), &cf("a")).unwrap(), [TableId(1), TableId(2)]);
    let target = group.target.as_ref().unwrap();
    assert_eq!(target.by_changefeed[&cf("a")], Ok(vec![]));
    assert!(group.cluster_time.is_ok());
}

#[tokio::test]
async fn a_changefeed_in_warning_is_asked_for_one_capture_at_a_time() {
    let cluster = Cluster::new().await;
    cluster.owner_says("GET /api/v1/changefeeds?state=all", &changefeeds(&[("a", "warning")]));
    cluster.owner_says("GET /api/v2/processors/a/cap-0?namespace=default", r#"{"table_ids":[5]}"#);
    cluster.owner_says("GET /api/v2/processors/a/cap-1?namespace=default", r#"{"table_ids":[6,7]}"#);
    let sweep = cluster.sweep(None).await;
    let placement = &sweep.groups[0].placement;
    assert!(placement[&cf("a")].is_ok());
    assert_eq!(IDS.map(|id| placement.at(&CaptureId::new(id), &cf("a")).unwrap().len()), [1, 2]);
    cluster.routes[0].set("GET /api/v2/processors/a/cap-1?namespace=default", json(400, ABNORMAL));
    cluster.routes[1].set("GET /api/v2/processors/a/cap-1?namespace=default", json(400, ABNORMAL));
    let sweep = cluster.sweep(None).await;
    assert!(sweep.groups[0].placement[&cf("a")].is_err(), "half a placement is none");
}

#[tokio::test]
async fn a_changefeed_at_rest_is_empty_only_with_the_processors_as_witness() {
    let cluster = Cluster::new().await;
    cluster.owner_says("GET /api/v1/changefeeds?state=all", &changefeeds(&[("a", "stopped")]));
    for routes in &cluster.routes {
        routes.set("GET /api/v2/processors/a/cap-1?namespace=default", json(400, ABNORMAL));
    }
    let target = |sweep: &CdcSweep| sweep.groups[0].target.as_ref().unwrap().by_changefeed[&cf("a")].clone();

    let contradicted = cluster.sweep(Some("cap-1")).await;
    assert_eq!(target(&contradicted).unwrap_err().kind, FailureKind::BadRequest);
    assert!(contradicted.groups[0].placement[&cf("a")].is_err());

    cluster.owner_says("GET /api/v1/processors", "[]");
    let witnessed = cluster.sweep(Some("cap-1")).await;
    assert_eq!(target(&witnessed), Ok(vec![]));
    assert!(witnessed.groups[0].placement.is_empty());

    for routes in &cluster.routes {
        routes.set("GET /api/v1/processors", json(500, ""));
    }
    let unwitnessed = cluster.sweep(Some("cap-1")).await;
    assert_eq!(target(&unwitnessed).unwrap_err().kind, FailureKind::BadRequest);
}

#[tokio::test]
async fn a_changefeed_that_only_one_list_has_is_unknown() {
    let cluster = Cluster::new().await;
    cluster.owner_says("GET /api/v1/processors", &processors(&["a", "b"]));
    let sweep = cluster.sweep(None).await;
    assert!(sweep.groups[0].placement[&cf("b")].is_err());
}

#[tokio::test]
async fn normal_without_placed_tables_is_unknown_and_not_empty() {
    let cluster = Cluster::new().await;
    for body in [r#"{"state":"normal"}"#, r#"{"state":"normal","task_status":[]}"#] {
        cluster.owner_says("GET /api/v2/changefeeds/a?namespace=default", body);
        let sweep = cluster.sweep(None).await;
        let failure = sweep.groups[0].placement[&cf("a")].as_ref().unwrap_err().clone();
        assert_eq!(failure.kind, FailureKind::NotInitialized, "{body}");
    }
}

#[tokio::test]
async fn a_failed_list_of_changefeeds_leaves_no_empty_target() {
    let cluster = Cluster::new().await;
    for routes in &cluster.routes {
        routes.set("GET /api/v1/changefeeds?state=all", json(500, ""));
    }
    let group = &cluster.sweep(Some("cap-1")).await.groups[0];
    assert_eq!(group.changefeeds.as_ref().unwrap_err().kind, FailureKind::Empty500);
    assert_eq!(group.target, None);
}

#[tokio::test]
async fn what_one_node_cannot_answer_is_asked_of_the_next() {
    let cluster = Cluster::new().await;
    let order = cluster.clients().endpoints().cdc.clone();
    let first = usize::from(cluster.fakes[0].address != order[0]);
    let starting = r#"{"error_msg":"cdc server is not ready","error_code":"CDC:ErrServerIsNotReady"}"#;
    cluster.routes[first].set("GET /api/v1/captures", json(503, starting));
    let sweep = cluster.sweep(None).await;
    assert_eq!(sweep.groups[0].captures.as_ref().unwrap().len(), 2);

    let no_owner = r#"{"error_msg":"[CDC:ErrOwnerNotFound]owner not found","error_code":"CDC:ErrOwnerNotFound"}"#;
    cluster.routes[first].set("GET /api/v1/captures", json(500, no_owner));
    let before = cluster.fakes[1 - first].requests().len();
    let sweep = cluster.sweep(None).await;
    assert_eq!(sweep.groups[0].captures.as_ref().unwrap_err().kind, FailureKind::NoOwner);
    let asked = cluster.fakes[1 - first].requests().split_off(before);
    assert!(!asked.iter().any(|line| line == "GET /api/v1/captures"), "no owner is the same everywhere");
}

#[tokio::test]
async fn two_clusters_on_one_pd_are_two_groups() {
    let cluster = Cluster::new().await;
    cluster.status(1, IDS[1], "dr");
    let sweep = cluster.sweep(None).await;
    let ids: Vec<_> = sweep.groups.iter().map(|group| group.cluster_id.as_str()).collect();
    assert_eq!(ids, ["default", "dr"]);
}

#[tokio::test]
async fn a_cluster_whose_nodes_fall_silent_does_not_vanish() {
    let cluster = Cluster::new().await;
    cluster.status(0, IDS[0], "dr");
    cluster.status(1, IDS[1], "dr");
    let clients = cluster.clients();
    clients.sweep_cdc(&SweepAsk::default(), &Still).await;
    for routes in &cluster.routes {
        routes.set("GET /api/v1/status", json(500, ""));
    }
    let sweep = clients.sweep_cdc(&SweepAsk::default(), &Still).await;
    let [group] = &sweep.groups[..] else { panic!("{sweep:?}") };
    assert_eq!(group.cluster_id.as_str(), "dr");
    assert_eq!(group.captures.as_ref().unwrap_err().kind, FailureKind::Empty500);
}

#[tokio::test]
async fn with_nobody_there_one_group_carries_the_reason() {
    let cdc = vec![nowhere().await];
    let clients = Clients::new(Endpoints { cdc, ..Endpoints::default() }, &Options::default()).unwrap();
    let sweep = clients.sweep_cdc(&SweepAsk::default(), &Still).await;
    assert_eq!(sweep.groups[0].cluster_id, ClusterId::default());
    assert_eq!(sweep.groups[0].captures.as_ref().unwrap_err().kind, FailureKind::Refused);
}

#[tokio::test]
async fn a_listed_capture_that_nobody_configured_is_asked_where_it_listens() {
    let cluster = Cluster::new().await;
    let cdc = vec![cluster.fakes[0].address.clone()];
    let clients = Clients::new(Endpoints { cdc, ..Endpoints::default() }, &Options::default()).unwrap();
    let sweep = clients.sweep_cdc(&SweepAsk::default(), &Still).await;
    let (node, status) = sweep.node_of(&CaptureId::new("cap-1")).unwrap();
    assert!(!node.is_configured && node.address == cluster.fakes[1].address);
    assert_eq!(status.version_text.as_ref(), "v8.5.3");
}

#[tokio::test]
async fn one_process_under_two_addresses_is_asked_once() {
    let cluster = Cluster::new().await;
    let entry = r#"[{"id":"cap-0","is_owner":true,"address":"127.0.0.1:1","cluster_id":"default"}]"#;
    cluster.owner_says("GET /api/v1/captures", entry);
    let sweep = cluster.sweep(None).await;
    assert_eq!(sweep.nodes.len(), 2, "the id in its own status says who it is");
}

#[tokio::test]
async fn a_node_that_refuses_or_is_starting_leaves_the_rest_readable() {
    let cluster = Cluster::new().await;
    let gone = nowhere().await;
    let cdc = vec![gone.clone(), cluster.fakes[0].address.clone(), cluster.fakes[1].address.clone()];
    let clients = Clients::new(Endpoints { cdc, ..Endpoints::default() }, &Options::default()).unwrap();
    let starting =
        r#"{"error_msg":"[CDC:ErrServerIsNotReady]cdc server is not ready","error_code":"CDC:ErrServerIsNotReady"}"#;
    cluster.routes[1].set("GET /api/v1/status", json(503, starting));
    let sweep = clients.sweep_cdc(&SweepAsk { placement: true, target: None }, &Still).await;
    let kind = |address: &Address| sweep.node_at(address).unwrap().status.as_ref().unwrap_err().kind;
    assert_eq!(kind(&gone), FailureKind::Refused);
    assert_eq!(kind(&cluster.fakes[1].address), FailureKind::NotReady);
    let [group] = &sweep.groups[..] else { panic!("{sweep:?}") };
    assert_eq!(group.captures.as_ref().unwrap().len(), 2);
    assert!(group.placement[&cf("a")].is_ok() && group.health.is_ok() && group.changefeeds.is_ok());
    assert!(!cluster.fakes[1].requests().iter().any(|line| line.contains("captures")), "it is starting: not asked");

    let document = StatusDocument::new(&sweep, None, None, Still.now());
    assert!(!document.is_complete());
    let starting = document.unknown.iter().find(|unknown| unknown.what == "status of capture cap-1").unwrap();
    assert!(starting.why.contains("starting"), "{}", starting.why);
}

#[tokio::test]
async fn two_captures_at_one_address_are_two_and_the_old_one_is_a_ghost() {
    let cluster = Cluster::new().await;
    let at = [0, 1].map(|n| cluster.fakes[n].address.clone());
    let entry = |id: &str, n: usize| {
        format!(r#"{{"id":"{id}","is_owner":{},"address":"{}","cluster_id":"default"}}"#, id == "cap-0", at[n])
    };
    cluster.owner_says(
        "GET /api/v1/captures",
        &format!("[{},{},{}]", entry("cap-1", 1), entry("cap-0", 0), entry("old", 1)),
    );
    cluster.owner_says(
        "GET /api/v2/changefeeds/a?namespace=default",
        r#"{"state":"normal","checkpoint_ts":9,"task_status":[{"capture_id":"cap-0","table_ids":[2,1]},
            {"capture_id":"cap-1"},{"capture_id":"old","table_ids":[3]}]}"#,
    );
    let sweep = cluster.sweep(None).await;
    assert_eq!(sweep.groups[0].captures.as_ref().unwrap().len(), 3);
    assert_eq!(sweep.nodes.len(), 2, "the ghost's address is asked once");
    assert!(sweep.node_of(&CaptureId::new("old")).is_none());
    let document = StatusDocument::new(&sweep, None, None, Still.now());
    let rows = document.captures.as_ref().unwrap();
    let ghost = rows.iter().find(|row| row.id == Some(CaptureId::new("old"))).unwrap();
    assert_eq!((&ghost.version, ghost.liveness, ghost.liveness_raw, ghost.tables), (&None, None, None, Some(1)));
    let named = document.unknown.iter().find(|unknown| unknown.what == "status of capture old").unwrap();
    assert_eq!((named.address.as_ref(), named.why.as_str()), (Some(&at[1]), "its address answers as capture cap-1"));
}

/// Captures in containers advertise names that nothing outside resolves: who is who is told by id.
#[tokio::test]
async fn advertised_host_names_are_not_asked_where_the_configured_address_answers() {
    let cluster = Cluster::new().await;
    let entry = |n: usize| {
        let id = IDS[n];
        format!(
            r#"{{"id":"{id}","is_owner":{},"address":"cdc-{n}.cdc-peer.invalid:8301","cluster_id":"default"}}"#,
            n == 0
        )
    };
    cluster.owner_says("GET /api/v1/captures", &format!("[{},{}]", entry(0), entry(1)));
    let sweep = cluster.sweep(None).await;
    assert_eq!(sweep.nodes.len(), 2, "{:?}", sweep.nodes);
    let document = StatusDocument::new(&sweep, None, None, Still.now());
    assert!(document.is_complete(), "{:?}", document.unknown);
    let shown: Vec<_> = document.captures.unwrap().into_iter().map(|row| (row.id.unwrap(), row.address)).collect();
    for (n, id) in IDS.iter().enumerate() {
        assert!(shown.contains(&(CaptureId::new(id), cluster.fakes[n].address.clone())), "{shown:?}");
    }

    // One that nobody configured is asked by the name it gives, and the reason it cannot be reached is kept.
    let cdc = vec![cluster.fakes[0].address.clone()];
    let clients = Clients::new(Endpoints { cdc, ..Endpoints::default() }, &Options::default()).unwrap();
    let sweep = clients.sweep_cdc(&SweepAsk::default(), &Still).await;
    let named = sweep.node_at(&Address::new("cdc-1.cdc-peer.invalid", 8301)).unwrap();
    assert_eq!(named.status.as_ref().unwrap_err().kind, FailureKind::Network);
}

#[tokio::test]
async fn a_page_in_front_of_a_cluster_is_not_its_health() {
    let cluster = Cluster::new().await;
    for routes in &cluster.routes {
        routes.set("GET /api/v1/health", reply(200, "text/html", "<html>login</html>"));
    }
    let sweep = cluster.sweep(None).await;
    assert_eq!(sweep.groups[0].health.as_ref().unwrap_err().kind, FailureKind::Malformed);
}
