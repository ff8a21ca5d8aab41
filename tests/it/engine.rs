//! The engine against a small pure cluster: examples of every turn, and random courses of a bad day.

mod by_name;
mod coordinator;
mod examples;
mod exhaustive;
mod explore;
mod guards;
mod model;
mod new_architecture;
mod odd_days;
mod properties;
mod resume;
mod sweeps;
mod told;
