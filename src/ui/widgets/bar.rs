//! Bars with eighth blocks and sparklines, as text.

const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A bar of `value` out of `whole`, padded to `columns`.
pub(crate) fn bar(value: u64, whole: u64, columns: usize) -> String {
    let cells = u128::try_from(columns).unwrap_or(0) * 8;
    let filled = match whole {
        0 => 0,
        _ => u128::from(value.min(whole)) * cells / u128::from(whole),
    };
    // Something is never drawn as nothing.
    let filled = if value > 0 && whole > 0 { filled.max(1).min(cells) } else { filled };
    let filled = usize::try_from(filled).unwrap_or(0);
    let full = filled / 8;
    let part = EIGHTHS.get(filled % 8).copied().unwrap_or_default();
    let rest = columns.saturating_sub(full + usize::from(!part.is_empty()));
    format!("{}{part}{}", "█".repeat(full), " ".repeat(rest))
}

/// The newest values that fit, each as a column; the highest is full.
pub(crate) fn sparkline(values: &[u64], columns: usize) -> String {
    let shown = values.get(values.len().saturating_sub(columns)..).unwrap_or_default();
    let top = shown.iter().copied().max().unwrap_or(0).max(1);
    shown
        .iter()
        .map(|&value| {
            let level = u128::from(value) * 7 / u128::from(top);
            LEVELS[usize::try_from(level).unwrap_or(7).min(7)]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_exactly_as_wide_as_asked() {
        assert_eq!(bar(0, 10, 4), "    ");
        assert_eq!(bar(5, 10, 4), "██  ");
        assert_eq!(bar(10, 10, 4), "████");
        assert_eq!(bar(1, 1_000_000, 4), "▏   ");
        assert_eq!(bar(u64::MAX, 1, 3), "███");
        assert_eq!(bar(3, 0, 3), "   ");
        assert_eq!(bar(1, 2, 0), "");
    }

    #[test]
    fn a_sparkline_shows_the_newest_values() {
        assert_eq!(sparkline(&[0, 7, 14], 8), "▁▄█");
        assert_eq!(sparkline(&[9, 0, 7, 14], 3), "▁▄█");
        assert_eq!(sparkline(&[], 3), "");
        assert_eq!(sparkline(&[u64::MAX, 0], 3), "█▁");
    }
}
