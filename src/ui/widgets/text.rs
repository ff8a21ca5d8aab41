//! Text cut, padded and wrapped by what it takes on screen, never by bytes, and only between graphemes: names come from
//! servers and may hold anything.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Whether a character may not reach the terminal: controls, and marks that reorder or hide text.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2028}' | '\u{2029}'
            | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Takes out whatever could steer the terminal; line breaks and tabs become spaces.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => {
                // A whole escape sequence goes, or its harmless tail would stay as noise.
                if chars.next_if_eq(&'[').is_some() {
                    while chars.next_if(|c| !('\u{40}'..='\u{7e}').contains(c)).is_some() {}
                    chars.next();
                }
            }
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => out.push(' '),
            c if is_unsafe(c) => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    // Nearly all of what is shown is plain, and graphemes are dear to find.
    if text.is_ascii() {
        return text.len();
    }
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// The longest start of the text that fits.
fn start_of(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        used += grapheme.width();
        if used > columns {
            return text.get(..at).unwrap_or_default();
        }
    }
    text
}

/// The longest end of the text that fits.
fn end_of(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true).rev() {
        used += grapheme.width();
        if used > columns {
            return text.get(at + grapheme.len()..).unwrap_or_default();
        }
    }
    text
}

/// Cuts at the end, with an ellipsis.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    let text = clean(text);
    if width(&text) <= columns {
        return text.into_owned();
    }
    match columns {
        0 => String::new(),
        _ => format!("{}…", start_of(&text, columns - 1)),
    }
}

/// Cuts in the middle: of an address both the start and the port matter.
pub(crate) fn cut_middle(text: &str, columns: usize) -> String {
    let text = clean(text);
    if width(&text) <= columns {
        return text.into_owned();
    }
    match columns {
        0 => String::new(),
        1 => "…".to_owned(),
        _ => {
            let tail = end_of(&text, (columns - 1).div_ceil(2));
            let head = start_of(&text, columns - 1 - width(tail));
            format!("{head}…{tail}")
        }
    }
}

/// Exactly this wide: cut at the end or padded on the right.
pub(crate) fn left(text: &str, columns: usize) -> String {
    padded(cut(text, columns), columns)
}

/// Exactly this wide: cut in the middle or padded on the right.
pub(crate) fn name(text: &str, columns: usize) -> String {
    padded(cut_middle(text, columns), columns)
}

/// Exactly this wide: cut at the end or padded on the left.
pub(crate) fn right(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(&text))))
}

fn padded(mut text: String, columns: usize) -> String {
    let missing = columns.saturating_sub(width(&text));
    text.extend(std::iter::repeat_n(' ', missing));
    text
}

/// Breaks a text into lines at spaces; a word longer than a line is broken inside.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    if columns == 0 {
        return Vec::new();
    }
    let text = clean(text);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let mut word = word;
        let gap = usize::from(!line.is_empty());
        if width(&line) + gap + width(word) > columns && !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        while width(word) > columns {
            let head = start_of(word, columns);
            if head.is_empty() {
                break;
            }
            lines.push(head.to_owned());
            word = word.get(head.len()..).unwrap_or_default();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_steer_the_terminal_is_taken_out() {
        assert_eq!(clean("a\x1b[31mb\tc\nd\u{7}e\u{202e}f"), "ab c def");
        assert_eq!(clean("\x1b"), "");
        assert_eq!(clean("plain — 表"), "plain — 表");
    }

    #[test]
    fn texts_are_cut_by_columns_between_graphemes() {
        assert_eq!(cut("表表表", 5), "表表…");
        assert_eq!(cut("表表表", 4), "表…");
        assert_eq!(cut("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(cut_middle("upstream-ticdc-0.peer:8301", 13), "upstre…r:8301");
        assert_eq!(cut_middle("abcdef", 2), "…f");
        assert_eq!(left("表", 4), "表  ");
        assert_eq!(right("87", 5), "   87");
        for columns in 0..12 {
            for text in ["表表表表表", "abcdefghi", "e\u{301}e\u{301}xx👩‍👩‍👧y"] {
                assert_eq!(width(&left(text, columns)), columns, "{text} {columns}");
                assert_eq!(width(&name(text, columns)), columns, "{text} {columns}");
            }
        }
    }

    #[test]
    fn long_words_are_broken_when_wrapped() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("to abcdefghij", 4), ["to", "abcd", "efgh", "ij"]);
        assert!(wrap("表", 1).len() <= 1);
    }
}
