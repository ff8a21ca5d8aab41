//! Integration tests.

#[cfg(test)]
mod architecture;
#[cfg(test)]
mod attach;
#[cfg(test)]
mod bad_night;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod conformance_clients;
#[cfg(test)]
mod conformance_sim;
#[cfg(test)]
mod engine;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod permissions;
#[cfg(test)]
mod rollout_new_arch;
#[cfg(test)]
mod rollout_sim;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod sim_chaos;
#[cfg(test)]
mod sim_http;
#[cfg(test)]
mod sim_new_arch;
#[cfg(test)]
mod sim_new_http;
#[cfg(test)]
mod sim_new_members;
#[cfg(test)]
mod sim_scenario;
#[cfg(test)]
mod sim_support;
#[cfg(test)]
mod sim_tidb;
#[cfg(test)]
mod sim_world;
#[cfg(test)]
mod support;
