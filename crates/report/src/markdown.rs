//! Tables as Markdown, and pages whose tables a command writes.
//!
//! In such a page a table stands between two comments: `<!-- table: SECTION, N -->`, which names
//! the section of the document and which of its tables it is, from 1 on, and `<!-- end -->`. What
//! is around them is written by hand.

use crate::model::{Block, Document, Table};

const BEGIN: &str = "<!-- table: ";
const END: &str = "<!-- end -->";

/// The page cannot be renewed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The page has no table to be renewed.
    #[error("no line begins with `{BEGIN}SECTION, N -->`, so there is no table to be renewed")]
    NoTables,
    /// A comment names no table of the document.
    #[error("line {line}: the result has no table \"{name}\"; its tables are: {known}")]
    Unknown {
        /// The line of the comment, from 1 on.
        line: usize,
        /// What it names.
        name: String,
        /// The names of all tables of the document.
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

/// `page` with the tables of `document` in place of those between its comments.
///
/// # Errors
/// [`PageError`] if there are none, or one is not in the document.
pub fn renewed(page: &str, document: &Document) -> Result<String, PageError> {
    let tables = named_tables(document);
    let mut text = String::new();
    let mut lines = page.lines().enumerate();
    let mut found = false;
    while let Some((number, line)) = lines.next() {
        text.push_str(line);
        text.push('\n');
        let Some(name) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(" -->")) else {
            continue;
        };
        found = true;
        let Some((_, of)) = tables.iter().find(|(known, _)| known == name) else {
            let known: Vec<&str> = tables.iter().map(|(name, _)| name.as_str()).collect();
            let (line, name, known) = (number + 1, name.to_owned(), known.join("; "));
            return Err(PageError::Unknown { line, name, known });
        };
        let ended = lines.find(|(_, line)| *line == END || line.starts_with(BEGIN));
        if ended.is_none_or(|(_, line)| line != END) {
            return Err(PageError::NoEnd { line: number + 1 });
        }
        text.push_str(&format!("\n{}\n{END}\n", table(of)));
    }
    if found { Ok(text) } else { Err(PageError::NoTables) }
}

/// All tables of a document, with the names by which pages refer to them.
fn named_tables(document: &Document) -> Vec<(String, &Table)> {
    let mut all = Vec::new();
    for section in &document.sections {
        let tables = section.blocks.iter().filter_map(|block| match block {
            Block::Table(table) => Some(table),
            _ => None,
        });
        let named = tables.zip(1..).map(|(table, n)| (format!("{}, {n}", section.title), table));
        all.extend(named);
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
        Document::new("Title", "").with(Section::new("Wear", "").with(table))
    }

    const TABLE: &str = "| drive | WA |\n|---|---:|\n| a\\|b | 1.25 |\n| c | - |\n";

    #[test]
    fn a_table_between_its_comments_is_replaced_and_nothing_else() {
        let page = "# T\n\n<!-- table: Wear, 1 -->\n\n| old |\n\n<!-- end -->\nafter\n";
        let renewed_once = renewed(page, &document()).unwrap();
        let expected = format!("# T\n\n<!-- table: Wear, 1 -->\n\n{TABLE}\n<!-- end -->\nafter\n");
        assert_eq!(renewed_once, expected);
        assert_eq!(renewed(&renewed_once, &document()).unwrap(), expected);
    }

    #[test]
    fn pages_without_tables_and_unknown_ones_are_refused() {
        let of = |page| renewed(page, &document()).unwrap_err();
        assert_eq!(of("text\n"), PageError::NoTables);
        let known = "Wear, 1".to_owned();
        let unknown = PageError::Unknown { line: 2, name: "Wear, 2".into(), known };
        assert_eq!(of("x\n<!-- table: Wear, 2 -->\n<!-- end -->\n"), unknown);
        assert_eq!(of("<!-- table: Wear, 1 -->\n"), PageError::NoEnd { line: 1 });
        let two = "<!-- table: Wear, 1 -->\n<!-- table: Wear, 1 -->\n<!-- end -->\n";
        assert_eq!(of(two), PageError::NoEnd { line: 1 });
    }
}
