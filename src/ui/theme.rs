//! Styles by meaning. The only file that names a colour.
//!
//! Colours are the terminal's own sixteen, so that light and dark themes both stay readable, and never carry a meaning
//! alone. Without colour no style names one at all: the terminal library writes a reset where a suppressed colour
//! would stand, which would wipe the reversal that marks the selected row (field report 88).

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

/// What a piece of text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Text.
    Plain,
    /// Less important.
    Dim,
    /// Headings, names of panes.
    Strong,
    /// As it should be.
    Good,
    /// Going on now.
    Active,
    /// Somebody should look.
    Warn,
    /// Wrong.
    Bad,
    /// A key one may press.
    Key,
    /// The mark of a simulated cluster, and of a frozen display.
    Mark,
    /// The frame of a pane.
    Border,
    /// The frame of the pane that has the keys.
    Focus,
    /// The row or button the keys act on.
    Selected,
}

/// How things look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    has_colour: bool,
    is_ascii: bool,
}

impl Theme {
    /// A theme with or without colour, with or without characters beyond ASCII.
    pub(crate) const fn new(has_colour: bool, is_ascii: bool) -> Self {
        Self { has_colour, is_ascii }
    }

    /// How a meaning looks.
    pub(crate) fn style(self, role: Role) -> Style {
        let style = Style::new();
        let bold = style.add_modifier(Modifier::BOLD);
        if self.has_colour {
            match role {
                Role::Plain => style,
                Role::Dim | Role::Border => style.add_modifier(Modifier::DIM),
                Role::Strong => bold,
                Role::Good => style.fg(Color::Green),
                Role::Active | Role::Focus => bold.fg(Color::Cyan),
                Role::Key => style.fg(Color::Cyan),
                Role::Warn => bold.fg(Color::Yellow),
                Role::Bad => bold.fg(Color::Red),
                Role::Mark => bold.fg(Color::Magenta).add_modifier(Modifier::REVERSED),
                Role::Selected => bold.add_modifier(Modifier::REVERSED),
            }
        } else {
            match role {
                Role::Plain | Role::Good => style,
                Role::Dim | Role::Border => style.add_modifier(Modifier::DIM),
                Role::Strong | Role::Active | Role::Key | Role::Focus => bold,
                Role::Warn | Role::Bad => bold.add_modifier(Modifier::UNDERLINED),
                Role::Mark | Role::Selected => bold.add_modifier(Modifier::REVERSED),
            }
        }
    }

    /// The last pass over a frame: for terminals that draw boxes and signs two columns wide, or not at all, every sign
    /// of ours becomes a plain character. Names from servers stay as they are.
    pub(crate) fn finish(self, buf: &mut Buffer) {
        if !self.is_ascii {
            return;
        }
        for cell in &mut buf.content {
            if let Some((_, plain)) = PLAIN.iter().find(|(sign, _)| *sign == cell.symbol()) {
                cell.set_symbol(plain);
            }
        }
    }
}

/// What stands for each sign in plain characters.
const PLAIN: &[(&str, &str)] = &[
    ("─", "-"),
    ("━", "="),
    ("│", "|"),
    ("┃", "|"),
    ("╭", "+"),
    ("╮", "+"),
    ("╰", "+"),
    ("╯", "+"),
    ("┏", "+"),
    ("┓", "+"),
    ("┗", "+"),
    ("┛", "+"),
    ("✔", "+"),
    ("▶", ">"),
    ("▼", "v"),
    ("○", "."),
    ("●", "o"),
    ("◌", "."),
    ("⏸", "="),
    ("✖", "x"),
    ("▲", "!"),
    ("♛", "W"),
    ("▮", "|"),
    ("–", "-"),
    ("−", "-"),
    ("→", ">"),
    ("↵", "="),
    ("·", ","),
    ("×", "x"),
    ("…", "~"),
    ("Δ", "+"),
    ("█", "#"),
    ("▉", "#"),
    ("▊", "#"),
    ("▋", "#"),
    ("▌", "="),
    ("▍", "="),
    ("▎", "-"),
    ("▏", "-"),
    ("▁", "_"),
    ("▂", "."),
    ("▃", "-"),
    ("▄", "~"),
    ("▅", "="),
    ("▆", "+"),
    ("▇", "*"),
    ("↑", "^"),
    ("↓", "v"),
];
