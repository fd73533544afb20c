//! What a report is made of: sections of figures, tables, charts and plain sentences.
//!
//! Values carry their unit and stay numbers until a renderer writes them, so that the
//! terminal, the page and the JSON cannot disagree.

use crate::chart::Chart;
use crate::unit::Unit;
use crate::verdict::{Grade, Verdict};
use prism_base::{Bytes, Nanos};

/// A whole report.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// What is reported on.
    pub title: String,
    /// One line under the title: the input, the device, the version.
    pub subtitle: String,
    /// In reading order, what matters most first.
    pub sections: Vec<Section>,
}

/// A part of a report with its own heading.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// One sentence that says what there is to see. May be empty.
    pub lead: String,
    /// In reading order.
    pub blocks: Vec<Block>,
}

/// One piece of a section.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "a document holds a few dozen blocks")]
pub enum Block {
    /// The few most important numbers.
    KeyFigures(Vec<Figure>),
    /// Which rules are kept and which are broken.
    Verdicts(Vec<Verdict>),
    /// Rows and columns.
    Table(Table),
    /// A chart.
    Chart(Chart),
    /// What limits the numbers, in whole sentences.
    Notes(Vec<String>),
    /// A paragraph.
    Text(String),
}

/// One number with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it is, in a few words.
    pub label: String,
    /// The number, in the base unit of `unit`.
    pub value: Value,
    /// How a number is written; text ignores it.
    pub unit: Unit,
    /// What it means or how it was obtained. May be empty.
    pub note: String,
}

/// A table whose columns have units.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// One sentence that says what is listed.
    pub caption: String,
    /// From left to right; the first names the row.
    pub columns: Vec<Column>,
    /// Each row has one value for each column: absent values show as missing, surplus ones are
    /// not shown.
    pub rows: Vec<Vec<Value>>,
    /// Every renderer shows all rows, however many there are.
    pub whole: bool,
}

/// The head of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The heading, unique within its table.
    pub name: String,
    /// The unit of a column of numbers, which is set right-aligned; `None` for text.
    pub unit: Option<Unit>,
    /// Its key in JSON; `None` for the one that follows from its name.
    pub key: Option<&'static str>,
}

/// The content of a cell or a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text. It may come from a trace, so renderers escape it.
    Text(String),
    /// A whole number, exact in JSON.
    Int(u64),
    /// Any other number. One that is not finite counts as missing.
    Float(f64),
    /// How well a rule is kept, from 0 to 1, with its grade, which colours the cell.
    Graded(f64, Grade),
    /// Not known, which is not zero.
    Missing,
}

impl Document {
    /// A report without sections yet.
    #[must_use]
    pub fn new(title: impl Into<String>, subtitle: impl Into<String>) -> Self {
        Self { title: title.into(), subtitle: subtitle.into(), sections: Vec::new() }
    }

    /// This report with one more section at its end.
    #[must_use]
    pub fn with(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }
}

impl Section {
    /// A section without blocks yet.
    #[must_use]
    pub fn new(title: impl Into<String>, lead: impl Into<String>) -> Self {
        Self { title: title.into(), lead: lead.into(), blocks: Vec::new() }
    }

    /// Adds a block at the end.
    pub fn push(&mut self, block: impl Into<Block>) {
        self.blocks.push(block.into());
    }

    /// This section with one more block at its end.
    #[must_use]
    pub fn with(mut self, block: impl Into<Block>) -> Self {
        self.push(block);
        self
    }
}

impl From<Vec<Figure>> for Block {
    fn from(figures: Vec<Figure>) -> Self {
        Self::KeyFigures(figures)
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

impl From<Chart> for Block {
    fn from(chart: Chart) -> Self {
        Self::Chart(chart)
    }
}

impl Figure {
    /// A figure without a note.
    #[must_use]
    pub fn new(label: impl Into<String>, unit: Unit, value: impl Into<Value>) -> Self {
        Self { label: label.into(), value: value.into(), unit, note: String::new() }
    }

    /// This figure with a note under it.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// The value as text; an unknown value is written as `missing`.
    #[must_use]
    pub fn show(&self, missing: &str) -> String {
        self.value.show(Some(self.unit), missing)
    }
}

impl Table {
    /// A table without rows yet.
    #[must_use]
    pub fn new(caption: impl Into<String>, columns: Vec<Column>) -> Self {
        Self { caption: caption.into(), columns, rows: Vec::new(), whole: false }
    }

    /// The cell at `row` and `column`, missing where the row is too short.
    #[must_use]
    pub fn cell(&self, row: usize, column: usize) -> &Value {
        self.rows.get(row).and_then(|row| row.get(column)).unwrap_or(&Value::Missing)
    }
}

impl Column {
    /// A left-aligned column of words.
    #[must_use]
    pub fn text(name: impl Into<String>) -> Self {
        Self { name: name.into(), unit: None, key: None }
    }

    /// A right-aligned column of numbers.
    #[must_use]
    pub fn number(name: impl Into<String>, unit: Unit) -> Self {
        Self { name: name.into(), unit: Some(unit), key: None }
    }

    /// This column with a key of its own in JSON.
    #[must_use]
    pub fn key(self, key: &'static str) -> Self {
        Self { key: Some(key), ..self }
    }
}

impl Value {
    /// The grade of a cell that has one.
    pub(crate) fn grade(&self) -> Option<Grade> {
        match self {
            Self::Graded(score, grade) if score.is_finite() => Some(*grade),
            _ => None,
        }
    }

    /// The value as text; an unknown value is written as `missing`.
    #[must_use]
    pub fn show(&self, unit: Option<Unit>, missing: &str) -> String {
        let number = match self {
            Self::Text(text) => return text.clone(),
            Self::Missing => return missing.into(),
            Self::Int(whole) => *whole as f64,
            Self::Float(number) if !number.is_finite() => return missing.into(),
            Self::Float(number) => *number,
            Self::Graded(score, _) if !score.is_finite() => return missing.into(),
            Self::Graded(score, grade) => return format!("{}{score:.2}", grade.mark()),
        };
        match unit {
            Some(unit) => unit.format(number),
            None => Unit::Ratio.format(number),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Value {
    fn from(whole: u64) -> Self {
        Self::Int(whole)
    }
}

impl From<u32> for Value {
    fn from(whole: u32) -> Self {
        Self::Int(whole.into())
    }
}

impl From<usize> for Value {
    fn from(whole: usize) -> Self {
        Self::Int(whole as u64)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<Nanos> for Value {
    fn from(span: Nanos) -> Self {
        Self::Int(span.0)
    }
}

impl From<Bytes> for Value {
    fn from(amount: Bytes) -> Self {
        Self::Int(amount.0)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}
