//! Draws one frame: which regions there are at this size, and each region by its own module. Pure, and as costly as what
//! is visible, whatever exists.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::cluster::Timestamp;
use crate::rollout::view::View;

use super::state::{Modal, Pane, UiState};
use super::theme::{Role, Theme};
use super::widgets::{pane, text};
use regions::Regions;

mod banner;
mod captures;
mod changefeeds;
mod detail_page;
mod dialog_box;
mod events;
mod footer;
mod header;
pub(crate) mod help;
mod phase_now;
mod plan;
mod regions;
mod tidb;
pub(crate) mod words;

/// All that a region is drawn from.
#[derive(Clone, Copy)]
pub(crate) struct Ctx<'a> {
    /// What is shown: the newest view, or the one the display was frozen at.
    pub(crate) view: &'a View,
    /// The newest view, which decides what keys do.
    pub(crate) live: &'a View,
    /// The screen's own memory.
    pub(crate) state: &'a UiState,
    /// How things look.
    pub(crate) theme: Theme,
    /// The time that ages are measured at.
    pub(crate) now: Timestamp,
}

impl Ctx<'_> {
    /// How a meaning looks.
    pub(crate) fn style(&self, role: Role) -> Style {
        self.theme.style(role)
    }

    /// A piece of text with a meaning; made safe for the terminal.
    pub(crate) fn span(&self, text: impl AsRef<str>, role: Role) -> Span<'static> {
        Span::styled(text::clean(text.as_ref()).into_owned(), self.style(role))
    }

    /// Draws a pane's frame, marked if it has the keys, and gives the area inside.
    pub(crate) fn frame(&self, buf: &mut Buffer, area: Rect, title: Vec<Span<'static>>, which: Option<Pane>) -> Rect {
        let has_focus = which == Some(self.state.focus) && self.state.modals.is_empty();
        let mut spans = vec![Span::raw(" ")];
        spans.extend(title);
        spans.push(Span::raw(" "));
        let style = self.style(if has_focus { Role::Focus } else { Role::Border });
        pane::framed(buf, area, Line::from(spans), style, false)
    }

    /// A row of a list: marked and reversed if the keys act on it.
    pub(crate) fn row(&self, spans: Vec<Span<'static>>, is_selected: bool, which: Pane) -> Line<'static> {
        let marker = if is_selected { ">" } else { " " };
        let mut line = Line::from(Span::styled(marker, self.style(Role::Strong)));
        line.extend(spans);
        if is_selected && self.state.focus == which {
            line = line.style(self.style(Role::Selected));
        }
        line
    }
}

/// Draws everything.
pub(crate) fn draw(buf: &mut Buffer, view: &View, state: &UiState, theme: Theme) {
    let area = buf.area;
    let (shown, now) = match &state.frozen {
        Some((frozen, at)) => (&**frozen, *at),
        None => (view, state.now),
    };
    let ctx = Ctx { view: shown, live: view, state, theme, now };
    match Regions::of(area, &ctx) {
        None => too_small(buf, area, &ctx),
        Some(regions) => draw_regions(buf, area, &regions, &ctx),
    }
    theme.finish(buf);
}

fn draw_regions(buf: &mut Buffer, area: Rect, regions: &Regions, ctx: &Ctx<'_>) {
    header::draw(buf, regions.header, ctx);
    if let Some(area) = regions.plan {
        plan::draw(buf, area, ctx);
    }
    if let Some(area) = regions.captures {
        captures::draw(buf, area, ctx);
    }
    if let Some(area) = regions.banner {
        banner::draw(buf, area, ctx);
    }
    if let Some(area) = regions.now {
        phase_now::draw(buf, area, ctx);
    }
    if let Some(area) = regions.changefeeds {
        changefeeds::draw(buf, area, ctx);
    }
    if let Some(area) = regions.tidb {
        tidb::draw(buf, area, ctx);
    }
    if let Some(area) = regions.summary {
        pane::lines(buf, area, [changefeeds::summary(ctx, area.width), tidb::summary(ctx, area.width)]);
    }
    if let Some(area) = regions.events {
        events::draw(buf, area, ctx);
    }
    footer::draw(buf, regions.footer, ctx);
    // Header and footer stay in sight: a page must not hide that the rollout asks for somebody.
    let front = Rect { y: regions.header.bottom(), height: area.height.saturating_sub(4), ..area };
    match ctx.state.modals.last() {
        None => {}
        Some(Modal::Help(scroll)) => help::draw(buf, front, *scroll, ctx),
        Some(Modal::Detail(detail)) => detail_page::draw(buf, front, detail, ctx),
        Some(Modal::Dialog(dialog)) => dialog_box::draw(buf, front, dialog, ctx),
    }
}

fn too_small(buf: &mut Buffer, area: Rect, ctx: &Ctx<'_>) {
    let goes_on = if super::state::is_watching(ctx.view) { "nothing is changed" } else { "the rollout continues" };
    let whole = format!("terminal too small: 80x24 needed, {goes_on}");
    let lines =
        text::wrap(&whole, usize::from(area.width)).into_iter().map(|line| Line::from(ctx.span(line, Role::Strong)));
    pane::lines(buf, area, lines);
}
