//! One poller for each kind of server: it reads, hands the sweep over, and waits as long as the engine's pace says.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::servers::Servers;
use crate::cluster::{CdcSweep, Clock};
use crate::rollout::effect::{Input, Pace, Watch};
use crate::rollout::policy::Policy;

/// What a poller reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Captures, changefeeds, tables.
    Cdc,
    /// `TiDB` servers and the upgrading state.
    Tidb,
    /// Versions of PD.
    Pd,
    /// Names of tables; asked for rarely, since they are many and change slowly.
    Names,
}

/// All that a poller is given.
pub(super) struct Poller {
    pub(super) source: Source,
    pub(super) servers: Arc<dyn Servers>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) policy: Policy,
    pub(super) watch: watch::Receiver<Watch>,
    pub(super) inputs: mpsc::Sender<Input>,
    pub(super) stop: CancellationToken,
    /// The last sweep of `TiCDC`: the next one shares what says the same.
    pub(super) before: Option<Arc<CdcSweep>>,
}

impl Poller {
    /// Reads until told to stop.
    pub(super) async fn run(mut self) {
        loop {
            let begun = self.clock.now();
            let wanted = self.watch.borrow_and_update().clone();
            let input = tokio::select! {
                () = self.stop.cancelled() => return,
                input = self.read(&wanted) => input,
            };
            if let Some(Input::Cdc(sweep)) = &input {
                self.before = Some(Arc::clone(sweep));
            }
            // Names that could not be read are asked for again when they are due.
            if let Some(input) = input
                && self.inputs.send(input).await.is_err()
            {
                return;
            }
            if !self.rest(begun, &wanted).await {
                return;
            }
        }
    }

    async fn read(&self, wanted: &Watch) -> Option<Input> {
        match self.source {
            Source::Cdc => {
                let sweep = self.servers.sweep_cdc(wanted.target.clone()).await;
                let sweep = match &self.before {
                    Some(before) => sweep.sharing(before),
                    None => sweep,
                };
                Some(Input::Cdc(Arc::new(sweep)))
            }
            Source::Tidb => Some(Input::Tidb(Arc::new(self.servers.sweep_tidb().await))),
            Source::Pd => Some(Input::Pd(Arc::new(self.servers.sweep_pd().await))),
            Source::Names => self.servers.table_names().await.ok().map(|names| Input::Names(Arc::new(names))),
        }
    }

    /// Waits until the next read is due, counted from when the last one began. A quicker pace or another target wakes it.
    async fn rest(&mut self, begun: crate::cluster::Timestamp, before: &Watch) -> bool {
        loop {
            let due = self.interval(self.watch.borrow().pace);
            let rest = due.saturating_sub(self.clock.now().since(begun)).max(Duration::from_millis(1));
            tokio::select! {
                () = self.stop.cancelled() => return false,
                () = tokio::time::sleep(rest) => return true,
                changed = self.watch.changed() => {
                    if changed.is_err() {
                        return false;
                    }
                    if self.watch.borrow().target != before.target && self.source == Source::Cdc {
                        return true;
                    }
                }
            }
        }
    }

    const fn interval(&self, pace: Pace) -> Duration {
        match (self.source, pace) {
            (Source::Names, _) => Duration::from_mins(1),
            (Source::Pd, _) | (_, Pace::Idle) => self.policy.poll_idle,
            (_, Pace::Moving) => self.policy.poll_moving,
            (_, Pace::Restart) => self.policy.watch,
        }
    }
}
