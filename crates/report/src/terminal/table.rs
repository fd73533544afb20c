//! Aligned tables. Text that is wider than its column takes several lines. Rows and columns that do
//! not fit are only in the page and the JSON; a line says so.

use super::Screen;
use super::text::{display_width, pad_left, pad_right, shorten, wrap};
use super::verdicts::paint;
use crate::model::Table;

/// How many rows of a table are shown: a few tables still fit on one screen.
const ROWS_MAX: usize = 20;
/// A longer word, such as a path, may be cut so that a table fits.
const WORD_MAX: usize = 24;

pub(super) fn render(screen: &mut Screen, table: &Table) {
    screen.paragraph(&table.caption, "", true);
    let style = screen.style;
    let show = |row: usize, column: usize| {
        let unit = table.columns[column].unit;
        screen.clean(&table.cell(row, column).show(unit, style.missing()))
    };
    let shown = if table.whole { table.rows.len() } else { table.rows.len().min(ROWS_MAX) };
    let heads: Vec<String> = table.columns.iter().map(|c| screen.clean(&c.name)).collect();
    let cells: Vec<Vec<String>> =
        (0..shown).map(|row| (0..heads.len()).map(|column| show(row, column)).collect()).collect();
    let widths = fit(screen, table, &heads, &cells);
    let line = |parts: &[Vec<String>], number: usize, graded: Option<usize>| {
        let cell = |i: usize| {
            let text = parts[i].get(number).map_or("", String::as_str);
            let text = shorten(text, widths[i], style.unicode);
            let text = match table.columns[i].unit {
                Some(_) => pad_left(&text, widths[i]),
                None => pad_right(&text, widths[i]),
            };
            match graded.and_then(|row| table.cell(row, i).grade()) {
                Some(grade) => paint(style, grade, &text),
                None => text,
            }
        };
        let visible = (0..parts.len()).filter(|&i| widths[i] > 0);
        visible.map(cell).collect::<Vec<_>>().join("  ")
    };
    let lines = |row: &[String], graded: Option<usize>| -> Vec<String> {
        let parts: Vec<Vec<String>> =
            row.iter().zip(&widths).map(|(text, &width)| split(text, width)).collect();
        let height = parts.iter().map(Vec::len).max().unwrap_or(0);
        (0..height).map(|number| line(&parts, number, graded)).collect()
    };
    let head = lines(&heads, None).into_iter().map(|line| style.bold(&line));
    let rows = cells.iter().enumerate().flat_map(|(row, cells)| lines(cells, Some(row)));
    for line in head.chain(rows) {
        screen.line(&format!("  {line}"));
    }
    left_out(screen, table.rows.len() - shown, widths.iter().filter(|w| **w == 0).count());
}

/// The lines of a cell: several if the text is wider than its column and has spaces.
fn split(text: &str, width: usize) -> Vec<String> {
    if display_width(text) <= width || width == 0 {
        return vec![text.to_owned()];
    }
    wrap(text, width)
}

fn left_out(screen: &mut Screen, rows: usize, columns: usize) {
    let mut parts = Vec::new();
    if rows > 0 {
        parts.push(format!("{rows} more {}", if rows == 1 { "row" } else { "rows" }));
    }
    if columns > 0 {
        parts.push(format!("{columns} more {}", if columns == 1 { "column" } else { "columns" }));
    }
    if !parts.is_empty() {
        let text = format!("({} in the HTML and JSON reports)", parts.join(" and "));
        screen.paragraph(&text, "  ", true);
    }
}

/// The width of each column; zero for one that is left out. Columns of text get narrower first, but
/// not than their longest word, then those of numbers whose heading can take several lines; then
/// the rightmost columns are left out.
fn fit(screen: &Screen, table: &Table, heads: &[String], cells: &[Vec<String>]) -> Vec<usize> {
    let of_cells = |i: usize, width: fn(&str) -> usize| {
        cells.iter().map(|row| width(&row[i])).max().unwrap_or(0)
    };
    let natural = |i: usize| of_cells(i, display_width).max(display_width(&heads[i])).max(1);
    let narrowest = |i: usize| match table.columns[i].unit {
        // Numbers stay in one line.
        Some(_) => of_cells(i, display_width).max(longest_word(&heads[i])),
        None => of_cells(i, unbroken).max(longest_word(&heads[i])).min(WORD_MAX),
    };
    let narrowest: Vec<usize> = (0..heads.len()).map(narrowest).collect();
    let mut widths: Vec<usize> = (0..heads.len()).map(natural).collect();
    let total = |widths: &[usize]| widths.iter().filter(|w| **w > 0).map(|w| w + 2).sum::<usize>();
    while total(&widths) > screen.width {
        let widest = |is_text: bool| {
            let fits = |i: &usize| table.columns[*i].unit.is_none() == is_text;
            let wide = (0..widths.len()).filter(fits).filter(|&i| widths[i] > narrowest[i]);
            wide.max_by_key(|&i| widths[i])
        };
        match widest(true).or_else(|| widest(false)) {
            Some(i) => widths[i] -= 1,
            None => match (1..widths.len()).rev().find(|&i| widths[i] > 0) {
                Some(last) => widths[last] = 0,
                None => break,
            },
        }
    }
    widths
}

/// The width of the longest part of a cell that stays in one line: a word, or a number with its
/// unit.
fn unbroken(text: &str) -> usize {
    let is_number =
        text.trim_start_matches(['-', '+', '<', '>', ' ']).starts_with(char::is_numeric);
    if is_number { display_width(text) } else { longest_word(text) }
}

fn longest_word(text: &str) -> usize {
    text.split_whitespace().map(display_width).max().unwrap_or(0)
}
