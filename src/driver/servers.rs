//! What the driver needs of the servers. The real one is [`crate::api`]; tests drive the engine with another.

use futures::future::BoxFuture;

use crate::cluster::{CaptureId, CdcSweep, PdSweep, Reading, TidbSweep};
use crate::rollout::effect::{Call, CallAnswer};
use crate::rollout::view::TableNames;

/// The servers of one cluster.
pub trait Servers: Send + Sync + 'static {
    /// Reads `TiCDC`, with the tables of `target` by name.
    fn sweep_cdc(&self, target: Option<CaptureId>) -> BoxFuture<'_, CdcSweep>;

    /// Reads `TiDB`; asked only if a server was named.
    fn sweep_tidb(&self) -> BoxFuture<'_, TidbSweep>;

    /// Reads PD; asked only if a server was named.
    fn sweep_pd(&self) -> BoxFuture<'_, PdSweep>;

    /// Asks for the names of tables.
    fn table_names(&self) -> BoxFuture<'_, Reading<TableNames>>;

    /// Sends a mutating call, once.
    fn call(&self, call: Call) -> BoxFuture<'_, CallAnswer>;
}
