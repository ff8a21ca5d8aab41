//! The only async glue: it polls, calls, runs executors and feeds the engine.

pub mod handle;
