//! Timing programs.
fn main() {}
