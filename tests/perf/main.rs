//! Timing programs: `cargo bench` prints p50 and p99 of each, and fails only on ratios within one run.
//!
//! - `draw`: a frame of the whole screen at 200×50, with few and with many tables. A frame costs what is visible, so the
//!   two must not differ.
//! - `step`: one turn of the engine with a fresh sweep of 100 captures.
//! - `view`: the read model of the same.
//! - `journal append`: against a bare write and sync of the same bytes in the same directory, in pairs that take turns.

#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a program that measures prints and reads the clock"
)]

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::hint::black_box;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiroll::cluster::{
    Address, Architecture, CaptureEntry, CaptureId, CdcSweep, ChangefeedId, ChangefeedRow, ChangefeedState, ClusterId,
    GroupSweep, LivenessReading, NodeReading, NodeStatus, TableId, Timestamp, Tso, Version,
};
use tiroll::journal::{Base, Journal, RolloutId, Writer};
use tiroll::rollout::command::Who;
use tiroll::rollout::effect::Input;
use tiroll::rollout::policy::Policy;
use tiroll::rollout::{Engine, Request};
use tiroll::ui;

/// Frames with many tables may take this much longer than frames with few, for noise.
const MOST: f64 = 1.5;

fn main() -> ExitCode {
    let options =
        ui::Options { ascii: false, no_color: false, who: Who::new("bench"), can_command: true, is_attached: false };
    let mut medians = Vec::new();
    for (captures, tables) in [(100, 100), (100, 100_000)] {
        let (engine, now) = engine(captures, tables);
        let view = engine.view();
        let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 50));
        let times = measure(300, || {
            buffer.reset();
            ui::paint(&mut buffer, &view, now, &options);
        });
        medians.push(report(&format!("draw 200x50, {captures} captures, {tables} tables"), &times));
    }
    let (mut engine, now) = engine(100, 100_000);
    let sweep = Arc::new(sweep(100, 100_000, now));
    let mut at = now;
    let times = measure(100, || {
        at = at.plus(Duration::from_millis(1));
        black_box(engine.step(at, Input::Cdc(Arc::clone(&sweep))));
    });
    report("engine step with a sweep of 100,000 tables", &times);
    let times = measure(100, || {
        at = at.plus(Duration::from_millis(1));
        black_box(engine.step(at, Input::Tick));
    });
    report("engine step with nothing new", &times);
    let times = measure(100, || {
        black_box(engine.view());
    });
    report("read model of 100,000 tables", &times);
    journal(now);
    let ratio = medians[1].as_secs_f64() / medians[0].as_secs_f64();
    println!("draw: many tables against few: {ratio:.2} times (at most {MOST})");
    if ratio > MOST { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn measure(rounds: usize, mut work: impl FnMut()) -> Vec<Duration> {
    for _ in 0..5 {
        work();
    }
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let begun = Instant::now();
            work();
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    times
}

/// The disk beneath the build directory is measured: the one for temporary files may be memory.
fn journal(now: Timestamp) {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (base, id) = (Base::at(place.path()), RolloutId::new(now));
    let mut journal = Journal::create(&base, &id, now, &Writer::here("bench"), "bench").unwrap();
    let path = base.rollout(&id).join("bare");
    let mut plain = OpenOptions::new().append(true).create_new(true).open(path).unwrap();
    let record = serde_json::json!({
        "kind": "intended", "effect": 17, "step": "10.0.1.20:8300", "phase": "drain", "tables": 87, "by": "ann"
    });
    // A line of the journal around the same record, at most a few digits longer than the first ones there.
    let line = format!(
        "{{\"v\":1,\"n\":1000,\"at\":\"2026-12-01T04:10:55.123Z\",\"crc\":\"9ad1c2f0\",\"record\":{record}}}\n"
    );
    let mut times = [Vec::new(), Vec::new()];
    for turn in 0..2_000 {
        // Whoever goes first in a pair may have it harder.
        for which in [turn % 2, 1 - turn % 2] {
            let begun = Instant::now();
            if which == 0 {
                journal.append(now, std::slice::from_ref(&record)).unwrap();
            } else {
                plain.write_all(line.as_bytes()).unwrap();
                plain.sync_data().unwrap();
            }
            times[which].push(begun.elapsed());
        }
    }
    let mut ratios: Vec<_> =
        times[0].iter().zip(&times[1]).map(|(ours, bare)| ours.as_secs_f64() / bare.as_secs_f64()).collect();
    ratios.sort_by(f64::total_cmp);
    for times in &mut times {
        times.sort_unstable();
    }
    let ours = report("journal append of one record", &times[0]);
    let other = report("bare write and sync of the same bytes", &times[1]);
    let of_medians = ours.as_secs_f64() / other.as_secs_f64();
    println!("journal: {of_medians:.3} times a bare write (medians), {:.3} (median of 2,000 pairs)", ratios[1_000]);
}

fn report(what: &str, times: &[Duration]) -> Duration {
    let p50 = times[times.len() / 2];
    let p99 = times[times.len() * 99 / 100];
    println!("{what}: p50 {p50:.1?}, p99 {p99:.1?}, least {:.1?}", times[0]);
    p50
}

fn engine(captures: usize, tables: usize) -> (Engine, Timestamp) {
    let request = Request {
        target: Version::parse("v8.5.4").unwrap(),
        is_watch: false,
        has_tidb: false,
        has_pd: false,
        executor: "manual",
        hand_over_passes: false,
        is_simulated: false,
        speed: 1.0,
        is_auto: false,
    };
    let mut engine = Engine::new(request, Policy::default());
    let mut now = Timestamp::new(1_796_072_632_050, 1_000);
    for _ in 0..10 {
        now = now.plus(Duration::from_secs(1));
        engine.step(now, Input::Cdc(Arc::new(sweep(captures, tables, now))));
    }
    (engine, now)
}

/// A cluster with ten changefeeds, its tables spread evenly.
fn sweep(captures: usize, tables: usize, now: Timestamp) -> CdcSweep {
    let cluster = ClusterId::default();
    let id = |n: usize| CaptureId::new(format!("{n:08x}-7995-43c6-9372-51d69d484aff"));
    let address = |n: usize| Address::new(&format!("10.0.1.{n}"), 8300);
    let nodes = (0..captures)
        .map(|n| NodeReading {
            address: address(n),
            is_configured: true,
            at: now,
            status: Ok(NodeStatus {
                id: Some(id(n)),
                version: Version::parse("v8.5.3").ok(),
                version_text: "v8.5.3".into(),
                git_hash: "c7b2588".into(),
                cluster_id: Some(cluster.clone()),
                pid: Some(1),
                is_owner: n == 0,
                liveness: LivenessReading::new(Some(0), Architecture::Classic),
                architecture: Architecture::Classic,
            }),
        })
        .collect();
    let list: Vec<_> = (0..captures)
        .map(|n| CaptureEntry { id: id(n), address: address(n), cluster_id: Some(cluster.clone()), is_owner: n == 0 })
        .collect();
    let feeds: Vec<_> = (0..10).map(|n| ChangefeedId::new("default", format!("feed-{n}"))).collect();
    let clock = Tso::new(u64::try_from(now.wall_ms).unwrap() << 18).unwrap();
    let rows = feeds
        .iter()
        .map(|feed| ChangefeedRow {
            id: feed.clone(),
            state: ChangefeedState::Normal,
            checkpoint: Tso::new(u64::try_from(now.wall_ms - 2_000).unwrap() << 18),
            error: None,
        })
        .collect();
    let mut placement: BTreeMap<ChangefeedId, _> =
        feeds.iter().map(|feed| (feed.clone(), Ok(BTreeMap::<CaptureId, Vec<TableId>>::new()))).collect();
    for table in 0..tables {
        if let Some(Ok(by_capture)) = placement.get_mut(&feeds[table % 10]) {
            by_capture.entry(id(table / 10 % captures)).or_default().push(TableId(i64::try_from(table).unwrap()));
        }
    }
    let group = GroupSweep {
        cluster_id: cluster,
        architecture: Some(Architecture::Classic),
        captures: Ok(list),
        health: Ok(()),
        changefeeds: Ok(rows),
        processors: Ok(Vec::new()),
        placement,
        target: None,
        cluster_time: Ok(clock),
    };
    CdcSweep { begun: now, ended: now, nodes, groups: vec![group] }
}
