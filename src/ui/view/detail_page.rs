//! One thing in full, in front of the panes.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::super::detail;
use super::super::state::Detail;
use super::super::theme::Role;
use super::super::widgets::{pane, window};
use super::Ctx;

pub(super) fn draw(buf: &mut Buffer, area: Rect, detail: &Detail, ctx: &Ctx<'_>) {
    let columns = detail::columns(area.width);
    let content = detail::content(ctx.view, ctx.state, detail, usize::from(columns).saturating_sub(3), ctx.now);
    let rows = u16::try_from(content.total() + 2).unwrap_or(u16::MAX);
    let page = pane::centred(buf, area, columns, rows);
    let mut title = vec![ctx.span(&content.title, Role::Strong)];
    if !detail.filter.is_empty() {
        title.push(ctx.span(format!(" · only /{}", detail.filter), Role::Active));
    }
    let inner = ctx.frame(buf, page, title, None);
    let visible = window::from(content.total(), usize::from(inner.height), detail.scroll);
    let (start, end, total) = (visible.start, visible.end, content.total());
    let lines = visible.map(|at| {
        let (text, role) = content.line(at);
        Line::from(ctx.span(format!(" {text}"), role))
    });
    pane::lines(buf, inner, lines);
    if total > usize::from(inner.height) && page.width > 30 && page.height > 1 {
        let place = format!(" {} to {end} of {total} ", start + 1);
        let more = Rect { x: page.x + 2, y: page.bottom() - 1, width: page.width - 4, height: 1 };
        pane::lines(buf, more, [Line::from(ctx.span(place, Role::Strong))]);
    }
}
