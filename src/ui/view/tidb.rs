//! The `TiDB` servers with the upgrading state, and PD.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::cluster::units;
use crate::rollout::view::{PdView, TidbServerView, TidbView};

use super::super::select;
use super::super::state::Pane;
use super::super::status;
use super::super::theme::Role;
use super::super::widgets::{pane, text, window};
use super::Ctx;
use super::words::{OLD, Part, fitted, part};

/// ` 0 of 2 on v8.5.4 · normal`; if user DDL hangs, that comes first.
fn state(ctx: &Ctx<'_>, tidb: &TidbView) -> Vec<Part> {
    let all = tidb.servers.len();
    let count = match &ctx.view.title.to {
        _ if all == 0 => " ? not read yet".to_owned(),
        Some(to) => {
            let at = |s: &&TidbServerView| s.version.last().is_some_and(|version| version.is_same_release(to));
            format!(" {} of {all} on {to}", tidb.servers.iter().filter(at).count())
        }
        None => format!(" {}", units::counted(u64::try_from(all).unwrap_or(u64::MAX), "server")),
    };
    let count = part(ctx.span(count, if all == 0 { Role::Warn } else { Role::Plain }), 3);
    let mut parts = match tidb.is_upgrading.last() {
        Some(false) => vec![count, part(ctx.span(" · normal", Role::Plain), 0)],
        Some(true) => {
            let since = tidb
                .upgrading_since
                .map_or_else(|| " ".to_owned(), |since| format!(" {} ", units::clock(ctx.now.since(since))));
            let hangs = format!(" UPGRADING{since}user DDL hangs");
            vec![part(ctx.span(hangs, Role::Warn), 0), part(ctx.span(" ·", Role::Plain), 3), count]
        }
        None if all == 0 => vec![count],
        None => vec![count, part(ctx.span(" · state ?", Role::Warn), 0)],
    };
    if let Some(age) = tidb.is_upgrading.age(ctx.now).filter(|age| *age > OLD) {
        parts.push(part(ctx.span(format!(" · {} old", units::spoken(age)), Role::Warn), 1));
    }
    parts
}

pub(super) fn draw(buf: &mut Buffer, area: Rect, ctx: &Ctx<'_>) {
    let view = ctx.view;
    let mut title = vec![ctx.span(if view.tidb.is_some() { "TiDB" } else { "PD" }, Role::Strong)];
    if let Some(tidb) = &view.tidb {
        let room = usize::from(area.width).saturating_sub(10);
        title.extend(
            fitted(state(ctx, tidb), Vec::new(), room).spans.into_iter().filter(|s| !s.content.trim().is_empty()),
        );
    }
    let inner = ctx.frame(buf, area, title, Some(Pane::Tidb));
    let (width, height) = (usize::from(inner.width), usize::from(inner.height));
    let servers = view.tidb.as_ref().map_or(&[][..], |tidb| &tidb.servers);
    let pd_rows = view.pd.len().min(height.saturating_sub(1).min(3));
    let longest = servers.iter().map(|s| s.address.as_str()).chain(view.pd.iter().map(|pd| pd.address.as_str()));
    let name = longest.map(text::width).max().unwrap_or(0).clamp(8, width.saturating_sub(22).clamp(8, 40));
    let chosen = select::tidb_place(ctx.state, view);
    let visible = window::around(servers.len(), height.saturating_sub(pd_rows), chosen);
    let rows = servers.iter().enumerate().skip(visible.start).take(visible.len());
    let mut lines: Vec<_> = rows.map(|(at, server)| row(ctx, server, name, width, at == chosen)).collect();
    lines.extend(view.pd.iter().take(pd_rows).map(|pd| pd_row(ctx, pd, name)));
    pane::lines(buf, inner, lines);
}

fn row(ctx: &Ctx<'_>, server: &TidbServerView, name: usize, width: usize, is_chosen: bool) -> Line<'static> {
    let status = status::of_tidb(ctx.view, server);
    let version = server.version.last().map_or("?", |version| version.as_str());
    let role = if server.version.known().is_some() { Role::Plain } else { Role::Warn };
    let rest = width.saturating_sub(3 + name + 1 + 9);
    let (what, what_role) = match (server.serves.failure(), server.is_ddl_owner) {
        (Some(why), _) => (why.kind.words().to_owned(), Role::Bad),
        (None, Some(true)) => ("DDL owner".to_owned(), Role::Plain),
        (None, _) => (String::new(), Role::Plain),
    };
    let spans = vec![
        ctx.span(status.glyph, status.role),
        Span::raw(" "),
        ctx.span(text::name(&server.address, name + 1), Role::Plain),
        ctx.span(text::left(version, 9), role),
        ctx.span(text::cut(&what, rest), what_role),
    ];
    ctx.row(spans, is_chosen && ctx.state.focus == Pane::Tidb, Pane::Tidb)
}

fn pd_row(ctx: &Ctx<'_>, pd: &PdView, name: usize) -> Line<'static> {
    let version = pd.version.last().map_or("?", |version| version.as_str());
    let glyph = if pd.version.known().is_some() { "●" } else { "?" };
    let spans = vec![
        ctx.span(glyph, Role::Plain),
        Span::raw(" "),
        ctx.span(text::name(&pd.address, name + 1), Role::Plain),
        ctx.span(text::left(version, 9), Role::Plain),
        ctx.span("PD", Role::Dim),
    ];
    ctx.row(spans, false, Pane::Tidb)
}

/// One line for where there is no room for more.
pub(super) fn summary(ctx: &Ctx<'_>, width: u16) -> Line<'static> {
    let mut parts = Vec::new();
    if let Some(tidb) = &ctx.view.tidb {
        parts.push(part(ctx.span(" TiDB", Role::Strong), 0));
        parts.extend(state(ctx, tidb));
        let down = tidb.servers.iter().find(|server| server.serves.failure().is_some());
        if let Some(server) = down {
            parts.push(part(
                ctx.span(format!(" · {} does not serve", text::cut_middle(&server.address, 21)), Role::Bad),
                2,
            ));
        }
        if let Some(server) = tidb.servers.iter().find(|server| server.is_ddl_owner == Some(true)) {
            let address = text::cut_middle(&server.address, 21);
            parts.push(part(ctx.span(format!(" · DDL owner {address}"), Role::Plain), 5));
        }
    }
    if let Some(pd) = ctx.view.pd.first() {
        let version = pd.version.last().map_or("?", |version| version.as_str());
        let more = if ctx.view.pd.len() > 1 { format!(" +{}", ctx.view.pd.len() - 1) } else { String::new() };
        let lead = if parts.is_empty() { " PD" } else { " · PD" };
        parts.push(part(ctx.span(format!("{lead} {version}{more}"), Role::Plain), 4));
    }
    fitted(parts, Vec::new(), usize::from(width))
}
