//! Where things go at which size. Panes fold in a set order: first the changefeeds and `TiDB` become a line each, then the
//! events go, then the plan shrinks to what is around the cursor. Header, captures, the phase of now and the footer stay.

use ratatui::layout::Rect;

use super::super::state::{Pane, UiState, is_watching};
use super::{Ctx, banner};

/// The areas; `None` is folded away.
#[derive(Clone, Copy, Debug)]
pub(super) struct Regions {
    pub(super) header: Rect,
    pub(super) plan: Option<Rect>,
    pub(super) captures: Option<Rect>,
    pub(super) banner: Option<Rect>,
    pub(super) now: Option<Rect>,
    pub(super) changefeeds: Option<Rect>,
    pub(super) tidb: Option<Rect>,
    pub(super) summary: Option<Rect>,
    pub(super) events: Option<Rect>,
    pub(super) footer: Rect,
}

const MIN_COLUMNS: u16 = 60;
const MIN_ROWS: u16 = 15;

/// Cuts rows off the top.
fn take(area: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    let top = Rect { height: rows, ..*area };
    area.y += rows;
    area.height -= rows;
    top
}

/// Cuts columns off the left.
fn take_left(area: &mut Rect, columns: u16) -> Rect {
    let columns = columns.min(area.width);
    let left = Rect { width: columns, ..*area };
    area.x += columns;
    area.width -= columns;
    left
}

fn rows(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

impl Regions {
    /// The areas for this size; `None` if it is too small for any sense.
    pub(super) fn of(area: Rect, ctx: &Ctx<'_>) -> Option<Self> {
        if area.width < MIN_COLUMNS || area.height < MIN_ROWS {
            return None;
        }
        let mut body = area;
        let header = take(&mut body, 2);
        let footer_rows = 2;
        let footer = Rect { y: body.bottom() - footer_rows, height: footer_rows, ..body };
        body.height -= footer_rows;
        let mut regions = Self {
            header,
            plan: None,
            captures: None,
            banner: None,
            now: None,
            changefeeds: None,
            tidb: None,
            summary: None,
            events: None,
            footer,
        };
        let is_wide = area.width >= 110 && area.height >= 28;
        if is_watching(ctx.view) {
            regions.watching(body, ctx, is_wide);
        } else if is_wide {
            regions.wide(body, ctx);
        } else {
            regions.narrow(body, ctx);
        }
        Some(regions)
    }

    /// Rows the captures pane wants: a frame, headings, and a row each.
    fn captures_wanted(ctx: &Ctx<'_>) -> u16 {
        let groups = if ctx.view.groups.len() > 1 { ctx.view.groups.len() } else { 0 };
        let captures: usize = ctx.view.groups.iter().map(|group| group.captures.len()).sum();
        rows(captures.max(1) + groups).saturating_add(3)
    }

    /// Changefeeds and `TiDB` side by side, as far as there are any.
    fn side_by_side(&mut self, mut area: Rect, ctx: &Ctx<'_>) {
        if has_tidb(ctx) {
            let half = area.width / 2;
            self.changefeeds = Some(take_left(&mut area, half));
            self.tidb = Some(area);
        } else {
            self.changefeeds = Some(area);
        }
    }

    fn side_wanted(ctx: &Ctx<'_>) -> u16 {
        let feeds: usize = ctx.view.groups.iter().filter_map(|g| g.changefeeds.last()).map(Vec::len).sum();
        let servers = ctx.view.tidb.as_ref().map_or(0, |tidb| tidb.servers.len()) + ctx.view.pd.len();
        rows((feeds + 1).max(servers).max(2)).saturating_add(2)
    }

    fn wide(&mut self, mut body: Rect, ctx: &Ctx<'_>) {
        let columns = (body.width / 4).clamp(38, 50);
        self.plan = Some(take_left(&mut body, columns));
        let height = body.height;
        self.captures = Some(take(&mut body, Self::captures_wanted(ctx).min((height * 2 / 5).max(6))));
        if let Some(wanted) = banner::wanted(ctx, body.width) {
            self.banner = Some(take(&mut body, wanted));
            if !banner::is_instead_of_drain(ctx) && body.height >= 12 {
                self.now = Some(take(&mut body, 6));
            }
        } else {
            self.now = Some(take(&mut body, 6));
        }
        if body.height >= 9 {
            let most = (body.height / 2).max(4);
            let side = take(&mut body, Self::side_wanted(ctx).min(most));
            self.side_by_side(side, ctx);
        } else if body.height >= 2 {
            self.summary = Some(take(&mut body, 2));
        }
        self.rest(body);
    }

    fn narrow(&mut self, mut body: Rect, ctx: &Ctx<'_>) {
        let most = (body.height * 2 / 5).max(5);
        self.captures = Some(take(&mut body, Self::captures_wanted(ctx).min(most)));
        if let Some(wanted) = banner::wanted(ctx, body.width) {
            // Whoever walks to a pane that has no room beside the question wants to see it for a moment; the header goes
            // on saying that the rollout waits, and the footer how to answer.
            if body.height.saturating_sub(wanted) < 5 && self.instead(body, ctx) {
                return;
            }
            // A single row left over is of no use to anything else.
            let wanted = if wanted + 1 == body.height { body.height } else { wanted };
            self.banner = Some(take(&mut body, wanted));
            if body.height >= 2 {
                self.summary = Some(take(&mut body, 2));
            }
            if body.height >= 5 {
                let columns = (body.width * 4 / 9).clamp(28, 44);
                self.plan = Some(take_left(&mut body, columns));
            }
            self.rest(body);
            return;
        }
        let columns = (body.width * 4 / 9).clamp(28, 44);
        self.plan = Some(take_left(&mut body, columns));
        let rows = if body.height >= 12 { 6 } else { 4 };
        self.now = Some(take(&mut body, rows));
        // The pane with the keys is worth the events' room, or its rows could not be walked.
        let focused = match ctx.state.focus {
            Pane::Changefeeds => Some(&mut self.changefeeds),
            Pane::Tidb => Some(&mut self.tidb),
            Pane::Plan | Pane::Captures | Pane::Events => None,
        };
        if let Some(focused) = focused {
            *focused = Some(body);
            return;
        }
        if body.height >= 2 {
            self.summary = Some(take(&mut body, 2));
        }
        self.rest(body);
    }

    /// Gives everything to the pane that has the keys, unless that is the captures'.
    fn instead(&mut self, body: Rect, ctx: &Ctx<'_>) -> bool {
        let focused = match ctx.state.focus {
            Pane::Captures => return false,
            Pane::Plan => &mut self.plan,
            Pane::Changefeeds => &mut self.changefeeds,
            Pane::Tidb => &mut self.tidb,
            Pane::Events => &mut self.events,
        };
        *focused = Some(body);
        true
    }

    fn watching(&mut self, mut body: Rect, ctx: &Ctx<'_>, is_wide: bool) {
        let height = body.height;
        let share = if is_wide { height * 3 / 5 } else { height / 2 };
        self.captures = Some(take(&mut body, Self::captures_wanted(ctx).min(share.max(6))));
        if body.height >= 10 {
            let most = (body.height / 2).max(4);
            let side = take(&mut body, Self::side_wanted(ctx).min(most));
            self.side_by_side(side, ctx);
        } else {
            match ctx.state.focus {
                Pane::Changefeeds => self.changefeeds = Some(body),
                Pane::Tidb => self.tidb = Some(body),
                Pane::Plan | Pane::Captures | Pane::Events => self.summary = Some(take(&mut body, 2)),
            }
            if self.summary.is_none() {
                return;
            }
        }
        self.rest(body);
    }

    fn rest(&mut self, body: Rect) {
        if body.height >= 3 && body.width >= 10 {
            self.events = Some(body);
        }
    }
}

fn has_tidb(ctx: &Ctx<'_>) -> bool {
    UiState::panes(ctx.view).contains(&Pane::Tidb)
}
