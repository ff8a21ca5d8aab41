//! The changefeeds: state, lag and where it is going, tables, and what is wrong.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::cluster::units;
use crate::rollout::view::ChangefeedView;

use super::super::select::{self, changefeeds};
use super::super::state::Pane;
use super::super::status;
use super::super::theme::Role;
use super::super::widgets::{bar, pane, text, window};
use super::Ctx;
use super::words::{OLD, fitted, part, short};

/// Whether the list could be read for every `TiCDC` cluster.
fn is_known(ctx: &Ctx<'_>) -> bool {
    !ctx.view.groups.is_empty() && ctx.view.groups.iter().all(|group| group.changefeeds.last().is_some())
}

fn age(ctx: &Ctx<'_>) -> Option<Span<'static>> {
    let oldest = ctx.view.groups.iter().filter_map(|group| group.changefeeds.age(ctx.now)).max()?;
    (oldest > OLD).then(|| ctx.span(format!(" · {} old", units::spoken(oldest)), Role::Warn))
}

pub(super) fn draw(buf: &mut Buffer, area: Rect, ctx: &Ctx<'_>) {
    let total = changefeeds(ctx.view).count();
    let mut title = vec![ctx.span("Changefeeds", Role::Strong)];
    if is_known(ctx) {
        title.push(ctx.span(format!(" {total}"), Role::Plain));
    } else {
        title.push(ctx.span(" ?", Role::Warn));
    }
    title.extend(age(ctx));
    let inner = ctx.frame(buf, area, title, Some(Pane::Changefeeds));
    let (width, height) = (usize::from(inner.width), usize::from(inner.height));
    if total == 0 {
        let (text, role) = if is_known(ctx) { (" none exists", Role::Dim) } else { (" ?  not read yet", Role::Warn) };
        pane::lines(buf, inner, [Line::from(ctx.span(text, role))]);
        return;
    }
    let longest = changefeeds(ctx.view).map(|feed| text::width(&feed.id.label())).max().unwrap_or(0);
    let name = longest.clamp(10, (width / 3).max(10));
    let chosen = select::changefeed_place(ctx.state, ctx.view);
    let has_heading = height > total;
    let visible = window::around(total, height, chosen);
    let rows = changefeeds(ctx.view).enumerate().skip(visible.start).take(visible.len());
    let rows = rows.map(|(at, feed)| row(ctx, feed, name, width, at == chosen));
    let heading = has_heading.then(|| heading(ctx, name, width));
    pane::lines(buf, inner, heading.into_iter().chain(rows));
}

const TABLES: usize = 7;

/// Columns for the sparkline; the other columns never give way to it.
fn rest(width: usize, name: usize) -> usize {
    let rest = width.saturating_sub(3 + name + 1 + 8 + 6 + TABLES + 2).min(48);
    if rest < 3 { 0 } else { rest }
}

fn heading(ctx: &Ctx<'_>, name: usize, width: usize) -> Line<'static> {
    let spark = rest(width, name);
    let gap = if spark == 0 { 0 } else { spark + 2 };
    let parts = [
        text::left("   CHANGEFEED", 3 + name + 1),
        text::left("STATE", 8),
        text::right("LAG", 6),
        text::right("TABLES", gap + TABLES),
    ];
    Line::from(ctx.span(parts.concat(), Role::Dim))
}

fn row(ctx: &Ctx<'_>, feed: &ChangefeedView, name: usize, width: usize, is_chosen: bool) -> Line<'static> {
    let (glyph, role) = status::of_changefeed(&feed.state);
    let lag = feed.lag.map_or_else(|| if feed.state.is_at_rest() { "–".to_owned() } else { "?".to_owned() }, short);
    let tables = feed.tables.map_or_else(|| "?".to_owned(), units::grouped);
    let spark = rest(width, name);
    let mut spans = vec![
        ctx.span(glyph, role),
        Span::raw(" "),
        ctx.span(text::left(&text::cut_middle(&feed.id.label(), name), name + 1), Role::Plain),
        ctx.span(text::left(&feed.state.to_string(), 8), role),
        ctx.span(text::right(&lag, 6), Role::Plain),
    ];
    if let Some(error) = &feed.error {
        // What is wrong says more than where the lag has been.
        spans.push(Span::raw("  "));
        spans.push(ctx.span(text::left(&error.code, spark + TABLES), Role::Bad));
    } else {
        if spark > 0 {
            let line = text::left(&bar::sparkline(&feed.lag_history, spark), spark);
            spans.push(ctx.span(format!("  {line}"), Role::Dim));
        }
        spans.push(ctx.span(text::right(&tables, TABLES), Role::Plain));
    }
    ctx.row(spans, is_chosen && ctx.state.focus == Pane::Changefeeds, Pane::Changefeeds)
}

/// One line for where there is no room for more: how many in which state, and the worst.
pub(super) fn summary(ctx: &Ctx<'_>, width: u16) -> Line<'static> {
    let mut parts = vec![part(ctx.span(" changefeeds ", Role::Strong), 0)];
    if !is_known(ctx) {
        parts.push(part(ctx.span("? not read yet", Role::Warn), 0));
        return fitted(parts, Vec::new(), usize::from(width));
    }
    let total = changefeeds(ctx.view).count();
    let good = changefeeds(ctx.view).filter(|feed| feed.state.word() == "normal").count();
    let (glyph, role) = if good == total { ("●", Role::Good) } else { ("▲", Role::Warn) };
    parts.push(part(ctx.span(format!("{glyph} {good} of {total} normal"), role), 0));
    if let Some(feed) = changefeeds(ctx.view).find(|feed| feed.state.word() != "normal") {
        let (_, role) = status::of_changefeed(&feed.state);
        parts.push(part(ctx.span(format!(" · {} {}", text::cut_middle(&feed.id.label(), 16), feed.state), role), 1));
    }
    let worst = changefeeds(ctx.view).filter_map(|feed| Some((feed.lag?, feed))).max_by_key(|(lag, _)| *lag);
    if let Some((lag, feed)) = worst {
        parts.push(part(ctx.span(format!(" · lag {}", short(lag)), Role::Plain), 2));
        parts.push(part(ctx.span(format!(" {}", text::cut_middle(&feed.id.label(), 16)), Role::Plain), 4));
    }
    parts.extend(age(ctx).map(|span| part(span, 3)));
    fitted(parts, Vec::new(), usize::from(width))
}
