//! Sequences.
pub(crate) const NAMES: &[&str] = &[];
