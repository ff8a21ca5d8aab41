//! A cluster in a box.

pub mod scenario;
pub mod world;

mod clock;
mod rng;
