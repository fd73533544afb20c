"""Traces: every field reaches Arrow, conversions and errors are those of the command."""

from __future__ import annotations

import pathlib

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import prism

SAMPLES = pathlib.Path(__file__).parents[2] / "samples"


def decoded(table: pyarrow.Table) -> pyarrow.Table:
    """A table whose dictionary arrays are texts, with the types of another reader's Parquet."""
    columns = {}
    for name in table.column_names:
        column = table[name]
        if pyarrow.types.is_dictionary(column.type):
            column = column.cast(pyarrow.string())
        columns[name] = column.to_pylist()
    return pyarrow.table(columns)


@pytest.mark.parametrize("name", ["ext4-sqlite-wal.ftrace.zst", "formats/msr.csv"])
def test_arrow_has_what_parquet_has(name: str, tmp_path: pathlib.Path) -> None:
    trace = prism.read_trace(SAMPLES / name)
    written = prism.convert(trace, tmp_path / "trace.parquet")
    assert written["records"] == len(trace) and written["losses"] == []
    parquet = pyarrow.parquet.read_table(tmp_path / "trace.parquet")
    here = pyarrow.table(trace)
    assert here.column_names == parquet.column_names
    assert decoded(here).equals(decoded(parquet))
    again = prism.read_trace(tmp_path / "trace.parquet")
    assert decoded(pyarrow.table(again)).equals(decoded(parquet))


def test_info_counts_what_the_frames_hold(trace: prism.Trace) -> None:
    info = trace.info
    by_op = dict(duckdb.sql("select op::text, count(*) from trace group by 1").fetchall())
    assert by_op["read"] == info["reads"] and by_op["write"] == info["writes"]
    assert by_op["flush"] == info["flushes"]
    frame = polars.DataFrame(trace)
    assert frame.filter(polars.col("op") == "write")["len_bytes"].sum() == info["bytes_written"]
    pandas_frame = pyarrow.table(trace).to_pandas()
    assert isinstance(pandas_frame, pandas.DataFrame) and len(pandas_frame) == len(trace)
    assert f"{len(trace):,} records" in repr(trace)


def test_a_trace_is_exported_as_often_as_wanted(trace: prism.Trace) -> None:
    assert pyarrow.table(trace).equals(pyarrow.table(trace))
    assert pyarrow.schema(trace).names == pyarrow.table(trace).column_names


def test_text_formats_are_written(trace: prism.Trace, tmp_path: pathlib.Path) -> None:
    written = trace.write(tmp_path / "trace.iolog")
    assert written["to"] == "fio" and written["losses"]
    again = prism.read_trace(tmp_path / "trace.iolog")
    assert again.info["bytes_written"] == trace.info["bytes_written"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: prism.read_trace("nowhere.txt"), "nowhere.txt: "),
        (lambda: prism.read_trace([]), "paths: name at least one file"),
        (lambda: prism.read_trace("x", format="mrs"), "format: \"mrs\" is no format"),
        (lambda: prism.read_trace("x", format="msr", map="y"), "format: it excludes map"),
        (lambda: prism.read_trace("x", disorder="5"), "disorder: "),
        (lambda: prism.read_trace(SAMPLES / "formats/msr.csv", phase="no"), "msr.csv"),
        (lambda: prism.convert(SAMPLES / "formats/msr.csv", "out.xyz"), "out.xyz: its extension"),
    ],
)
def test_bad_input_is_named(call: object, message: str) -> None:
    with pytest.raises(prism.Error) as error:
        call()  # type: ignore[operator]
    assert message in str(error.value)
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize(
    ("column", "value"),
    [("offset_bytes", 2**64 - 4096), ("len_bytes", 2**64 - 1), ("issue_ns", -(2**63))],
)
def test_parquet_out_of_range_is_refused(
    trace: prism.Trace, tmp_path: pathlib.Path, column: str, value: int
) -> None:
    path = tmp_path / "trace.parquet"
    trace.write(path)
    table = pyarrow.parquet.read_table(path)
    at = table.schema.get_field_index(column)
    values = table.column(at).to_pylist()
    values[0] = value
    field = table.schema.field(at)
    changed = table.set_column(at, field, pyarrow.array(values, type=field.type))
    pyarrow.parquet.write_table(changed, path)
    with pytest.raises(prism.Error, match="it has a value that no record can have"):
        prism.read_trace(path)
