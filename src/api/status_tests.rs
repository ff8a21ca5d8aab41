use serde_json::{Value, json};

use super::*;
use crate::cluster::tidb::TidbAll;
use crate::cluster::{
    CaptureEntry, ChangefeedId, ChangefeedRow, ChangefeedState, Failure, FailureKind, GroupSweep, LivenessReading,
    NodeReading, NodeStatus, PdReading, Placement, Placements, Processors, Reading, TableId, TidbInfo, TidbReading,
    TidbStatus, UpgradeState,
};

fn at(mono_ms: u64) -> Timestamp {
    Timestamp::new(0, mono_ms)
}

fn address(n: u16) -> Address {
    Address::new("127.0.0.1", n)
}

fn refused() -> Failure {
    Failure::local(FailureKind::Refused, "connection refused")
}

fn node(port: u16, id: &str, liveness: Option<i64>) -> NodeReading {
    let status = NodeStatus {
        id: Some(CaptureId::new(id)),
        version: Version::parse("v8.5.3").ok(),
        version_text: "v8.5.3".into(),
        git_hash: "g".into(),
        cluster_id: Some(ClusterId::default()),
        pid: Some(1),
        is_owner: false,
        liveness: LivenessReading::new(liveness, Architecture::Classic),
        architecture: Architecture::Classic,
    };
    NodeReading { address: address(port), is_configured: true, status: Ok(status), at: at(1_000) }
}

fn entry(port: u16, id: &str, is_owner: bool) -> CaptureEntry {
    CaptureEntry { id: CaptureId::new(id), address: address(port), cluster_id: Some(ClusterId::default()), is_owner }
}

fn feed(name: &str, state: ChangefeedState) -> ChangefeedRow {
    let checkpoint = Tso::new(470_829_664_056_115_205);
    ChangefeedRow { id: ChangefeedId::new("default", name), state, checkpoint, error: None }
}

fn placed(captures: &[(&str, usize)]) -> Placement {
    captures.iter().map(|(id, n)| (CaptureId::new(id), vec![TableId(1); *n])).collect()
}

fn of_feeds<const N: usize>(readings: [(&str, Reading<Placement>); N]) -> Placements {
    readings.into_iter().map(|(feed, reading)| (ChangefeedId::new("default", feed), reading)).collect()
}

/// Two captures, one changefeed that runs and one that is stopped: everything read.
fn healthy() -> CdcSweep {
    let placement = of_feeds([("a", Ok(placed(&[("x", 3), ("y", 4)])))]);
    let group = GroupSweep {
        cluster_id: ClusterId::default(),
        architecture: Some(Architecture::Classic),
        captures: Ok(vec![entry(8300, "x", true), entry(8301, "y", false)]),
        health: Ok(()),
        changefeeds: Ok(vec![feed("a", ChangefeedState::Normal), feed("b", ChangefeedState::Stopped)]),
        processors: Ok(Processors::default()),
        placement,
        target: None,
        cluster_time: Ok(Tso::new(470_829_664_056_115_205 + (2_300 << 18)).unwrap()),
    };
    CdcSweep {
        begun: at(900),
        ended: at(1_200),
        nodes: vec![node(8300, "x", Some(0)), node(8301, "y", Some(1))].into(),
        groups: vec![group],
    }
}

fn document(sweep: &CdcSweep) -> StatusDocument {
    StatusDocument::new(sweep, None, None, at(1_250))
}

fn whats(document: &StatusDocument) -> Vec<&str> {
    document.unknown.iter().map(|unknown| unknown.what.as_str()).collect()
}

#[test]
fn the_keys_are_these_and_no_others() {
    let document = document(&healthy());
    assert!(document.is_complete(), "{:?}", document.unknown);
    let expected = json!({
        "captures": [
            {"id": "x", "address": "127.0.0.1:8300", "cluster_id": "default", "is_owner": true, "version": "v8.5.3",
             "liveness": "alive", "liveness_raw": 0, "architecture": "classic", "tables": 3,
             "tables_by_changefeed": {"default/a": 3}, "age_ms": 250},
            {"id": "y", "address": "127.0.0.1:8301", "cluster_id": "default", "is_owner": false, "version": "v8.5.3",
             "liveness": "stopping", "liveness_raw": 1, "architecture": "classic", "tables": 4,
             "tables_by_changefeed": {"default/a": 4}, "age_ms": 250},
        ],
        "changefeeds": [
            {"id": "a", "namespace": "default", "cluster_id": "default", "state": "normal",
             "checkpoint_ts": 470_829_664_056_115_205_u64, "lag_ms": 2300, "error": null},
            {"id": "b", "namespace": "default", "cluster_id": "default", "state": "stopped",
             "checkpoint_ts": 470_829_664_056_115_205_u64, "lag_ms": 2300, "error": null},
        ],
        "tidb": null, "pd": null, "unknown": [],
    });
    assert_eq!(serde_json::to_value(&document).unwrap(), expected);
}

#[test]
fn a_ghost_is_listed_without_version_and_liveness_and_is_named() {
    let mut sweep = healthy();
    let list = sweep.groups[0].captures.as_mut().unwrap();
    list.push(entry(8301, "old", false));
    list.push(entry(8302, "dead", false));
    let silent = NodeReading { address: address(8302), is_configured: true, status: Err(refused()), at: at(1_000) };
    sweep.nodes = [&*sweep.nodes, &[silent]].concat().into();
    let document = document(&sweep);
    let rows = document.captures.as_ref().unwrap();
    let seen: Vec<_> = rows.iter().map(|row| (row.id.as_ref().unwrap().as_str(), row.version.is_some())).collect();
    assert_eq!(seen, [("x", true), ("old", false), ("y", true), ("dead", false)]);
    assert!(rows.iter().filter(|row| row.version.is_none()).all(|row| row.liveness.is_none() && row.age_ms.is_none()));
    assert_eq!(rows[1].tables, None);
    assert!(!document.is_complete());
    let ghost = document.unknown.iter().find(|unknown| unknown.what == "status of capture old").unwrap();
    assert_eq!(ghost.why, "its address answers as capture y");
    assert!(whats(&document).contains(&"status of capture dead"));
}

#[test]
fn unread_lists_are_null_and_never_empty() {
    let mut sweep = healthy();
    sweep.groups = vec![GroupSweep::unread(ClusterId::default(), &refused())];
    let partly = document(&sweep);
    let rows = partly.captures.as_ref().unwrap();
    assert_eq!(rows.len(), 2, "the nodes themselves answered");
    assert!(rows.iter().all(|row| row.is_owner.is_none() && row.tables.is_none() && row.version.is_some()));
    assert_eq!(partly.changefeeds, None);

    let silent = sweep.nodes.iter().map(|node| NodeReading { status: Err(refused()), ..node.clone() });
    sweep.nodes = silent.collect::<Vec<_>>().into();
    let nothing = serde_json::to_value(document(&sweep)).unwrap();
    assert_eq!((&nothing["captures"], &nothing["changefeeds"]), (&Value::Null, &Value::Null));
    assert!(!nothing["unknown"].as_array().unwrap().is_empty());
}

#[test]
fn unread_tables_are_null_at_every_capture_that_may_have_some() {
    let mut sweep = healthy();
    sweep.groups[0].placement = of_feeds([("a", Ok(placed(&[("x", 3), ("y", 4)]))), ("w", Err(refused()))]);
    let document = document(&sweep);
    let row = &document.captures.as_ref().unwrap()[0];
    assert_eq!(row.tables, None);
    let by_feed = row.tables_by_changefeed.as_ref().unwrap();
    assert_eq!((by_feed["default/a"], by_feed["default/w"]), (Some(3), None));
    assert_eq!(whats(&document), ["tables of changefeed default/w in TiCDC cluster default"]);
}

#[test]
fn a_capture_that_a_placement_does_not_name_has_unknown_tables() {
    let mut sweep = healthy();
    sweep.groups[0].placement = of_feeds([("a", Ok(placed(&[("x", 3)])))]);
    let document = document(&sweep);
    assert_eq!(document.captures.as_ref().unwrap()[1].tables, None);
    assert!(!document.is_complete());
}

#[test]
fn a_moving_table_counts_at_both_captures() {
    let mut sweep = healthy();
    sweep.groups[0].placement = of_feeds([("a", Ok(placed(&[("x", 4), ("y", 4)])))]);
    let tables: Vec<_> = document(&sweep).captures.unwrap().iter().map(|row| row.tables).collect();
    assert_eq!(tables, [Some(4), Some(4)]);
}

#[test]
fn with_every_changefeed_at_rest_there_are_no_tables() {
    let mut sweep = healthy();
    sweep.groups[0].changefeeds = Ok(vec![feed("b", ChangefeedState::Failed)]);
    sweep.groups[0].placement = of_feeds([]);
    assert_eq!(document(&sweep).captures.unwrap()[0].tables, Some(0));
}

/// Three of the new architecture: the coordinator, one that gives its tables away, and one that has given them.
fn of_the_new_architecture() -> CdcSweep {
    let mut sweep = healthy();
    let mut nodes = sweep.nodes.to_vec();
    nodes.push(node(8302, "z", Some(2)));
    for (node, liveness) in nodes.iter_mut().zip([0, 1, 2]) {
        let status = node.status.as_mut().unwrap();
        status.architecture = Architecture::New;
        status.liveness = LivenessReading::new(Some(liveness), Architecture::New);
    }
    sweep.nodes = nodes.into();
    let group = &mut sweep.groups[0];
    group.architecture = Some(Architecture::New);
    group.captures.as_mut().unwrap().push(entry(8302, "z", false));
    group.processors = Err(Failure::local(FailureKind::NotAsked, "none there"));
    sweep
}

#[test]
fn the_new_architecture_is_shown_with_its_own_words_and_is_complete() {
    let document = document(&of_the_new_architecture());
    assert!(document.is_complete(), "{:?}", document.unknown);
    let rows = document.captures.as_ref().unwrap();
    assert_eq!(rows.iter().map(|row| row.tables).collect::<Vec<_>>(), [Some(3), Some(4), Some(0)]);
    let feed = &document.changefeeds.as_ref().unwrap()[0];
    assert_eq!((feed.keyspace.as_deref(), feed.namespace.as_deref()), (Some("default"), None));
    let expected = "\
Captures
  ADDRESS         ID  OWNER  VERSION  LIVENESS  TABLES  AGE     ARCHITECTURE
  127.0.0.1:8300  x   yes    v8.5.3   alive     3       250 ms  new
  127.0.0.1:8301  y          v8.5.3   draining  4       250 ms  new
  127.0.0.1:8302  z          v8.5.3   stopping  0       250 ms  new
";
    assert!(document.render_text().starts_with(expected), "{}", document.render_text());
}

#[test]
fn a_maintainer_that_is_not_found_leaves_the_tables_unknown_and_is_explained() {
    let mut sweep = of_the_new_architecture();
    let missing = Failure::local(FailureKind::NoMaintainer, "Can't not find maintainer for changefeed: a");
    sweep.groups[0].placement = of_feeds([("a", Err(missing))]);
    let document = document(&sweep);
    assert!(document.captures.as_ref().unwrap().iter().all(|row| row.tables.is_none()));
    assert_eq!(whats(&document), ["tables of changefeed default/a in TiCDC cluster default"]);
    let text = document.render_text();
    assert!(text.contains("The maintainer moves") && text.contains("can reach itself"), "{text}");
}

#[test]
fn absent_liveness_and_an_unlisted_node_are_named() {
    let mut sweep = healthy();
    sweep.nodes = vec![node(8300, "x", None), node(8301, "y", Some(0)), node(8309, "joining", Some(0))].into();
    let document = document(&sweep);
    assert_eq!(document.captures.as_ref().unwrap()[0].liveness, None);
    assert!(whats(&document).contains(&"liveness") && whats(&document).contains(&"membership"));
    let joining = document.captures.unwrap().pop().unwrap();
    assert_eq!((joining.is_owner, joining.tables), (Some(false), None));
}

#[test]
fn lag_needs_the_clusters_clock_and_a_checkpoint() {
    let mut sweep = healthy();
    sweep.groups[0].cluster_time = Err(refused());
    let unclocked = document(&sweep);
    assert_eq!(unclocked.changefeeds.as_ref().unwrap()[0].lag_ms, None);
    assert_eq!(whats(&unclocked), ["clock of TiCDC cluster default"]);
    let mut sweep = healthy();
    sweep.groups[0].changefeeds.as_mut().unwrap()[0].checkpoint = None;
    let fresh = document(&sweep);
    assert_eq!((fresh.changefeeds.as_ref().unwrap()[0].checkpoint_ts, fresh.is_complete()), (None, true));
}

fn tidb() -> TidbSweep {
    let version = || Version::parse("8.0.11-TiDB-v8.5.3").unwrap();
    let info = TidbInfo {
        ddl_id: "d1".into(),
        version: version(),
        git_hash: "g".into(),
        sql_address: address(4000),
        status_address: address(10080),
        start_timestamp: 1,
        is_ddl_owner: Some(true),
    };
    let healthy = TidbReading {
        address: address(10080),
        status: Ok(TidbStatus { version: version(), connections: 0 }),
        info: Ok(info),
    };
    let down = TidbReading { address: address(10081), status: Err(refused()), info: Err(refused()) };
    TidbSweep {
        begun: at(0),
        ended: at(1),
        servers: vec![healthy, down],
        all: Ok(TidbAll { owner_id: "d1".into(), servers: vec![] }),
        state: Ok(UpgradeState::Upgrading { servers: 1, percent: 100, is_consistent: true }),
    }
}

#[test]
fn tidb_and_pd_are_there_only_when_asked_for() {
    let pd = PdSweep {
        begun: at(0),
        ended: at(1),
        servers: vec![PdReading { address: address(2379), version: Err(refused()) }],
    };
    let document = StatusDocument::new(&healthy(), Some(&tidb()), Some(&pd), at(1_250));
    let value = serde_json::to_value(&document).unwrap();
    assert_eq!(
        value["tidb"],
        json!({"state": "upgrading", "servers": [
            {"address": "127.0.0.1:10080", "version": "v8.5.3", "is_ddl_owner": true},
            {"address": "127.0.0.1:10081", "version": null, "is_ddl_owner": null},
        ]})
    );
    assert_eq!(value["pd"], json!({"servers": [{"address": "127.0.0.1:2379", "version": null}]}));
    assert_eq!(whats(&document), ["version", "info", "status"]);
}

#[test]
fn an_unread_upgrading_state_is_null() {
    let mut tidb = tidb();
    tidb.state = Err(refused());
    let document = StatusDocument::new(&healthy(), Some(&tidb), None, at(0));
    assert_eq!(document.tidb.as_ref().unwrap().state, None);
    assert!(whats(&document).contains(&"upgrading state of TiDB"));
}

#[test]
fn the_text_has_columns_and_says_what_is_unknown_and_what_to_do() {
    let text = StatusDocument::new(&healthy(), Some(&tidb()), None, at(1_250)).render_text();
    let expected = "\
Captures
  ADDRESS         ID  OWNER  VERSION  LIVENESS  TABLES  AGE
  127.0.0.1:8300  x   yes    v8.5.3   alive     3       250 ms
  127.0.0.1:8301  y          v8.5.3   stopping  4       250 ms

Changefeeds
  CHANGEFEED  STATE    CHECKPOINT          LAG    ERROR
  a           normal   470829664056115205  2.3 s
  b           stopped  470829664056115205  2.3 s

TiDB (upgrading)
  ADDRESS          VERSION  DDL OWNER
  127.0.0.1:10080  v8.5.3   yes
  127.0.0.1:10081  ?        ?

Unknown
  127.0.0.1:10081: info - refuses connections: connection refused
    Is the process running, and is this its address and port?
  127.0.0.1:10081: status - refuses connections: connection refused
    Is the process running, and is this its address and port?
";
    assert_eq!(text, expected);
}
