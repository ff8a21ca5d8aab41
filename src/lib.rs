//! # tiroll
//!
//! A terminal program that takes a `TiDB` cluster with `TiCDC` through a rolling upgrade, one phase at a time.
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
pub mod cluster;
pub mod crash;
pub mod driver;
pub mod exec;
pub mod rollout;
pub mod sim;
pub mod ui;
