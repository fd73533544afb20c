//! Tables and notes as Markdown, and pages whose tables and notes a command writes.
//!
//! In such a page a table stands between two comments: `<!-- table: SECTION, N -->`, which names
//! the section of the document and which of its tables it is, from 1 on, and `<!-- end -->`; a list
//! of notes begins with `<!-- notes: SECTION, N -->`. What is around them is written by hand.

use crate::model::{Block, Document, Table};
use crate::terminal::wrap;

const TABLE: &str = "<!-- table: ";
const NOTES: &str = "<!-- notes: ";
const END: &str = "<!-- end -->";
/// Columns of the lines of notes.
const WIDTH: usize = 100;

/// The page cannot be renewed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The page has no table to be renewed.
    #[error("no line begins with `{TABLE}SECTION, N -->`, so there is no table to be renewed")]
    NoTables,
    /// A comment names no table or list of notes of the document.
    #[error("line {line}: the result has no {name}; it has: {known}")]
    Unknown {
        /// The line of the comment, from 1 on.
        line: usize,
        /// What it names.
        name: String,
        /// The names of all tables and lists of the document.
        known: String,
    },
    /// A table has no end.
    #[error("line {line}: no line `{END}` follows before the next table")]
    NoEnd {
        /// The line of the comment that begins the table, from 1 on.
        line: usize,
    },
}

/// The table with a header, columns of numbers right-aligned, without its caption.
#[must_use]
pub fn table(table: &Table) -> String {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = row(table.columns.iter().map(|column| escaped(&column.name)).collect());
    for column in &table.columns {
        text.push_str(if column.unit.is_some() { "|---:" } else { "|---" });
    }
    text.push_str("|\n");
    for number in 0..table.rows.len() {
        let cells = table.columns.iter().enumerate();
        let cell = |(i, column): (usize, &crate::Column)| {
            escaped(&table.cell(number, i).show(column.unit, "-"))
        };
        text.push_str(&row(cells.map(cell).collect()));
    }
    text
}

/// Notes as a list: those that begin with a number are its items, others have a bullet.
#[must_use]
pub fn notes(notes: &[String]) -> String {
    let mut text = String::new();
    for note in notes {
        let number = note.split_once(". ").filter(|(number, _)| number.parse::<u32>().is_ok());
        let (head, rest) = match number {
            Some((number, rest)) => (format!("{number}. "), rest),
            None => ("* ".to_owned(), note.as_str()),
        };
        let lines = wrap(rest, WIDTH - head.len());
        let indent = format!("\n{}", " ".repeat(head.len()));
        text.push_str(&format!("{head}{}\n", lines.join(&indent)));
    }
    text
}

/// `page` with the tables and notes of `document` in place of those between its comments.
///
/// # Errors
/// [`PageError`] if there are none, or one is not in the document.
pub fn renewed(page: &str, document: &Document) -> Result<String, PageError> {
    let parts = named_parts(document);
    let begins = |line: &str| line.starts_with(TABLE) || line.starts_with(NOTES);
    let mut text = String::new();
    let mut lines = page.lines().enumerate();
    let mut found = false;
    while let Some((number, line)) = lines.next() {
        text.push_str(line);
        text.push('\n');
        if !begins(line) {
            continue;
        }
        found = true;
        let name = line.trim_start_matches("<!-- ").trim_end_matches(" -->");
        let Some((_, of)) = parts.iter().find(|(known, _)| known == name) else {
            let known: Vec<&str> = parts.iter().map(|(name, _)| name.as_str()).collect();
            let (line, name, known) = (number + 1, name.to_owned(), known.join("; "));
            return Err(PageError::Unknown { line, name, known });
        };
        let ended = lines.find(|(_, line)| *line == END || begins(line));
        if ended.is_none_or(|(_, line)| line != END) {
            return Err(PageError::NoEnd { line: number + 1 });
        }
        text.push_str(&format!("\n{of}\n{END}\n"));
    }
    if found { Ok(text) } else { Err(PageError::NoTables) }
}

/// All tables and notes of a document as Markdown, with the names by which pages refer to them.
fn named_parts(document: &Document) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for section in &document.sections {
        let (mut tables, mut lists) = (0, 0);
        for block in &section.blocks {
            let (kind, number, text) = match block {
                Block::Table(of) => ("table", &mut tables, table(of)),
                Block::Notes(of) => ("notes", &mut lists, notes(of)),
                _ => continue,
            };
            *number += 1;
            all.push((format!("{kind}: {}, {number}", section.title), text));
        }
    }
    all
}

/// Text in a cell: a bar would end it.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Section, Unit};

    fn document() -> Document {
        let mut table =
            Table::new("Drives", vec![Column::text("drive"), Column::number("WA", Unit::Ratio)]);
        table.rows.push(vec!["a|b".into(), 1.25.into()]);
        table.rows.push(vec!["c".into()]);
        let long = format!("12. Long: {}.", "word ".repeat(40).trim_end());
        let notes = Block::Notes(vec!["Short.".into(), long]);
        Document::new("Title", "").with(Section::new("Wear", "").with(table).with(notes))
    }

    const ROWS: &str = "| drive | WA |\n|---|---:|\n| a\\|b | 1.25 |\n| c | - |\n";

    #[test]
    fn a_table_between_its_comments_is_replaced_and_nothing_else() {
        let page = "# T\n\n<!-- table: Wear, 1 -->\n\n| old |\n\n<!-- end -->\nafter\n";
        let renewed_once = renewed(page, &document()).unwrap();
        let expected = format!("# T\n\n<!-- table: Wear, 1 -->\n\n{ROWS}\n<!-- end -->\nafter\n");
        assert_eq!(renewed_once, expected);
        assert_eq!(renewed(&renewed_once, &document()).unwrap(), expected);
    }

    #[test]
    fn notes_between_their_comments_are_a_list_of_lines_of_100_columns() {
        let page = "<!-- notes: Wear, 1 -->\n\n* old\n\n<!-- end -->\n";
        let list = renewed(page, &document()).unwrap();
        let lines: Vec<&str> = list.lines().collect();
        assert_eq!(lines[2], "* Short.");
        assert!(
            lines[3].starts_with("12. Long: word") && (95..=100).contains(&lines[3].len()),
            "{list}"
        );
        assert!(lines[4].starts_with("    word word"), "{list}");
        assert_eq!(list.matches("word").count(), 40);
        assert_eq!(renewed(&list, &document()).unwrap(), list);
    }

    #[test]
    fn pages_without_tables_and_unknown_ones_are_refused() {
        let of = |page| renewed(page, &document()).unwrap_err();
        assert_eq!(of("text\n"), PageError::NoTables);
        let known = "table: Wear, 1; notes: Wear, 1".to_owned();
        let unknown = PageError::Unknown { line: 2, name: "table: Wear, 2".into(), known };
        assert_eq!(of("x\n<!-- table: Wear, 2 -->\n<!-- end -->\n"), unknown);
        assert_eq!(of("<!-- table: Wear, 1 -->\n"), PageError::NoEnd { line: 1 });
        let two = "<!-- table: Wear, 1 -->\n<!-- table: Wear, 1 -->\n<!-- end -->\n";
        assert_eq!(of(two), PageError::NoEnd { line: 1 });
    }
}
