//! The core: plan, phases, evidence, engine, events, read model.
//!
//! This room decides; it does nothing itself. `engine::Engine::step` takes the time and an input and
//! returns what shall be done, what has become a fact and when it wants to be woken. It refuses to know clocks, sockets,
//! files, async code and the terminal. The one invariant: a phase ends on positive evidence, and everything unexpected
//! leads to *paused, with choices*, never to the next phase.

pub mod command;
pub mod event;
pub mod policy;
pub mod view;
