use std::sync::Arc;

use super::*;
use crate::cluster::Timestamp;

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::new(0, 0)
    }
}

#[test]
fn sweeps_can_be_spawned() {
    fn assert_spawnable<T: Send + 'static>(_: T) {}
    let clients = Arc::new(Clients::new(Endpoints::default(), &Options::default()).unwrap());
    let (a, b, c) = (Arc::clone(&clients), Arc::clone(&clients), Arc::clone(&clients));
    assert_spawnable(async move { a.sweep_cdc(&SweepAsk::default(), &Still).await });
    assert_spawnable(async move { b.sweep_tidb(&Still).await });
    assert_spawnable(async move { c.table_names().await });
    assert_spawnable(async move { clients.tables_named(&[TableId(1)]).await });
}
