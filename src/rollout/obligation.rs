//! Temporary changes that must be undone: incurred before the act, shown until paid (design section 4).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cluster::{Address, CaptureId, ClusterId, Timestamp};

use super::effect::Component;
use super::view::OwedView;

/// One thing that is owed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obligation {
    /// What.
    pub debt: Debt,
    /// Since when.
    pub since: Timestamp,
}

/// What is owed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Debt {
    /// `/upgrade/finish`: user DDL hangs until then.
    Finish,
    /// A drained capture: it takes no table again and balancing is off for its whole cluster until it is restarted.
    Drain {
        /// Its cluster.
        cluster: ClusterId,
        /// The capture.
        capture: CaptureId,
        /// Where it runs.
        address: Address,
        /// When the drain was last asked for.
        last_asked: Timestamp,
    },
    /// A process that was stopped (or may have been) and is not proven to be back.
    Start {
        /// What kind of process.
        component: Component,
        /// Where.
        address: Address,
        /// The id that the process had: a capture's id, or a server's DDL id.
        before: Arc<str>,
        /// When the last act on it was ordered.
        last_act: Timestamp,
    },
}

impl Obligation {
    /// The obligation as people and scripts see it.
    pub fn view(&self) -> OwedView {
        let (kind, target, what, how) = match &self.debt {
            Debt::Finish => (
                "finish",
                "tidb".to_owned(),
                "the TiDB cluster is in the upgrading state: user DDL hangs until finish".to_owned(),
                "POST /upgrade/finish to the status port of any TiDB server, once all run the same version".to_owned(),
            ),
            Debt::Drain { address, capture, .. } => (
                "restart",
                address.to_string(),
                format!(
                    "capture {address} ({}) was asked to drain: it takes no table again, and balancing is off, until it is restarted",
                    capture.short()
                ),
                format!(
                    "wait until no table is on {address} any more (`tiroll status` tells; if some stay, pause the changefeeds they belong to), then restart the TiCDC process there, on the binary it has or the new one"
                ),
            ),
            Debt::Start { component, address, .. } => (
                "start",
                address.to_string(),
                format!("{} {address} was to be restarted and is not proven to be back", component.word()),
                format!("see whether the {} process at {address} runs; start it if not", component.word()),
            ),
        };
        OwedView { kind: kind.into(), target, what, how, since: self.since }
    }
}
