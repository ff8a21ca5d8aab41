//! How to talk to `TiCDC`, `TiDB` and PD, over one http layer.
//!
//! This room owns the wire: paths, JSON shapes, status codes, and which of their many combinations means what. It refuses
//! to know the rollout, the screen and the simulator. One invariant: an answer that is not what the contract says becomes
//! a named [`Failure`](crate::cluster::Failure), never an empty value.

pub mod cdc;
pub mod clients;
pub mod error;
pub mod http;
pub mod json;
pub mod pd;
pub mod status;
pub mod sweep;
pub mod tidb;

pub use clients::{Clients, Endpoints};
pub use http::{BuildError, Options};
pub use sweep::SweepAsk;
