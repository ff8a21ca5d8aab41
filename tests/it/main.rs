//! Integration tests.

mod sim_chaos;
mod sim_http;
mod sim_scenario;
mod sim_support;
mod sim_world;
