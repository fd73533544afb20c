//! The data set of a sweep: one row for each design, with all inputs and results.

use std::collections::{BTreeMap, BTreeSet};

use prism_base::{Column, DataTable, Values};
use serde_json::{Value, json};

use crate::error::PresentError;
use crate::sweep::design::{Design, Row, VERSION};
use crate::sweep::scalar::Scalar;
use crate::sweep::study::Designs;
use crate::sweep::workload::is_fio_option;

/// Version of the columns and of the facts.
const FORMAT: u32 = 1;

/// The key of the facts about a data set.
pub const FACTS: &str = "prism.sweep";

/// The column of the number of a design.
pub(super) const DESIGN: &str = "design";
/// The column of why a design failed.
pub(super) const ERROR: &str = "error";

/// Assembles the rows of all `designs`, in any order, into one table, which does not depend on that
/// order.
///
/// # Errors
/// [`PresentError::Refused`] if a design has no row, a row is of another design, or two columns
/// have the same name.
pub fn assemble(designs: &Designs, rows: &[Row]) -> Result<DataTable, PresentError> {
    let by_number: BTreeMap<u64, &Row> = rows.iter().map(|row| (row.number, row)).collect();
    let all = &designs.designs;
    let row = |design: &Design| {
        let row = by_number.get(&design.number).filter(|row| row.hash == design.hash);
        row.copied().ok_or_else(|| {
            PresentError::refused(format!("design {} of the sweep has no row", design.number))
        })
    };
    let rows = all.iter().map(row).collect::<Result<Vec<_>, _>>()?;
    let numbers = all.iter().map(|design| Some(Scalar::Int(design.number as i64)));
    let mut columns = vec![column(DESIGN, numbers.collect())];
    columns.extend(inputs(all));
    columns.extend(results(&rows));
    let texts = |of: &dyn Fn(usize) -> Option<String>| {
        (0..all.len()).map(|place| of(place).map(Scalar::Text)).collect()
    };
    // A type of its own, since a column without any value would be one of numbers.
    let errors = rows.iter().map(|row| row.error.clone()).collect();
    columns.push(Column { name: ERROR.into(), values: Values::Texts(errors) });
    columns.push(column("prism_version", texts(&|_| Some(VERSION.to_owned()))));
    columns.push(column("inputs_hash", texts(&|place| Some(all[place].hash.clone()))));
    let mut names = BTreeSet::new();
    if let Some(twice) = columns.iter().find(|column| !names.insert(column.name.as_str())) {
        let what = format!(
            "the data set would have two columns called {}: rename the job that \
                            gives this result",
            twice.name
        );
        return Err(PresentError::refused(what));
    }
    let files = all.first().map(|design| json!(design.files.as_ref()));
    let mut files = files.unwrap_or_default();
    if let Some(files) = files.as_object_mut() {
        // The same data set from another folder is the same bytes.
        files.shift_remove("folder");
    }
    let facts = json!({
        "version": FORMAT,
        "prism_version": VERSION,
        "designs": all.len(),
        "hash": designs.hash,
        "swept": designs.swept,
        "files": files,
    });
    Ok(DataTable { columns, facts: vec![(FACTS.into(), facts.to_string())] })
}

/// A column for each setting; after one of sizes or times as text, the same as numbers.
fn inputs(designs: &[Design]) -> Vec<Column> {
    let names = designs.first().map_or(&[][..], |design| &design.settings);
    let names: Vec<&str> = names.iter().map(|setting| setting.name.as_str()).collect();
    let mut columns = Vec::new();
    for (place, name) in names.into_iter().enumerate() {
        let values = || designs.iter().map(|design| &design.settings[place].value);
        columns.push(column(name, values().map(|value| Some(value.clone())).collect()));
        let quantities: Option<Vec<_>> = values().map(Scalar::quantity).collect();
        // Fio reads its units in its own way.
        let Some(quantities) = quantities.filter(|_| !is_fio_option(name)) else { continue };
        let quantity = quantities[0].0;
        if quantities.iter().all(|(other, _)| *other == quantity) {
            let numbers = quantities.iter().map(|&(_, number)| Some(Scalar::Int(number)));
            columns.push(column(&format!("{name}{}", quantity.suffix()), numbers.collect()));
        }
    }
    columns
}

/// A column for each result of any design, in the order in which they first occur.
fn results(rows: &[&Row]) -> Vec<Column> {
    let mut seen = BTreeSet::new();
    let names = rows.iter().flat_map(|row| row.results.keys());
    let names: Vec<&String> = names.filter(|name| seen.insert(*name)).collect();
    let of = |name: &String| {
        let values = rows.iter().map(|row| row.results.get(name).and_then(plain));
        column(name, values.collect())
    };
    names.into_iter().map(of).collect()
}

fn plain(value: &Value) -> Option<Scalar> {
    match value {
        Value::Bool(value) => Some(Scalar::Bool(*value)),
        Value::Number(number) => {
            let whole = number.as_i64().map(Scalar::Int);
            whole.or_else(|| number.as_f64().map(Scalar::Float))
        }
        Value::String(text) => Some(Scalar::Text(text.clone())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// `count` rows of a result that no design has, with its type in other data sets: those of several
/// sweeps are joined.
fn without_values(name: &str, count: usize) -> Values {
    let is_mean = name.ends_with("mean_ns") || name.ends_with("deviation_ns");
    match name {
        "too_short" => Values::Texts(vec![None; count]),
        "steady" => Values::Bools(vec![None; count]),
        name if name.ends_with("_ns") && !is_mean => Values::Ints(vec![None; count]),
        _ => Values::Floats(vec![None; count]),
    }
}

/// The narrowest type for all values.
fn column(name: &str, values: Vec<Option<Scalar>>) -> Column {
    let all = |is: fn(&Scalar) -> bool| values.iter().flatten().all(is);
    let none = values.iter().all(Option::is_none);
    let is_int = |value: &Scalar| matches!(value, Scalar::Int(_));
    let is_number = |value: &Scalar| matches!(value, Scalar::Int(_) | Scalar::Float(_));
    let typed = if none {
        without_values(name, values.len())
    } else if all(is_int) {
        let int = |value: Scalar| if let Scalar::Int(value) = value { Some(value) } else { None };
        Values::Ints(values.into_iter().map(|value| value.and_then(int)).collect())
    } else if all(is_number) {
        let number = |value: Scalar| match value {
            Scalar::Int(value) => Some(value as f64),
            Scalar::Float(value) => Some(value),
            Scalar::Bool(_) | Scalar::Text(_) => None,
        };
        Values::Floats(values.into_iter().map(|value| value.and_then(number)).collect())
    } else if all(|value| matches!(value, Scalar::Bool(_))) {
        let truth = |value: Scalar| if let Scalar::Bool(is) = value { Some(is) } else { None };
        Values::Bools(values.into_iter().map(|value| value.and_then(truth)).collect())
    } else {
        Values::Texts(values.iter().map(|value| value.as_ref().map(Scalar::text)).collect())
    };
    Column { name: name.to_owned(), values: typed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_narrowest_type_for_all_values() {
        use Scalar::{Bool, Float, Int, Text};
        let check = |values: Vec<Option<Scalar>>, expected: Values| {
            assert_eq!(column("a", values).values, expected);
        };
        check(vec![Some(Int(1)), None], Values::Ints(vec![Some(1), None]));
        check(vec![Some(Int(1)), Some(Float(0.5))], Values::Floats(vec![Some(1.0), Some(0.5)]));
        check(vec![Some(Bool(true))], Values::Bools(vec![Some(true)]));
        check(vec![None, None], Values::Floats(vec![None, None]));
        let none = |name| column(name, vec![None]).values;
        assert_eq!(none("read_p99_ns"), Values::Ints(vec![None]));
        assert_eq!(none("read_mean_ns"), Values::Floats(vec![None]));
        assert_eq!(none("too_short"), Values::Texts(vec![None]));
        assert_eq!(none("steady"), Values::Bools(vec![None]));
        let mixed = vec![Some(Int(1)), Some(Text("x".into()))];
        check(mixed, Values::Texts(vec![Some("1".into()), Some("x".into())]));
    }
}
