//! Times and counts as short words, and lines that give up their least important parts first.

use std::time::Duration;

use ratatui::text::{Line, Span};

use crate::cluster::Timestamp;

use super::super::widgets::text;

/// Figures older than this look old: twice the slowest poll.
pub(crate) const OLD: Duration = Duration::from_secs(10);

/// `14:03:27`, in UTC, as the logs of servers are mostly read.
pub(crate) fn wall(at: Timestamp) -> String {
    let seconds = at.wall_ms.div_euclid(1000).rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// `0.8s`, `38s`, `6m`, `2h`: a duration in four columns.
pub(crate) fn short(duration: Duration) -> String {
    let (ms, seconds) = (duration.as_millis(), duration.as_secs());
    match seconds {
        0..10 => format!("{}.{}s", seconds, ms % 1000 / 100),
        10..100 => format!("{seconds}s"),
        100..6_000 => format!("{}m", seconds / 60),
        6_000..360_000 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// `about 22 s`, `about 9 min`: an estimate, never more exact than it is.
pub(crate) fn about(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => "less than 10 s".to_owned(),
        10..100 => format!("about {seconds} s"),
        100..5_400 => format!("about {} min", (seconds + 30) / 60),
        _ => format!("about {}.{} h", seconds / 3600, seconds % 3600 / 360),
    }
}

/// A part of a line.
pub(crate) struct Part {
    /// The text.
    pub(crate) span: Span<'static>,
    /// Parts with the highest number go first when space is short; 0 never goes.
    pub(crate) goes: u8,
}

/// A part that goes when it must.
pub(crate) const fn part(span: Span<'static>, goes: u8) -> Part {
    Part { span, goes }
}

/// A line with parts on both sides, as wide as asked.
pub(crate) fn fitted(mut on_left: Vec<Part>, mut on_right: Vec<Part>, columns: usize) -> Line<'static> {
    let taken = |parts: &[Part]| parts.iter().map(|part| text::width(&part.span.content)).sum::<usize>();
    while taken(&on_left) + taken(&on_right) + usize::from(!on_right.is_empty()) > columns {
        let goes = on_left.iter().chain(&on_right).map(|part| part.goes).max().unwrap_or(0);
        if goes == 0 {
            break;
        }
        on_left.retain(|part| part.goes != goes);
        on_right.retain(|part| part.goes != goes);
    }
    let gap = columns.saturating_sub(taken(&on_left) + taken(&on_right));
    let mut line = Line::default();
    line.extend(on_left.into_iter().map(|part| part.span));
    line.push_span(" ".repeat(gap));
    line.extend(on_right.into_iter().map(|part| part.span));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short_and_honest() {
        assert_eq!(wall(Timestamp::new(50_607_000, 0)), "14:03:27");
        assert_eq!(wall(Timestamp::new(-1, 0)), "23:59:59");
        let s = Duration::from_secs;
        assert_eq!(short(Duration::from_millis(850)), "0.8s");
        assert_eq!(short(s(38)), "38s");
        assert_eq!(short(s(372)), "6m");
        assert_eq!(about(s(3)), "less than 10 s");
        assert_eq!(about(s(22)), "about 22 s");
        assert_eq!(about(s(550)), "about 9 min");
        for seconds in [0, 9, 10, 99, 100, 5_999, 6_000, 359_999, 3_600_000] {
            assert!(short(s(seconds)).len() <= 4, "{}", short(s(seconds)));
        }
    }

    #[test]
    fn the_least_important_part_goes_first() {
        let parts = || vec![part(Span::raw("keep"), 0), part(Span::raw(" first"), 2), part(Span::raw(" then"), 1)];
        let text = |columns| fitted(parts(), vec![part(Span::raw("R"), 0)], columns).to_string();
        assert_eq!(text(20), "keep first then    R");
        assert_eq!(text(12), "keep then  R");
        assert_eq!(text(6), "keep R");
        assert_eq!(text(2), "keepR");
    }
}
