//! The captures: who owns, what runs where, and how many tables each carries.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::cluster::{Observed, units};
use crate::rollout::view::{CaptureView, GroupView, PhaseState, Standing, View};

use super::super::select;
use super::super::state::Pane;
use super::super::status;
use super::super::theme::Role;
use super::super::widgets::{bar, pane, text, window};
use super::Ctx;
use super::words::{OLD, short};

/// Widths of the columns at this width of the pane. State, tables and the signs are never given up.
struct Columns {
    name: usize,
    version: usize,
    state: usize,
    bar: usize,
    delta: usize,
    lag: usize,
    age: usize,
}

const SIGNS: usize = 6;
const COUNT: usize = 7;

impl Columns {
    fn of(width: usize, longest: usize, has_old: bool) -> Self {
        let mut columns = Self { name: 0, version: 9, state: 9, bar: 0, delta: 0, lag: 6, age: 0 };
        let rest = |c: &Self| width.saturating_sub(SIGNS + COUNT + c.version + 1 + c.state + c.delta + c.lag + c.age);
        let longest = longest.clamp(7, 48);
        let name = longest.min(22) + 2;
        // An old figure without its age would be taken for a fresh one.
        if has_old || rest(&columns) > name + 12 {
            columns.age = 6;
        }
        if rest(&columns) > name + 7 {
            columns.delta = 7;
        }
        // A very long name gives way to the bar: its middle says the least.
        let room = rest(&columns).saturating_sub(2);
        columns.name = longest.min(room.saturating_sub(11).max(22)).min(room);
        let over = rest(&columns).saturating_sub(columns.name + 2);
        if over >= 5 {
            columns.bar = over.min(60) - 1;
        } else {
            columns.name = longest.min(room);
        }
        columns
    }
}

/// The age of what is known of a capture's tables, if it has to be said.
fn old_age(ctx: &Ctx<'_>, capture: &CaptureView) -> Option<String> {
    let age = capture.tables.age(ctx.now);
    let is_old = matches!(capture.tables, Observed::Stale { .. }) || age.is_some_and(|age| age > OLD);
    is_old.then(|| age.map_or_else(|| "?".to_owned(), short))
}

fn title(ctx: &Ctx<'_>) -> Vec<Span<'static>> {
    let view = ctx.view;
    let count: usize = view.groups.iter().map(|group| group.captures.len()).sum();
    if view.groups.is_empty() {
        return vec![ctx.span("Captures", Role::Strong), ctx.span(" ?", Role::Warn)];
    }
    // Counted by changefeed: a table on the move is listed at two captures, and is one table.
    let feeds = |group: &GroupView| {
        group.changefeeds.last().map(|feeds| feeds.iter().map(|feed| feed.tables).sum::<Option<u64>>())
    };
    let tables: Option<u64> = view.groups.iter().map(|group| feeds(group).flatten()).sum();
    let tables = tables.map_or_else(|| "? tables".to_owned(), |count| units::counted(count, "table"));
    let mut title = vec![ctx.span("Captures", Role::Strong), ctx.span(format!(" {count} · {tables}"), Role::Plain)];
    if let [group] = view.groups.as_slice() {
        title.push(ctx.span(" · ", Role::Plain));
        title.push(owner(ctx, view, group));
        if let Some(false) = group.health.last() {
            title.push(ctx.span(" · unhealthy", Role::Warn));
        }
    }
    if !ctx.state.capture_filter.is_empty() {
        title.push(ctx.span(format!(" · only /{}", ctx.state.capture_filter), Role::Active));
    }
    title
}

fn owner(ctx: &Ctx<'_>, view: &View, group: &GroupView) -> Span<'static> {
    let word = group.owner_word();
    match group.owner.last() {
        Some(Some(id)) => {
            let address = view.capture(id).map_or(id.as_str(), |capture| &capture.address);
            let age = group.owner.age(ctx.now).filter(|age| *age > OLD || group.owner.known().is_none());
            let old = age.map_or_else(String::new, |age| format!(" ({} ago)", short(age)));
            let role = if old.is_empty() { Role::Plain } else { Role::Warn };
            ctx.span(format!("{word} {}{old}", text::cut_middle(address, 32)), role)
        }
        Some(None) => ctx.span(format!("no {word}"), Role::Warn),
        None => ctx.span(format!("{word} ?"), Role::Warn),
    }
}

pub(super) fn draw(buf: &mut Buffer, area: Rect, ctx: &Ctx<'_>) {
    let inner = ctx.frame(buf, area, title(ctx), Some(Pane::Captures));
    let (width, height) = (usize::from(inner.width), usize::from(inner.height));
    let view = ctx.view;
    if view.groups.iter().all(|group| group.captures.is_empty()) {
        let text = if view.groups.is_empty() { " ?  the captures have not been read yet" } else { " none is listed" };
        pane::lines(buf, inner, [Line::from(ctx.span(text, Role::Warn))]);
        return;
    }
    let all = || view.groups.iter().flat_map(|group| &group.captures);
    let longest = all().map(|capture| text::width(&capture.address)).max().unwrap_or(0);
    let most = all().filter_map(CaptureView::table_count).max().unwrap_or(0);
    let has_old = all().any(|capture| old_age(ctx, capture).is_some());
    let columns = Columns::of(width, longest, has_old);
    let chosen = select::capture_place(ctx.state, view);
    let total = ctx.state.captures(view).count();
    if total == 0 {
        pane::lines(buf, inner, [Line::from(ctx.span(" no capture passes the filter; Esc clears it", Role::Dim))]);
        return;
    }
    let groups = if view.groups.len() > 1 { view.groups.len() } else { 0 };
    let visible = window::around(total, height.saturating_sub(1 + groups).max(1), chosen);
    let mut lines = vec![heading(ctx, &columns)];
    let mut last_group = None;
    for (at, capture) in ctx.state.captures(view).enumerate().skip(visible.start).take(visible.len()) {
        if groups > 0 {
            let group = view.groups.iter().find(|group| group.captures.iter().any(|c| std::ptr::eq(c, capture)));
            let id = group.map(|group| group.cluster_id.as_str());
            if id != last_group {
                last_group = id;
                let text = format!(" TiCDC cluster {}", id.unwrap_or("?"));
                lines.push(Line::from(vec![
                    ctx.span(text, Role::Strong),
                    Span::raw(" · "),
                    group.map_or_else(Span::default, |group| owner(ctx, view, group)),
                ]));
            }
        }
        lines.push(row(ctx, capture, &columns, most, at == chosen));
    }
    pane::lines(buf, inner, lines);
}

fn heading(ctx: &Ctx<'_>, columns: &Columns) -> Line<'static> {
    let mut out = " ".repeat(SIGNS);
    out += &text::left("CAPTURE", columns.name + 2);
    out += &text::left("VERSION", columns.version);
    out += " ";
    out += &text::left("STATE", columns.state);
    if columns.bar > 0 {
        out += " ";
    }
    out += &text::right("TABLES", columns.bar + COUNT);
    out += &text::right("Δ/min", columns.delta);
    out += &text::right("LAG", columns.lag);
    out += &text::right("AGE", columns.age);
    Line::from(ctx.span(out, Role::Dim))
}

fn sign(ctx: &Ctx<'_>, capture: &CaptureView) -> (&'static str, Role) {
    let view = ctx.view;
    let is_target = view.current().is_some_and(|(step, phase)| {
        let is_begun = step.phases.iter().any(|phase| phase.state != PhaseState::Waiting);
        step.target == capture.address && is_begun && !phase.state.is_over()
    });
    let is_at_target = match (&view.title.to, &capture.version) {
        (Some(to), Some(version)) => version.is_same_release(to),
        _ => false,
    };
    match (is_target, is_at_target) {
        _ if capture.standing == Standing::Ghost => (" ", Role::Dim),
        (true, _) => ("▶", Role::Active),
        (false, true) => ("✔", Role::Good),
        (false, false) => (" ", Role::Plain),
    }
}

fn row(ctx: &Ctx<'_>, capture: &CaptureView, columns: &Columns, most: u64, is_chosen: bool) -> Line<'static> {
    let state = status::of_capture(ctx.view, capture);
    let (sign, sign_role) = sign(ctx, capture);
    let count = capture.table_count();
    let age = old_age(ctx, capture);
    let is_gone = capture.standing == Standing::Ghost;
    let figures = if age.is_some() || is_gone { Role::Dim } else { Role::Plain };
    let version = capture.version.as_ref().map_or("?", |version| version.as_str());
    let unknown = |known: bool| if known { figures } else { Role::Warn };
    let owner = if capture.is_owner { "♛" } else { " " };
    let mut spans = vec![
        Span::raw(" "),
        ctx.span(sign, sign_role),
        Span::raw(" "),
        ctx.span(owner, Role::Strong),
        Span::raw(" "),
        ctx.span(
            text::left(&text::cut_middle(&capture.address, columns.name), columns.name + 2),
            if is_gone { Role::Dim } else { Role::Plain },
        ),
        ctx.span(text::left(version, columns.version), unknown(capture.version.is_some())),
        Span::raw(" "),
        ctx.span(text::left(state.word, columns.state), state.role),
    ];
    if columns.bar > 0 {
        spans.push(Span::raw(" "));
        spans.push(ctx.span(bar::bar(count.unwrap_or(0), most, columns.bar), figures));
    }
    let counted = count.map_or_else(|| "?".to_owned(), units::grouped);
    spans.push(ctx.span(text::right(&counted, COUNT), unknown(count.is_some())));
    let delta = match capture.per_minute {
        Some(0) => "0".to_owned(),
        Some(delta) => format!("{delta:+}").replace('-', "−"),
        None => String::new(),
    };
    spans.push(ctx.span(text::right(&delta, columns.delta), figures));
    let lag = match (capture.lag, count) {
        (Some(lag), _) => short(lag),
        (None, Some(0)) => "–".to_owned(),
        (None, _) => "?".to_owned(),
    };
    spans.push(ctx.span(text::right(&lag, columns.lag), figures));
    if columns.age > 0 {
        spans.push(ctx.span(text::right(&age.unwrap_or_default(), columns.age), Role::Warn));
    }
    ctx.row(spans, is_chosen, Pane::Captures)
}
