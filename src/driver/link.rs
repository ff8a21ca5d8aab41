//! A rollout for a second person: the same handle, over a socket in the rollout's directory.
//!
//! The program that runs the rollout serves ([`serve`]), another one of the same user attaches ([`attach`]) and gets a
//! [`Started`](super::Started) like the one of a rollout of its own; screen and command line do not know the difference.
//! Both sides speak JSON lines ([`wire`]). The invariant: nobody at the other end can hold the rollout back. A reader
//! that is slow misses views and is told how many events it missed, a line that is too long or no line of ours ends the
//! connection, commands are taken one at a time and at a bounded rate, and a connection that ends changes nothing.

mod client;
mod server;
mod socket;
mod wire;

pub use client::{LinkError, attach};
pub use server::{Link, serve};
pub use wire::Role;

/// The name of the socket in a rollout's directory.
pub const SOCKET: &str = "control.sock";
