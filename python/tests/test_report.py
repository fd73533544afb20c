"""Reports and simulations: the same results as the commands, as objects and as frames."""

from __future__ import annotations

import copy
import json
import os
import pathlib
import pickle
import subprocess

import duckdb
import polars
import pyarrow
import pytest

import prism

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def report(trace: prism.Trace) -> prism.Report:
    return prism.report(trace, what_if=["depth", "merge", "levelling"], requests=True)


def test_report_has_the_keys_of_the_command(report: prism.Report) -> None:
    assert report["rules"].keys() >= {"request_scale", "locality"}
    assert report.keys() == list(report) and "rules" in report
    assert "write amplification" in report.text().lower()
    assert report.html().startswith("<!doctype html>") or "<html" in report.html()
    assert "<iframe" in report._repr_html_() and "srcdoc" in report._repr_html_()


def test_frames_hold_the_numbers_of_the_dictionary(report: prism.Report) -> None:
    rules = polars.DataFrame(report.rules)
    scores = dict(zip(rules["rule"], rules["score"], strict=True))
    assert scores == {name: rule["score"] for name, rule in report["rules"].items()}
    what_ifs = polars.DataFrame(report.what_ifs)
    assert list(what_ifs["change"]) == [row["change"] for row in report["what_if"]]
    after = [row["after"]["write_amplification"] for row in report["what_if"]]
    assert list(what_ifs["after.write_amplification"]) == after
    offenders = polars.DataFrame(report.offenders)
    assert len(offenders) == sum(len(rule["offenders"]) for rule in report["rules"].values())
    assert len(report.advice) == 7 and len(report.terms) == 6


def test_every_table_and_chart_is_a_frame(report: prism.Report) -> None:
    assert len(report.tables) >= 5 and len(report.charts) >= 8
    for table in [*report.tables.values(), *report.charts.values()]:
        assert polars.DataFrame(table).columns == table.column_names
        assert pyarrow.table(table).num_rows == len(table) > 0
    chart = report.charts["Misses of the map cache"]
    assert dict(chart.units)["miss_ratio"] == "fraction"
    ratios = polars.DataFrame(chart)["miss_ratio"]
    assert ratios.min() >= 0 and ratios.max() <= 1 and ratios.is_sorted(descending=True)


def test_requests_give_the_latencies_of_the_report(report: prism.Report) -> None:
    requests = report.requests
    rows = duckdb.sql(
        "select op::text, count(*), avg(latency_ns) from requests where pass = 0 group by 1"
    ).fetchall()
    latencies = report["result"]["latency_ns"]
    for op, count, mean in rows:
        assert latencies[op]["count"] == count
        assert latencies[op]["mean"] == pytest.approx(mean)


def test_requests_are_there_only_if_wanted(trace: prism.Trace) -> None:
    without = prism.report(trace, what_if="none")
    with pytest.raises(prism.Error, match="requests=True"):
        without.requests


def test_a_report_is_a_function_of_its_arguments(trace: prism.Trace) -> None:
    one = prism.report(trace, what_if=["merge"], seed=3)
    two = prism.report(trace, what_if="merge", seed=3)
    assert one.json == two.json and one.text() == two.text()
    assert [row["change"] for row in one["what_if"]] == ["merge"]


def test_devices_are_names_texts_and_dictionaries(trace: prism.Trace) -> None:
    fields = prism.device("consumer-nvme")
    text = (ROOT / "crates/ssd/presets/consumer-nvme.toml").read_text()
    by_name = prism.report(trace, device="consumer-nvme", what_if="none", passes=1)
    for device in [fields, text, ROOT / "crates/ssd/presets/consumer-nvme.toml"]:
        other = prism.report(trace, device=device, what_if="none", passes=1)
        assert other["result"] == by_name["result"]
    fields["flash"]["t_program"] = "3ms"
    slower = prism.report(trace, device=fields, what_if="none", passes=1)
    other = prism.report(
        trace, device="consumer-nvme", set={"flash.t_program": "3ms"}, what_if="none", passes=1
    )
    assert slower["result"] == other["result"] != by_name["result"]
    assert "dc-tlc" in prism.presets()


def test_reports_are_compared(trace: prism.Trace) -> None:
    drive = prism.report(trace, what_if="none", passes=1, against="consumer-nvme")
    assert drive["against"]["name"] == "consumer-nvme"
    fields = prism.device("consumer-nvme")
    text = (ROOT / "crates/ssd/presets/consumer-nvme.toml").read_text()
    for described in (fields, text):
        # The drive of the report is a dictionary, too, and is not taken for the other.
        own = prism.device("dc-tlc")
        other = prism.report(trace, device=own, what_if="none", passes=1, against=described)
        assert other["against"] == {**drive["against"], "name": fields["name"]}
    same = prism.report(trace, what_if="none", passes=1, against=trace)
    assert same["against"]["result"] == same["result"]


def test_simulation_of_jobs(tmp_path: pathlib.Path) -> None:
    options = {"rw": "randwrite", "bs": "4k", "iodepth": 8, "io_size": "8m"}
    one = prism.simulate(**options, capacity="256MiB", requests=True)
    assert isinstance(one, prism.Simulation)
    assert len(one.requests) == 2048 == one["jobs"][0]["write"]["ios"]
    assert one.fio["jobs"][0]["write"]["total_ios"] == 2048
    requests = one.requests
    worst = duckdb.sql("select max(latency_ns) from requests").fetchall()
    assert worst == [(one["jobs"][0]["write"]["latency_ns"]["max"],)]
    job = "[job1]\n" + "\n".join(f"{name}={value}" for name, value in options.items())
    (tmp_path / "job.fio").write_text(job)
    for workload in [job, tmp_path / "job.fio", options, [options]]:
        other = prism.simulate(workload, capacity=256 << 20)
        assert other["result"] == one["result"]
    two = prism.simulate([{**options, "name": "a"}, {**options, "name": "b"}], capacity="256MiB")
    assert isinstance(two, prism.Simulation)
    assert list(polars.DataFrame(two.jobs)["name"]) == ["a", "b"]


def test_simulation_of_a_trace(trace: prism.Trace) -> None:
    ran = prism.simulate(trace, passes=1, requests=True)
    assert ran["what_if"] == [] and len(ran.requests) == len(trace)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "dc-tcl"}, "dc-tcl"),
        ({"device": {"name": "x"}}, "<device>.toml: "),
        ({"device": "[flash]\nchannels = \"x\"\n"}, "<device>.toml: "),
        ({"capacity": "5"}, "capacity: "),
        ({"state": "half"}, "state: "),
        ({"faults": "xlc"}, "faults: kinds are slc"),
        ({"set": {"ftl.victm": "fifo"}}, "did you mean ftl.victim?"),
        ({"set": {"flash.multi_plane": True, "flash.channels": "x"}}, "a whole number is expected"),
        ({"pace": "closed"}, "pace: give the number of requests in flight"),
        ({"passes": 0}, "passes: "),
        ({"what_if": "mrge"}, "what_if: "),
        ({"layout": "nowhere"}, "nowhere: "),
        ({"wear": 5}, "--wear and --retention are for a drive that ages"),
        ({"against": "nowhere"}, "nowhere"),
        ({"seed": 1 << 70}, f"seed: {1 << 70} is out of range"),
        ({"seed": 10**5000}, "seed: the number is out of range"),
        ({"against": {"name": "x"}}, "<against>.toml: "),
        ({"against": "name = \"x\"\n"}, "<against>.toml: "),
        ({"against": "dc-tcl"}, "no trace, device file or preset called dc-tcl (did you mean dc-tlc"),
        ({"against": "nowhere-at-all"}, "called nowhere-at-all; presets are "),
        ({"against": "nowhere.toml"}, "nowhere.toml: "),
    ],
)
def test_bad_arguments_are_named(
    trace: prism.Trace, options: dict[str, object], message: str
) -> None:
    with pytest.raises(prism.Error) as error:
        prism.report(trace, **options)  # type: ignore[arg-type]
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": "x"}, "seed: "),
        ({"state": None}, "state: "),
        ({"wear": 1.5}, "wear: "),
        ({"set": 5}, "set: a dictionary of fields is expected, not int"),
    ],
)
def test_arguments_of_another_type_are_named(
    trace: prism.Trace, options: dict[str, object], message: str
) -> None:
    for call in (prism.report, prism.simulate):
        with pytest.raises(TypeError) as error:
            call(trace, **options)  # type: ignore[arg-type,operator]
        assert str(error.value).startswith(message)


def test_exceptions_of_conversions_are_kept(trace: prism.Trace) -> None:
    class Number:
        def __init__(self, error: type[BaseException]) -> None:
            self.error = error

        def __index__(self) -> int:
            raise self.error

    for error in (ZeroDivisionError, KeyboardInterrupt):
        with pytest.raises(error):
            prism.report(trace, seed=Number(error))  # type: ignore[arg-type]
    with pytest.raises(prism.Error) as large:
        prism.report(trace, seed=1 << 70)
    assert isinstance(large.value.__cause__, OverflowError)
    with pytest.raises(TypeError) as wrong:
        prism.report(trace, seed="x")  # type: ignore[arg-type]
    assert isinstance(wrong.value.__cause__, TypeError)


def test_a_report_takes_the_files_of_another_trace(trace: prism.Trace, sample: str) -> None:
    read = prism.report(trace, what_if="none", against=prism.read_trace(sample)).json
    for against in (sample, pathlib.Path(sample), [sample]):
        assert prism.report(trace, what_if="none", against=against).json == read


def test_results_are_copied_and_not_pickled() -> None:
    result = prism.simulate({"rw": "randwrite", "io_size": "1m"}, capacity="64MiB")
    swept = prism.sweep({"rw": "randwrite", "io_size": "1m", "capacity": "64MiB"})
    assert copy.copy(result).json == result.json and type(copy.copy(result)) is type(result)
    assert copy.copy(swept).table is swept.table and copy.copy(swept.table) is swept.table
    trace = prism.generate_trace("uniform", requests=9)
    assert len(copy.copy(trace)) == 9
    for one in (result, swept, swept.table, trace):
        for refused in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be pickled or copied deeply"):
                refused(one)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rw": "sideways"}, "rw"),
        ({"rwx": 1}, "rwx"),
        ({"workload": "[a\nrw=read\n"}, "jobs:1"),
        ({"workload": "nowhere.fio"}, "nowhere.fio: "),
        ({"workload": "[a]\nrw=read\n", "bs": "4k"}, "bs: options of one job"),
        ({"rw": "read", "pace": "closed:3"}, "pace, passes: "),
        ({"rw": "read", "until_read_only": True}, "until_read_only: it needs a drive that ages"),
    ],
)
def test_bad_jobs_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(prism.Error) as error:
        prism.simulate(**options)  # type: ignore[arg-type]
    assert message in str(error.value)


def test_results_are_those_of_the_command(trace: prism.Trace, sample: str) -> None:
    prism_command = os.environ.get("PRISM_COMMAND")
    if prism_command is None:
        pytest.skip("the command is not built")
    arguments = ["report", sample, "--phase", "app", "--what-if", "merge", "--json", "-"]
    output = subprocess.run([prism_command, *arguments], capture_output=True, check=True)
    ours = prism.report(trace, what_if="merge")
    assert ours.json == json.loads(output.stdout)
    jobs = {"rw": "randrw", "bs": "4k", "iodepth": 8, "io_size": "8m"}
    # Before the name of the job, options would be those of all jobs.
    arguments = ["sim", "--name=job1", *(f"--{key}={value}" for key, value in jobs.items())]
    arguments[1:1] = ["--capacity", "256MiB", "--json", "-"]
    output = subprocess.run([prism_command, *arguments], capture_output=True, check=True)
    assert prism.simulate(jobs, capacity="256MiB").json == json.loads(output.stdout)


def test_tables_have_the_columns_of_the_parquet_files(
    trace: prism.Trace, tmp_path: pathlib.Path
) -> None:
    """Requests and records in memory are the rows that the command writes to files."""
    trace.write(tmp_path / "trace.parquet")
    stored = polars.read_parquet(tmp_path / "trace.parquet")
    records = polars.DataFrame(trace)
    assert records.columns == stored.columns
    assert records.cast(dict(stored.schema)).equals(stored)
    prism_command = os.environ.get("PRISM_COMMAND")
    if prism_command is None:
        pytest.skip("the command is not built")
    ours = polars.DataFrame(
        prism.report(trace, what_if="none", passes=1, requests=True).requests
    )
    path = str(tmp_path / "requests.parquet")
    arguments = ["--what-if", "none", "--passes", "1", "--requests", path]
    subprocess.run(
        [prism_command, "report", str(tmp_path / "trace.parquet"), *arguments], check=True,
        stdout=subprocess.DEVNULL,
    )
    theirs = polars.read_parquet(path)
    assert ours.columns == theirs.columns
    assert ours.cast(dict(theirs.schema)).equals(theirs)


def test_a_page_that_cannot_be_written_leaves_the_old_one(
    trace: prism.Trace, tmp_path: pathlib.Path
) -> None:
    report = prism.report(trace, what_if="none", passes=1)
    path = tmp_path / "report.html"
    report.write_html(path)
    assert path.read_text(encoding="utf-8") == report.html()
    with pytest.raises(prism.Error, match="nowhere"):
        report.write_html(tmp_path / "nowhere" / "report.html")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
