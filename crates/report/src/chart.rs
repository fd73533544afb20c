//! The kinds of charts, as data. The renderers decide how they are drawn.

use crate::curves::Curves;
use crate::model::{Column, Table, Value};
use crate::unit::Unit;
use std::ops::Range;

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub enum Chart {
    /// Values over time.
    Lines(Lines),
    /// Values over a quantity other than time.
    Curves(Curves),
    /// Amounts by category or by size class.
    Bars(Bars),
    /// The parts of one whole.
    Stacked(Stacked),
    /// Amounts by address and time.
    Heatmap(Heatmap),
}

prism_base::named_enum! {
    /// How values map to positions on an axis.
    pub enum Scale {
        /// Equal distances are equal differences; starts at zero.
        Linear = "linear",
        /// Equal distances are equal ratios; values that are not positive are not drawn.
        Log = "log",
    }
}

/// A value axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What is measured.
    pub label: String,
    /// In which unit the values are given.
    pub unit: Unit,
    /// How they map to positions.
    pub scale: Scale,
}

/// Series over a shared time axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    /// A few words.
    pub title: String,
    /// One sentence that says what there is to see.
    pub caption: String,
    /// Start and end of the time axis, in nanoseconds. Charts of a page that show the same
    /// range zoom together.
    pub time_range: Range<u64>,
    /// The time of each point in nanoseconds, ascending.
    pub times: Vec<f64>,
    /// The axis that all series share.
    pub y: Axis,
    /// The first is drawn last, on top.
    pub series: Vec<Series>,
}

/// One line, with an optional band around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name. A name keeps its colour throughout a document.
    pub name: String,
    /// One value for each time; `None` or not finite leaves a gap, and so does a series
    /// that is shorter than the times.
    pub values: Vec<Option<f64>>,
    /// A range around the line.
    pub band: Option<Band>,
}

/// A range around a line, such as from the median to the 99th percentile.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// What the range means, for the legend.
    pub meaning: String,
    /// The lower end for each time.
    pub low: Vec<Option<f64>>,
    /// The upper end for each time.
    pub high: Vec<Option<f64>>,
}

/// Amounts as bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// A few words.
    pub title: String,
    /// One sentence that says what there is to see.
    pub caption: String,
    /// Which way the bars run.
    pub layout: BarLayout,
    /// What the labels name, such as `request size`.
    pub label_name: String,
    /// One for each group of bars.
    pub labels: Vec<String>,
    /// The value axis.
    pub y: Axis,
    /// One bar in each group; `values` has one entry for each label.
    pub series: Vec<Series>,
}

/// Which way bars run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarLayout {
    /// Upwards, for classes in order: a histogram.
    Columns,
    /// To the right, for long names.
    Rows,
}

/// The parts of one whole as a single bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Stacked {
    /// A few words.
    pub title: String,
    /// One sentence that says what there is to see.
    pub caption: String,
    /// The unit of the parts.
    pub unit: Unit,
    /// From left to right.
    pub segments: Vec<Segment>,
}

/// A part of a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Its name. A name keeps its colour throughout a document.
    pub name: String,
    /// How much; not negative.
    pub value: f64,
}

/// Amounts by time and address, one panel for each layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Heatmap {
    /// A few words.
    pub title: String,
    /// One sentence that says what there is to see.
    pub caption: String,
    /// Start and end of the time axis, in nanoseconds.
    pub time_range: Range<u64>,
    /// How many time bins there are.
    pub columns: usize,
    /// The width of a time bin, in nanoseconds; the last one may extend past the end.
    pub column_width: u64,
    /// Start and end of the address axis, in bytes.
    pub address_range: Range<u64>,
    /// How many address bins there are; the first is the lowest.
    pub rows: usize,
    /// The height of an address bin, in bytes; the last one may extend past the end.
    pub row_height: u64,
    /// The unit of the cells.
    pub unit: Unit,
    /// One panel for each or, if `overlaid`, one colour for each in one panel.
    pub layers: Vec<Layer>,
    /// Whether all layers share one panel, in which each cell has the colour of the layer with the
    /// largest amount there.
    pub overlaid: bool,
}

/// One panel of a heat map.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Its name, such as `write`.
    pub name: String,
    /// Cell (column, row) is at `column * rows + row`; absent cells are zero.
    pub cells: Vec<u64>,
}

impl Chart {
    /// The title of whichever chart it is.
    #[must_use]
    pub fn title(&self) -> &str {
        match self {
            Self::Lines(chart) => &chart.title,
            Self::Curves(chart) => &chart.title,
            Self::Bars(chart) => &chart.title,
            Self::Stacked(chart) => &chart.title,
            Self::Heatmap(chart) => &chart.title,
        }
    }

    /// The caption of whichever chart it is.
    #[must_use]
    pub fn caption(&self) -> &str {
        match self {
            Self::Lines(chart) => &chart.caption,
            Self::Curves(chart) => &chart.caption,
            Self::Bars(chart) => &chart.caption,
            Self::Stacked(chart) => &chart.caption,
            Self::Heatmap(chart) => &chart.caption,
        }
    }

    /// The numbers of the chart as a table. A heat map is summed over time.
    #[must_use]
    pub fn numbers(&self) -> Table {
        match self {
            Self::Lines(chart) => chart.numbers(),
            Self::Curves(chart) => chart.numbers(),
            Self::Bars(chart) => chart.numbers(),
            Self::Stacked(chart) => chart.numbers(),
            Self::Heatmap(chart) => chart.numbers(),
        }
    }
}

impl Axis {
    /// A linear axis.
    #[must_use]
    pub fn linear(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, scale: Scale::Linear }
    }

    /// A logarithmic axis.
    #[must_use]
    pub fn log(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, scale: Scale::Log }
    }
}

impl Series {
    /// A series without a band.
    #[must_use]
    pub fn new(name: impl Into<String>, values: Vec<Option<f64>>) -> Self {
        Self { name: name.into(), values, band: None }
    }

    /// This series with a band around it.
    #[must_use]
    pub fn band(
        mut self,
        meaning: impl Into<String>,
        low: Vec<Option<f64>>,
        high: Vec<Option<f64>>,
    ) -> Self {
        self.band = Some(Band { meaning: meaning.into(), low, high });
        self
    }

    /// The value at `index` if there is a finite one.
    #[must_use]
    pub fn value(&self, index: usize) -> Option<f64> {
        finite(&self.values, index)
    }
}

impl Band {
    /// Both ends at `index` if both are known.
    #[must_use]
    pub fn ends(&self, index: usize) -> Option<(f64, f64)> {
        Some((finite(&self.low, index)?, finite(&self.high, index)?))
    }
}

fn finite(values: &[Option<f64>], index: usize) -> Option<f64> {
    values.get(index).copied().flatten().filter(|value| value.is_finite())
}

impl Lines {
    fn numbers(&self) -> Table {
        let mut columns = vec![Column::number("time", Unit::Nanos)];
        for series in &self.series {
            columns.push(Column::number(&series.name, self.y.unit));
            if let Some(band) = &series.band {
                columns.push(Column::number(format!("{}, low", band.meaning), self.y.unit));
                columns.push(Column::number(format!("{}, high", band.meaning), self.y.unit));
            }
        }
        let mut table = Table::new(self.caption.clone(), columns);
        for (i, &time) in self.times.iter().enumerate() {
            let mut row = vec![Value::Float(time)];
            for series in &self.series {
                row.push(series.value(i).into());
                if let Some(band) = &series.band {
                    let ends = band.ends(i);
                    row.push(ends.map(|(low, _)| low).into());
                    row.push(ends.map(|(_, high)| high).into());
                }
            }
            table.rows.push(row);
        }
        table
    }

    /// The same lines with at most `points_max` points: neighbours are averaged, and a
    /// band keeps their extremes.
    pub(crate) fn thinned(&self, points_max: usize) -> Self {
        let group = self.times.len().div_ceil(points_max.max(1)).max(1);
        let starts: Vec<usize> = (0..self.times.len()).step_by(group).collect();
        let thin = |pick: &dyn Fn(usize) -> Option<f64>, merge: fn(f64, f64) -> f64, mean: bool| {
            let of_group = |&start: &usize| {
                let known: Vec<f64> = (start..start + group).filter_map(pick).collect();
                let merged = known.iter().copied().reduce(merge)?;
                Some(if mean { merged / known.len() as f64 } else { merged })
            };
            starts.iter().map(of_group).collect::<Vec<Option<f64>>>()
        };
        let series = self.series.iter().map(|series| Series {
            name: series.name.clone(),
            values: thin(&|i| series.value(i), |a, b| a + b, true),
            band: series.band.as_ref().map(|band| Band {
                meaning: band.meaning.clone(),
                low: thin(&|i| band.ends(i).map(|ends| ends.0), f64::min, false),
                high: thin(&|i| band.ends(i).map(|ends| ends.1), f64::max, false),
            }),
        });
        Self {
            times: starts.iter().map(|&start| self.times[start]).collect(),
            series: series.collect(),
            ..self.clone()
        }
    }
}

impl Bars {
    fn numbers(&self) -> Table {
        let mut columns = vec![Column::text(&self.label_name)];
        columns.extend(self.series.iter().map(|s| Column::number(&s.name, self.y.unit)));
        let mut table = Table::new(self.caption.clone(), columns);
        for (i, label) in self.labels.iter().enumerate() {
            let mut row = vec![Value::from(label.as_str())];
            row.extend(self.series.iter().map(|series| Value::from(series.value(i))));
            table.rows.push(row);
        }
        table
    }
}

impl Stacked {
    /// The sum of all parts.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.segments.iter().map(Segment::size).sum()
    }

    fn numbers(&self) -> Table {
        let columns = vec![
            Column::text("part"),
            Column::number("amount", self.unit),
            Column::number("share", Unit::Percent),
        ];
        let mut table = Table::new(self.caption.clone(), columns);
        let total = self.total();
        for segment in &self.segments {
            table.rows.push(vec![
                segment.name.as_str().into(),
                segment.value.into(),
                (segment.size() / total).into(),
            ]);
        }
        table
    }
}

impl Segment {
    /// The value, or zero where it is not a positive number.
    #[must_use]
    pub fn size(&self) -> f64 {
        if self.value.is_finite() { self.value.max(0.0) } else { 0.0 }
    }
}

impl Heatmap {
    /// The first byte address of `row`; of the row after the last, the end.
    #[must_use]
    pub fn row_start(&self, row: usize) -> u64 {
        let offset = self.row_height.saturating_mul(row as u64);
        self.address_range.start.saturating_add(offset).min(self.address_range.end)
    }

    fn numbers(&self) -> Table {
        let mut columns = vec![
            Column::number("from address", Unit::Bytes),
            Column::number("to address", Unit::Bytes),
        ];
        columns.extend(self.layers.iter().map(|l| Column::number(&l.name, self.unit)));
        let mut table = Table::new(self.caption.clone(), columns);
        for row in 0..self.rows {
            let mut cells =
                vec![Value::Int(self.row_start(row)), Value::Int(self.row_start(row + 1))];
            for layer in &self.layers {
                let total = (0..self.columns).fold(0u64, |sum, column| {
                    sum.saturating_add(layer.cell(column, row, self.rows))
                });
                cells.push(Value::Int(total));
            }
            table.rows.push(cells);
        }
        table
    }
}

impl Layer {
    /// The amount at `column` and `row` of a map of `rows` rows.
    #[must_use]
    pub fn cell(&self, column: usize, row: usize, rows: usize) -> u64 {
        self.cells.get(column * rows + row).copied().unwrap_or(0)
    }
}
