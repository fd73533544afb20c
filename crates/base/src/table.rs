//! A table of typed columns: what data sets are made of before they are written to a file.

/// The values of a column, one for each row; `None` where there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Whole numbers.
    Ints(Vec<Option<i64>>),
    /// Any numbers.
    Floats(Vec<Option<f64>>),
    /// Truth values.
    Bools(Vec<Option<bool>>),
    /// Texts.
    Texts(Vec<Option<String>>),
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, unique in the table. It ends in the unit of its numbers, if they have one.
    pub name: String,
    /// Its values.
    pub values: Values,
}

/// A table: columns of the same length, and facts about all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct DataTable {
    /// From left to right.
    pub columns: Vec<Column>,
    /// Facts, as key and text.
    pub facts: Vec<(String, String)>,
}

impl Values {
    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Ints(values) => values.len(),
            Self::Floats(values) => values.len(),
            Self::Bools(values) => values.len(),
            Self::Texts(values) => values.len(),
        }
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The type for readers: `int64`, `double`, `boolean` or `string`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Ints(_) => "int64",
            Self::Floats(_) => "double",
            Self::Bools(_) => "boolean",
            Self::Texts(_) => "string",
        }
    }

    /// The value of a row as text, a number in the shortest form that is read back as the same
    /// number; `None` if there is none.
    #[must_use]
    pub fn text(&self, row: usize) -> Option<String> {
        match self {
            Self::Ints(values) => values[row].map(|value| value.to_string()),
            Self::Floats(values) => values[row].map(|value| value.to_string()),
            Self::Bools(values) => values[row].map(|value| value.to_string()),
            Self::Texts(values) => values[row].clone(),
        }
    }

    /// The value of a row as a number; `None` if there is none, or it is no number.
    #[must_use]
    pub fn number(&self, row: usize) -> Option<f64> {
        match self {
            Self::Ints(values) => values[row].map(|value| value as f64),
            Self::Floats(values) => values[row],
            Self::Bools(_) | Self::Texts(_) => None,
        }
    }
}

impl DataTable {
    /// The column of this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }
}
