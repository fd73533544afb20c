//! The parts of a whole as one bar, with a legend that contains the numbers.

use super::frame;
use super::{Page, escape::escape, table};
use crate::chart::{Chart, Stacked};
use crate::unit::Unit;

pub fn render(page: &mut Page, chart: &Stacked) {
    let colours = page.palette.assign(chart.segments.iter().map(|s| s.name.as_str()));
    let total = chart.total();
    let share = |size: f64| Unit::Percent.format(if total > 0.0 { size / total } else { 0.0 });
    let mut bar = String::new();
    let mut entries = Vec::new();
    for (segment, &colour) in chart.segments.iter().zip(&colours) {
        let size = segment.size();
        let remark = format!("{}, {}", chart.unit.format(size), share(size));
        if size > 0.0 {
            bar += &format!(
                "<span class=\"k{colour}\" style=\"flex-grow:{:.5}\" title=\"{}: {}\">",
                size / total,
                escape(&segment.name),
                escape(&remark)
            );
            // A part that is wide enough shows its share.
            if size / total >= 0.08 {
                bar += &format!("<b>{}</b>", escape(&share(size)));
            }
            bar += "</span>";
        }
        entries.push((segment.name.as_str(), Some(remark)));
    }
    frame::open(page, "stacked", "", &chart.title, &chart.caption);
    let label = escape(&format!("{}. {} The numbers follow.", chart.title, chart.caption));
    page.push(&format!("<div class=\"stack\" role=\"img\" aria-label=\"{label}\">{bar}</div>\n"));
    frame::legend(page, entries.into_iter(), &colours);
    table::details(page, &Chart::Stacked(chart.clone()).numbers(), "Numbers", "");
    frame::close(page);
}
