"""Checks, calculations, published results, generated traces: as the commands give them."""

from __future__ import annotations

import pathlib
import subprocess
from collections.abc import Callable

import numpy
import polars
import pytest

import prism

ByCommand = Callable[..., dict[str, object]]


def test_validation_is_that_of_the_command(by_command: ByCommand) -> None:
    only = "greedy, OP 0.28"
    again = prism.validate(only, seed=2)
    assert len(again["checks"]) >= 1
    assert again.json == by_command("validate", "--only", only, "--seed", "2")
    checks = polars.DataFrame(again.checks)
    assert again.passed == checks["passed"].all()
    with pytest.raises(prism.Error, match="no check's name contains 'nothing'|\"nothing\""):
        prism.validate("nothing")


def test_calculations_are_those_of_the_command(by_command: ByCommand) -> None:
    cleaning = prism.calc_cleaning(["60%", 0.8], pages_per_block=32, seed=3)
    assert cleaning.json == by_command(
        "calc", "cleaning", "--utilization", "60%,80%", "--pages-per-block", "32", "--seed", "3"
    )
    rows = polars.DataFrame(cleaning.rows)
    assert rows["average_victim.write_amplification"].to_list() == pytest.approx([2.5, 5.0])
    life = prism.calc_lifetime("1TB", "100MB/s", 10, cell="tlc")
    assert life.json == by_command(
        "calc", "lifetime", "--capacity", "1TB", "--rate", "100MB/s",
        "--write-amplification", "10", "--cell", "tlc",
    )
    assert "Lifetime" in life.tables or "Lifetime" in life.text()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: prism.calc_cleaning("x"), "utilization: \"x\" is not a share"),
        (lambda: prism.calc_cleaning([]), "at least one utilization"),
        (lambda: prism.calc_cleaning(1.5), "150% is out of range"),
        (lambda: prism.calc_lifetime("1TB", "100MB", 2, cycles=1), "rate: \"100MB\" is not a rate"),
        (lambda: prism.calc_lifetime("1TB", "1MB/s", 2), "either cycles or cell"),
        (lambda: prism.calc_lifetime("1TB", "1MB/s", 2, cell="x"), "cells are: slc mlc tlc qlc"),
        (lambda: prism.reproduce("x"), "no publication; they are unwritten-contract, atc09"),
        (lambda: prism.reproduce("sfs", scale="x"), "scales are: full quarter"),
        (lambda: prism.reproduce("unwritten-contract", traces="docs"), "docs: no trace named"),
        (lambda: prism.generate_trace("x"), "pattern: the patterns are: uniform"),
        (lambda: prism.generate_trace("uniform", size="4096"), "size: "),
        (lambda: prism.generate_trace("uniform", arrival="x"), "arrival: write fixed:100us"),
        (lambda: prism.generate_trace("uniform", reads=2.0), "share must lie between 0 and 1"),
    ],
)
def test_bad_arguments_are_named(call: object, message: str) -> None:
    with pytest.raises(prism.Error) as error:
        call()  # type: ignore[operator]
    assert message in str(error.value)


def test_a_published_result_is_repeated() -> None:
    assert list(prism.papers()) == ["unwritten-contract", "atc09", "linkedin", "sfs", "prism-ssd"]
    found = prism.reproduce("linkedin", scale="quarter", seed=5)
    assert (found["id"], found["scale"], found["seed"]) == ("linkedin", "quarter", 5)
    assert len(found["compared"]) > 3 and len(found.tables) > 3


def test_generated_traces_are_those_of_the_command(
    command: str, tmp_path: pathlib.Path
) -> None:
    trace = prism.generate_trace(
        "hotcold:20/80", requests=3000, span="64MiB", size=["4KiB:7", "64KiB:3"], reads=0.3,
        flush_every=100, arrival="poisson:50us", seed=7,
    )
    info = trace.info
    assert info["format"] == "generated" and len(trace) >= 3000
    frame = polars.DataFrame(trace)
    assert frame.filter(polars.col("op") != "flush").height == 3000
    trace.write(tmp_path / "ours.iolog", to="fio")
    subprocess.run(
        [command, "trace", "generate", "--pattern", "hotcold:20/80", "--requests", "3000",
         "--span", "64MiB", "--size", "4KiB:7,64KiB:3", "--reads", "0.3", "--flush-every", "100",
         "--arrival", "poisson:50us", "--seed", "7", "-o", str(tmp_path / "theirs.iolog"),
         "--to", "fio"],
        check=True,
    )
    assert (tmp_path / "ours.iolog").read_bytes() == (tmp_path / "theirs.iolog").read_bytes()
    same = prism.generate_trace(
        "hotcold:20/80", requests=3000, span=64 << 20, size=["4096B:7", "64KiB:3"], reads=0.3,
        flush_every=100, arrival="poisson:50us", seed=7,
    )
    assert polars.DataFrame(same).equals(frame)
    one_size = prism.generate_trace("uniform", requests=9, size=numpy.int64(8192))
    sizes = polars.DataFrame(one_size)["len_bytes"]
    assert sizes.to_list() == [8192] * 9
    report = prism.report(trace, capacity=256 << 20, what_if="none", passes=1)
    assert report["result"]["write_amplification"] > 0
