//! Parts that know nothing of rollouts: text by display width, bars, sparklines, windows over long lists.

pub(crate) mod bar;
pub(crate) mod pane;
pub(crate) mod text;
pub(crate) mod window;
