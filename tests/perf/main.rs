//! Timing programs: `cargo bench` prints what each takes, and fails only on ratios within one run. `cargo bench -- NAME`
//! runs those named so.
//!
//! - `draw`: a frame of the whole screen at 200×50, with few and with many tables. A frame costs what is visible, so the
//!   two must not differ.
//! - `small`: whole rollouts of three captures, in the mix of inputs a rollout has: steps a second, and each kind alone.
//! - `big`: 100 captures, 100,000 tables and 10 changefeeds: a fresh sweep, a tick, an answer, while nothing runs (with
//!   tables at rest and on the move) and in the middle of a drain; the read model; against copying the ids of a sweep.
//! - `journal`: an append against a bare write and sync of the same bytes in the same directory, in pairs that take turns.

#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a program that measures prints, reads the clock and stops at the first surprise"
)]

mod big;
mod cluster;
#[path = "../it/engine"]
#[expect(dead_code, reason = "the tests need all of that cluster; here it only has to live through a good day")]
mod course {
    mod coordinator;
    pub(crate) mod model;
    mod sweeps;

    /// A cluster of the new architecture.
    pub(crate) fn coordinator_of(captures: usize) -> model::Course {
        model::Course::of_new_architecture(captures, true)
    }
}
mod journal;
mod measure;
mod small;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiroll::rollout::Engine;
use tiroll::rollout::command::Who;
use tiroll::rollout::effect::Input;
use tiroll::rollout::policy::Policy;
use tiroll::ui;

/// Frames with many tables may take this much longer than frames with few, for noise.
const MOST: f64 = 1.5;

fn main() -> ExitCode {
    let named: Vec<_> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_wanted = |name: &str| named.is_empty() || named.iter().any(|wanted| wanted == name);
    let ratio = if is_wanted("draw") { draw() } else { 0.0 };
    if is_wanted("small") {
        small::run();
    }
    if is_wanted("big") {
        big::run();
    }
    if is_wanted("journal") {
        journal::run();
    }
    if ratio > MOST { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// How much longer a frame with many tables takes than one with few.
fn draw() -> f64 {
    let options =
        ui::Options { ascii: false, no_color: false, who: Who::new("bench"), can_command: true, is_attached: false };
    let [few, many] = [100, 100_000].map(|tables| {
        let mut cluster = cluster::Cluster::new(100, tables);
        let mut engine = Engine::new(cluster::request(false), Policy::default());
        for _ in 0..10 {
            cluster.pass(Duration::from_secs(1), true);
            engine.step(cluster.now, Input::Cdc(Arc::new(cluster.sweep())));
        }
        let view = engine.view();
        let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 50));
        let paint = |()| {
            buffer.reset();
            ui::paint(&mut buffer, &view, cluster.now, &options);
        };
        let times = measure::each(300, || (), paint);
        measure::report(&format!("draw 200x50, 100 captures, {tables} tables"), &times)
    });
    let ratio = many.as_secs_f64() / few.as_secs_f64();
    println!("draw: many tables against few: {ratio:.2} times (at most {MOST})");
    ratio
}
