//! The real servers, over [`crate::api`].

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::servers::Servers;
use crate::api::{Clients, SweepAsk};
use crate::cluster::{CaptureId, CdcSweep, Clock, PdSweep, Reading, TidbSweep};
use crate::rollout::effect::{Call, CallAnswer};
use crate::rollout::view::TableNames;

/// Clients and the clock that their readings are stamped with.
pub struct Live {
    clients: Clients,
    clock: Arc<dyn Clock>,
}

impl Live {
    /// The servers behind these clients.
    pub fn new(clients: Clients, clock: Arc<dyn Clock>) -> Self {
        Self { clients, clock }
    }
}

impl Servers for Live {
    fn sweep_cdc(&self, target: Option<CaptureId>) -> BoxFuture<'_, CdcSweep> {
        async move {
            let ask = SweepAsk { target, placement: true };
            self.clients.sweep_cdc(&ask, &*self.clock).await
        }
        .boxed()
    }

    fn sweep_tidb(&self) -> BoxFuture<'_, TidbSweep> {
        self.clients.sweep_tidb(&*self.clock).boxed()
    }

    fn sweep_pd(&self) -> BoxFuture<'_, PdSweep> {
        self.clients.sweep_pd(&*self.clock).boxed()
    }

    fn table_names(&self) -> BoxFuture<'_, Reading<TableNames>> {
        self.clients.table_names().boxed()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, CallAnswer> {
        async move {
            match call {
                Call::Drain { cluster, capture, owner } => {
                    CallAnswer::Drain(self.clients.drain(&cluster, &capture, owner.as_ref()).await)
                }
                Call::Resign { cluster, owner } => CallAnswer::Resign(self.clients.resign(&cluster, &owner).await),
                Call::UpgradeStart => CallAnswer::Start(self.clients.upgrade_start().await),
                Call::UpgradeFinish => CallAnswer::Finish(self.clients.upgrade_finish().await),
            }
        }
        .boxed()
    }
}
