//! Curves over any quantity: distributions, miss ratios, counts by rank. For values over time
//! there is [`crate::Lines`].

use crate::chart::Axis;
use crate::model::{Column, Table, Value};

/// One or more curves over a shared value axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// A few words.
    pub title: String,
    /// One sentence that says what there is to see.
    pub caption: String,
    /// The horizontal axis. A linear one begins at zero, unless all values are far from it.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The first is drawn last, on top.
    pub series: Vec<Curve>,
    /// Values of the x axis that are marked, such as the size of a cache.
    pub marks: Vec<Mark>,
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its name. A name keeps its colour throughout a document.
    pub name: String,
    /// Pairs of x and y, by ascending x. A pair that is not finite is not drawn.
    pub points: Vec<(f64, f64)>,
    /// How neighbouring points are connected.
    pub shape: CurveShape,
}

prism_base::named_enum! {
    /// How neighbouring points of a curve are connected.
    pub enum CurveShape {
        /// By a straight line: the points are samples of a quantity that changes gradually.
        Line = "line",
        /// By a step: the value of a point holds until the next one.
        Steps = "steps",
        /// Not at all: each point is drawn alone.
        Dots = "dots",
    }
}

/// A marked value of the x axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Where it is, in the unit of the x axis.
    pub x: f64,
    /// What the value means.
    pub label: String,
}

impl Curve {
    /// A curve through `points`, which ascend in x.
    #[must_use]
    pub fn new(name: impl Into<String>, shape: CurveShape, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, shape }
    }

    /// The points whose numbers are finite.
    pub(crate) fn known(&self) -> impl Iterator<Item = (f64, f64)> {
        self.points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite())
    }
}

impl Curves {
    /// All x values that the axis has to cover, those of the marks included.
    pub(crate) fn xs(&self) -> impl Iterator<Item = f64> {
        let points = self.series.iter().flat_map(Curve::known).map(|(x, _)| x);
        points.chain(self.marks.iter().map(|mark| mark.x).filter(|x| x.is_finite()))
    }

    /// All y values that the axis has to cover.
    pub(crate) fn ys(&self) -> impl Iterator<Item = f64> {
        self.series.iter().flat_map(Curve::known).map(|(_, y)| y)
    }

    /// The same curves with at most `points_max` points each, chosen evenly; the first and the
    /// last point are always kept.
    pub(crate) fn thinned(&self, points_max: usize) -> Self {
        let thin = |curve: &Curve| {
            let known: Vec<(f64, f64)> = curve.known().collect();
            let kept = known.len().min(points_max);
            // The last index is split into equal parts, so both ends are hit exactly.
            let index = |i: usize| i * (known.len() - 1) / (kept - 1).max(1);
            let points = (0..kept).map(|i| known[index(i)]).collect();
            Curve::new(curve.name.clone(), curve.shape, points)
        };
        Self { series: self.series.iter().map(thin).collect(), ..self.clone() }
    }

    /// One row for each x if all curves have the same x values, otherwise one row for each
    /// point of each curve.
    pub(crate) fn numbers(&self) -> Table {
        let xs: Vec<Vec<f64>> =
            self.series.iter().map(|curve| curve.known().map(|(x, _)| x).collect()).collect();
        let (x_name, y_name) = (&self.x.label, &self.y.label);
        if xs.windows(2).all(|pair| pair[0] == pair[1]) {
            let mut columns = vec![Column::number(x_name, self.x.unit)];
            columns.extend(self.series.iter().map(|c| Column::number(&c.name, self.y.unit)));
            let mut table = Table::new(self.caption.clone(), columns);
            table.rows = xs.first().into_iter().flatten().map(|&x| vec![x.into()]).collect();
            for curve in &self.series {
                for (row, (_, y)) in table.rows.iter_mut().zip(curve.known()) {
                    row.push(y.into());
                }
            }
            return table;
        }
        let columns = vec![
            Column::text("curve"),
            Column::number(x_name, self.x.unit),
            Column::number(y_name, self.y.unit),
        ];
        let mut table = Table::new(self.caption.clone(), columns);
        for curve in &self.series {
            let row = |(x, y): (f64, f64)| vec![curve.name.as_str().into(), x.into(), y.into()];
            table.rows.extend(curve.known().map(row).collect::<Vec<Vec<Value>>>());
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::Unit;

    fn curves(series: &[&[(f64, f64)]]) -> Curves {
        let name = |i: usize| ["a", "b", "c"][i];
        Curves {
            title: String::new(),
            caption: String::new(),
            x: Axis::linear("x", Unit::Count),
            y: Axis::linear("y", Unit::Ratio),
            series: series
                .iter()
                .enumerate()
                .map(|(i, points)| Curve::new(name(i), CurveShape::Line, points.to_vec()))
                .collect(),
            marks: Vec::new(),
        }
    }

    fn check(series: &[&[(f64, f64)]], points_max: usize, expected: &[&str]) {
        let table = curves(series).thinned(points_max).numbers();
        let show = |row: usize| {
            let cell = |i: usize| table.cell(row, i).show(table.columns[i].unit, "-");
            (0..table.columns.len()).map(cell).collect::<Vec<_>>().join(" ")
        };
        assert_eq!((0..table.rows.len()).map(show).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn numbers_share_rows_where_the_x_agree() {
        check(&[], 9, &[]);
        check(&[&[]], 9, &[]);
        check(&[&[(1.0, 0.5), (2.0, 0.25)]], 9, &["1 0.5", "2 0.25"]);
        check(&[&[(1.0, 0.5)], &[(1.0, 0.25)]], 9, &["1 0.5 0.25"]);
        check(&[&[(1.0, 0.5)], &[(2.0, 0.25)]], 9, &["a 1 0.5", "b 2 0.25"]);
        check(&[&[(1.0, f64::NAN), (2.0, 0.5)], &[(2.0, 0.25)]], 9, &["2 0.5 0.25"]);
    }

    #[test]
    fn thinning_keeps_both_ends() {
        let line: Vec<(f64, f64)> = (0..11).map(|i| (f64::from(i), 0.5)).collect();
        check(&[&line], 3, &["0 0.5", "5 0.5", "10 0.5"]);
        check(&[&line], 2, &["0 0.5", "10 0.5"]);
        check(&[&line], 1, &["0 0.5"]);
    }
}
