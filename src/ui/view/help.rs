//! The help page, made of the one list of actions and the legend.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::keymap::{self, BINDINGS, Group};
use super::super::state::UiState;
use super::super::status::LEGEND;
use super::super::theme::Role;
use super::super::widgets::{pane, text, window};
use super::Ctx;
use crate::rollout::view::View;

/// Lines of the whole page, without drawing it.
pub(crate) fn total() -> usize {
    Group::ALL.len() * 2 + BINDINGS.len() + 1 + LEGEND.len().div_ceil(2)
}

pub(super) fn draw(buf: &mut Buffer, area: Rect, scroll: usize, ctx: &Ctx<'_>) {
    let page = pane::centred(buf, area, 92, u16::try_from(total() + 2).unwrap_or(u16::MAX));
    let inner = ctx.frame(buf, page, vec![ctx.span("Help", Role::Strong)], None);
    let lines = lines(ctx, ctx.live, ctx.state, usize::from(inner.width));
    let visible = window::from(lines.len(), usize::from(inner.height), scroll);
    if visible.end < lines.len() && page.height > 1 && page.width > 20 {
        let more = Rect { x: page.x + 2, y: page.bottom() - 1, width: page.width - 4, height: 1 };
        pane::lines(buf, more, [Line::from(ctx.span(" ↓ more ", Role::Strong))]);
    }
    pane::lines(buf, inner, lines.into_iter().skip(visible.start).take(visible.len()));
}

fn lines(ctx: &Ctx<'_>, view: &View, state: &UiState, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::with_capacity(total());
    for group in Group::ALL {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::from(ctx.span(format!(" {}", group.heading()), Role::Strong)));
        for binding in BINDINGS.iter().filter(|binding| binding.group == group) {
            let keys: Vec<_> = binding.keys.iter().map(|chord| chord.name()).collect();
            let allowed = keymap::permission(binding.action, view, state);
            // Why not is said when the key is pressed; here it would push the help itself off the page.
            let (role, why) = if allowed.is_ok() { (Role::Plain, "") } else { (Role::Dim, "  (not now)") };
            let help = binding.help.strip_prefix("after an abort: ").unwrap_or(binding.help);
            let keys = text::left(&keys.join(" "), 14);
            let words = text::cut(&format!("{help}{why}"), width.saturating_sub(18));
            lines.push(Line::from(vec![
                ctx.span(format!("   {keys} "), if why.is_empty() { Role::Key } else { Role::Dim }),
                ctx.span(words, role),
            ]));
        }
    }
    lines.push(Line::default());
    lines.push(Line::from(ctx.span(" Signs", Role::Strong)));
    for pair in LEGEND.chunks(2) {
        let mut line = Line::from(Span::raw("   "));
        for status in pair {
            line.push_span(ctx.span(status.glyph, status.role));
            line.push_span(ctx.span(format!(" {}", text::left(status.word, 38)), Role::Plain));
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::fixture;
    use crate::ui::theme::Theme;

    #[test]
    fn every_action_is_on_the_help_page() {
        let (view, state) = (fixture::stepping(), fixture::state());
        let ctx = Ctx { view: &view, live: &view, state: &state, theme: Theme::new(false, false), now: state.now };
        let lines = lines(&ctx, &view, &state, 400);
        assert_eq!(lines.len(), total());
        let page = lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        for binding in BINDINGS {
            let help = binding.help.strip_prefix("after an abort: ").unwrap_or(binding.help);
            assert!(page.contains(help), "{}", binding.help);
            for chord in binding.keys {
                assert!(page.contains(&chord.name()), "{}", chord.name());
            }
        }
    }
}
