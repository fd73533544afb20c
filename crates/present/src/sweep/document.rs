//! Reads the file of a sweep: settings by dotted path, each with its line.

use std::borrow::Cow;
use std::ops::Range as Span;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::PresentError;
use crate::sweep::scalar::Scalar;

/// The text of a file of a sweep, for messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct File<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

/// A value at a path of a section.
#[derive(Clone)]
pub(super) struct Leaf<'a> {
    /// The keys, joined by dots.
    pub path: String,
    /// File, line and section, for messages.
    pub at: String,
    pub value: &'a DeValue<'a>,
    pub start: usize,
}

impl<'a> File<'a> {
    /// The tables of the file.
    ///
    /// # Errors
    /// [`PresentError::Refused`] with the line, if it is not TOML.
    pub fn tables(self) -> Result<DeTable<'a>, PresentError> {
        match DeTable::parse(self.text) {
            Ok(table) => Ok(table.into_inner()),
            Err(error) => {
                let at = self.line(error.span().unwrap_or_default());
                Err(PresentError::refused(format!("{at}: {}", error.message())))
            }
        }
    }

    /// The file and the line of a span.
    pub fn line(self, span: Span<usize>) -> String {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        format!("{}:{line}", self.name)
    }

    /// Every value of the section `table` that `is_leaf` takes, or that is no table, in the order
    /// of the file.
    pub fn leaves<'t>(
        self,
        section: &str,
        table: &'t DeTable<'t>,
        is_leaf: fn(&DeTable<'_>) -> bool,
    ) -> Vec<Leaf<'t>> {
        let mut leaves = Vec::new();
        let mut open = vec![(String::new(), table)];
        while let Some((path, table)) = open.pop() {
            for (key, value) in table {
                let key_path: Cow<'_, str> = match path.as_str() {
                    "" => Cow::Borrowed(key.get_ref()),
                    path => Cow::Owned(format!("{path}.{}", key.get_ref())),
                };
                let (path, start) = (key_path.into_owned(), key.span().start);
                match value.get_ref().as_table().filter(|table| !is_leaf(table)) {
                    Some(inner) => open.push((path, inner)),
                    None => leaves.push(Leaf {
                        path,
                        at: format!("{}: [{section}]", self.line(key.span())),
                        value: value.get_ref(),
                        start,
                    }),
                }
            }
        }
        leaves.sort_by_key(|leaf| leaf.start);
        leaves
    }
}

impl Leaf<'_> {
    /// An error about this value.
    pub fn wrong(&self, what: impl std::fmt::Display) -> PresentError {
        PresentError::refused(format!("{} {}: {what}", self.at, self.path))
    }

    /// The value as that of a setting.
    pub fn scalar(&self) -> Result<Scalar, PresentError> {
        scalar(self.value).map_err(|what| self.wrong(what))
    }

    /// The values of a list that is not empty.
    pub fn list(&self) -> Result<Vec<Scalar>, PresentError> {
        let values = self.value.as_array().filter(|list| !list.is_empty());
        let values = values.ok_or_else(|| {
            self.wrong(format!("give a list of values, such as {} = [1, 2]", self.path))
        })?;
        let values: Result<Vec<_>, _> = values.iter().map(|v| scalar(v.get_ref())).collect();
        values.map_err(|what| self.wrong(what))
    }
}

/// `value` as that of a setting: a list is its text.
pub(super) fn scalar(value: &DeValue<'_>) -> Result<Scalar, String> {
    match value {
        DeValue::String(text) => Ok(Scalar::Text(text.clone().into_owned())),
        DeValue::Boolean(value) => Ok(Scalar::Bool(*value)),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(Scalar::Int)
            .map_err(|_| format!("{number} is too large")),
        DeValue::Float(number) => match number.as_str().parse() {
            Ok(number) if f64::is_finite(number) => Ok(Scalar::Float(number)),
            _ => Err(format!("{number} is not a number that can be simulated")),
        },
        DeValue::Array(values) => {
            let one = |value: &Spanned<DeValue<'_>>| match scalar(value.get_ref())? {
                Scalar::Text(text) if !value.get_ref().is_array() => {
                    Ok(toml::Value::String(text).to_string())
                }
                other => Ok(other.text()),
            };
            let values: Result<Vec<_>, String> = values.iter().map(one).collect();
            Ok(Scalar::Text(format!("[{}]", values?.join(", "))))
        }
        DeValue::Table(_) => Err("a table is no value of a setting".into()),
        DeValue::Datetime(_) => Err("a date is no value of a setting".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_in_the_order_of_the_file_with_their_lines() {
        let text = "[grid]\nz = [1, 0x10]\nftl.victim = [\"a\"]\n[grid.flash]\nt_read = [[\"1us\", \
                    \"2us\"]]\n\"b.c\" = [true, 1.5]\n";
        let file = File { name: "s.toml", text };
        let tables = file.tables().unwrap();
        let grid = tables.get("grid").unwrap().get_ref().as_table().unwrap();
        let leaves = file.leaves("grid", grid, |_| false);
        let found: Vec<_> = leaves.iter().map(|l| (l.path.as_str(), l.at.as_str())).collect();
        let expected = [
            ("z", "s.toml:2: [grid]"),
            ("ftl.victim", "s.toml:3: [grid]"),
            ("flash.t_read", "s.toml:5: [grid]"),
            ("flash.b.c", "s.toml:6: [grid]"),
        ];
        assert_eq!(found, expected);
        assert_eq!(leaves[0].list().unwrap(), [Scalar::Int(1), Scalar::Int(16)]);
        let times = Scalar::Text("[\"1us\", \"2us\"]".into());
        assert_eq!(leaves[2].list().unwrap(), [times]);
        assert_eq!(leaves[3].list().unwrap(), [Scalar::Bool(true), Scalar::Float(1.5)]);
    }

    #[test]
    fn what_is_no_setting_is_refused_with_its_line() {
        let check = |text: &str, expected: &str| {
            let file = File { name: "s.toml", text };
            let tables = match file.tables() {
                Ok(tables) => tables,
                Err(error) => return assert!(error.to_string().contains(expected), "{error}"),
            };
            let leaf = &file.leaves("grid", &tables, |_| false)[0];
            let message = leaf.list().unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        };
        check("a = 1", "s.toml:1: [grid] a: give a list of values, such as a = [1, 2]");
        check("\na = []", "s.toml:2: [grid] a: give a list");
        check("a = [inf]", "inf is not a number");
        check("a = [1979-05-27]", "a date is no value");
        check("a = [{b = 1}]", "a table is no value");
        check("a = [99999999999999999999]", "is too large");
        check("a = 1\nb = = 2", "s.toml:2: ");
    }
}
