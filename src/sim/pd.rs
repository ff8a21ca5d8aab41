//! The HTTP face of a PD server: its version (contract section 7.4).

use serde::Serialize;

use super::rng::hex_of;
use super::wire::{JSON_UTF8, Reply, Request, TEXT_UTF8, indented};
use super::world::World;

#[derive(Serialize)]
struct Answer<'a> {
    version: &'a str,
    build_time: &'a str,
    hash: String,
    branch: &'a str,
}

/// The template of a request's route, for counting.
pub(crate) fn template(request: &Request) -> &'static str {
    match request.parts().as_slice() {
        ["pd", "api", "v1", "version"] => "/pd/api/v1/version",
        _ => "(no route)",
    }
}

/// Answers a request.
pub(crate) fn receive(world: &World, server: usize, request: &Request) -> Reply {
    if request.method != "GET" || template(request) == "(no route)" {
        return Reply::new(404, TEXT_UTF8, "404 page not found\n");
    }
    let version = world.pd_version(server);
    let body = Answer { version, build_time: "2026-04-30 08:00:00", hash: hex_of(version, 40), branch: "HEAD" };
    Reply::new(200, JSON_UTF8, indented(&body, 2))
}
