//! The new architecture over HTTP: shapes as recorded, to the byte where there is nothing random in them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tiroll::sim::scenario::Scenario;

use super::sim_new_arch::new_lab;
use super::sim_support::{Raw, ask, ask_as, control, get, served, try_ask};

const JSON_UTF8: Option<&str> = Some("application/json; charset=utf-8");
const DRAIN: &str = "/api/v1/captures/drain";

fn error(code: &str, message: &str) -> String {
    let message = message.replace('"', "\\\"");
    format!("{{\n    \"error_msg\": \"{message}\",\n    \"error_code\": \"{code}\"\n}}")
}

async fn id_of(address: &str) -> String {
    get(address, "/api/v2/status").await.json()["id"].as_str().unwrap().to_owned()
}

async fn drain(address: &str, id: &str) -> Raw {
    ask(address, "PUT", DRAIN, &json!({ "capture_id": id }).to_string()).await
}

fn seen(answer: &Raw) -> (u16, &str) {
    (answer.status, answer.body.as_str())
}

#[tokio::test]
async fn a_node_answers_to_the_byte() {
    let sim = served(new_lab("", "")).await;
    let (owner, other) = (&sim.captures[0], &sim.captures[1]);
    for path in ["/status", "/api/v1/status", "/api/v2/status"] {
        let status = get(other, path).await;
        let body = status.json();
        let expected = format!(
            "{{\n    \"version\": \"v8.5.3\",\n    \"git_hash\": {},\n    \"id\": {},\n    \"cluster_id\": \"default\",\n    \"pid\": {},\n    \"is_owner\": false,\n    \"liveness\": 0\n}}",
            body["git_hash"], body["id"], body["pid"]
        );
        assert_eq!((status.header("content-type"), status.body.as_str()), (JSON_UTF8, expected.as_str()), "{path}");
    }
    assert_eq!(get(other, "/config").await.json()["newarch"], true);
    for path in ["/api/v1/health", "/api/v2/health"] {
        let health = get(other, path).await;
        assert_eq!((seen(&health), health.header("content-type")), ((200, "{}"), JSON_UTF8));
    }
    let item = format!(
        "{{\"id\":\"{}\",\"is_owner\":true,\"address\":\"{owner}\",\"cluster_id\":\"default\"}}",
        id_of(owner).await
    );
    let (v1, v2) = (get(other, "/api/v1/captures").await.body, get(other, "/api/v2/captures").await.body);
    assert!(v1.starts_with("[{\"id\":\"") && v1.contains(&item), "{v1}");
    assert!(v2.starts_with("{\"total\":3,\"items\":[{\"id\":\"") && v2.contains(&item), "{v2}");
    assert_eq!(get(other, "/api/v1/processors").await.body, "[]");
    assert_eq!(get(other, "/api/v2/processors").await.body, "{\"total\":0,\"items\":[]}");
    for path in ["/api/v1/processors/cf-a/x", "/api/v2/processors/nope/x"] {
        assert_eq!(seen(&get(other, path).await), (200, "{\"table_ids\":null}"));
    }
    let orders: BTreeSet<String> = futures::future::join_all((0..20).map(|_| get(other, "/api/v2/changefeeds")))
        .await
        .into_iter()
        .map(|it| it.body)
        .collect();
    assert_eq!(orders.len(), 2, "two changefeeds in two orders");
    sim.stop().await;
}

#[tokio::test]
async fn changefeeds_have_a_keyspace_and_no_tables() {
    let sim = served(new_lab("", "")).await;
    let other = &sim.captures[1];
    let keys = |item: &str| -> Vec<String> {
        item.split(",\"").map(|it| it.trim_start_matches(['{', '"']).split('"').next().unwrap().to_owned()).collect()
    };
    let v1 = get(other, "/api/v1/changefeeds").await.body;
    let first = v1.trim_start_matches('[').split('}').next().unwrap();
    let listed = ["upstream_id", "id", "keyspace", "state", "checkpoint_tso", "checkpoint_time", "error"];
    assert_eq!(keys(first), listed);
    let v2 = get(other, "/api/v2/changefeeds").await;
    assert!(v2.body.starts_with("{\"total\":2,\"items\":[{\"upstream_id\":"), "{}", v2.body);
    assert_eq!(v2.json()["items"].as_array().unwrap().len(), 2);

    let detail = get(other, "/api/v2/changefeeds/cf-a").await;
    assert_eq!(detail.header("transfer-encoding"), Some("chunked"));
    assert_eq!(get(other, "/api/v1/changefeeds/cf-a").await.body, detail.body);
    let body = detail.json();
    assert_eq!(body["resolved_ts"], body["checkpoint_ts"]);
    assert_eq!(body["keyspace"], "default");
    assert!(body["gid"]["low"].is_u64() && body["gid"]["high"].is_u64());
    assert!(body.get("task_status").is_none() && body.get("namespace").is_none());
    let maintainer = body["maintainer_addr"].as_str().unwrap().to_owned();
    assert!(sim.captures.contains(&maintainer));
    assert!(detail.body.contains("\"sink_uri\":\"blackhole:\",\"create_time\":\""));
    let status = get(other, "/api/v2/changefeeds/cf-a/status").await;
    assert!(status.body.starts_with("{\"state\":\"normal\",\"resolved_ts\":"), "{}", status.body);
    assert_eq!(status.json()["resolved_ts"], status.json()["checkpoint_ts"]);
    let missing = get(other, "/api/v2/changefeeds/nope").await;
    let expected = error("CDC:ErrChangeFeedNotExists", "[CDC:ErrChangeFeedNotExists]changefeed not exists, nope");
    assert_eq!(seen(&missing), (400, expected.as_str()));

    let paused = ask(other, "POST", "/api/v2/changefeeds/cf-b/pause", "").await;
    assert_eq!(seen(&paused), (200, "{}"));
    let stopped = get(other, "/api/v2/changefeeds/cf-b").await.json();
    assert_eq!(stopped["state"], "stopped");
    assert!(stopped.get("maintainer_addr").is_none() && stopped.get("admin_job_type").is_none());
    let nobody = error("", "Can't not find maintainer for changefeed: cf-b");
    assert_eq!(seen(&get(other, "/api/v2/changefeeds/cf-b/tables").await), (500, nobody.as_str()));
    assert_eq!(seen(&ask(other, "POST", "/api/v2/changefeeds/cf-b/resume", "").await), (200, "{}"));
    let refused = ask(other, "POST", "/api/v1/changefeeds/cf-a/resume", "").await;
    assert_eq!((refused.status, &refused.json()["error_code"]), (400, &json!("CDC:ErrChangefeedUpdateRefused")));
    assert_eq!(seen(&ask(other, "POST", "/api/v1/changefeeds/cf-a/pause", "").await), (202, "{}"));
    sim.stop().await;
}

#[tokio::test]
async fn tables_are_told_per_node_to_those_who_name_a_capture_as_the_host() {
    let sim = served(new_lab("", "")).await;
    let (asked, path) = (&sim.captures[2], "/api/v2/changefeeds/cf-a/tables");
    let answer = get(asked, path).await;
    let body = answer.json();
    assert!(answer.body.starts_with("{\"total\":3,\"items\":[{\"node_id\":\""), "{}", answer.body);
    assert!(answer.body.contains("\",\"table_ids\":["));
    let nodes = body["items"].as_array().unwrap();
    let ids: Vec<u64> = nodes
        .iter()
        .flat_map(|node| node["table_ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()))
        .collect();
    assert_eq!((ids.len(), ids.iter().filter(|id| **id == 0).count()), (121, 1));
    let home = nodes.iter().find(|node| node["table_ids"].as_array().unwrap().contains(&json!(0))).unwrap();
    let maintainer =
        get(asked, "/api/v2/changefeeds/cf-a").await.json()["maintainer_addr"].as_str().unwrap().to_owned();
    assert_eq!(home["node_id"].as_str().unwrap(), id_of(&maintainer).await);
    assert_eq!(get(asked, "/api/v2/changefeeds/cf-a/get_dispatcher_count").await.body, "{\"count\":121}");

    let nobody = error("", "Can't not find maintainer for changefeed: cf-a");
    for (host, status) in [
        (sim.captures[0].clone(), 200),
        (asked.replace("127.0.0.1", "localhost"), 200),
        ("cdc.example:8300".to_owned(), 500),
        (asked.replace("127.0.0.1:", ""), 500),
        (sim.tidb[0].clone(), 500),
    ] {
        let answer = ask_as(asked, &host, "GET", path, "").await.unwrap();
        assert_eq!(answer.status, status, "{host}");
        if status == 500 {
            assert_eq!(answer.body, nobody, "{host}");
        }
    }
    control(&sim.control, "stop", json!({ "address": sim.captures[1] })).await;
    let gone = ask_as(asked, &sim.captures[1], "GET", path, "").await.unwrap();
    assert_eq!(seen(&gone), (500, nobody.as_str()), "the host is asked, and is gone");
    let unknown = get(asked, "/api/v2/changefeeds/nope/tables").await;
    assert_eq!(unknown.body, error("", "Can't not find maintainer for changefeed: nope"));
    sim.stop().await;
}

#[tokio::test]
async fn drains_are_refused_as_recorded() {
    let sim = served(new_lab("", "")).await;
    let (owner, other) = (&sim.captures[0], &sim.captures[1]);
    let id = id_of(owner).await;
    let refused = "[CDC:ErrSchedulerRequestFailed]scheduler request failed, cannot drain the owner";
    let expected = error("CDC:ErrSchedulerRequestFailed", refused);
    assert_eq!(seen(&drain(other, &id).await), (400, expected.as_str()));
    for (method, path) in [
        ("POST", format!("/api/v2/captures/{id}/drain")),
        ("PUT", format!("/api/v2/captures/{id}/drain")),
        ("POST", DRAIN.to_owned()),
    ] {
        let answer = ask(owner, method, &path, "").await;
        assert_eq!(seen(&answer), (404, "404 page not found"), "{method} {path}");
        assert_eq!(answer.header("content-type"), Some("text/plain"));
    }
    let invalid = "[CDC:ErrAPIInvalidParam]invalid api parameter: ";
    for (body, code, message) in [
        ("", "CDC:ErrAPIInvalidParam", format!("{invalid}EOF")),
        (
            "{not json",
            "CDC:ErrAPIInvalidParam",
            format!("{invalid}invalid character 'n' looking for beginning of object key string"),
        ),
        ("{}", "CDC:ErrCaptureNotExist", "[CDC:ErrCaptureNotExist]capture not exists, ".to_owned()),
        (
            "{\"capture_id\": 7}",
            "CDC:ErrAPIInvalidParam",
            format!(
                "{invalid}json: cannot unmarshal number into Go struct field drainCaptureRequest.capture_id of type string"
            ),
        ),
    ] {
        let answer = ask(other, "PUT", DRAIN, body).await;
        assert_eq!(seen(&answer), (400, error(code, &message).as_str()), "{body}");
    }
    sim.stop().await;
}

#[tokio::test]
async fn a_node_is_drained_and_upgraded() {
    let sim = served(new_lab("", "")).await;
    let (owner, target, third) = (&sim.captures[0], &sim.captures[1], &sim.captures[2]);
    let (id, other) = (id_of(target).await, id_of(third).await);
    let first = drain(third, &id).await;
    assert_eq!(seen(&first), (202, "{\"current_table_count\":2}"));
    assert_eq!((first.header("content-type"), first.header("content-length")), (JSON_UTF8, Some("25")));
    sim.advance(4_000).await;
    let state = get(&sim.control, "/state").await.json();
    let captures = state["captures"].as_array().unwrap();
    let it = captures.iter().find(|it| it["id"] == json!(id)).unwrap();
    assert_eq!(
        (&it["liveness"], &it["liveness_raw"], &it["architecture"]),
        (&json!("draining"), &json!(1), &json!("new"))
    );
    let by_feed: u64 = it["tables_by_changefeed"].as_object().unwrap().values().map(|it| it.as_u64().unwrap()).sum();
    assert!(by_feed > 0 && it["tables"] == by_feed);
    sim.advance(11_000).await;
    assert_eq!(seen(&drain(target, &id).await), (202, "{\"current_table_count\":0}"), "it still passes questions on");
    assert_eq!(get(target, "/api/v1/status").await.json()["liveness"], 2);
    assert_eq!(drain(owner, &other).await.body, "{\"current_table_count\":1}");
    let referee = get(&sim.control, "/referee").await.json();
    assert_eq!(referee["left_stopping"], json!([target]));

    let restarted = control(&sim.control, "restart", json!({ "address": target, "version": "v8.5.4" })).await;
    assert_eq!(restarted.status, 200, "{}", restarted.body);
    assert!(try_ask(target, "GET", "/status", "").await.is_err());
    sim.advance(160).await;
    let status = get(target, "/api/v2/status").await;
    assert_eq!((status.status, &status.json()["version"]), (200, &json!("v8.5.4")), "there is no 503");
    let new = status.json()["id"].as_str().unwrap().to_owned();
    assert!(!get(target, "/api/v2/captures").await.body.contains(&new), "it is not listed yet");
    assert_eq!(get(target, "/api/v2/health").await.status, 200);
    sim.advance(500).await;
    let listed = get(target, "/api/v2/captures").await.body;
    assert!(listed.contains(&new) && listed.contains(&id), "old id and new id at one address");
    sim.advance(6_000).await;
    assert!(!get(target, "/api/v2/captures").await.body.contains(&id));
    assert_eq!(drain(owner, &id).await.body, "{\"current_table_count\":0}", "remembered");
    let referee = get(&sim.control, "/referee").await.json();
    assert_eq!((&referee["stops"][0]["tables"], &referee["left_stopping"]), (&json!(0), &json!([])));
    sim.stop().await;
}

#[tokio::test]
async fn a_resign_is_answered_at_once_and_seen_in_the_status_first() {
    let sim = served(new_lab("", "")).await;
    let (owner, other) = (&sim.captures[0], &sim.captures[1]);
    let is_owner = |answer: Raw| answer.json()["is_owner"].clone();
    assert_eq!(seen(&ask(other, "POST", "/api/v1/owner/resign", "").await), (202, "{}"));
    assert_eq!(is_owner(get(owner, "/api/v2/status").await), false);
    let in_list = |list: Value| -> String {
        let items = list["items"].as_array().unwrap().clone();
        items.iter().find(|it| it["is_owner"] == true).unwrap()["address"].as_str().unwrap().to_owned()
    };
    assert_eq!(&in_list(get(other, "/api/v2/captures").await.json()), owner, "the list is a moment behind");
    sim.advance(100).await;
    assert_eq!(&in_list(get(other, "/api/v2/captures").await.json()), other);
    assert_eq!(is_owner(get(other, "/status").await), true);
    assert_eq!(seen(&ask(owner, "POST", "/api/v2/owner/resign", "").await), (200, "{}"));
    sim.stop().await;
}

#[tokio::test]
async fn without_a_coordinator_raw_dial_errors_come_back() {
    let sim = served(new_lab("", "")).await;
    let (owner, other) = (&sim.captures[0], &sim.captures[1]);
    let id = id_of(other).await;
    control(&sim.control, "kill", json!({ "address": owner })).await;
    let dial = |verb: &str, path: &str| {
        error("", &format!("{verb} \"http://{owner}{path}\": dial tcp {owner}: connect: connection refused"))
    };
    let health = get(other, "/api/v2/health").await;
    assert_eq!(seen(&health), (500, dial("Get", "/api/v2/health").as_str()));
    assert_eq!(seen(&drain(other, &id).await), (500, dial("Put", DRAIN).as_str()));
    let tables = get(other, "/api/v2/changefeeds/cf-a/tables").await;
    assert_eq!(seen(&tables), (500, error("", "Can't not find maintainer for changefeed: cf-a").as_str()));
    assert_eq!(get(other, "/api/v2/processors").await.status, 200, "that one is local");
    control(&sim.control, "start", json!({ "address": owner })).await;
    sim.advance(300).await;
    let looping = get(owner, "/api/v2/captures").await;
    assert_eq!(seen(&looping), (500, error("", "TiCDC cluster is unavailable, please try again later").as_str()));
    sim.advance(9_500).await;
    assert_eq!(get(other, "/api/v2/health").await.status, 200);
    sim.stop().await;
}

#[tokio::test]
async fn a_new_coordinator_bootstraps_only_if_it_is_asked_to() {
    let sim = served(new_lab("", "rates: { bootstrap_ms: [400, 400] }")).await;
    let other = &sim.captures[2];
    let id = id_of(other).await;
    assert_eq!(get(other, "/api/v2/changefeeds").await.status, 200);
    ask(other, "POST", "/api/v2/owner/resign", "").await;
    sim.advance(200).await;
    let early = error("", "coordinator is not fully initialized, wait a moment");
    for path in ["/api/v1/changefeeds", "/api/v2/changefeeds/cf-a"] {
        assert_eq!(seen(&get(other, path).await), (500, early.as_str()));
    }
    assert_eq!(get(other, "/api/v2/changefeeds/cf-a/tables").await.status, 500);
    assert_eq!(get(other, "/api/v2/health").await.status, 200);
    assert_eq!(drain(other, &id).await.body, "{\"current_table_count\":1}");
    sim.advance(400).await;
    assert_eq!(get(other, "/api/v2/changefeeds").await.status, 200);
    sim.stop().await;
}

#[tokio::test]
async fn a_waiting_node_answers_for_itself_and_passes_the_rest_on() {
    let sim = served(Scenario::builtin("mixed").unwrap().unwrap()).await;
    let (classic, waiting) = (&sim.captures[0], &sim.captures[3]);
    let status = get(waiting, "/status").await;
    let body = status.json();
    assert!(status.body.starts_with("{\n    \"version\""));
    assert_eq!(
        (&body["liveness"], &body["is_owner"], &body["cluster_id"]),
        (&json!(0), &json!(false), &json!("default"))
    );
    assert_eq!(get(waiting, "/config").await.json()["newarch"], true);
    assert!(get(classic, "/config").await.json().get("newarch").is_none());
    let id = id_of(waiting).await;
    let listed = get(waiting, "/api/v2/captures").await;
    assert_eq!((listed.status, &listed.json()["total"]), (200, &json!(3)));
    assert!(!listed.body.contains(&id));
    let health = get(waiting, "/api/v1/health").await;
    assert_eq!((seen(&health), health.header("content-type")), ((200, ""), None), "as the classic owner says it");
    assert!(get(waiting, "/api/v1/captures").await.body.starts_with("[\n    {"));
    assert_eq!(get(waiting, "/api/v2/processors").await.body, "{\"total\":0,\"items\":[]}");
    let tables = get(waiting, "/api/v2/changefeeds/orders/tables").await;
    assert_eq!(tables.body, error("", "Can't not find maintainer for changefeed: orders"));
    assert_eq!(get(classic, "/api/v2/changefeeds/orders/tables").await.status, 404);
    for capture in &sim.captures[..3] {
        control(&sim.control, "stop", json!({ "address": capture })).await;
    }
    sim.advance(400).await;
    let listed = get(waiting, "/api/v2/captures").await;
    let expected = format!(
        "{{\"total\":1,\"items\":[{{\"id\":\"{id}\",\"is_owner\":true,\"address\":\"{waiting}\",\"cluster_id\":\"default\"}}]}}"
    );
    assert_eq!(seen(&listed), (200, expected.as_str()));
    sim.stop().await;
}

#[tokio::test]
async fn the_control_server_takes_a_false_zero() {
    let sim = served(new_lab("", "")).await;
    let (owner, target) = (&sim.captures[0], &sim.captures[1]);
    let id = id_of(target).await;
    let fault = json!({ "when": { "drain": target }, "do": { "false_zero": { "process": "capture-2" } } });
    assert_eq!(control(&sim.control, "fault", fault).await.status, 200);
    let bad = json!({ "do": { "false_zero": { "process": "capture-9" } } });
    assert_eq!(control(&sim.control, "fault", bad).await.status, 404);
    drain(owner, &id).await;
    sim.advance(1_000).await;
    assert_eq!(drain(owner, &id).await.body, "{\"current_table_count\":0}");
    assert_eq!(get(target, "/api/v2/status").await.json()["liveness"], 2);
    assert!(get(owner, "/api/v2/changefeeds/cf-a/tables").await.body.contains(&id));
    sim.stop().await;
}
