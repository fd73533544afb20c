//! Tables and charts of a report for programs: numbers in base units, keys in a fixed order.
//!
//! A value that is not known or not finite is `null`: JSON has no such number, and zero
//! would be wrong.

use crate::chart::{Axis, Band, Bars, Chart, Heatmap, Lines, Series, Stacked};
use crate::curves::{Curve, Curves, Mark};
use crate::model::{Table, Value};
use serde_json::{Map, Number, Value as Json, json};

/// A number; `null` if it is not finite.
#[must_use]
pub fn number(value: f64) -> Json {
    Number::from_f64(value).map_or(Json::Null, Json::Number)
}

/// A cell or figure as it is, without its unit.
#[must_use]
pub fn value(value: &Value) -> Json {
    match value {
        Value::Text(text) => Json::String(text.clone()),
        Value::Int(whole) => Json::from(*whole),
        Value::Float(float) | Value::Graded(float, _) => number(*float),
        Value::Missing => Json::Null,
    }
}

/// A heading as a key: lower-case letters and digits, all else as single underscores.
///
/// ```
/// assert_eq!(prism_report::json::key("Write amplification (p99.9)"), "write_amplification_p99_9");
/// ```
#[must_use]
pub fn key(heading: &str) -> String {
    let mut key = String::new();
    for c in heading.chars() {
        if c.is_alphanumeric() {
            key.extend(c.to_lowercase());
        } else if !key.is_empty() && !key.ends_with('_') {
            key.push('_');
        }
    }
    key.truncate(key.trim_end_matches('_').len());
    key
}

/// A table: its columns with their units, and its [`rows`].
#[must_use]
pub fn table(table: &Table) -> Json {
    let columns = table.columns.iter().zip(keys(table)).map(|(column, key)| {
        json!({"key": key, "name": column.name, "unit": column.unit.map(|unit| unit.name())})
    });
    json!({
        "caption": table.caption,
        "columns": columns.collect::<Vec<_>>(),
        "rows": rows(table),
    })
}

/// The rows of a table, an object for each. Headings that give the same key are distinguished
/// by a number at the end.
#[must_use]
pub fn rows(table: &Table) -> Json {
    let keys = keys(table);
    let row = |row: usize| {
        let cell = |(i, key): (usize, &String)| (key.clone(), value(table.cell(row, i)));
        Json::Object(keys.iter().enumerate().map(cell).collect::<Map<_, _>>())
    };
    (0..table.rows.len()).map(row).collect()
}

fn keys(table: &Table) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for (i, column) in table.columns.iter().enumerate() {
        let plain = column.key.map_or_else(|| key(&column.name), str::to_owned);
        let taken = plain.is_empty() || keys.contains(&plain);
        keys.push(if taken { format!("{plain}_{}", i + 1) } else { plain });
    }
    keys
}

/// A chart with all its numbers.
#[must_use]
pub fn chart(chart: &Chart) -> Json {
    let (kind, data) = match chart {
        Chart::Lines(chart) => ("lines", lines(chart)),
        Chart::Curves(chart) => ("curves", curves(chart)),
        Chart::Bars(chart) => ("bars", bars(chart)),
        Chart::Stacked(chart) => ("stacked", stacked(chart)),
        Chart::Heatmap(chart) => ("heatmap", heatmap(chart)),
    };
    json!({"kind": kind, "title": chart.title(), "caption": chart.caption(), "data": data})
}

fn axis(axis: &Axis) -> Json {
    json!({"label": axis.label, "unit": axis.unit.name(), "scale": axis.scale.name()})
}

fn values(values: &[Option<f64>]) -> Json {
    values.iter().map(|value| value.map_or(Json::Null, number)).collect()
}

fn series(all: &[Series]) -> Json {
    let band = |band: &Band| {
        let (low, high) = (values(&band.low), values(&band.high));
        json!({"meaning": band.meaning, "low": low, "high": high})
    };
    let one = |series: &Series| {
        json!({
            "name": series.name,
            "values": values(&series.values),
            "band": series.band.as_ref().map(band),
        })
    };
    all.iter().map(one).collect()
}

fn lines(chart: &Lines) -> Json {
    let times: Vec<Json> = chart.times.iter().copied().map(number).collect();
    json!({
        "time_range_ns": [chart.time_range.start, chart.time_range.end],
        "times_ns": times,
        "y": axis(&chart.y),
        "series": series(&chart.series),
    })
}

fn curves(chart: &Curves) -> Json {
    let point = |&(x, y): &(f64, f64)| json!([number(x), number(y)]);
    let curve = |curve: &Curve| {
        let points: Vec<Json> = curve.points.iter().map(point).collect();
        json!({"name": curve.name, "shape": curve.shape.name(), "points": points})
    };
    let mark = |mark: &Mark| json!({"x": number(mark.x), "label": mark.label});
    json!({
        "x": axis(&chart.x),
        "y": axis(&chart.y),
        "series": chart.series.iter().map(curve).collect::<Vec<_>>(),
        "marks": chart.marks.iter().map(mark).collect::<Vec<_>>(),
    })
}

fn bars(chart: &Bars) -> Json {
    json!({
        "label_name": chart.label_name,
        "labels": chart.labels,
        "y": axis(&chart.y),
        "series": series(&chart.series),
    })
}

fn stacked(chart: &Stacked) -> Json {
    let segment = |s: &crate::chart::Segment| json!({"name": s.name, "value": number(s.value)});
    let segments: Vec<Json> = chart.segments.iter().map(segment).collect();
    json!({"unit": chart.unit.name(), "segments": segments})
}

fn heatmap(chart: &Heatmap) -> Json {
    let layer = |l: &crate::chart::Layer| json!({"name": l.name, "cells": l.cells});
    json!({
        "time_range_ns": [chart.time_range.start, chart.time_range.end],
        "columns": chart.columns,
        "column_width_ns": chart.column_width,
        "address_range_bytes": [chart.address_range.start, chart.address_range.end],
        "rows": chart.rows,
        "row_height_bytes": chart.row_height,
        "unit": chart.unit.name(),
        "layers": chart.layers.iter().map(layer).collect::<Vec<_>>(),
    })
}
