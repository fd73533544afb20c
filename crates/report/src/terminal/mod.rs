//! A report as text for a screen: key figures, aligned tables, small charts.
//!
//! Text from a trace, such as a process name, may contain control characters that the terminal
//! would act on; they are replaced before anything is printed.

mod charts;
mod curves;
mod table;
mod text;
mod verdicts;

use crate::model::{Block, Document, Figure, Section};
pub use text::clean;
pub(crate) use text::wrap;
use text::{display_width, pad_left, pad_right, shorten};

/// The smallest width of the layout; narrower screens are treated as this wide.
const WIDTH_MIN: usize = 40;
/// Text wider than this is tiring to read, and charts gain nothing.
const WIDTH_MAX: usize = 120;

/// What the screen can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether escape sequences for bold, dim and colours are understood.
    pub color: bool,
    /// Whether block and box characters are shown; without them the text is ASCII.
    pub unicode: bool,
}

impl Style {
    /// ASCII without escape sequences: for files, pipes and tests.
    pub const PLAIN: Self = Self { color: false, unicode: false };
    /// Colours and Unicode, as in a modern terminal.
    pub const RICH: Self = Self { color: true, unicode: true };

    fn paint(self, code: &str, text: &str) -> String {
        if self.color && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.into()
        }
    }

    fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    fn missing(self) -> &'static str {
        if self.unicode { "–" } else { "-" }
    }

    fn bullet(self) -> &'static str {
        if self.unicode { "• " } else { "* " }
    }
}

/// The text being built, with the width and style that every part of the renderer needs.
struct Screen {
    out: String,
    width: usize,
    style: Style,
}

impl Screen {
    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end_matches(' '));
        self.out.push('\n');
    }

    fn blank(&mut self) {
        self.out.push('\n');
    }

    /// Text from the document without control characters.
    fn clean(&self, text: &str) -> String {
        clean(text, self.style.unicode)
    }

    /// A paragraph, each line after `indent`.
    fn paragraph(&mut self, text: &str, indent: &str, dim: bool) {
        let text = self.clean(text);
        for line in wrap(&text, self.width.saturating_sub(indent.len())) {
            let line = if dim { self.style.dim(&line) } else { line };
            self.line(&format!("{indent}{line}"));
        }
    }
}

/// The report as text, at most `width` columns wide unless a word is longer. Each line ends
/// with a line feed.
#[must_use]
pub fn render(document: &Document, width: usize, style: Style) -> String {
    let width = width.clamp(WIDTH_MIN, WIDTH_MAX);
    let mut screen = Screen { out: String::new(), width, style };
    let title = screen.clean(&document.title);
    screen.line(&style.bold(&title));
    screen.paragraph(&document.subtitle, "", true);
    for section in &document.sections {
        render_section(&mut screen, section);
    }
    screen.out
}

fn render_section(screen: &mut Screen, section: &Section) {
    screen.blank();
    let title = screen.clean(&section.title);
    let rule = if screen.style.unicode { "─" } else { "-" };
    let rest = screen.width.saturating_sub(display_width(&title) + 1);
    let heading = format!("{} {}", screen.style.bold(&title), screen.style.dim(&rule.repeat(rest)));
    screen.line(&heading);
    if !section.lead.is_empty() {
        screen.paragraph(&section.lead, "", false);
    }
    for block in &section.blocks {
        screen.blank();
        match block {
            Block::KeyFigures(figures) => key_figures(screen, figures),
            Block::Verdicts(verdicts) => verdicts::render(screen, verdicts),
            Block::Table(table) => table::render(screen, table),
            Block::Chart(chart) => charts::render(screen, chart),
            Block::Notes(notes) => render_notes(screen, notes),
            Block::Text(text) => screen.paragraph(text, "", false),
        }
    }
}

fn key_figures(screen: &mut Screen, figures: &[Figure]) {
    let style = screen.style;
    let shown: Vec<(String, String, String)> = figures
        .iter()
        .map(|figure| {
            let value = figure.show(style.missing());
            (screen.clean(&figure.label), screen.clean(&value), screen.clean(&figure.note))
        })
        .collect();
    let widest = |of: fn(&(String, String, String)) -> &str| {
        shown.iter().map(|parts| display_width(of(parts))).max().unwrap_or(0)
    };
    let label_width = widest(|parts| &parts.0).min(screen.width / 2);
    let value_width = widest(|parts| &parts.1).min(screen.width / 3);
    for (label, value, note) in &shown {
        let label = pad_right(&shorten(label, label_width, style.unicode), label_width);
        let value = pad_left(value, value_width);
        let space = screen.width.saturating_sub(label_width + value_width + 6);
        let mut lines = wrap(note, space.max(WIDTH_MIN / 2)).into_iter();
        let first = style.dim(&lines.next().unwrap_or_default());
        screen.line(&format!("  {label}  {}  {first}", style.bold(&value)));
        for line in lines {
            let indent = " ".repeat(label_width + value_width + 6);
            screen.line(&format!("{indent}{}", style.dim(&line)));
        }
    }
}

fn render_notes(screen: &mut Screen, notes: &[String]) {
    for note in notes {
        let note = screen.clean(note);
        for (i, line) in wrap(&note, screen.width - 4).iter().enumerate() {
            let lead = if i == 0 { screen.style.bullet() } else { "  " };
            screen.line(&format!("  {lead}{line}"));
        }
    }
}
