//! A dialog: what it is about in whole sentences, wrapped and never cut, and the buttons.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::dialog::{Ask, Dialog};
use super::super::theme::Role;
use super::super::typed::Typed;
use super::super::widgets::{pane, text};
use super::Ctx;

pub(super) fn draw(buf: &mut Buffer, area: Rect, dialog: &Dialog, ctx: &Ctx<'_>) {
    let columns = area.width.saturating_sub(4).min(76);
    let width = usize::from(columns).saturating_sub(4);
    let mut lines: Vec<Line<'static>> = Vec::new();
    for paragraph in &dialog.text {
        lines.extend(
            text::wrap(paragraph, width).into_iter().map(|line| Line::from(ctx.span(format!(" {line}"), Role::Plain))),
        );
    }
    for (asked, typed, is_here) in dialog.typed.iter().flat_map(Typed::fields) {
        lines.push(Line::default());
        let asked = text::wrap(&asked, width);
        lines.extend(asked.into_iter().map(|line| Line::from(ctx.span(format!(" {line}"), Role::Strong))));
        let (cursor, role) = if is_here { ("_", Role::Active) } else { ("", Role::Plain) };
        let typed = text::wrap(&format!("{typed}{cursor}"), width);
        lines.extend(typed.into_iter().map(|line| Line::from(ctx.span(format!(" {line}"), role))));
    }
    lines.push(Line::default());
    let wanted = u16::try_from(lines.len() + 3).unwrap_or(u16::MAX);
    let page = pane::centred(buf, area, columns, wanted);
    let role = if dialog.ask == Ask::Leave { Role::Strong } else { Role::Warn };
    let title = Line::from(vec![Span::raw(" "), ctx.span(&dialog.title, role), Span::raw(" ")]);
    let inner = pane::framed(buf, page, title, ctx.style(role), true);
    // The buttons stand on the last row whatever happens to the text.
    let text_rows = inner.height.saturating_sub(1);
    pane::lines(buf, Rect { height: text_rows, ..inner }, lines);
    let buttons = Rect { y: inner.y + text_rows, height: inner.height - text_rows, ..inner };
    pane::lines(buf, buttons, [button_line(ctx, dialog)]);
}

fn button_line(ctx: &Ctx<'_>, dialog: &Dialog) -> Line<'static> {
    let mut line = Line::from(Span::raw(" "));
    for (at, button) in dialog.buttons.iter().enumerate() {
        let (open, close) = if at == dialog.focus { (">", "<") } else { (" ", " ") };
        let letter = if dialog.typed.is_some() { String::new() } else { format!("{}: ", button.key) };
        let role = if at == dialog.focus { Role::Selected } else { Role::Plain };
        line.push_span(ctx.span(format!("{open}{letter}{}{close}", button.label), role));
        line.push_span("  ");
    }
    line
}
