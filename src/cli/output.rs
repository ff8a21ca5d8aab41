//! The only place that writes to standard output and standard error.

use std::io::{self, Write};

/// Writes a line to standard output. A reader that has gone (`| head`) is no error of ours.
pub(super) fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Writes a line to standard error.
pub(super) fn warn(line: &str) {
    let mut out = io::stderr().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
