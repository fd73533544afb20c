//! Tables: those of the document, and those that carry the numbers of a chart.

use super::Page;
use super::escape::escape;
use crate::model::Table;

/// How many rows are written out. With more, a page is slow to open and nobody reads on;
/// the JSON has them all.
const ROWS_MAX: usize = 1000;

/// A table that stands for itself, with its caption.
pub fn render(page: &mut Page, table: &Table) {
    let caption = escape(&table.caption);
    let text = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\
         <table><caption>{caption}</caption>\n{}</table></div>\n{}",
        rows(table),
        left_out(table)
    );
    page.push(&text);
}

/// The numbers of a chart, folded away, with a note under them.
pub fn details(page: &mut Page, table: &Table, summary: &str, note: &str) {
    let note = match note {
        "" => String::new(),
        note => format!("<p class=\"note\">{}</p>\n", escape(note)),
    };
    let text = format!(
        "<details><summary>{summary}</summary>\n<div class=\"scroll\" tabindex=\"0\" \
         role=\"region\" aria-label=\"{summary}\"><table>\n{}</table></div>\n{}{note}</details>\n",
        rows(table),
        left_out(table)
    );
    page.push(&text);
}

fn rows(table: &Table) -> String {
    let class = |i: usize| if table.columns[i].unit.is_some() { " class=\"n\"" } else { "" };
    let mut out = String::from("<thead><tr>");
    for (i, column) in table.columns.iter().enumerate() {
        out += &format!("<th scope=\"col\"{}>{}</th>", class(i), escape(&column.name));
    }
    out += "</tr></thead>\n<tbody>\n";
    for row in 0..table.rows.len().min(ROWS_MAX) {
        out += "<tr>";
        for (i, column) in table.columns.iter().enumerate() {
            let text = escape(&table.cell(row, i).show(column.unit, "–"));
            out += &match i {
                0 => format!("<th scope=\"row\"{}>{text}</th>", class(i)),
                _ => format!("<td{}>{text}</td>", class(i)),
            };
        }
        out += "</tr>\n";
    }
    out + "</tbody>\n"
}

fn left_out(table: &Table) -> String {
    match table.rows.len().saturating_sub(ROWS_MAX) {
        0 => String::new(),
        rest => format!("<p class=\"note\">{rest} more rows are in the JSON report.</p>\n"),
    }
}
