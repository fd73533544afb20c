//! Fits text into columns: removes unsafe characters, measures its width and breaks lines.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// `text` without characters that a terminal acts on: control characters and those that change
/// the direction of writing. With `unicode` false, other characters than ASCII are replaced
/// too.
pub fn clean(text: &str, unicode: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(' '),
            c if is_unsafe(c) => out.push(if unicode { '\u{fffd}' } else { '?' }),
            c if c.is_ascii() || unicode => out.push(c),
            '–' | '—' | '−' => out.push('-'),
            '…' => out.push_str("..."),
            '×' => out.push('x'),
            'µ' | 'μ' => out.push('u'),
            '“' | '”' => out.push('"'),
            '‘' | '’' => out.push('\''),
            _ => out.push('?'),
        }
    }
    out
}

fn is_unsafe(c: char) -> bool {
    let directional = matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}' | '\u{61c}');
    c.is_control() || directional
}

/// How many columns `text` takes.
pub fn display_width(text: &str) -> usize {
    text.width()
}

/// `text` with spaces after it up to `width` columns.
pub fn pad_right(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(display_width(text))))
}

/// `text` with spaces before it up to `width` columns.
pub fn pad_left(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(display_width(text))))
}

/// `text` cut to `width` columns, with a mark at the cut.
pub fn shorten(text: &str, width: usize, unicode: bool) -> String {
    if display_width(text) <= width {
        return text.into();
    }
    let mark = if unicode { "…" } else { "~" };
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        out.push(c);
    }
    if width == 0 { out } else { out + mark }
}

/// `text` in lines of at most `width` columns, broken at spaces; a longer word is alone on a
/// longer line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if display_width(line) + 1 + display_width(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_but_text() {
        assert_eq!(clean("a\x1b[31mb\u{202e}c\r", false), "a?[31mb?c?");
        assert_eq!(clean("naïve – 3×", false), "na?ve - 3x");
        assert_eq!(clean("naïve – 3×", true), "naïve – 3×");
    }

    #[test]
    fn widths_count_columns() {
        assert_eq!(pad_left("日本", 6), "  日本");
        assert_eq!(shorten("日本語", 4, true), "日…");
        assert_eq!(shorten("abc", 3, true), "abc");
        assert_eq!(shorten("abcd", 3, false), "ab~");
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
    }
}
