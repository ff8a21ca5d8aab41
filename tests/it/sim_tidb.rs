//! The status port of simulated `TiDB` servers.

use serde_json::json;

use super::sim_support::{ask, control, get, lab, served, try_ask};

#[tokio::test]
async fn tidb_is_upgraded_as_recorded() {
    let sim = served(lab(3, 3, "")).await;
    let (first, second) = (&sim.tidb[0], &sim.tidb[1]);
    let show = || async { ask(second, "POST", "/upgrade/show", "").await };
    assert_eq!(show().await.body, "\"The cluster state is normal.\"\"success!\"");
    let wrong = get(first, "/upgrade/start").await;
    assert_eq!((wrong.status, wrong.body.as_str()), (400, "This API only support POST method"));
    assert_eq!(wrong.header("content-type"), Some("text/plain; charset=utf-8"));
    let none = ask(first, "POST", "/upgrade", "").await;
    assert_eq!((none.status, none.body.as_str()), (404, "404 page not found\n"));
    assert_eq!(none.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(ask(first, "POST", "/upgrade/start", "").await.body, "\"success!\"");
    assert_eq!(
        ask(second, "POST", "/upgrade/start", "").await.body,
        "\"It's a duplicated operation and the cluster is already in upgrading state.\""
    );
    let even = show().await.body;
    assert!(even.contains("\"upgraded_percent\": 100,\n \"is_all_server_version_consistent\": true\n}\"success!\""));

    let restarted = control(&sim.control, "restart", json!({ "address": first, "version": "v8.5.4" })).await;
    assert_eq!(restarted.status, 200, "{}", restarted.body);
    sim.advance(2_000).await;
    let uneven = show().await.body;
    assert!(uneven.contains("\"upgraded_percent\": 50,\n \"all_servers_diff_info\": ["), "{uneven}");
    let all = get(second, "/info/all").await.json();
    assert_eq!(all["servers_num"], 2);
    assert!(all.get("is_all_server_version_consistent").is_none());
    assert_eq!(all["all_servers_diff_versions"].as_array().unwrap().len(), 2);
    let info = get(second, "/info").await.json();
    assert_eq!(info["is_owner"], true, "DDL ownership went over");
    assert_eq!(ask(second, "POST", "/upgrade/finish", "").await.body, "\"success!\"");
    let referee = get(&sim.control, "/referee").await.json();
    assert_eq!(referee["stops"][0]["component"], "tidb");
    assert_eq!(referee["tidb_upgrading"], false);
    sim.stop().await;
}

#[tokio::test]
async fn tidb_names_tables() {
    let sim = served(lab(3, 2, "")).await;
    let at = &sim.tidb[0];
    let names = get(at, "/schema/lab?id_name_only=true").await;
    assert!(names.body.starts_with("[\n{\n \"id\": "), "{}", names.body);
    let id = names.json()[0]["id"].clone();
    let table = get(at, &format!("/db-table/{id}")).await.json();
    assert_eq!(table["db_info"]["db_name"]["O"], "lab");
    assert_eq!(table["table_info"]["name"]["O"], names.json()[0]["name"]["O"]);
    let some = get(at, &format!("/schema?table_ids={id}")).await.json();
    assert_eq!(some[id.to_string()]["id"], id);
    let missing = get(at, "/db-table/999999").await;
    assert_eq!((missing.status, missing.body.as_str()), (400, "[schema:1146]Table which ID = 999999 does not exist."));
    assert_eq!(get(at, "/schema/nosuch?id_name_only=true").await.body, "[schema:1049]Unknown database 'nosuch'");
    sim.stop().await;
}

#[tokio::test]
async fn a_stopping_tidb_answers_500_then_refuses() {
    let sim = served(lab(3, 2, "")).await;
    let at = &sim.tidb[1];
    sim.world(|world| world.stop(at, false)).unwrap();
    sim.advance(100).await;
    let leaving = get(at, "/status").await;
    assert_eq!((leaving.status, leaving.body.as_str()), (500, ""));
    assert_eq!(leaving.header("content-type"), Some("application/json"));
    assert_eq!(get(at, "/info").await.status, 200);
    sim.advance(1_000).await;
    assert!(try_ask(at, "GET", "/status", "").await.is_err());
    assert_eq!(get(&sim.tidb[0], "/info/all").await.json()["servers_num"], 2, "the process lives on");
    sim.advance(600).await;
    assert_eq!(get(&sim.tidb[0], "/info/all").await.json()["servers_num"], 1);
    sim.stop().await;
}

#[tokio::test]
async fn a_killed_tidb_lingers_and_its_ddl_ownership_too() {
    let more = "faults: [{ do: { no_return: tidb-1 } }]";
    let sim = served(lab(3, 2, more)).await;
    let (first, second) = (&sim.tidb[0], &sim.tidb[1]);
    control(&sim.control, "kill", json!({ "address": first })).await;
    assert!(try_ask(first, "GET", "/status", "").await.is_err());
    assert_eq!(get(second, "/info/all").await.json()["servers_num"], 2);
    let unconfirmed = ask(second, "POST", "/upgrade/start", "").await;
    assert_eq!((unconfirmed.status, unconfirmed.body.as_str()), (400, "context deadline exceeded"));
    let again = ask(second, "POST", "/upgrade/start", "").await;
    assert!(again.body.contains("already in upgrading state"), "the state was set all the same");
    assert_eq!(control(&sim.control, "start", json!({ "address": first })).await.status, 200);
    sim.advance(20_000).await;
    assert!(try_ask(first, "GET", "/status", "").await.is_err(), "it does not come back");
    assert_eq!(control(&sim.control, "start", json!({ "address": first })).await.status, 200);
    sim.advance(1_000).await;
    assert_eq!(get(first, "/status").await.status, 200, "the next start is good");
    sim.advance(75_000).await;
    assert_eq!(get(second, "/info/all").await.json()["servers_num"], 2, "the dead one is forgotten");
    assert_eq!(get(second, "/info").await.json()["is_owner"], true);
    sim.stop().await;
}
