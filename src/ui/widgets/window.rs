//! Which rows of a long list are on screen.

use std::ops::Range;

/// The rows shown: `height` of `total`, with `kept` inside, and as near to the middle as the ends allow.
pub(crate) fn around(total: usize, height: usize, kept: usize) -> Range<usize> {
    let start = kept.saturating_sub(height / 2).min(total.saturating_sub(height));
    start..(start + height).min(total)
}

/// The rows shown from `offset` on, which is pulled back so that the page stays full.
pub(crate) fn from(total: usize, height: usize, offset: usize) -> Range<usize> {
    let start = offset.min(total.saturating_sub(height));
    start..(start + height).min(total)
}

/// The index after a move by `by`, held inside the list.
pub(crate) const fn moved(at: usize, by: isize, total: usize) -> usize {
    if total == 0 {
        return 0;
    }
    let to = at.saturating_add_signed(by);
    if to >= total { total - 1 } else { to }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kept_row_is_always_inside_and_the_window_is_full() {
        for total in 0..12 {
            for height in 0..6 {
                for kept in 0..total {
                    let window = around(total, height, kept);
                    assert!(window.end <= total);
                    assert_eq!(window.len(), height.min(total));
                    assert!(height == 0 || window.contains(&kept), "{total} {height} {kept}");
                }
            }
        }
    }

    #[test]
    fn moves_stay_inside() {
        assert_eq!(moved(0, -1, 5), 0);
        assert_eq!(moved(4, 3, 5), 4);
        assert_eq!(moved(0, 1, 0), 0);
        assert_eq!(from(10, 4, 9), 6..10);
    }
}
