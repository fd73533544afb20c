"""Arguments of wrong types, values at their limits, types of columns, and limits of memory."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy
import polars
import pytest

import prism
from prism import flash


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: prism.read_trace(5), "paths: a path or several is expected, not int"),  # type: ignore[arg-type]
        (lambda: prism.read_trace([5]), "paths: a path is expected, not int"),  # type: ignore[list-item]
        (lambda: prism.read_trace("x", map=5), "map: a path"),  # type: ignore[arg-type]
        (lambda: prism.report(5), "paths: a path or several"),  # type: ignore[arg-type]
        (lambda: prism.simulate(rw="read", device=5), "device: a preset, a device file"),  # type: ignore[call-overload]
        (lambda: prism.simulate(rw="read", capacity=1.5), "capacity: a whole number of bytes"),  # type: ignore[call-overload]
        (lambda: prism.simulate(rw="read", progress=5), "progress: True, False, None or an object"),  # type: ignore[call-overload]
        (lambda: prism.simulate(5), "workload: a job file, a trace"),  # type: ignore[call-overload]
        (lambda: prism.simulate(["a.fio"]), "workload: in a list, dictionaries"),  # type: ignore[list-item]
        (lambda: prism.report(prism.generate_trace("uniform", requests=9), what_if=[5]), "what_if: a name or several is expected, not int"),  # type: ignore[list-item]
        (lambda: prism.simulate_cache(engine=[5]), "engine: a name or several is expected, not int"),  # type: ignore[list-item]
        (lambda: flash.Device.memory(5), "geometry: a Geometry is expected, not int"),  # type: ignore[arg-type]
        (lambda: prism.simulate_cache(engine=5), "engine: a name or several"),  # type: ignore[arg-type]
        (lambda: prism.simulate_cache(size=1.5), "size: a whole number of bytes"),  # type: ignore[arg-type]
        (lambda: prism.graph.info(5), "store: a path"),  # type: ignore[arg-type]
        (lambda: prism.validate(seed="x"), "seed: a whole number is expected, not str"),  # type: ignore[arg-type]
        (lambda: prism.reproduce("atc09", traces=5), "traces: a path"),  # type: ignore[arg-type]
        (lambda: flash.Device.open(5), "path: a path"),  # type: ignore[arg-type]
        (lambda: flash.Device.memory(timing=5), "timing: a preset"),  # type: ignore[arg-type]
        (lambda: prism.sweep({"rw": "read"}, output=5), "output: a path"),  # type: ignore[arg-type]
        (lambda: prism.graph.run("wcc", edges="x", edge_options={"loops": 1}), "edge_options: 'loops' is no argument of ingest that can be given here; these are directed, "),
        (lambda: prism.graph.ingest("x", "y", columns=5), "columns: a name or several is expected, not int"),  # type: ignore[arg-type]
        (lambda: prism.convert("x", "y", maps="z"), "convert: 'maps' is no argument of read_trace that can be given here; these are format, "),
    ],
)
def test_wrong_types_are_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError) as raised:
        call()
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: prism.validate(seed=-1), "seed: -1 is out of range"),
        (lambda: prism.calc_cleaning(0.8, seed=1 << 64), "seed: 18446744073709551616 is out of range"),
        (lambda: prism.calc_cleaning(0.8, pages_per_block=0), "pages_per_block: 0 is out of range; the least is 1"),
        (lambda: prism.calc_lifetime("1TB", "1MB/s", 1.0, cycles=-1), "cycles: -1 is out of range"),
        (lambda: prism.calc_lifetime("1TB", "1MB/s", 1.0, cycles=1000).text(10), "width: 10 is out of range; the least is 72"),
        (lambda: prism.sweep({"rw": "read"}, jobs=0), "jobs: 0 is out of range; the least is 1"),
        (lambda: flash.Device.memory(real_time=True), "real time need the times of a drive"),
        (lambda: prism.simulate(rw="read", over_provisioning=7), "over_provisioning: \"7\" is not"),
        (lambda: prism.simulate(rw="read", over_provisioning=float("nan")), "over_provisioning: \"nan\""),
        (lambda: prism.simulate(rw="read", capacity="1XB"), "PiB"),
        (lambda: prism.simulate_cache(etc="keys=9", cycles=0), "cycles: give a number from 1 to"),
        (lambda: prism.simulate_cache(etc="keys=9", size="1TiB"), "a cache has less than 1 TiB of flash"),
        (lambda: prism.report(prism.generate_trace("uniform", requests=9), against=[]), "against: name at least one file"),
        (lambda: prism.graph.run("wcc", edge_options={}), "edge_options and preset are for"),
    ],
)
def test_values_beyond_their_limits_are_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(prism.Error) as raised:
        call()
    assert message in str(raised.value)


def test_reports_are_no_traces(trace: prism.Trace) -> None:
    report: Any = prism.report(trace, what_if="none", passes=1)
    with pytest.raises(TypeError, match="pass report.trace"):
        prism.report(report)
    with pytest.raises(TypeError, match="pass against.trace"):
        prism.report(trace, against=report)
    with pytest.raises(TypeError, match="paths: a path or several is expected, not Report"):
        prism.read_trace(report)
    simulated: Any = prism.simulate(rw="read", io_size="1m", capacity="64MiB")
    with pytest.raises(TypeError, match="workload: a job file, a trace.* is expected, not Simulation"):
        prism.simulate(simulated)


def test_arguments_of_flash_are_named() -> None:
    with flash.Device.memory() as device, device.allocate("a", "8MiB") as share, share.raw() as raw:
        wrong: Any = (0, 0, 0)
        with pytest.raises(TypeError, match="channel, LUN, block and page"):
            raw.read_page(wrong)
        page: Any = 5
        with pytest.raises(TypeError, match="buffer: bytes, a bytearray .* is expected, not int"):
            raw.write_page(flash.Address(), page)
    with flash.Device.memory() as device, device.allocate("a", "8MiB") as share:
        with share.policy() as policy, pytest.raises(prism.Error, match="handles: 0 is out of range"):
            policy.configure(0, policy.block_bytes, handles=0)
    with pytest.raises(prism.Error, match="depth: 0 is out of range"):
        flash.Device.open("nowhere", depth=0)


def test_values_of_numpy_are_those_of_python() -> None:
    jobs: Any = {"rw": "randwrite", "bs": numpy.int64(4096), "io_size": "1m", "norandommap": numpy.True_}
    drive: Any = {"flash.multi_plane": numpy.False_}
    ours = prism.simulate(jobs, capacity=numpy.int64(64 << 20), set=drive)
    single = [prism.calc_cleaning(share)["rows"] for share in (numpy.float32(0.8), 0.8, [numpy.float32(0.8)])]
    assert single[0] == single[1] == single[2]
    own = {**jobs, "norandommap": True, "bs": 4096}
    assert prism.simulate(own, capacity="64MiB", set={"flash.multi_plane": False})["result"] == ours["result"]


def test_over_provisioning_is_a_share_or_percent() -> None:
    runs = [
        prism.simulate(rw="write", io_size="1m", capacity="64MiB", over_provisioning=share)["device"]
        for share in (0.25, "25%", "0.25")
    ]
    assert runs[0] == runs[1] == runs[2]
    assert runs[0] != prism.simulate(rw="write", io_size="1m", capacity="64MiB")["device"]


def test_text_has_other_characters_if_it_is_asked_for() -> None:
    jobs = prism.simulate({"name": "données", "rw": "read", "io_size": "1m"}, capacity="64MiB")
    assert "donn?es" in jobs.text() and "données" in jobs.text(unicode=True)


def test_a_state_is_a_path_too(tmp_path: pathlib.Path) -> None:
    saved = tmp_path / "drive.prism-state"
    jobs = {"rw": "randread", "io_size": "1m"}
    first = prism.simulate(jobs, capacity="64MiB", save_state=saved)
    again = prism.simulate(jobs, capacity="64MiB", state=saved)
    assert again["jobs"] == first["jobs"]


def test_columns_have_one_type_in_all_results(trace: prism.Trace, tmp_path: pathlib.Path) -> None:
    """Frames of results in which nothing has some value can be joined with those of others."""
    flushes = prism.generate_trace("sequential", requests=50, flush_every=10)
    reports = [
        prism.report(trace, what_if="all", set={"faults.kind": "tlc"}),
        prism.report(flushes, what_if="none", passes=1),
        prism.report(prism.generate_trace("uniform", requests=50, reads=1.0), passes=1),
    ]
    for table in ("rules", "what_ifs", "terms", "advice"):
        frames = [polars.DataFrame(getattr(report, table)) for report in reports]
        assert len(polars.concat(frames, how="diagonal")) == sum(map(len, frames))
    jobs = [
        polars.DataFrame(prism.simulate(rw=rw, io_size="1m", capacity="64MiB").jobs)
        for rw in ("read", "write", "trim", "randrw")
    ]
    assert len(polars.concat(jobs, how="diagonal")) == 4
    sweeps = [
        polars.DataFrame(prism.sweep({"rw": rw, "io_size": "1m", "capacity": "64MiB"}))
        for rw in ("read", "write", "trim")
    ]
    assert len(polars.concat(sweeps, how="diagonal")) == 3
    etc = {"keys": 1000, "requests": 2000}
    caches = [
        polars.DataFrame(prism.simulate_cache(etc=etc, size="128MiB", max_writes=most).rows)
        for most in (None, "1MB/s")
    ]
    assert len(polars.concat(caches, how="diagonal")) == 6


LIMITED = """
import prism, resource
from prism import flash
def limit(more):
    now = int(open("/proc/self/statm").read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (now + more, resource.RLIM_INFINITY))
"""


def limited(program: str) -> str:
    """What a program prints that limits its memory."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED + program], check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def test_rows_without_memory_are_an_exception() -> None:
    program = """
limit(300 << 20)
try:
    prism.simulate(rw="randread", bs="4k", io_size="40g", capacity="64MiB", requests=True, progress=False)
except MemoryError as error:
    print(error)
print(prism.simulate(rw="read", io_size="1m", capacity="64MiB", requests=True)["jobs"][0]["read"]["ios"])
"""
    error, after = limited(program).splitlines()
    assert "GiB" in error or "MiB" in error
    assert after == "256"


def test_a_device_in_memory_that_is_full_is_an_exception() -> None:
    program = """
device = flash.Device.memory(blocks_per_lun=4096)
policy = device.allocate("a", "5GiB").policy()
policy.configure(0, 4 << 30)
limit(256 << 20)
data = bytes(1 << 20)
at = 0
try:
    while True:
        policy.write(at, data)
        at += len(data)
except prism.FlashError as error:
    print(error)
print(at > 100 << 20)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
device = flash.Device.memory()
raw = device.allocate("b", "1MiB").raw()
raw.write_page(flash.Address(), bytes(4096))
print(raw.read_page(flash.Address()) == bytes(4096))
"""
    error, many, after = limited(program).splitlines()
    assert "there is no memory for a block" in error
    assert (many, after) == ("True", "True")
