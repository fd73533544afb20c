//! Escapes text for HTML: all text from a document enters the page through here.

/// `text` with every character that has a meaning in HTML, in text or in a quoted attribute,
/// written as a reference. Control characters become replacement characters, and so do those
/// that change the direction of writing.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            c if c.is_control() => out.push('\u{fffd}'),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_markup_survives() {
        assert_eq!(
            escape("<a b=\"c\" d='e'>&\0"),
            "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;\u{fffd}"
        );
        assert_eq!(escape("täglich 4 × ok"), "täglich 4 × ok");
    }
}
