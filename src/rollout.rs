//! The core: plan, phases, evidence, engine, events, read model.
//!
//! This room decides; it does nothing itself. [`Engine::step`] takes the time and an input and returns what shall be
//! done, what has become a fact and when it wants to be woken. It refuses to know clocks, sockets, files, async code and
//! the terminal. The one invariant: a phase ends on positive evidence, and everything unexpected leads to *paused, with
//! choices*, never to the next phase.

pub mod after_abort;
pub mod by_name;
pub mod command;
pub mod control;
pub mod drain_record;
pub mod durable;
pub mod effect;
pub mod engine;
pub mod event;
pub mod evidence;
mod gap;
pub mod guard;
pub mod ledger;
pub mod obligation;
pub mod opening;
pub mod permission;
pub mod phase;
pub mod picture;
pub mod plan;
pub mod policy;
pub mod readout;
pub mod record;
pub mod resume;
pub mod runner;
pub mod view;

pub use engine::{Engine, Request, StepOutput};
