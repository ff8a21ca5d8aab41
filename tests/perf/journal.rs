//! An append to the journal against a bare write and sync of the same bytes.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Instant;

use tiroll::cluster::Timestamp;
use tiroll::journal::{Base, Journal, RolloutId, Writer};

use crate::measure::report;

/// The disk beneath the build directory is measured: the one for temporary files may be memory.
pub(crate) fn run() {
    let now = Timestamp::new(1_796_072_632_050, 1_000);
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
