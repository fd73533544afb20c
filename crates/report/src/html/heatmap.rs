//! Heat maps: one panel for each layer, or one colour for each in a shared panel; all with one time
//! axis.
//!
//! Cells are put into a few classes of amount. A class is one path of horizontal lines that are
//! one cell high, so a panel has few elements, however many cells it has.

use super::frame::{self, Plot};
use super::{Page, escape::escape, table};
use crate::chart::{Chart, Heatmap};
use crate::shades::Shades;
use crate::ticks::Range;
use crate::unit::Unit;

/// Finer than this is no longer distinguished, and makes the file large: at most eight
/// bytes a cell and layer, a third of a megabyte for three layers.
const COLUMNS_MAX: usize = 256;
const ROWS_MAX: usize = 64;
/// With so few cells that are not empty, each is drawn larger: a dot that can be seen.
const FEW: usize = 200;
const COLUMNS_OF_FEW: usize = 64;
const ROWS_OF_FEW: usize = 24;
/// How many shades there are. Each is a class of amounts, on a log scale.
const SHADES: usize = 6;

pub fn render(page: &mut Page, chart: &Heatmap) {
    let few = is_sparse(chart);
    let (columns, rows) = merged(chart, few);
    let panels: Vec<Panel> =
        chart.layers.iter().map(|layer| Panel::new(chart, &layer.cells, columns, rows)).collect();
    let colours = page.palette.assign(chart.layers.iter().map(|l| l.name.as_str()));

    let (start, end) = (chart.time_range.start, chart.time_range.end);
    let zoom = format!(
        " data-zoom=\"{start} {end}\" data-zoom-address=\"{} {}\" data-addresses=\"{}\"",
        chart.address_range.start,
        chart.address_range.end,
        escape(&addresses(chart, rows).join("|"))
    );
    frame::open(page, "heatmap", &zoom, &chart.title, &chart.caption);
    let x = Range::exactly(start as f64, end as f64, Unit::Nanos, 8);
    let (low, high) = (chart.address_range.start as f64, chart.address_range.end as f64);
    let y = Range::exactly(low, high, Unit::Bytes, 4);
    let one = chart.overlaid && !panels.is_empty();
    let drawn = if one { vec![overlaid(&panels, &colours)] } else { apart(&panels, &colours) };
    if one {
        let names = chart.layers.iter().map(|layer| (layer.name.as_str(), None));
        frame::legend(page, names, &colours);
    }
    for (i, (panel, scale, drawing)) in drawn.iter().enumerate() {
        let last = i + 1 == drawn.len();
        let classes = scale.labels(chart.unit);
        let name = if one { "" } else { chart.layers[i].name.as_str() };
        if !one {
            key(page, name, colours[i], &scale.edges(chart.unit));
        }
        frame::plot(
            page,
            &Plot {
                y_label: "",
                x_label: if last { "time" } else { "" },
                y_ticks: frame::places(&y),
                x_ticks: if last { frame::places(&x) } else { Vec::new() },
                narrow_stride: 2,
                description: if one {
                    format!("{}. {}", chart.title, chart.caption)
                } else {
                    format!("{}, {name}. {}", chart.title, chart.caption)
                },
                drawing: drawing.clone(),
                over: String::new(),
                class: match (one, last) {
                    (true, _) if few => "few",
                    (true, _) => "",
                    (false, true) => "panel",
                    (false, false) => "panel bare",
                },
                attributes: format!(
                    " data-column=\"{:.6}\" data-row=\"{:.6}\" data-columns=\"{}\" \
                     data-classes=\"{}\" data-cells=\"{}\"",
                    panel.column_width,
                    panel.row_height,
                    panel.columns,
                    escape(&classes.join("|")),
                    panel.classes(scale)
                ),
            },
        );
    }
    let summary = "Numbers, summed over time";
    table::details(page, &Chart::Heatmap(chart.clone()).numbers(), summary, "");
    frame::close(page);
}

/// Whether a panel of all layers has so few cells that each is to be seen.
fn is_sparse(chart: &Heatmap) -> bool {
    let cells = chart.layers.iter().flat_map(|layer| &layer.cells);
    chart.overlaid && cells.filter(|&&cell| cell > 0).count() <= FEW
}

/// How many columns and rows of cells are drawn as one.
fn merged(chart: &Heatmap, few: bool) -> (usize, usize) {
    let (columns, rows) = if few { (COLUMNS_OF_FEW, ROWS_OF_FEW) } else { (COLUMNS_MAX, ROWS_MAX) };
    (chart.columns.div_ceil(columns).max(1), chart.rows.div_ceil(rows).max(1))
}

/// Each layer in a panel of its own: the panel, its shades, and its drawing.
fn apart(panels: &[Panel], colours: &[usize]) -> Vec<(Panel, Shades, String)> {
    let drawing = |(panel, &colour): (&Panel, &usize)| {
        let scale = Shades::covering(&panel.cells, SHADES);
        let drawing = panel.drawing(&scale, colour);
        (panel.clone(), scale, drawing)
    };
    panels.iter().zip(colours).map(drawing).collect()
}

/// All layers in one panel: their sum, its shades, and a drawing in which each cell has the colour
/// of the layer with the largest amount.
fn overlaid(panels: &[Panel], colours: &[usize]) -> (Panel, Shades, String) {
    let mut all = panels[0].clone();
    for panel in &panels[1..] {
        for (sum, &cell) in all.cells.iter_mut().zip(&panel.cells) {
            *sum = sum.saturating_add(cell);
        }
    }
    let scale = Shades::covering(&all.cells, SHADES);
    let mut drawing = String::new();
    for (i, &colour) in colours.iter().enumerate() {
        let mut own = all.clone();
        for (place, cell) in own.cells.iter_mut().enumerate() {
            // Of equal amounts the first layer's is drawn.
            let amount = |layer: usize| (panels[layer].cells[place], std::cmp::Reverse(layer));
            if (0..panels.len()).max_by_key(|&layer| amount(layer)) != Some(i) {
                *cell = 0;
            }
        }
        drawing += &own.drawing(&scale, colour);
    }
    (all, scale, drawing)
}

/// The name of a panel, and its shades from the least to the most.
fn key(page: &mut Page, name: &str, colour: usize, edges: &[String]) {
    let shades: String = (1..=SHADES).map(|class| format!("<i class=\"h{class}\"></i>")).collect();
    let text = format!(
        "<p class=\"ylabel panel-name\">{}<span class=\"shades k{colour}\">{}{shades}{} a cell\
         </span></p>\n",
        escape(name),
        escape(edges.first().map_or("", String::as_str)),
        escape(edges.last().map_or("", String::as_str)),
    );
    page.push(&text);
}

/// The address range of each drawn row, from the lowest.
fn addresses(chart: &Heatmap, group: usize) -> Vec<String> {
    let name = |row: usize| Unit::Bytes.format(chart.row_start(row) as f64);
    let range = |row: usize| format!("{} to {}", name(row), name((row + group).min(chart.rows)));
    (0..chart.rows).step_by(group).map(range).collect()
}

/// The share of `range` that `bins` bins of `size` take.
fn share(bins: usize, size: u64, range: &std::ops::Range<u64>) -> f64 {
    bins as f64 * size as f64 / range.end.saturating_sub(range.start).max(1) as f64
}

/// A layer as it is drawn, after merging cells that are too fine.
#[derive(Clone)]
struct Panel {
    columns: usize,
    rows: usize,
    cells: Vec<u64>,
    /// The share of the plot's width that a full column takes; the last one may be cut off.
    column_width: f64,
    /// The share of the height that a full row takes.
    row_height: f64,
}

impl Panel {
    fn new(chart: &Heatmap, cells: &[u64], per_column: usize, per_row: usize) -> Self {
        let columns = chart.columns.div_ceil(per_column);
        let rows = chart.rows.div_ceil(per_row);
        let mut merged = vec![0u64; columns * rows];
        for (i, &cell) in cells.iter().enumerate().take(chart.columns * chart.rows) {
            let (column, row) = (i / chart.rows / per_column, i % chart.rows / per_row);
            let into = &mut merged[column * rows + row];
            *into = into.saturating_add(cell);
        }
        Self {
            columns,
            rows,
            cells: merged,
            column_width: share(per_column, chart.column_width, &chart.time_range),
            row_height: share(per_row, chart.row_height, &chart.address_range),
        }
    }

    fn class(&self, scale: &Shades, column: usize, row: usize) -> usize {
        scale.class(self.cells[column * self.rows + row])
    }

    /// The class of each cell as a digit, row by row from the lowest address.
    fn classes(&self, scale: &Shades) -> String {
        let row = |row| (0..self.columns).map(move |column| (column, row));
        let cells = (0..self.rows).flat_map(row);
        cells.map(|(column, row)| self.class(scale, column, row).to_string()).collect()
    }

    /// One path for each class. The group is scaled so that a cell is one by one, and
    /// row zero, the lowest address, is at the bottom.
    fn drawing(&self, scale: &Shades, colour: usize) -> String {
        let mut paths = vec![String::new(); SHADES];
        for row in 0..self.rows {
            let mut column = 0;
            while column < self.columns {
                let class = self.class(scale, column, row);
                let same = |&next: &usize| self.class(scale, next, row) == class;
                let run = (column..self.columns).take_while(same).count();
                if class > 0 {
                    paths[class - 1] += &format!("M{column} {row}h{run}");
                }
                column += run;
            }
        }
        let (width, height) = (self.column_width * frame::SIDE, self.row_height * frame::SIDE);
        let mut out = format!(
            "<g class=\"k{colour}\" transform=\"translate(0 1000) scale({width:.4} -{height:.4}) \
             translate(0 .5)\">"
        );
        for (class, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
            out += &format!("<path class=\"heat h{}\" d=\"{path}\"/>", class + 1);
        }
        out + "</g>"
    }
}
