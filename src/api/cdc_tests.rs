use super::super::fake::{Fake, http, json as reply_json, nowhere, reply};
use super::ApiVersion::{V1, V2};
use super::*;
use crate::cluster::Liveness;

fn cdc() -> Cdc {
    Cdc::new(http())
}

fn cf(name: &str) -> ChangefeedId {
    ChangefeedId::new("default", name)
}

const STATUS: &str = r#"{"version":"v8.5.3","git_hash":"c7b2","id":"cap-1","cluster_id":"default","pid":7,
    "is_owner":true,"liveness":1}"#;
const ROOT: &str = r#"{"version":"v8.5.3","git_hash":"c7b2","id":"cap-1","pid":7,"is_owner":true}"#;

/// A node that answers its status, its root status and its configuration with these bodies.
async fn node(status: &'static str, root: &'static str, config: Option<&'static str>) -> Fake {
    Fake::new(move |line| {
        Some(match (line, config) {
            ("GET /api/v1/status", _) => reply_json(200, status),
            ("GET /status", _) => reply_json(200, root),
            ("GET /config", Some(config)) => reply_json(200, config),
            _ => reply(404, "text/plain", "404 page not found"),
        })
    })
    .await
}

#[tokio::test]
async fn liveness_is_read_by_the_architecture_which_two_signals_name() {
    let classic = node(STATUS, ROOT, Some(r#"{"addr":"x"}"#)).await;
    let status = cdc().status(&classic.address, V1).await.unwrap();
    assert_eq!(status.architecture, Architecture::Classic);
    assert_eq!(status.liveness.meaning, Some(Liveness::Stopping));

    let new = node(STATUS, STATUS, Some(r#"{"newarch":true}"#)).await;
    let status = cdc().status(&new.address, V1).await.unwrap();
    assert_eq!(status.architecture, Architecture::New);
    assert_eq!(status.liveness.meaning, Some(Liveness::Draining));

    let torn = node(STATUS, STATUS, Some(r#"{"newarch":false}"#)).await;
    assert_eq!(cdc().status(&torn.address, V1).await.unwrap_err().kind, FailureKind::Malformed);

    let odd = node(STATUS, ROOT, Some("[]")).await;
    assert_eq!(cdc().status(&odd.address, V1).await.unwrap_err().kind, FailureKind::Malformed);

    let old = node(STATUS, ROOT, None).await;
    assert_eq!(cdc().status(&old.address, V1).await.unwrap().architecture, Architecture::Classic);
}

#[tokio::test]
async fn the_architecture_is_asked_once_for_each_process() {
    let node = node(STATUS, ROOT, Some("{}")).await;
    let cdc = cdc();
    for _ in 0..3 {
        cdc.status(&node.address, V1).await.unwrap();
    }
    let asked = node.requests();
    assert_eq!(asked.iter().filter(|line| *line == "GET /config").count(), 1);
    assert_eq!(asked.iter().filter(|line| *line == "GET /api/v1/status").count(), 3);
}

#[tokio::test]
async fn absent_and_unreadable_liveness_is_unknown() {
    for liveness in ["", r#","liveness":"stopping""#, r#","liveness":7"#, r#","liveness":null"#] {
        let body: &'static str = Box::leak(
            format!(r#"{{"version":"v6.1.0","git_hash":"","id":"cap-1","pid":7,"is_owner":false{liveness}}}"#)
                .into_boxed_str(),
        );
        let old = node(body, ROOT, None).await;
        let status = cdc().status(&old.address, V1).await.unwrap();
        assert_eq!(status.liveness.meaning, None, "{liveness}");
        assert_eq!(status.cluster_id, None);
    }
}

#[tokio::test]
async fn an_unregistered_process_has_no_id() {
    let body =
        r#"{"version":"v8.5.3","git_hash":"","id":"","cluster_id":"default","pid":7,"is_owner":false,"liveness":0}"#;
    let root = r#"{"version":"v8.5.3","git_hash":"","id":"","pid":7,"is_owner":false}"#;
    let starting = node(body, root, Some("{}")).await;
    assert_eq!(cdc().status(&starting.address, V1).await.unwrap().id, None);
}

#[tokio::test]
async fn a_list_that_could_not_be_read_is_a_failure_and_never_empty() {
    let table = [
        (reply_json(500, r#"{"error_msg":"x","error_code":"CDC:ErrOwnerNotFound"}"#), FailureKind::NoOwner),
        (reply_json(200, r#"[{"id":"a","is_owner":true,"addr"#), FailureKind::Malformed),
        (reply(200, "text/html", "<html>login</html>"), FailureKind::Malformed),
        (reply_json(200, r#"{"id":"a","is_owner":true,"address":"h:1"}"#), FailureKind::Malformed),
        (reply_json(200, ""), FailureKind::Malformed),
        (reply_json(200, r#"[{"id":"a","address":"h:1"}]"#), FailureKind::Malformed),
        (reply_json(200, r#"[{"id":"a","is_owner":true,"address":"h"}]"#), FailureKind::Malformed),
        (reply_json(204, ""), FailureKind::Malformed),
        (reply(404, "text/plain", "404 page not found"), FailureKind::NoRoute),
        (reply_json(500, ""), FailureKind::Empty500),
        (
            b"HTTP/1.1 301 X\r\nLocation: /api/v1/captures/\r\nContent-Length: 0\r\n\r\n".to_vec(),
            FailureKind::Unexpected,
        ),
    ];
    for (bytes, kind) in table {
        let server = Fake::always(bytes.clone()).await;
        let failure = cdc().captures(&server.address, V1).await.unwrap_err();
        assert_eq!(failure.kind, kind, "{}", String::from_utf8_lossy(&bytes));
        assert_eq!(&*failure.request, format!("GET http://{}/api/v1/captures", server.address));
        assert_eq!(server.requests().len(), 1, "a redirect is not followed, and nothing is asked twice");
    }
    let failure = cdc().captures(&nowhere().await, V1).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Refused);
}

#[tokio::test]
async fn two_spellings_of_the_owner_are_read_and_the_order_is_ours() {
    let body = r#"{"total":3,"items":[{"id":"c","is_owner":false,"address":"127.0.0.1:8301","cluster_id":"dr"},
        {"id":"b","is-owner":true,"address":"127.0.0.1:8300"},{"id":"a","is_owner":false,"address":"127.0.0.1:8301"}]}"#;
    let server = Fake::always(reply_json(200, body)).await;
    let list = cdc().captures(&server.address, V2).await.unwrap();
    let seen: Vec<_> = list.iter().map(|entry| (entry.id.as_str(), entry.is_owner)).collect();
    assert_eq!(seen, [("b", true), ("a", false), ("c", false)]);
}

#[tokio::test]
async fn checkpoints_are_exact_under_both_names_and_absent_when_there_is_none() {
    let body = r#"[{"namespace":"default","id":"b","state":"normal","checkpoint_tso":470829664056115205,"error":null},
        {"keyspace":"ks","id":"c","state":"warning","checkpoint_ts":"470829664056115206",
         "error":{"time":"t","addr":"h","code":"CDC:ErrX","message":"m"}},
        {"id":"a","state":"resuming","checkpoint_tso":0},
        {"id":"d","state":"","checkpoint_tso":18446744073709551615}]"#;
    let server = Fake::always(reply_json(200, body)).await;
    let rows = cdc().changefeeds(&server.address, V1, "default").await.unwrap();
    let checkpoint = |n: usize| rows[n].checkpoint.map(Tso::get);
    assert_eq!(rows.iter().map(|row| &*row.id.name).collect::<Vec<_>>(), ["a", "b", "d", "c"]);
    assert_eq!(checkpoint(0), None);
    assert_eq!(checkpoint(1), Some(470_829_664_056_115_205));
    assert_eq!(checkpoint(2), None);
    assert_eq!(checkpoint(3), Some(470_829_664_056_115_206));
    assert_eq!(rows[3].id, ChangefeedId::new("ks", "c"));
    assert_eq!(rows[3].error.as_ref().unwrap().code.as_ref(), "CDC:ErrX");
    assert_eq!(rows[0].state.word(), "resuming");
    assert_eq!(server.requests(), ["GET /api/v1/changefeeds?state=all"]);
}

#[tokio::test]
async fn tables_left_out_of_a_task_status_are_none_and_a_missing_task_status_is_unknown() {
    let body = r#"{"id":"a","state":"normal","checkpoint_ts":5,"task_status":[
        {"capture_id":"x","table_ids":[12,7]},{"capture_id":"y"},{"capture_id":"z","table_ids":null}]}"#;
    let server = Fake::always(reply_json(200, body)).await;
    let detail = cdc().changefeed(&server.address, V2, &cf("a")).await.unwrap();
    let placement = detail.placement.unwrap();
    assert_eq!(placement[&CaptureId::new("x")], [TableId(7), TableId(12)]);
    assert!(placement[&CaptureId::new("y")].is_empty() && placement[&CaptureId::new("z")].is_empty());
    assert_eq!(server.requests(), ["GET /api/v2/changefeeds/a?namespace=default"]);

    let stopped = Fake::always(reply_json(200, r#"{"id":"a","state":"stopped","checkpoint_tso":5}"#)).await;
    let detail = cdc().changefeed(&stopped.address, V1, &cf("a")).await.unwrap();
    assert_eq!((detail.placement, detail.checkpoint.map(Tso::get)), (None, Some(5)));
}

#[tokio::test]
async fn null_tables_are_unknown_and_an_empty_list_is_empty() {
    let tables = async |body: &str| {
        let server = Fake::always(reply_json(200, body)).await;
        cdc().processor_tables(&server.address, V2, &cf("a"), &CaptureId::new("x")).await.map_err(|e| e.kind)
    };
    assert_eq!(tables(r#"{"table_ids":[]}"#).await, Ok(vec![]));
    assert_eq!(tables(r#"{"table_ids":[4611686018427387904]}"#).await, Ok(vec![TableId(1 << 62)]));
    assert_eq!(tables(r#"{"table_ids":null}"#).await, Err(FailureKind::Malformed));
    assert_eq!(tables("{}").await, Err(FailureKind::Malformed));
    let glued = r#"{"table_ids":null}{"error_msg":"[CDC:ErrAPIInvalidParam]x","error_code":"CDC:ErrAPIInvalidParam"}"#;
    assert_eq!(tables(glued).await, Err(FailureKind::BadRequest));
}

#[tokio::test]
async fn only_202_with_a_whole_number_answers_a_drain() {
    let drain = async |bytes: Vec<u8>| {
        let server = Fake::always(bytes).await;
        cdc().drain(&server.address, V1, &CaptureId::new("x")).await.map_err(|e| e.kind)
    };
    assert_eq!(drain(reply_json(202, r#"{"current_table_count":82}"#)).await, Ok(82));
    assert_eq!(drain(reply_json(202, r#"{"current_table_count":0}"#)).await, Ok(0));
    for (status, body) in [
        (200, r#"{"current_table_count":0}"#),
        (204, ""),
        (202, "{}"),
        (202, ""),
        (202, r#"{"current_table_count":null}"#),
        (202, r#"{"current_table_count":-1}"#),
        (202, r#"{"current_table_count":1.5}"#),
        (202, r#"{"current_table_count":0.0}"#),
        (202, r#"{"current_table_count":true}"#),
        (202, r#"{"current_table_count":""}"#),
        (202, r#"{"current_table_count":"none"}"#),
        (202, r#"{"current_table_count":[0]}"#),
        (202, r#"{"current_table_count":18446744073709551616}"#),
        (202, "[0]"),
        (202, "0"),
        (202, "<html>0</html>"),
        (202, r#"{"current_table_count":0}{"#),
        (202, "null"),
    ] {
        assert_eq!(drain(reply_json(status, body)).await, Err(FailureKind::Malformed), "{status} {body}");
    }
    let error = r#"{"error_msg":"[CDC:ErrVersionIncompatible]TiKV","error_code":"CDC:ErrVersionIncompatible"}"#;
    assert_eq!(drain(reply(503, "text/plain; charset=utf-8", error)).await, Err(FailureKind::IncompatibleTikv));
}

#[tokio::test]
async fn a_drain_says_whom_it_means() {
    let server = Fake::with_body(|line, body| {
        assert_eq!((line, body), ("PUT /api/v1/captures/drain", r#"{"capture_id":"x"}"#));
        Some(reply_json(202, r#"{"current_table_count":1}"#))
    })
    .await;
    assert_eq!(cdc().drain(&server.address, V1, &CaptureId::new("x")).await, Ok(1));
}

#[tokio::test]
async fn the_clusters_clock_is_milliseconds_and_a_counter() {
    let server = Fake::with_body(|line, body| {
        assert_eq!((line, body), ("POST /api/v2/tso", "{}"));
        Some(reply_json(200, r#"{"timestamp":1796072632050,"logic_time":5}"#))
    })
    .await;
    assert_eq!(cdc().tso(&server.address).await.unwrap().get(), (1_796_072_632_050 << 18) + 5);
}

#[tokio::test]
async fn healthy_and_resigning_are_said_by_the_server_and_not_by_a_page_in_front_of_it() {
    let asked = async |bytes: Vec<u8>| {
        let server = Fake::always(bytes).await;
        let health = cdc().health(&server.address, V1).await.map_err(|e| e.kind);
        let resign = cdc().resign(&server.address, V2).await.map_err(|e| e.kind);
        assert_eq!(server.requests(), ["GET /api/v1/health", "POST /api/v2/owner/resign"]);
        (health, resign)
    };
    for body in ["", "{}", "{}\n"] {
        assert_eq!(asked(reply_json(200, body)).await, (Ok(()), Ok(())), "{body}");
    }
    // v1 answers a resign so; a health call has only one success.
    assert_eq!(asked(reply_json(202, "")).await, (Err(FailureKind::Malformed), Ok(())));
    let malformed = (Err(FailureKind::Malformed), Err(FailureKind::Malformed));
    for body in ["<html>login</html>", "ok", "[]", "null", "{", "{}{}"] {
        assert_eq!(asked(reply(200, "text/html", body)).await, malformed, "{body}");
    }
    assert_eq!(asked(reply_json(204, "")).await, malformed);
    let error = r#"{"error_msg":"[CDC:ErrOwnerNotFound]owner not found","error_code":"CDC:ErrOwnerNotFound"}"#;
    for body in [error.to_owned(), format!("{{}}{error}")] {
        assert_eq!(
            asked(reply_json(200, &body)).await,
            (Err(FailureKind::NoOwner), Err(FailureKind::NoOwner)),
            "{body}"
        );
    }
}

const TABLES: &str = r#"{"total":3,"items":[{"node_id":"y","table_ids":[0,12,7]},
    {"node_id":"x","table_ids":[9,5,9,5]},{"node_id":"z","table_ids":[0]}]}"#;

#[tokio::test]
async fn tables_by_the_maintainer_are_ordered_each_once_and_without_the_ddl_dispatcher() {
    let server = Fake::always(reply_json(200, TABLES)).await;
    let placement = cdc().tables(&server.address, &cf("a")).await.unwrap();
    let expected = [("x", vec![5, 9]), ("y", vec![7, 12]), ("z", vec![])];
    let expected = expected.map(|(node, ids)| (CaptureId::new(node), ids.into_iter().map(TableId).collect()));
    assert_eq!(placement, Placement::from(expected));
    assert_eq!(server.requests(), ["GET /api/v2/changefeeds/a/tables"]);
    // The server looks the maintainer up with a call to the host that it is asked for.
    assert_eq!(server.hosts(), [server.address.to_string()]);
}

#[tokio::test]
async fn a_keyspace_is_named_unless_it_is_the_default_one() {
    let server = Fake::always(reply_json(200, TABLES)).await;
    cdc().tables(&server.address, &ChangefeedId::new("ks", "a")).await.unwrap();
    assert_eq!(server.requests(), ["GET /api/v2/changefeeds/a/tables?keyspace=ks"]);
}

#[tokio::test]
async fn tables_that_are_not_all_there_are_unknown() {
    for body in [
        r#"{"total":2,"items":[{"node_id":"x","table_ids":[0,5]}]}"#,
        r#"{"total":0,"items":[{"node_id":"x","table_ids":[0,5]}]}"#,
        r#"{"total":1,"items":[]}"#,
        r#"{"total":1,"items":null}"#,
        r#"{"total":0}"#,
        r#"{"items":[{"node_id":"x","table_ids":[0,5]}]}"#,
        r#"[{"node_id":"x","table_ids":[0,5]}]"#,
        r#"{"total":1,"items":[{"node_id":"x"}]}"#,
        r#"{"total":1,"items":[{"node_id":"x","table_ids":null}]}"#,
        r#"{"total":1,"items":[{"node_id":"x","table_ids":[0,5.5]}]}"#,
        r#"{"total":1,"items":[{"node_id":"","table_ids":[0,5]}]}"#,
        r#"{"total":1,"items":[{"table_ids":[0,5]}]}"#,
        r#"{"total":2,"items":[{"node_id":"x","table_ids":[0]},{"node_id":"x","table_ids":[5]}]}"#,
        r#"{"total":1,"items":[{"node_id":"x","table_ids":[0,5]}]}{"#,
        "",
        "null",
    ] {
        let server = Fake::always(reply_json(200, body)).await;
        let failure = cdc().tables(&server.address, &cf("a")).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Malformed, "{body}");
    }
}

#[tokio::test]
async fn a_maintainer_that_has_placed_nothing_or_is_not_there_leaves_the_tables_unknown() {
    let kind = async |bytes: Vec<u8>| {
        let server = Fake::always(bytes).await;
        cdc().tables(&server.address, &cf("a")).await.unwrap_err().kind
    };
    assert_eq!(kind(reply_json(200, r#"{"total":0,"items":[]}"#)).await, FailureKind::NotInitialized);
    let absent = r#"{"error_msg":"Can't not find maintainer for changefeed: a","error_code":""}"#;
    assert_eq!(kind(reply_json(500, absent)).await, FailureKind::NoMaintainer);
    assert_eq!(kind(reply_json(200, absent)).await, FailureKind::Malformed);
    // A server of the classic architecture.
    assert_eq!(kind(reply(404, "text/plain", "404 page not found")).await, FailureKind::NoRoute);
}
