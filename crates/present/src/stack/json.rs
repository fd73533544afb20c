//! The matrix as JSON.

use prism_base::Bytes;
use prism_contract::rules::Rule;
use prism_report::json::number;
use serde_json::{Map, Value, json};

use super::{Cell, Combination, Matrix, Measured};

impl Matrix {
    /// The matrix, with one object for each combination.
    #[must_use]
    pub fn json(&self) -> Value {
        let setup = &self.setup;
        json!({
            "size_bytes": setup.size.0,
            "written_bytes": setup.written.0,
            "time_max_ns": setup.time_max.map(|time| time.0),
            "read_ahead_bytes": setup.read_aheads.iter().map(|bytes| bytes.0).collect::<Vec<_>>(),
            "instances": setup.instances,
            "memory_bytes": setup.memory.0,
            "seed": setup.seed,
            "device": setup.device,
            "applications": setup.apps,
            "patterns": setup.patterns,
            "io": setup.ios,
            "file_systems": setup.file_systems,
            "cells": self.cells.iter().map(cell).collect::<Vec<_>>(),
        })
    }
}

fn cell((combination, cell): &(Combination, Cell)) -> Value {
    let Combination { app, pattern, io, instances, fs, .. } = *combination;
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.into(), value);
    put("application", app.into());
    put("pattern", pattern.into());
    put("io", io.into());
    put("instances", instances.into());
    put("file_system", fs.into());
    match cell {
        Cell::Impossible(why) => {
            put("outcome", "not_possible".into());
            put("why", (*why).into());
        }
        Cell::Failed(why) => {
            put("outcome", "failed".into());
            put("why", why.as_str().into());
        }
        Cell::Captured(captured) => {
            put("outcome", "captured".into());
            put("backend", captured.backend.into());
            put("lost_events", captured.lost.into());
            put("trace", captured.trace.as_str().into());
        }
        Cell::Measured(measured) => {
            put("outcome", "measured".into());
            if let Value::Object(more) = self::measured(measured) {
                object.extend(more);
            }
        }
    }
    Value::Object(object)
}

fn measured(measured: &Measured) -> Value {
    let or_null = |value: Option<f64>| value.map_or(Value::Null, number);
    let rule = |(place, rule): (usize, Rule)| {
        let (score, verdict) = measured.rules[place];
        let worst = measured.worst[place].as_ref();
        let worst = worst.map(|worst| json!({"file": worst.name, "share": number(worst.share)}));
        let object = json!({"score": or_null(score), "verdict": verdict.name(), "worst": worst});
        (rule.key().to_owned(), object)
    };
    let rules: Map<String, Value> = Rule::ALL.into_iter().enumerate().map(rule).collect();
    let counted = |(count, bytes): (u64, Bytes)| json!({"requests": count, "bytes": bytes.0});
    json!({
        "rules": rules,
        "write_amplification": or_null(measured.write_amplification),
        "steady": measured.steady.reached(),
        "reads": counted(measured.reads),
        "writes": counted(measured.writes),
        "discards": counted(measured.discards),
        "metadata_write_bytes": measured.metadata.0,
        "unique_written_bytes": measured.unique.0,
        "flushes": measured.flushes,
        "duration_ns": measured.took.0,
        "backend": measured.backend,
        "lost_events": measured.lost,
        "trace": measured.trace,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::matrix;
    use super::super::{Captured, Cell};

    #[test]
    fn every_combination_is_an_object() {
        let mut matrix = matrix();
        let trace = "t/xfs-sqlite-wal-rand-direct.parquet".into();
        let captured = Captured { trace, backend: "ftrace", lost: 3 };
        matrix.cells.push((matrix.cells[3].0.clone(), Cell::Captured(captured)));
        let json = matrix.json();
        let check = |path: &str, expected: serde_json::Value| {
            assert_eq!(json.pointer(path), Some(&expected), "{path}");
        };
        check("/size_bytes", (1u64 << 30).into());
        check("/file_systems/1", "xfs".into());
        check("/cells/0/application", "rocksdb".into());
        check("/cells/0/rules/locality/score", 0.95.into());
        check("/cells/1/rules/uniform_lifetime/verdict", "broken".into());
        check("/cells/1/rules/locality/worst/file", "s.db".into());
        check("/cells/0/write_amplification", 1.5.into());
        check("/cells/0/discards/bytes", 12_288.into());
        check("/cells/2/outcome", "not_possible".into());
        check("/cells/2/why", "cannot bypass the page cache".into());
        check("/cells/3/why", "disk full".into());
        check("/written_bytes", (2u64 << 30).into());
        check("/time_max_ns", serde_json::Value::Null);
        check("/cells/4/outcome", "captured".into());
        check("/cells/4/lost_events", 3.into());
        assert_eq!(json["cells"].as_array().unwrap().len(), 5);
    }
}
