//! What happened, newest at the bottom.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::rollout::event::Weight;

use super::super::state::{Entry, Pane};
use super::super::theme::Role;
use super::super::widgets::{pane, text};
use super::Ctx;
use super::words::wall;

pub(super) fn draw(buf: &mut Buffer, area: Rect, ctx: &Ctx<'_>) {
    let state = ctx.state;
    let mut title = vec![ctx.span("Events", Role::Strong)];
    if state.shows_details {
        title.push(ctx.span(" · with requests and counts", Role::Plain));
    }
    if !state.event_filter.is_empty() {
        title.push(ctx.span(format!(" · only /{}", state.event_filter), Role::Active));
    }
    if state.event.is_some() {
        title.push(ctx.span(" · not following, G follows", Role::Active));
    }
    let inner = ctx.frame(buf, area, title, Some(Pane::Events));
    let (width, height) = (usize::from(inner.width), usize::from(inner.height));
    // Counted from the newest: only what is visible is walked, unless somebody scrolled back.
    let chosen = state.event_place();
    let first = chosen.saturating_sub(height / 2);
    let first = if state.event.is_none() { 0 } else { first };
    let mut lines: Vec<_> = state
        .entries()
        .enumerate()
        .skip(first)
        .take(height)
        .map(|(at, entry)| row(ctx, entry, width, at == chosen))
        .collect();
    if lines.is_empty() {
        let text = if state.event_filter.is_empty() { " nothing yet" } else { " nothing passes the filter" };
        lines.push(Line::from(ctx.span(text, Role::Dim)));
    }
    lines.reverse();
    pane::lines(buf, inner, lines);
}

fn row(ctx: &Ctx<'_>, entry: &Entry, width: usize, is_chosen: bool) -> Line<'static> {
    let (glyph, role) = match entry.weight {
        Weight::Detail => (" ", Role::Dim),
        Weight::Info => (" ", Role::Plain),
        Weight::Warning => ("▲", Role::Warn),
    };
    let time = wall(entry.at);
    let room = width.saturating_sub(1 + text::width(&time) + 3);
    let spans = vec![
        ctx.span(time, Role::Dim),
        Span::raw(" "),
        ctx.span(glyph, role),
        Span::raw(" "),
        ctx.span(text::cut(&entry.text, room), role),
    ];
    ctx.row(spans, is_chosen && ctx.state.focus == Pane::Events, Pane::Events)
}
