//! Two rows: what is owed, and the keys that do something now (or why the last one did not).

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use crate::cluster::units;

use super::super::keymap::{self, Action, BINDINGS, Group};
use super::super::state::{Modal, Pane, UiState};
use super::super::theme::Role;
use super::super::widgets::{pane, text};
use super::Ctx;
use super::words::{Part, fitted, part};

pub(super) fn draw(buf: &mut Buffer, area: Rect, ctx: &Ctx<'_>) {
    let columns = usize::from(area.width);
    pane::lines(buf, area, [owed(ctx, columns), bottom(ctx, columns)]);
}

fn owed(ctx: &Ctx<'_>, columns: usize) -> Line<'static> {
    let view = ctx.view;
    let unread = match view.unread.as_slice() {
        [] => String::new(),
        [(who, why)] => format!("not read: {who} {} ", why.kind.words()),
        [(who, why), rest @ ..] => format!("not read: {who} {} +{} ", why.kind.words(), rest.len()),
    };
    let left = match view.owed.as_slice() {
        [] => part(ctx.span(" owed: nothing", Role::Dim), 0),
        all => {
            let all: Vec<_> = all
                .iter()
                .map(|owed| format!("{} {} for {}", owed.kind, owed.target, units::clock(ctx.now.since(owed.since))))
                .collect();
            let room = columns.saturating_sub(text::width(&unread) + 2);
            part(ctx.span(text::cut(&format!(" owed: {}", all.join(" · ")), room.max(30)), Role::Warn), 0)
        }
    };
    let room = columns.saturating_sub(text::width(&left.span.content) + 2);
    fitted(vec![left], vec![part(ctx.span(text::cut(&unread, room), Role::Warn), 1)], columns)
}

fn bottom(ctx: &Ctx<'_>, columns: usize) -> Line<'static> {
    if ctx.state.is_typing {
        let filter = typed(ctx.state);
        let hint = "   Enter keeps  Esc clears  !text hides";
        return fitted(
            vec![
                part(ctx.span(" / ", Role::Key), 0),
                part(ctx.span(format!("{filter}_"), Role::Strong), 0),
                part(ctx.span(hint, Role::Dim), 1),
            ],
            Vec::new(),
            columns,
        );
    }
    if let Some(notice) = ctx.state.live_notice() {
        let role = if notice.is_refusal { Role::Warn } else { Role::Strong };
        return Line::from(ctx.span(text::cut(&format!(" {}", notice.text), columns), role));
    }
    keys(ctx, columns)
}

fn typed(state: &UiState) -> &str {
    match (state.modals.last(), state.focus) {
        (Some(Modal::Detail(detail)), _) => &detail.filter,
        (_, Pane::Events) => &state.event_filter,
        _ => &state.capture_filter,
    }
}

/// The keys worth showing, from the one list: the rollout's own first, as far as they are allowed now.
fn keys(ctx: &Ctx<'_>, columns: usize) -> Line<'static> {
    let mut left = Vec::new();
    let is_page = matches!(ctx.state.modals.last(), Some(Modal::Help(_) | Modal::Detail(_)));
    let is_dialog = matches!(ctx.state.modals.last(), Some(Modal::Dialog(_)));
    let push = |action: Action, label: &str, goes: u8, left: &mut Vec<Part>| {
        left.push(part(ctx.span(format!(" {}", keymap::key(action)), Role::Key), goes));
        left.push(part(ctx.span(format!(" {label} "), Role::Plain), goes));
    };
    if is_dialog {
        left.push(part(ctx.span(" arrows choose  Enter takes  Esc cancels", Role::Plain), 0));
        return fitted(left, Vec::new(), columns);
    }
    for binding in BINDINGS.iter().filter(|binding| matches!(binding.group, Group::Rollout | Group::AfterAbort)) {
        if keymap::permission(binding.action, ctx.live, ctx.state).is_ok() {
            push(binding.action, binding.label, 1, &mut left);
        }
    }
    let has_commands = !left.is_empty();
    if has_commands {
        left.push(part(ctx.span("│", Role::Dim), 2));
    }
    let shown: &[(Action, u8)] = if is_page {
        &[(Action::Down, 5), (Action::Back, 0)]
    } else {
        &[
            (Action::Open, 3),
            (Action::NextPane, 4),
            (Action::Filter, 5),
            (Action::Freeze, 6),
            (Action::Help, 0),
            (Action::Leave, 0),
        ]
    };
    for (action, goes) in shown {
        let Some(binding) = BINDINGS.iter().find(|binding| binding.action == *action) else { continue };
        if keymap::permission(*action, ctx.live, ctx.state).is_ok() {
            push(*action, binding.label, *goes, &mut left);
        }
    }
    fitted(left, Vec::new(), columns)
}
