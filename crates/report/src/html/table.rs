//! Tables: those of the document, and those with the numbers of a chart.

use super::Page;
use super::escape::escape;
use crate::model::{Table, Value};

/// How many rows are written out. More would make the page slow to open; the JSON has them all.
const ROWS_MAX: usize = 1000;

/// How many characters a cell of words has before it may break.
const LINE_MAX: usize = 36;

/// A table of the document, with its caption.
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
        "<details class=\"numbers\"><summary>{summary}</summary>\n<div class=\"scroll\" \
         tabindex=\"0\" role=\"region\" aria-label=\"{summary}\"><table>\n{}</table></div>\n\
         {}{note}</details>\n",
        rows(table),
        left_out(table)
    );
    page.push(&text);
}

/// Numbers are aligned to the right; a column with sentences may break its lines.
fn class(table: &Table, column: usize) -> &'static str {
    let is_long = |row: usize| match table.cell(row, column) {
        Value::Text(text) => text.chars().count() > LINE_MAX,
        _ => false,
    };
    match table.columns[column].unit {
        Some(_) => " class=n",
        None if (0..table.rows.len().min(ROWS_MAX)).any(is_long) => " class=w",
        None => "",
    }
}

/// Head and body. Most of a page is numbers, so end tags and quotes that HTML does not need are
/// left out; so are line feeds, which would then be part of a cell.
fn rows(table: &Table) -> String {
    let classes: Vec<&str> = (0..table.columns.len()).map(|i| class(table, i)).collect();
    let mut out = String::from("<thead><tr>");
    for (i, column) in table.columns.iter().enumerate() {
        out += &format!("<th scope=col{}>{}", classes[i], escape(&column.name));
    }
    out += "<tbody>";
    for row in 0..table.rows.len().min(ROWS_MAX) {
        out += "<tr>";
        for (i, column) in table.columns.iter().enumerate() {
            let text = escape(&table.cell(row, i).show(column.unit, "–"));
            out += &match i {
                0 => format!("<th scope=row{}>{text}", classes[i]),
                _ => match table.cell(row, i).grade() {
                    Some(grade) => format!("<td class=\"n {}\">{text}", grade.name()),
                    None => format!("<td{}>{text}", classes[i]),
                },
            };
        }
    }
    out
}

fn left_out(table: &Table) -> String {
    match table.rows.len().saturating_sub(ROWS_MAX) {
        0 => String::new(),
        rest => format!("<p class=\"note\">{rest} more rows are in the JSON report.</p>\n"),
    }
}
