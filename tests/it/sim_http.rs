//! The simulator over HTTP: shapes, headers, processes, control.

use serde_json::{Value, json};
use tiroll::sim::announce;
use tiroll::sim::scenario::Scenario;

use super::sim_support::{ask, control, get, lab, lab_with, served, try_ask};

const JSON_UTF8: Option<&str> = Some("application/json; charset=utf-8");

#[tokio::test]
async fn a_capture_answers_to_the_byte() {
    let sim = served(lab(120, 3, "")).await;
    let (owner, other) = (&sim.captures[0], &sim.captures[1]);
    let status = get(owner, "/api/v2/status").await;
    assert_eq!(status.header("content-type"), JSON_UTF8);
    let body = status.json();
    let expected = format!(
        "{{\n    \"version\": \"v8.5.3\",\n    \"git_hash\": {},\n    \"id\": {},\n    \"cluster_id\": \"default\",\n    \"pid\": {},\n    \"is_owner\": true,\n    \"liveness\": 0\n}}",
        body["git_hash"], body["id"], body["pid"]
    );
    assert_eq!(status.body, expected);
    let root = get(owner, "/status").await;
    assert_eq!(root.header("content-type"), Some("application/json"));
    assert!(root.body.starts_with("{\n \"version\""));
    assert!(root.json().get("liveness").is_none());

    let health = get(other, "/api/v1/health").await;
    assert_eq!((health.status, health.body.as_str()), (200, ""));
    assert_eq!((health.header("content-type"), health.header("content-length")), (None, Some("0")));
    assert_eq!(get(other, "/api/v2/health").await.body, "{}");

    let captures = get(other, "/api/v2/captures").await;
    assert!(captures.body.starts_with("{\"total\":3,\"items\":[{\"id\":\""));
    assert!(get(other, "/api/v1/captures").await.body.starts_with("[\n    {\n        \"id\": \""));

    let missing = get(owner, "/api/v2/nope").await;
    assert_eq!((missing.status, missing.body.as_str()), (404, "404 page not found"));
    assert_eq!(missing.header("content-type"), Some("text/plain"));
    assert_eq!(ask(owner, "POST", "/api/v1/captures/drain", "{}").await.status, 404);

    let detail = get(other, "/api/v2/changefeeds/cf-a").await;
    assert_eq!(detail.header("transfer-encoding"), Some("chunked"));
    assert_eq!(detail.header("content-length"), None);
    assert_eq!(detail.json()["task_status"].as_array().unwrap().len(), 3);
    sim.stop().await;
}

#[tokio::test]
async fn bad_drains_are_refused_as_recorded() {
    let sim = served(lab(120, 3, "")).await;
    let (owner, other) = (&sim.captures[0], &sim.captures[1]);
    let refused = ask(other, "PUT", "/api/v1/captures/drain", "").await;
    assert_eq!(refused.status, 400);
    assert_eq!(
        refused.body,
        "{\n    \"error_msg\": \"[CDC:ErrAPIInvalidParam]invalid api parameter: EOF\",\n    \"error_code\": \"CDC:ErrAPIInvalidParam\"\n}"
    );
    let empty = ask(owner, "PUT", "/api/v1/captures/drain", "{}").await;
    assert_eq!(empty.json()["error_msg"], "[CDC:ErrCaptureNotExist]capture not exists, ");
    let id = get(owner, "/api/v1/status").await.json()["id"].as_str().unwrap().to_owned();
    let own = ask(other, "POST", &format!("/api/v2/captures/{id}/drain"), "").await;
    assert_eq!(own.json()["error_code"], "CDC:ErrSchedulerRequestFailed");
    sim.stop().await;
}

#[tokio::test]
async fn a_capture_is_drained_and_upgraded() {
    let sim = served(lab(120, 3, "")).await;
    let (owner, target) = (&sim.captures[0], &sim.captures[1]);
    let id = get(target, "/api/v1/status").await.json()["id"].as_str().unwrap().to_owned();
    let drain =
        || async { ask(owner, "PUT", "/api/v1/captures/drain", &json!({ "capture_id": id }).to_string()).await };
    let first = drain().await;
    assert_eq!((first.status, first.body.as_str()), (202, "{\"current_table_count\":80}"));
    sim.advance(9_000).await;
    assert_eq!(drain().await.body, "{\"current_table_count\":0}");
    assert_eq!(get(target, "/api/v1/status").await.json()["liveness"], 1);
    let path = format!("/api/v2/processors/cf-a/{id}");
    assert_eq!(get(target, &path).await.body, "{\"table_ids\":[]}");

    let restarted = control(&sim.control, "restart", json!({ "address": target, "version": "v8.5.4" })).await;
    assert_eq!(restarted.status, 200, "{}", restarted.body);
    assert!(try_ask(target, "GET", "/status", "").await.is_err(), "it is spawned, but listens later");
    sim.advance(155).await;
    let starting = get(target, "/api/v2/status").await;
    assert_eq!(starting.status, 503);
    assert_eq!(starting.json()["error_code"], "CDC:ErrServerIsNotReady");
    assert_eq!(get(target, "/status").await.status, 200);
    let new = restarted.json()["id"].as_str().unwrap().to_owned();
    assert!(get(owner, "/api/v2/captures").await.body.contains(&new), "listed before it is ready");
    assert_eq!(get(owner, "/api/v2/health").await.json()["error_code"], "CDC:ErrClusterIsUnhealthy");
    let mut bad_after_ready = 0;
    for _ in 0..40 {
        sim.advance(20).await;
        let status = get(target, "/api/v2/status").await.status;
        let health = get(target, "/api/v2/health").await.status;
        bad_after_ready += u32::from(status == 200 && health == 500);
    }
    assert!(bad_after_ready > 0, "health is bad for a moment after the status is good");
    assert_eq!(get(target, "/api/v2/status").await.json()["version"], "v8.5.4");
    assert_eq!(get(owner, "/api/v2/health").await.status, 200);

    let referee = get(&sim.control, "/referee").await.json();
    assert_eq!(referee["stops"][0]["tables"], 0);
    assert_eq!(referee["restarts"][target.as_str()], 1);
    assert_eq!(referee["requests"]["PUT /api/v1/captures/drain"], 2);
    assert_eq!(referee["finish_owed"], false);
    sim.stop().await;
}

#[tokio::test]
async fn a_stopped_process_refuses_and_its_connections_are_cut() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let sim = served(lab(20, 3, "")).await;
    let address = &sim.captures[1];
    let mut open = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = "GET /status HTTP/1.1\r\nHost: x\r\n\r\n";
    open.write_all(request.as_bytes()).await.unwrap();
    let mut buffer = [0; 4096];
    assert!(open.read(&mut buffer).await.unwrap() > 0);
    let stopped = control(&sim.control, "stop", json!({ "address": address })).await;
    assert_eq!(stopped.json()["running"], false);
    let refused = try_ask(address, "GET", "/status", "").await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    assert!(matches!(open.read(&mut buffer).await, Ok(0) | Err(_)), "the open connection is cut");
    assert_eq!(control(&sim.control, "stop", json!({ "address": address })).await.status, 409);
    assert_eq!(control(&sim.control, "stop", json!({ "address": "nope" })).await.status, 404);
    assert_eq!(control(&sim.control, "stop", json!({ "addres": address })).await.status, 400);
    assert_eq!(control(&sim.control, "start", json!({ "address": address })).await.status, 200);
    assert_eq!(control(&sim.control, "start", json!({ "address": address })).await.status, 409);
    sim.advance(500).await;
    assert_eq!(get(address, "/api/v1/status").await.status, 200);
    sim.stop().await;
}

#[tokio::test]
async fn without_an_owner_every_owner_call_fails_and_says_why() {
    let sim = served(lab(20, 3, "")).await;
    let (owner, other) = (&sim.captures[0], &sim.captures[2]);
    let resigned = ask(other, "POST", "/api/v1/owner/resign", "").await;
    assert_eq!((resigned.status, resigned.body.as_str(), resigned.header("content-type")), (202, "", None));
    let gone = get(other, "/api/v1/captures").await;
    assert_eq!(gone.status, 500);
    assert_eq!(gone.json()["error_code"], "CDC:ErrOwnerNotFound");
    assert_eq!(get(owner, "/api/v1/status").await.json()["is_owner"], true, "the old owner has not noticed");
    sim.advance(3_000).await;
    let again = &sim.captures[1];
    assert_eq!(get(again, "/api/v1/status").await.json()["is_owner"], true);
    control(&sim.control, "kill", json!({ "address": again })).await;
    let dead = get(other, "/api/v2/captures").await;
    assert_eq!(dead.status, 500);
    assert_eq!(
        dead.json()["error_msg"],
        format!("Get \"http://{again}/api/v2/captures\": dial tcp {again}: connect: connection refused")
    );
    assert_eq!(dead.json()["error_code"], "");
    sim.stop().await;
}

#[tokio::test]
async fn a_paused_changefeed_answers_as_recorded() {
    let sim = served(lab(120, 3, "")).await;
    let at = &sim.captures[1];
    let id = get(at, "/api/v1/status").await.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(ask(at, "POST", "/api/v2/changefeeds/cf-b/pause", "").await.body, "{}");
    let list = get(at, "/api/v2/changefeeds").await.json();
    assert_eq!(list["items"][1]["state"], "stopped");
    assert_eq!(get(at, "/api/v2/processors").await.json()["total"], 3);
    let v1 = get(at, &format!("/api/v1/processors/cf-b/{id}")).await;
    assert_eq!(v1.status, 200);
    assert!(v1.body.starts_with("{\n    \"table_ids\": null\n}{\n    \"error_msg\""), "{}", v1.body);
    let v2 = get(at, &format!("/api/v2/processors/cf-b/{id}")).await;
    assert_eq!((v2.status, &v2.json()["error_code"]), (400, &json!("CDC:ErrAPIInvalidParam")));
    let detail = get(at, "/api/v2/changefeeds/cf-b").await.json();
    assert_eq!((&detail["admin_job_type"], &detail["resolved_ts"]), (&json!(1), &json!(0)));
    assert!(detail.get("task_status").is_none());
    let resumed = ask(at, "POST", "/api/v2/changefeeds/cf-b/resume", "").await;
    assert_eq!((resumed.status, resumed.header("content-type")), (400, Some("text/plain; charset=utf-8")));
    assert_eq!(ask(at, "POST", "/api/v2/changefeeds/cf-b/resume", "{}").await.status, 200);
    sim.advance(3_000).await;
    assert_eq!(get(at, "/api/v2/processors").await.json()["total"], 6);
    sim.stop().await;
}

#[tokio::test]
async fn state_has_the_keys_of_status() {
    let sim = served(Scenario::builtin("small").unwrap().unwrap()).await;
    let state = get(&sim.control, "/state").await.json();
    let capture = &state["captures"][0];
    assert_eq!(capture["liveness"], "alive");
    assert_eq!(capture["architecture"], "classic");
    assert!(capture["tables_by_changefeed"]["default/orders"].as_u64().unwrap() > 0);
    assert_eq!(state["tidb"]["state"], "normal");
    assert_eq!(state["tidb"]["servers"][0]["version"], "v8.5.3");
    assert_eq!(state["pd"]["servers"][0]["version"], "v8.5.4");
    assert_eq!(state["unknown"], json!([]));
    assert!(state["changefeeds"][0]["checkpoint_ts"].as_u64().unwrap() > 1 << 53);
    let line: Value = serde_json::from_str(&announce(&sim, true)).unwrap();
    assert_eq!(line["control"], sim.control);
    assert_eq!(get(&sim.pd[0], "/pd/api/v1/version").await.json()["version"], "v8.5.4");
    sim.stop().await;
}

#[tokio::test]
async fn faults_change_answers_processes_and_changefeeds() {
    let more = "faults:
  - when: { drain: capture-2 }
    do: { stuck_table: { process: capture-2 } }
  - do: { wrong_version: { process: tidb-2, version: v8.5.2 } }
";
    let sim = served(lab_with(120, 3, "", more)).await;
    let (owner, target) = (&sim.captures[0], &sim.captures[1]);
    let fault = |body: Value| async { control(&sim.control, "fault", body).await };
    let answer = json!({ "do": { "answer": {
        "process": owner, "method": "GET", "route": "/api/v2/captures", "status": 503,
        "code": "CDC:ErrVersionIncompatible", "message": "TiKV is too new",
        "content_type": "text/plain; charset=utf-8", "times": 1
    } } });
    assert_eq!(fault(answer).await.status, 200);
    let changed = get(owner, "/api/v2/captures").await;
    assert_eq!((changed.status, changed.header("content-type")), (503, Some("text/plain; charset=utf-8")));
    assert_eq!(changed.json()["error_code"], "CDC:ErrVersionIncompatible");
    assert_eq!(get(owner, "/api/v2/captures").await.status, 200, "once only");

    let drop = json!({ "do": { "answer": { "route": "/api/v2/health", "drop": true, "for_ms": 1000 } } });
    assert_eq!(fault(drop).await.status, 200);
    assert!(try_ask(owner, "GET", "/api/v2/health", "").await.is_err());
    sim.advance(1_000).await;
    assert_eq!(get(owner, "/api/v2/health").await.status, 200);

    let refuse = json!({ "do": { "refuse": { "process": "capture-3", "for_ms": 2000 } } });
    fault(refuse).await;
    sim.advance(10).await;
    assert!(try_ask(&sim.captures[2], "GET", "/status", "").await.is_err());
    sim.advance(2_000).await;
    assert_eq!(get(&sim.captures[2], "/status").await.status, 200);

    let failed =
        json!({ "do": { "changefeed": { "id": "cf-b", "state": "failed", "code": "CDC:ErrX", "message": "x" } } });
    fault(failed).await;
    let list = get(owner, "/api/v2/changefeeds").await.json();
    assert_eq!(list["items"][1]["state"], "failed");
    assert_eq!(list["items"][1]["error"]["code"], "CDC:ErrX");

    let id = get(target, "/api/v1/status").await.json()["id"].as_str().unwrap().to_owned();
    let drain = json!({ "capture_id": id }).to_string();
    ask(owner, "PUT", "/api/v1/captures/drain", &drain).await;
    sim.advance(60_000).await;
    let left = ask(owner, "PUT", "/api/v1/captures/drain", &drain).await.json();
    assert!(left["current_table_count"].as_u64().unwrap() > 0, "a table never moves");

    control(&sim.control, "restart", json!({ "address": sim.tidb[1], "version": "v8.5.4" })).await;
    sim.advance(1_000).await;
    assert_eq!(get(&sim.tidb[1], "/info").await.json()["version"], "8.0.11-TiDB-v8.5.2");
    let unknown = fault(json!({ "do": { "kill": "capture-9" } })).await;
    assert_eq!(unknown.status, 404);
    assert_eq!(fault(json!({ "do": {} })).await.status, 400);
    sim.stop().await;
}

#[tokio::test]
async fn time_that_runs_is_as_fast_as_asked() {
    use tiroll::sim::{Options, SimError, Time, start};
    let options = Options { speed: 200.0, time: Time::Running };
    let sim = start(lab(120, 3, ""), options).await.unwrap();
    let id = get(&sim.captures[1], "/api/v1/status").await.json()["id"].as_str().unwrap().to_owned();
    let drain = json!({ "capture_id": id }).to_string();
    loop {
        let left = ask(&sim.captures[0], "PUT", "/api/v1/captures/drain", &drain).await.json();
        if left["current_table_count"] == 0 {
            break;
        }
    }
    let restart = json!({ "address": sim.captures[1], "version": "v8.5.4" });
    assert_eq!(control(&sim.control, "restart", restart).await.status, 200);
    sim.advance(8_000).await;
    let state = get(&sim.control, "/state").await.json();
    assert_eq!(state["unknown"], json!([]));
    assert_eq!(state["speed"], 200.0);
    sim.stop().await;
    let still = Options { speed: 0.0, time: Time::Running };
    assert!(matches!(start(lab(1, 1, ""), still).await, Err(SimError::Speed(_))));
}
