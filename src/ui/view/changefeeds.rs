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
use super::words::{OLD, short};

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
    let name = longest.clamp(6, (width / 3).max(8));
    let chosen = select::changefeed_place(ctx.state, ctx.view);
    let visible = window::around(total, height, chosen);
    let rows = changefeeds(ctx.view).enumerate().skip(visible.start).take(visible.len());
    pane::lines(buf, inner, rows.map(|(at, feed)| row(ctx, feed, name, width, at == chosen)));
}

fn row(ctx: &Ctx<'_>, feed: &ChangefeedView, name: usize, width: usize, is_chosen: bool) -> Line<'static> {
    let (glyph, role) = status::of_changefeed(&feed.state);
    let lag = feed.lag.map_or_else(|| if feed.state.is_at_rest() { "–".to_owned() } else { "?".to_owned() }, short);
    let tables = feed.tables.map_or_else(|| "?".to_owned(), units::grouped);
    let rest = width.saturating_sub(3 + name + 1 + 8 + 6 + 8 + 2);
    let mut spans = vec![
        ctx.span(glyph, role),
        Span::raw(" "),
        ctx.span(text::name(&feed.id.label(), name + 1), Role::Plain),
        ctx.span(text::left(&feed.state.to_string(), 8), role),
        ctx.span(text::right(&lag, 6), Role::Plain),
    ];
    match &feed.error {
        Some(error) => {
            spans.push(Span::raw("  "));
            spans.push(ctx.span(text::left(&error.code, rest + 8), Role::Bad));
        }
        None if rest >= 4 => {
            spans
                .push(ctx.span(format!("  {}", text::left(&bar::sparkline(&feed.lag_history, rest), rest)), Role::Dim));
            spans.push(ctx.span(text::right(&tables, 8), Role::Plain));
        }
        None => {}
    }
    ctx.row(spans, is_chosen && ctx.state.focus == Pane::Changefeeds, Pane::Changefeeds)
}

/// One line for where there is no room for more: how many in which state, and the worst.
pub(super) fn summary(ctx: &Ctx<'_>, width: u16) -> Line<'static> {
    let mut spans = vec![ctx.span(" changefeeds ", Role::Strong)];
    if !is_known(ctx) {
        spans.push(ctx.span("?", Role::Warn));
        return Line::from(spans);
    }
    let total = changefeeds(ctx.view).count();
    let good = changefeeds(ctx.view).filter(|feed| feed.state.word() == "normal").count();
    let role = if good == total { Role::Good } else { Role::Warn };
    spans.push(ctx.span(format!("{} {good} of {total} normal", if good == total { "●" } else { "▲" }), role));
    if let Some(feed) = changefeeds(ctx.view).find(|feed| feed.state.word() != "normal") {
        spans.push(ctx.span(format!(" · {} {}", text::cut_middle(&feed.id.label(), 16), feed.state), Role::Warn));
    }
    let worst = changefeeds(ctx.view).filter_map(|feed| Some((feed.lag?, feed))).max_by_key(|(lag, _)| *lag);
    if let Some((lag, feed)) = worst {
        let text = format!(" · worst lag {} {}", short(lag), text::cut_middle(&feed.id.label(), 16));
        spans.push(ctx.span(text, Role::Plain));
    }
    spans.extend(age(ctx));
    clipped(spans, width)
}

/// A line cut with an ellipsis, keeping the styles.
pub(super) fn clipped(spans: Vec<Span<'static>>, width: u16) -> Line<'static> {
    let mut left = usize::from(width);
    let mut out = Vec::with_capacity(spans.len());
    for span in spans {
        let taken = text::width(&span.content);
        if taken > left {
            out.push(Span::styled(text::cut(&span.content, left), span.style));
            break;
        }
        left -= taken;
        out.push(span);
    }
    Line::from(out)
}
