//! Bars: upwards for classes in order, to the right for names.

use super::frame::{self, Plot, SIDE, num};
use super::palette::COLOURS;
use super::{Page, escape::escape, table};
use crate::chart::{BarLayout, Bars, Chart};
use crate::ticks::Range;

/// How many labels fit under a wide chart.
const LABELS_MAX: usize = 16;
/// How many labels fit under a chart on a phone.
const LABELS_NARROW_MAX: usize = 4;

pub fn render(page: &mut Page, chart: &Bars) {
    let names = chart.series.iter().map(|s| s.name.as_str());
    let colours = page.palette.assign(names);
    let kind = match chart.layout {
        BarLayout::Columns => "columns",
        BarLayout::Rows => "rows",
    };
    frame::open(page, kind, "", &chart.title, &chart.caption);
    if chart.series.len() > 1 {
        frame::legend(page, chart.series.iter().map(|s| (s.name.as_str(), None)), &colours);
    }
    let values = chart.series.iter().flat_map(|s| s.values.iter().flatten().copied());
    let range = Range::covering(values, chart.y.unit, chart.y.scale, 5);
    match chart.layout {
        BarLayout::Columns => columns(page, chart, &range, &colours),
        BarLayout::Rows => rows(page, chart, &range, &colours),
    }
    table::details(page, &Chart::Bars(chart.clone()).numbers(), "Numbers", "");
    frame::close(page);
}

fn columns(page: &mut Page, chart: &Bars, range: &Range, colours: &[usize]) {
    let groups = chart.labels.len().max(1) as f64;
    let group = SIDE / groups;
    // A fifth of each group stays free, so that groups are visible.
    let bar = group * 0.8 / chart.series.len().max(1) as f64;
    let centre = |i: usize| (i as f64 + 0.5) * group;
    let mut drawing = frame::grid(range);
    for (s, series) in chart.series.iter().enumerate() {
        let mut path = String::new();
        for i in 0..chart.labels.len() {
            let place = series.value(i).and_then(|value| range.place(value)).unwrap_or(0.0);
            if place > 0.0 {
                let left = centre(i) - group * 0.4 + bar * s as f64;
                // Small values stay visible.
                let height = (place * SIDE).max(6.0);
                let (x, width) = (num(left), num(bar * 0.94));
                path += &format!("M{x} 1000v-{}h{width}V1000Z", num(height));
            }
        }
        let colour = colours.get(s).copied().unwrap_or(COLOURS);
        drawing += &format!("<path data-series=\"{s}\" class=\"bar k{colour}\" d=\"{path}\"/>");
    }
    let stride = chart.labels.len().div_ceil(LABELS_MAX).max(1);
    let label = |(i, label): (usize, &String)| (centre(i) / 10.0, label.clone());
    let x_ticks: Vec<_> = chart.labels.iter().enumerate().step_by(stride).map(label).collect();
    let narrow_stride = x_ticks.len().div_ceil(LABELS_NARROW_MAX).max(1);
    let positions: Vec<String> = (0..chart.labels.len()).map(|i| num(centre(i))).collect();
    let label = format!("{} by {}", chart.y.label, chart.label_name);
    frame::plot(
        page,
        &Plot {
            y_label: &frame::named(&label, chart.y.scale),
            x_label: "",
            y_ticks: frame::places(range),
            x_ticks,
            narrow_stride,
            description: format!("{}. {} The numbers follow.", chart.title, chart.caption),
            drawing,
            over: String::new(),
            class: "low",
            attributes: format!(" data-xs=\"{}\"", positions.join(" ")),
        },
    );
}

/// Rows are plain HTML: names take the space they need, and every bar shows its number.
fn rows(page: &mut Page, chart: &Bars, range: &Range, colours: &[usize]) {
    page.push(&format!(
        "<p class=\"ylabel\">{}</p>\n<dl class=\"bars\">\n",
        escape(&chart.y.label)
    ));
    for (i, label) in chart.labels.iter().enumerate() {
        page.push(&format!("<dt>{}</dt><dd>", escape(label)));
        for (s, series) in chart.series.iter().enumerate() {
            let value = series.value(i);
            let place = value.and_then(|value| range.place(value)).unwrap_or(0.0);
            let shown = value.map_or("–".into(), |value| chart.y.unit.format(value));
            let colour = colours.get(s).copied().unwrap_or(COLOURS);
            page.push(&format!(
                "<span data-series=\"{s}\"><i class=\"k{colour}\" style=\"--part:{}\"></i>\
                 {}</span>",
                place_text(place),
                escape(&shown)
            ));
        }
        page.push("</dd>\n");
    }
    page.push("</dl>\n");
}

fn place_text(place: f64) -> String {
    format!("{place:.4}")
}
