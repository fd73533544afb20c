//! The parts that all charts share: figure, caption, legend, the plot with its axes.

use super::Page;
use super::escape::escape;
use crate::chart::Scale;
use crate::ticks::{Range, Tick};

/// The side of a plot in its own units. The picture is stretched to the available space, so
/// these are thousandths, not pixels.
pub const SIDE: f64 = 1000.0;

/// Opens a figure and writes its title and caption.
pub fn open(page: &mut Page, kind: &str, attributes: &str, title: &str, caption: &str) {
    let text = format!(
        "<figure class=\"chart {kind}\" id=\"c{}\" data-kind=\"{kind}\"{attributes}>\n\
         <figcaption><b>{}</b> {}</figcaption>\n",
        page.charts,
        escape(title),
        escape(caption)
    );
    page.push(&text);
}

/// Closes the figure.
pub fn close(page: &mut Page) {
    page.push("</figure>\n");
}

/// The legend: the names of the series in their order, each with a remark, such as its amount, and
/// its colour (see [`super::palette::Palette`]).
pub fn legend<'a>(
    page: &mut Page,
    series: impl Iterator<Item = (&'a str, Option<String>)>,
    colours: &[usize],
) {
    page.push("<ul class=\"legend\">\n");
    for (i, ((name, remark), colour)) in series.zip(colours).enumerate() {
        let remark = remark.map(|text| format!(" <small>{}</small>", escape(&text)));
        page.push(&format!(
            "<li data-series=\"{i}\"><i class=\"k{colour}\"></i>{}{}</li>\n",
            escape(name),
            remark.unwrap_or_default()
        ));
    }
    page.push("</ul>\n");
}

/// The name of an axis, and its scale unless that is linear.
pub fn named(label: &str, scale: Scale) -> String {
    match scale {
        Scale::Linear => label.to_owned(),
        Scale::Log => format!("{label} (logarithmic)"),
    }
}

/// A plot: the axis labels around `drawing`, which is SVG in units of [`SIDE`].
pub struct Plot<'a> {
    /// What is measured; empty if another text says it.
    pub y_label: &'a str,
    /// The quantity of the horizontal axis; empty for time and for labels that explain
    /// themselves.
    pub x_label: &'a str,
    pub y_ticks: Vec<(f64, String)>,
    pub x_ticks: Vec<(f64, String)>,
    /// On a narrow screen only every n-th tick is shown, from the first on.
    pub narrow_stride: usize,
    /// The text that a screen reader reads instead of the drawing.
    pub description: String,
    pub drawing: String,
    /// HTML over the drawing.
    pub over: String,
    pub class: &'a str,
    /// Further attributes of the drawing area, ready to be written.
    pub attributes: String,
}

/// The ticks of a value axis as places in percent.
pub fn places(range: &Range) -> Vec<(f64, String)> {
    let place = |tick: &Tick| Some((range.place(tick.value)? * 100.0, tick.label.clone()));
    range.ticks.iter().filter_map(place).collect()
}

/// Lines across the plot at the ticks of the value axis.
pub fn grid(range: &Range) -> String {
    let line = |(place, _): (f64, String)| format!("M0 {}H1000", num(SIDE - place * 10.0));
    let path: String = places(range).into_iter().map(line).collect();
    format!("<path class=\"grid\" d=\"{path}\"/>")
}

/// Writes the plot. The margin for the labels is as wide as the longest of them.
pub fn plot(page: &mut Page, plot: &Plot<'_>) {
    let margin = plot.y_ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
    let mut text = match plot.y_label {
        "" => String::new(),
        label => format!("<p class=\"ylabel\">{}</p>\n", escape(label)),
    };
    text += &format!(
        "<div class=\"plot {}\" style=\"--margin:{}ch\">\n<div class=\"y\" aria-hidden=\"true\">",
        plot.class,
        margin + 1
    );
    for (place, label) in &plot.y_ticks {
        text += &format!("<span style=\"bottom:{}%\">{}</span>", num(*place), escape(label));
    }
    text += &format!(
        "</div>\n<div class=\"area\" tabindex=\"0\" role=\"img\" aria-label=\"{}\"{}>\
         <svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\" aria-hidden=\"true\">{}</svg>\
         {}</div>\n<div class=\"x\" aria-hidden=\"true\">",
        escape(&plot.description),
        plot.attributes,
        plot.drawing,
        plot.over
    );
    // Labels of the class odd are hidden on a phone. The last label must not leave the page.
    for (i, (place, label)) in plot.x_ticks.iter().enumerate() {
        let odd = if i % plot.narrow_stride != 0 { "odd" } else { "" };
        let end = if *place > 98.0 { " end" } else { "" };
        text += &format!(
            "<span class=\"{odd}{end}\" style=\"left:{}%\">{}</span>",
            num(*place),
            escape(label)
        );
    }
    text += "</div>\n</div>\n";
    if !plot.x_label.is_empty() {
        text += &format!("<p class=\"xlabel\">{}</p>\n", escape(plot.x_label));
    }
    page.push(&text);
}

/// A coordinate with at most one decimal: a tenth of a thousandth of a plot is not visible.
pub fn num(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).replace("-0", "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        assert_eq!(num(12.0), "12");
        assert_eq!(num(12.345), "12.3");
        assert_eq!(num(-0.01), "0");
        assert_eq!(num(100.04), "100");
    }
}
