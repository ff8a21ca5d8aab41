//! Taking times and printing them.

use std::time::{Duration, Instant};

/// How long each of `rounds` turns took, shortest first. What is prepared for a turn is not counted.
pub(crate) fn each<T>(rounds: usize, mut prepare: impl FnMut() -> T, mut work: impl FnMut(T)) -> Vec<Duration> {
    for _ in 0..5 {
        work(prepare());
    }
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let prepared = prepare();
            let begun = Instant::now();
            work(prepared);
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    times
}

/// Prints what a list of times comes to, and gives its median.
pub(crate) fn report(what: &str, times: &[Duration]) -> Duration {
    let p50 = times[times.len() / 2];
    let p99 = times[times.len() * 99 / 100];
    println!("{what}: p50 {p50:.1?}, p99 {p99:.1?}, least {:.1?}", times[0]);
    p50
}

/// The mean of a list of times.
pub(crate) fn mean(times: &[Duration]) -> Duration {
    times.iter().sum::<Duration>() / u32::try_from(times.len()).unwrap()
}
