//! What several integration tests share.

pub(crate) mod recording;
pub(crate) mod replay;
