//! What a cluster is: plain data, versions, addresses, ids, observed values with their age.
//!
//! This room owns the words the rest of the house speaks in. It refuses to know clocks, sockets, files, async code and
//! the terminal: everything here is a value or a total function. The one invariant: *unknown is not empty*. What could
//! not be read is a [`Failure`] or an [`Observed::Unknown`], never an empty list and never a zero.

pub mod answer;
pub mod cdc;
pub mod ids;
pub mod observation;
pub mod pd;
pub mod placement;
pub mod reading;
pub mod tidb;
pub mod units;
pub mod version;

pub use answer::{Failure, FailureKind, Reading};
pub use cdc::{
    Architecture, CaptureEntry, ChangefeedError, ChangefeedRow, ChangefeedState, Liveness, LivenessReading, NodeStatus,
};
pub use ids::{Address, ByCapture, CaptureId, ChangefeedId, ClusterId, TableId};
pub use observation::Observed;
pub use pd::PdReading;
pub use placement::{CaptureTables, Named, Placement, Placements, TableIds};
pub use reading::{
    CdcSweep, GroupSweep, NodeReading, Nodes, PdSweep, Processors, TargetTables, TidbReading, TidbSweep,
};
pub use tidb::{FinishAnswer, StartAnswer, TidbInfo, TidbStatus, UpgradeState};
pub use units::{Clock, Timestamp, Tso};
pub use version::Version;
