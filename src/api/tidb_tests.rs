use super::super::fake::{Fake, http, json, nowhere, reply};
use super::*;
use crate::cluster::FailureKind;

fn tidb() -> Tidb {
    Tidb::new(http())
}

async fn show(body: &str) -> Reading<UpgradeState> {
    let server = Fake::always(json(200, body)).await;
    let state = tidb().upgrade_show(&server.address).await;
    assert_eq!(server.requests(), ["POST /upgrade/show"]);
    state
}

#[tokio::test]
async fn show_sends_two_values_and_a_mended_server_one() {
    assert_eq!(show(r#""The cluster state is normal.""success!""#).await, Ok(UpgradeState::Normal));
    assert_eq!(show(r#""The cluster state is normal.""#).await, Ok(UpgradeState::Normal));
    let object = "{\n \"servers_num\": 3,\n \"owner_id\": \"d\",\n \"upgraded_percent\": 100,\n \
                  \"is_all_server_version_consistent\": true\n}";
    let upgrading = UpgradeState::Upgrading { servers: 3, percent: 100, is_consistent: true };
    assert_eq!(show(&format!("{object}\"success!\"")).await, Ok(upgrading.clone()));
    assert_eq!(show(object).await, Ok(upgrading));
}

#[tokio::test]
async fn an_absent_boolean_is_false() {
    let body = r#"{"servers_num":2,"owner_id":"d","upgraded_percent":50,"all_servers_diff_info":[{"version":"x"}]}"#;
    let expected = UpgradeState::Upgrading { servers: 2, percent: 50, is_consistent: false };
    assert_eq!(show(&format!("{body}\"success!\"")).await, Ok(expected));
}

#[tokio::test]
async fn a_state_that_is_not_said_is_unknown() {
    for body in
        ["", "{}", r#""success!""#, "null", "<html>", r#"{"error":"x"}"#, "[]", r#"{"servers_num":2"#, "[2,50,true]"]
    {
        assert_eq!(show(body).await.unwrap_err().kind, FailureKind::Malformed, "{body}");
    }
}

#[tokio::test]
async fn two_hundred_is_not_enough_to_have_started() {
    let start = async |body: &str| {
        let server = Fake::always(json(200, body)).await;
        tidb().upgrade_start(&server.address).await
    };
    let duplicated = r#""It's a duplicated operation and the cluster is already in upgrading state.""#;
    assert_eq!(start("\"success!\"").await, Ok(StartAnswer::Success));
    assert_eq!(start(duplicated).await, Ok(StartAnswer::Duplicated));
    assert_eq!(start("\"ok\"").await, Ok(StartAnswer::Other(Arc::from("ok"))));
    assert_eq!(start("{}").await.unwrap_err().kind, FailureKind::Malformed);
}

#[tokio::test]
async fn a_refusal_is_plain_text_and_is_kept() {
    let server = Fake::always(reply(400, "text/plain", "context deadline exceeded")).await;
    let failure = tidb().upgrade_start(&server.address).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::TidbRefused);
    assert_eq!(&*failure.message, "context deadline exceeded");
    let old = Fake::always(reply(404, "text/plain; charset=utf-8", "404 page not found\n")).await;
    assert_eq!(tidb().upgrade_finish(&old.address).await.unwrap_err().kind, FailureKind::NoRoute);
}

#[tokio::test]
async fn starting_and_stopping_is_500_without_a_body_then_refused() {
    let server = Fake::always(json(500, "")).await;
    assert_eq!(tidb().status(&server.address).await.unwrap_err().kind, FailureKind::Empty500);
    assert_eq!(tidb().status(&nowhere().await).await.unwrap_err().kind, FailureKind::Refused);
}

#[tokio::test]
async fn versions_lose_the_prefix_for_mysql_clients() {
    let body =
        r#"{"connections":12,"version":"8.0.11-TiDB-v8.5.0","git_hash":"g","status":{"init_stats_percentage":100}}"#;
    let server = Fake::always(json(200, body)).await;
    let status = tidb().status(&server.address).await.unwrap();
    assert_eq!((status.version.as_str(), status.connections), ("v8.5.0", 12));
    let odd = Fake::always(json(200, r#"{"connections":1,"version":"mystery"}"#)).await;
    assert_eq!(tidb().status(&odd.address).await.unwrap_err().kind, FailureKind::Malformed);
}

#[tokio::test]
async fn names_are_escaped_in_the_path() {
    let server = Fake::always(json(200, r#"[{"id":5,"name":{"O":"T1","L":"t1"}}]"#)).await;
    let tables = tidb().tables_of(&server.address, "a/b c?").await.unwrap();
    assert_eq!(tables[&TableId(5)], "a/b c?.T1");
    assert_eq!(server.requests(), ["GET /schema/a%2Fb%20c%3F?id_name_only=true"]);
}

#[tokio::test]
async fn system_databases_are_left_out() {
    let body = r#"[{"db_name":{"O":"mysql","L":"mysql"}},{"db_name":{"O":"INFORMATION_SCHEMA"}},
        {"db_name":{"O":"shop"}},{"db_name":{"O":"lab"}}]"#;
    let server = Fake::always(json(200, body)).await;
    assert_eq!(tidb().databases(&server.address).await.unwrap(), ["lab", "shop"]);
}
