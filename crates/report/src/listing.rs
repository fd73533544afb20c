//! Tables of things of one kind: each column is described once, with its heading, its unit and
//! what it takes of a thing.

use crate::model::{Column, Table, Value};
use crate::unit::Unit;

/// A table with a row for each of some things, whose columns are added one by one.
///
/// ```
/// use prism_report::{Table, Unit};
///
/// let drives = [("old", 1.5), ("new", 1.25)];
/// let table = Table::listing(&drives)
///     .text("drive", |drive| drive.0)
///     .number("write amplification", Unit::Ratio, |drive| drive.1)
///     .table("Drives");
/// assert_eq!(table.cell(1, 0).show(None, "-"), "new");
/// ```
#[derive(Debug)]
pub struct Listing<'a, R> {
    items: &'a [R],
    columns: Vec<Column>,
    rows: Vec<Vec<Value>>,
}

impl Table {
    /// A table with a row for each of `items`, still without columns.
    #[must_use]
    pub fn listing<R>(items: &[R]) -> Listing<'_, R> {
        Listing { items, columns: Vec::new(), rows: vec![Vec::new(); items.len()] }
    }
}

impl<'a, R> Listing<'a, R> {
    /// With one more column of words.
    #[must_use]
    pub fn text<V: Into<Value>>(self, name: impl Into<String>, of: impl Fn(&'a R) -> V) -> Self {
        self.column(Column::text(name), of)
    }

    /// With one more column of numbers.
    #[must_use]
    pub fn number<V: Into<Value>>(
        self,
        name: impl Into<String>,
        unit: Unit,
        of: impl Fn(&'a R) -> V,
    ) -> Self {
        self.column(Column::number(name, unit), of)
    }

    /// With one more column.
    #[must_use]
    pub fn column<V: Into<Value>>(mut self, column: Column, of: impl Fn(&'a R) -> V) -> Self {
        self.columns.push(column);
        for (row, item) in self.rows.iter_mut().zip(self.items) {
            row.push(of(item).into());
        }
        self
    }

    /// The table. `caption` is one sentence that says what is listed.
    #[must_use]
    pub fn table(self, caption: impl Into<String>) -> Table {
        Table { rows: self.rows, ..Table::new(caption, self.columns) }
    }

    /// As [`Listing::table`]; renderers show every row.
    #[must_use]
    pub fn whole(self, caption: impl Into<String>) -> Table {
        Table { whole: true, ..self.table(caption) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::rows;

    #[test]
    fn columns_give_cells_and_keys_of_json() {
        let items = [(Some(3u64), "a"), (None, "b")];
        let table = Table::listing(&items)
            .number("Pages read", Unit::Count, |item| item.0)
            .column(Column::text("name").key("who"), |&(_, name)| name)
            .table("Items");
        assert_eq!(table.rows[1], [Value::Missing, "b".into()]);
        let json = r#"[{"pages_read":3,"who":"a"},{"pages_read":null,"who":"b"}]"#;
        assert_eq!(rows(&table).to_string(), json);
    }
}
