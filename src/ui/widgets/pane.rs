//! Frames around things, and lines inside them; nothing here draws outside the buffer, whatever the area says.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Flex, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, BorderType, Clear, Widget};

/// Draws a rounded frame with a title and gives the area inside.
pub(crate) fn framed(buf: &mut Buffer, area: Rect, title: Line<'_>, style: Style, is_thick: bool) -> Rect {
    let area = area.intersection(buf.area);
    if area.is_empty() {
        return area;
    }
    let border = if is_thick { BorderType::Thick } else { BorderType::Rounded };
    let block = Block::bordered().border_type(border).border_style(style).title(title);
    let inner = block.inner(area);
    block.render(area, buf);
    inner
}

/// Writes lines from the top of an area; what does not fit is not written.
pub(crate) fn lines<'a>(buf: &mut Buffer, area: Rect, lines: impl IntoIterator<Item = Line<'a>>) {
    let area = area.intersection(buf.area);
    for (y, line) in (area.top()..area.bottom()).zip(lines) {
        buf.set_line(area.x, y, &line, area.width);
        buf.set_style(Rect { y, height: 1, ..area }, line.style);
    }
}

/// Empties a rectangle in the middle of an area, at most as large as it, and gives it.
pub(crate) fn centred(buf: &mut Buffer, area: Rect, width: u16, height: u16) -> Rect {
    let area = area.intersection(buf.area);
    let [row] = Layout::vertical([Constraint::Length(height.min(area.height))]).flex(Flex::Center).areas(area);
    let [rect] = Layout::horizontal([Constraint::Length(width.min(area.width))]).flex(Flex::Center).areas(row);
    Clear.render(rect, buf);
    rect
}
