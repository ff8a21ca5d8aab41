//! How to talk to the servers: one http layer, and clients for `TiCDC`, `TiDB` and PD on top of it.
//!
//! This room owns the wire: addresses become requests, answers become the types of [`crate::cluster`], and whatever
//! could not be read becomes a named [`Failure`](crate::cluster::Failure). It refuses to know the rollout, the screen and the simulator, and it
//! reads no clock: moments come from a [`Clock`](crate::cluster::Clock) passed in. The one invariant: an answer that
//! failed or did not parse is never an empty list, never a zero and never "done" (field report 1).

pub mod cdc;
pub mod clients;
pub mod error;
#[cfg(test)]
mod fake;
pub mod http;
pub mod pd;
pub mod status;
mod sweep;
pub mod tidb;
mod wire;

pub use clients::{Clients, Endpoints, SweepAsk};
pub use http::{Answer, Deadlines, Options};
