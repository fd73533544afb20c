//! A report as one HTML file that needs nothing from the network.
//!
//! All charts are drawn here, as SVG whose colours follow the reader's light or dark theme;
//! tick labels are HTML text over it, so that they keep their size on a phone. The script only
//! adds read-outs under the pointer, zoom, switches for series and the choice of theme.
//! Read-outs of lines and bars come from the cells of the table below each chart. Read-outs of
//! curves and new ticks are written by the script, from the units in the page; a test compares
//! its numbers with those of this crate. Without scripts the page has everything else.
//!
//! Every text from the document is escaped: a process may be called `<script>`.

mod bars;
mod curves;
mod escape;
mod frame;
mod heatmap;
mod lines;
mod palette;
mod stacked;
mod table;
mod verdicts;

use crate::chart::Chart;
use crate::json;
use crate::model::{Block, Document, Figure, Section};
use crate::unit::Unit;
use escape::escape;
use palette::Palette;

/// The page loads nothing: all that it needs is in it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; \
                      script-src 'unsafe-inline'; img-src data:";
const STYLE: &str = include_str!("page.css");
/// The colours of the dark theme, for readers whose system or own choice asks for it.
const DARK: &str = include_str!("dark.css");
/// In the order of their dependencies.
const SCRIPTS: [&str; 6] = [
    include_str!("script/start.js"),
    include_str!("script/numbers.js"),
    include_str!("script/view.js"),
    include_str!("script/readings.js"),
    include_str!("script/plot.js"),
    include_str!("script/page.js"),
];

/// The text being built, and the state of the whole page.
struct Page {
    out: String,
    palette: Palette,
    /// How many charts there are so far: each gets its own identifier.
    charts: usize,
}

/// The report as a whole HTML file.
#[must_use]
pub fn render(document: &Document) -> String {
    let mut page = Page { out: String::new(), palette: Palette::default(), charts: 0 };
    let title = escape(&document.title);
    page.push(&format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{}</style>\n</head>\n<body data-units=\"{}\">\n\
         <a class=\"skip\" href=\"#main\">Skip to the report</a>\n\
         <header>\n<h1>{title}</h1>\n<p class=\"subtitle\">{}</p>\n</header>\n",
        style(),
        units(),
        escape(&document.subtitle)
    ));
    contents(&mut page, document);
    page.push("<main id=\"main\" tabindex=\"-1\">\n");
    for (number, section) in document.sections.iter().enumerate() {
        render_section(&mut page, section, number);
    }
    let script = SCRIPTS.concat();
    page.push(&format!(
        "</main>\n<script>\n(() => {{\n\"use strict\";\n{script}}})();\n</script>\n\
         </body>\n</html>\n"
    ));
    page.out
}

/// The style. The dark colours apply if the reader chose them on the page, or if the system
/// asks for them and the reader made no choice. Prints are always light.
fn style() -> String {
    format!(
        "{STYLE}@media screen and (prefers-color-scheme: dark) {{\n\
         :root:not([data-theme=light]) {{\n{DARK}}}\n}}\n\
         @media screen {{\n:root[data-theme=dark] {{\n{DARK}}}\n}}\n"
    )
}

/// The prefixes of each unit, for the script, which writes new ticks.
fn units() -> String {
    let rung = |&(scale, name): &(f64, &str)| format!("{scale},{name}");
    let rungs = |unit: Unit| unit.ladder().iter().map(rung).collect::<Vec<_>>().join(";");
    let unit = |unit: Unit| format!("{}:{}", unit.name(), rungs(unit));
    escape(&Unit::ALL.map(unit).join("|"))
}

impl Page {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }
}

/// The identifier of a section: readable in the address bar, unique by its number.
fn anchor(section: &Section, number: usize) -> String {
    escape(&format!("s{}-{}", number + 1, json::key(&section.title)))
}

/// Links to the sections, if there are several.
fn contents(page: &mut Page, document: &Document) {
    if document.sections.len() < 3 {
        return;
    }
    page.push("<nav aria-label=\"Sections\"><ul>\n");
    for (number, section) in document.sections.iter().enumerate() {
        let link = format!(
            "<li><a href=\"#{}\">{}</a></li>\n",
            anchor(section, number),
            escape(&section.title)
        );
        page.push(&link);
    }
    page.push("</ul></nav>\n");
}

fn render_section(page: &mut Page, section: &Section, number: usize) {
    let id = anchor(section, number);
    page.push(&format!(
        "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{}</h2>\n",
        escape(&section.title)
    ));
    if !section.lead.is_empty() {
        page.push(&format!("<p class=\"lead\">{}</p>\n", escape(&section.lead)));
    }
    for block in &section.blocks {
        match block {
            Block::KeyFigures(figures) => key_figures(page, figures),
            Block::Verdicts(verdicts) => verdicts::render(page, verdicts),
            Block::Table(block) => table::render(page, block),
            Block::Chart(chart) => render_chart(page, chart),
            Block::Notes(notes) => render_notes(page, notes),
            Block::Text(text) => page.push(&format!("<p>{}</p>\n", escape(text))),
        }
    }
    page.push("</section>\n");
}

fn render_chart(page: &mut Page, chart: &Chart) {
    page.charts += 1;
    match chart {
        Chart::Lines(chart) => lines::render(page, chart),
        Chart::Curves(chart) => curves::render(page, chart),
        Chart::Bars(chart) => bars::render(page, chart),
        Chart::Stacked(chart) => stacked::render(page, chart),
        Chart::Heatmap(chart) => heatmap::render(page, chart),
    }
}

fn key_figures(page: &mut Page, figures: &[Figure]) {
    page.push("<dl class=\"figures\">\n");
    for figure in figures {
        let shown = figure.show("–");
        // The unit is smaller than its number.
        let (number, unit) = match shown.split_once(' ') {
            Some((number, unit)) if number.starts_with(|c: char| c.is_ascii_digit()) => {
                (number, format!(" <small>{}</small>", escape(unit)))
            }
            _ => (shown.as_str(), String::new()),
        };
        page.push(&format!(
            "<div><dt>{}</dt><dd>{}{unit}</dd>",
            escape(&figure.label),
            escape(number)
        ));
        if !figure.note.is_empty() {
            page.push(&format!("<dd class=\"note\">{}</dd>", escape(&figure.note)));
        }
        page.push("</div>\n");
    }
    page.push("</dl>\n");
}

/// More notes than this are folded.
const NOTES_MAX: usize = 8;

fn render_notes(page: &mut Page, notes: &[String]) {
    let folded = notes.len() > NOTES_MAX;
    if folded {
        let summary = format!("{} notes", notes.len());
        page.push(&format!("<details class=\"notes\"><summary>{summary}</summary>\n"));
    }
    page.push("<ul class=\"notes\">\n");
    for note in notes {
        page.push(&format!("<li>{}</li>\n", escape(note)));
    }
    page.push("</ul>\n");
    if folded {
        page.push("</details>\n");
    }
}
