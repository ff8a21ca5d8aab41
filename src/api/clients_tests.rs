use std::sync::Arc;

use super::super::fake::{Fake, Routes, Still, json, nowhere, reply};
use super::*;

fn clients(endpoints: Endpoints) -> Clients {
    Clients::new(endpoints, &Options::default()).unwrap()
}

fn of_tidb(tidb: &[&Address]) -> Clients {
    clients(Endpoints { tidb: tidb.iter().copied().cloned().collect(), ..Endpoints::default() })
}

#[test]
fn sweeps_can_be_spawned() {
    fn assert_spawnable<T: Send + 'static>(_: T) {}
    let clients = Arc::new(clients(Endpoints::default()));
    let (a, b, c) = (Arc::clone(&clients), Arc::clone(&clients), Arc::clone(&clients));
    assert_spawnable(async move { a.sweep_cdc(&SweepAsk::default(), &Still).await });
    assert_spawnable(async move { b.sweep_tidb(&Still).await });
    assert_spawnable(async move { c.table_names().await });
    assert_spawnable(async move { clients.tables_named(&[TableId(1)]).await });
}

#[test]
fn endpoints_are_ordered_and_each_once() {
    let a = |port| Address::new("10.0.0.1", port);
    let clients = clients(Endpoints { cdc: vec![a(2), a(1), a(2)], ..Endpoints::default() });
    assert_eq!(clients.endpoints().cdc, [a(1), a(2)]);
}

fn info(port: u16, ddl_id: &str, is_owner: bool) -> String {
    format!(
        r#"{{"is_owner":{is_owner},"version":"8.0.11-TiDB-v8.5.3","git_hash":"g","ddl_id":"{ddl_id}","ip":"127.0.0.1",
            "listening_port":4000,"status_port":{port},"start_timestamp":1}}"#
    )
}

#[tokio::test]
async fn a_tidb_that_is_shutting_down_does_not_speak_for_the_cluster_while_another_can() {
    let (leaving_routes, leaving) = Routes::serve().await;
    let (healthy_routes, healthy) = Routes::serve().await;
    leaving_routes
        .set("GET /status", json(500, ""))
        .ok("GET /info", info(leaving.address.port(), "d1", true))
        .ok("GET /info/all", r#"{"owner_id":"d1","all_servers_info":{}}"#)
        .set("POST /upgrade/show", reply(400, "text/plain", "closing"));
    healthy_routes
        .ok("GET /status", r#"{"connections":1,"version":"8.0.11-TiDB-v8.5.3"}"#)
        .ok("GET /info", info(healthy.address.port(), "d2", false))
        .ok("GET /info/all", format!(r#"{{"owner_id":"d2","all_servers_info":{{"d2":{}}}}}"#, info(1, "d2", true)))
        .ok("POST /upgrade/show", r#""The cluster state is normal.""success!""#)
        .ok("POST /upgrade/start", "\"success!\"");
    let clients = of_tidb(&[&leaving.address, &healthy.address]);
    let sweep = clients.sweep_tidb(&Still).await;
    assert_eq!(sweep.state, Ok(crate::cluster::UpgradeState::Normal));
    assert_eq!(&*sweep.all.unwrap().owner_id, "d2");
    let of = |address: &Address| sweep.servers.iter().find(|server| server.address == *address).unwrap();
    assert_eq!(of(&leaving.address).status.as_ref().unwrap_err().kind, FailureKind::Empty500);
    assert!(of(&leaving.address).info.is_ok());
    assert_eq!(clients.upgrade_start().await, Ok(StartAnswer::Success));
    assert!(!leaving.requests().iter().any(|line| line.contains("upgrade")), "asked the healthy one only");
}

#[tokio::test]
async fn a_mutating_call_is_sent_once_whatever_comes_back() {
    let broken = Fake::always(Vec::new()).await;
    let other = Fake::always(json(200, "\"success!\"")).await;
    let clients = of_tidb(&[&broken.address, &other.address]);
    let first = clients.endpoints().tidb[0].clone();
    let _ = clients.upgrade_finish().await;
    let asked = [(&broken, broken.requests()), (&other, other.requests())];
    for (server, requests) in asked {
        assert_eq!(requests.len(), usize::from(server.address == first));
    }
}

#[tokio::test]
async fn names_come_from_the_lists_and_partitions_one_by_one() {
    let (routes, server) = Routes::serve().await;
    routes
        .ok("GET /schema", r#"[{"db_name":{"O":"lab"}},{"db_name":{"O":"gone"}},{"db_name":{"O":"mysql"}}]"#)
        .ok("GET /schema/lab?id_name_only=true", r#"[{"id":7,"name":{"O":"t1","L":"t1"}}]"#)
        .set("GET /schema/gone?id_name_only=true", reply(400, "text/plain", "[schema:1049]Unknown database 'gone'"))
        .ok("GET /db-table/9", r#"{"db_info":{"db_name":{"O":"lab"}},"table_info":{"name":{"O":"parts"}}}"#)
        .set("GET /db-table/8", reply(400, "text/plain", "[schema:1146]Table which ID = 8 does not exist."));
    let clients = of_tidb(&[&server.address]);
    assert_eq!(clients.table_names().await.unwrap(), BTreeMap::from([(TableId(7), "lab.t1".to_owned())]));
    let named = clients.tables_named(&[TableId(8), TableId(9)]).await.unwrap();
    assert_eq!(named, BTreeMap::from([(TableId(9), "lab.parts".to_owned())]));
    routes.set("GET /schema/lab?id_name_only=true", json(500, ""));
    assert!(clients.table_names().await.is_err(), "a database that could not be read is not an empty one");
}

#[tokio::test]
async fn pd_names_its_version_or_the_reason() {
    let (routes, pd) = Routes::serve().await;
    routes.ok("GET /pd/api/v1/version", r#"{"version":"v8.5.0","build_time":"","hash":"","branch":""}"#);
    let silent = nowhere().await;
    let clients = clients(Endpoints { pd: vec![pd.address.clone(), silent.clone()], ..Endpoints::default() });
    let sweep = clients.sweep_pd(&Still).await;
    let of = |address: &Address| sweep.servers.iter().find(|server| server.address == *address).unwrap();
    assert_eq!(of(&pd.address).version.as_ref().unwrap().as_str(), "v8.5.0");
    assert_eq!(of(&silent).version.as_ref().unwrap_err().kind, FailureKind::Refused);
}

#[tokio::test]
async fn a_drain_goes_to_the_owner_and_once_to_another_only_if_it_cannot_be_reached() {
    let counted = Fake::always(json(202, r#"{"current_table_count":5}"#)).await;
    let gone = nowhere().await;
    let clients = clients(Endpoints { cdc: vec![counted.address.clone(), gone.clone()], ..Endpoints::default() });
    let (cluster, capture) = (ClusterId::default(), CaptureId::new("c"));
    assert_eq!(clients.drain(&cluster, &capture, Some(&gone)).await, Ok(5));
    assert_eq!(counted.requests().len(), 1);

    let refusing = r#"{"error_msg":"[CDC:ErrOwnerNotFound]owner not found","error_code":"CDC:ErrOwnerNotFound"}"#;
    let owner = Fake::always(json(500, refusing)).await;
    let outcome = clients.drain(&cluster, &capture, Some(&owner.address)).await;
    assert_eq!(outcome.unwrap_err().kind, FailureKind::NoOwner);
    assert_eq!(counted.requests().len(), 1, "an answer is an answer");
}

#[tokio::test]
async fn a_resign_is_sent_once_and_to_the_owner_alone() {
    let owner = Fake::always(Vec::new()).await;
    let other = Fake::always(json(200, "{}")).await;
    let clients =
        clients(Endpoints { cdc: vec![owner.address.clone(), other.address.clone()], ..Endpoints::default() });
    assert!(clients.resign(&ClusterId::default(), &owner.address).await.is_err());
    assert_eq!(owner.requests(), ["POST /api/v2/owner/resign"]);
    assert!(other.requests().is_empty());
}
