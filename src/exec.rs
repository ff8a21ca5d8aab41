//! How a process is stopped, replaced and started.
//!
//! An executor is told to act and says how that went; it proves nothing, the servers do. It refuses to know the engine,
//! the driver and the screen. One invariant: it does what it was told, once, or says why not.

pub mod manual;
pub mod sim;

use futures::future::BoxFuture;

use crate::rollout::effect::{Action, ActionOutcome};

/// A way to act on processes.
pub trait Executor: Send + Sync {
    /// Its name, as in `--executor`.
    fn name(&self) -> &'static str;

    /// Does it, and says how it went. The exit of an act is a hint, never evidence.
    fn perform(&self, action: Action) -> BoxFuture<'_, ActionOutcome>;
}
