//! Tables of reports, and lists of JSON objects, as Arrow arrays.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    UInt64Array, new_null_array,
};
use arrow_schema::{DataType, Field, Schema};
use prism_report::{self as report, Chart, Unit};
use serde_json::{Map, Value};

use crate::error::Failure;

/// The key of a column's unit in its metadata.
pub const UNIT: &str = "unit";

/// A batch of named arrays of equal length.
pub fn batch(columns: Vec<(Field, ArrayRef)>, rows: usize) -> RecordBatch {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
        .expect("the arrays have the types and the length of their columns")
}

/// A table of a report: numbers in the base unit of their column.
pub fn of_table(table: &report::Table) -> RecordBatch {
    let rows = table.rows.len();
    let mut names: Vec<String> = Vec::new();
    for head in &table.columns {
        let name = head.key.map_or_else(|| report::json::key(&head.name), str::to_owned);
        // Frames refuse two columns of one name.
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let mut all = std::iter::once(name.clone()).chain(numbered);
        names.extend(all.find(|name| !names.contains(name)));
    }
    let column = |at: usize| {
        let (head, name) = (&table.columns[at], names[at].clone());
        let cells = (0..rows).map(|row| table.cell(row, at));
        match head.unit {
            None => {
                let texts = cells.map(|cell| match cell {
                    report::Value::Missing => None,
                    cell => Some(cell.show(None, "")),
                });
                let array: StringArray = texts.collect();
                (Field::new(name, DataType::Utf8, true), Arc::new(array) as ArrayRef)
            }
            Some(unit) => number_column(name, unit, cells),
        }
    };
    batch((0..table.columns.len()).map(column).collect(), rows)
}

/// The numbers of a chart. Curves are always a row for each point, so that their columns do not
/// depend on the numbers.
pub fn of_chart(chart: &Chart) -> RecordBatch {
    let Chart::Curves(curves) = chart else { return of_table(&chart.numbers()) };
    let columns = vec![
        report::Column::text("curve"),
        report::Column::number(&curves.x.label, curves.x.unit),
        report::Column::number(&curves.y.label, curves.y.unit),
    ];
    let mut table = report::Table::new(&curves.caption, columns);
    for curve in &curves.series {
        let row = |&(x, y): &(f64, f64)| vec![curve.name.as_str().into(), x.into(), y.into()];
        table.rows.extend(curve.points.iter().map(row));
    }
    of_table(&table)
}

fn number_column<'a>(
    name: String,
    unit: Unit,
    cells: impl Iterator<Item = &'a report::Value> + Clone,
) -> (Field, ArrayRef) {
    let missing = |cell: &report::Value| matches!(cell, report::Value::Missing);
    let whole = |cell: &report::Value| matches!(cell, report::Value::Int(_));
    let some = cells.clone().any(whole);
    let (kind, array): (_, ArrayRef) = if some && cells.clone().all(|c| whole(c) || missing(c)) {
        let numbers = cells.map(|cell| match cell {
            report::Value::Int(number) => Some(*number),
            _ => None,
        });
        (DataType::UInt64, Arc::new(numbers.collect::<UInt64Array>()))
    } else {
        let numbers = cells.map(|cell| match cell {
            report::Value::Int(number) => Some(*number as f64),
            report::Value::Float(number) | report::Value::Graded(number, _) => {
                Some(*number).filter(|number| number.is_finite())
            }
            report::Value::Text(_) | report::Value::Missing => None,
        });
        (DataType::Float64, Arc::new(numbers.collect::<Float64Array>()))
    };
    let metadata = HashMap::from([(UNIT.to_owned(), unit.name().to_owned())]);
    (Field::new(name, kind, true).with_metadata(metadata), array)
}

/// A row for each object: the keys of objects in it are joined by dots, lists are JSON text.
///
/// # Errors
/// [`Failure`] if an element of the list is not an object.
pub fn of_rows(rows: &Vec<Value>) -> Result<RecordBatch, Failure> {
    let mut flat = Vec::new();
    for row in rows {
        let Value::Object(object) = row else {
            return Err(Failure::argument("rows", "a list of objects is expected"));
        };
        let mut cells = Map::new();
        flatten("", object, &mut cells);
        flat.push(cells);
    }
    let mut names: Vec<&String> = Vec::new();
    let mut known = std::collections::HashSet::new();
    for name in flat.iter().flat_map(Map::keys) {
        if known.insert(name) {
            names.push(name);
        }
    }
    let column = |name: &&String| {
        let cells: Vec<&Value> =
            flat.iter().map(|row| row.get(*name).unwrap_or(&Value::Null)).collect();
        let array = if cells.iter().any(|cell| !cell.is_null()) {
            array_of(&cells)
        } else {
            new_null_array(&type_without_values(name)?, cells.len())
        };
        Some((Field::new(*name, array.data_type().clone(), true), array))
    };
    Ok(batch(names.iter().filter_map(column).collect(), rows.len()))
}

/// The type of a column in which no row has a value, which is its type in other tables, so that
/// frames of several results can be joined; `None` if other tables have a dictionary there.
fn type_without_values(name: &str) -> Option<DataType> {
    let key = name.rsplit('.').next().unwrap_or(name);
    Some(match key {
        "score"
        | "score_by_bytes"
        | "density"
        | "density_segmented"
        | "gini"
        | "top_1_percent_share"
        | "top_10_percent_share"
        | "map_miss_ratio"
        | "write_amplification"
        | "latency_p99"
        | "throughput"
        | "lifetime"
        | "lifetime_days"
        | "life_seconds" => DataType::Float64,
        "p25" | "p50" | "p75" | "p99" | "max" | "writes_max" | "p99_ns" => DataType::Int64,
        "steady" | "holds" => DataType::Boolean,
        "price"
        | "read"
        | "write"
        | "trim"
        | "flush"
        | "outstanding"
        | "outstanding_of_its_kind" => return None,
        _ => DataType::Utf8,
    })
}

fn flatten(before: &str, object: &Map<String, Value>, cells: &mut Map<String, Value>) {
    for (name, value) in object {
        let name = if before.is_empty() { name.clone() } else { format!("{before}.{name}") };
        match value {
            Value::Object(inner) => flatten(&name, inner, cells),
            other => drop(cells.insert(name, other.clone())),
        }
    }
}

/// The narrowest type that has every value.
fn array_of(cells: &[&Value]) -> ArrayRef {
    let all = |is: fn(&Value) -> bool| cells.iter().all(|cell| cell.is_null() || is(cell));
    let cells = cells.iter();
    if all(Value::is_boolean) {
        return Arc::new(cells.map(|cell| cell.as_bool()).collect::<BooleanArray>());
    }
    if all(Value::is_i64) {
        return Arc::new(cells.map(|cell| cell.as_i64()).collect::<Int64Array>());
    }
    if all(Value::is_u64) {
        return Arc::new(cells.map(|cell| cell.as_u64()).collect::<UInt64Array>());
    }
    if all(Value::is_number) {
        return Arc::new(cells.map(|cell| cell.as_f64()).collect::<Float64Array>());
    }
    let text = |cell: &&Value| match cell {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    Arc::new(cells.map(text).collect::<StringArray>())
}
