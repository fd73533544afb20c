"""What the package costs next to the command: ``make python-bench``.

The machine may do other work meanwhile, so what is compared runs alternately, and medians are given:
of wall time, and of CPU time, which other work changes less.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import polars
import ray
from distributed import Client, LocalCluster

import prism
from prism._toml import toml_of

ROOT = pathlib.Path(__file__).parents[2]

JOB: dict[str, object] = {"rw": "randwrite", "bs": "4k", "iodepth": 32}
SCRIPT = """
import time
import prism
wall, cpu = time.perf_counter(), time.process_time()
prism.simulate(name="job1", rw="randwrite", bs="4k", iodepth=32, io_size="{size}", progress=False).json
print(time.perf_counter() - wall, time.process_time() - cpu)
"""


class Cost(NamedTuple):
    """Seconds."""

    wall: float
    cpu: float


def of_process(arguments: list[str]) -> tuple[Cost, str]:
    """What a process costs, and what it prints."""
    begun = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(time.perf_counter() - begun, cpu), done.stdout


def median(costs: list[Cost]) -> Cost:
    """The median of each."""
    return Cost(*(statistics.median(some) for some in zip(*costs, strict=True)))


def overhead(command: str, runs: int, size: str) -> dict[str, Cost]:
    """One simulation by the command, by a new Python, and by the call alone."""
    options = [f"--{key}={value}" for key, value in JOB.items()]
    by_command = [command, "sim", "--name=job1", *options, f"--io_size={size}", "--json", "-"]
    found: dict[str, list[Cost]] = {"command": [], "python": [], "call": []}
    for _ in range(runs):
        found["command"].append(of_process(by_command)[0])
        cost, text = of_process([sys.executable, "-c", SCRIPT.format(size=size)])
        found["python"].append(cost)
        wall, cpu = map(float, text.split())
        found["call"].append(Cost(wall, cpu))
    return {name: median(costs) for name, costs in found.items()}


def sweeps(command: str, designs: int, runs: int) -> dict[str, list[float]]:
    """Seconds of each sweep of as many designs by each executor, with two workers but for the first.

    Next to them are two processes of the command with half of the designs and one thread each,
    which share nothing: what the machine's second core adds.
    """
    base = {
        "device": "dc-tlc", "capacity": "256MiB", **JOB, "io_size": "128m", "state": "filled"
    }
    digests = set()

    def one(**executor: Any) -> float:
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "data.parquet"
            prism.sweep(base, repeats=designs, output=path, progress=False, **executor)
            digests.add(hash(path.read_bytes()))
        return time.perf_counter() - begun

    def apart() -> float:
        with tempfile.TemporaryDirectory() as folder:
            study = pathlib.Path(folder) / "study.toml"
            study.write_text(toml_of({"repeats": designs // 2, "base": base}))
            begun = time.perf_counter()
            halves = [
                subprocess.Popen(
                    [command, "sweep", study, "--jobs", "1", "-o", study.with_suffix(f".{half}.parquet")],
                    stdout=subprocess.DEVNULL,
                )
                for half in range(2)
            ]
            assert [half.wait() for half in halves] == [0, 0]
            return time.perf_counter() - begun

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)  # type: ignore[no-untyped-call]
    client = Client(cluster)  # type: ignore[no-untyped-call]
    ways: dict[str, Callable[[], float]] = {
        "one thread": lambda: one(jobs=1),
        "two threads": lambda: one(jobs=2),
        "two commands, half each": apart,
        "Dask, two processes": lambda: one(executor=client),
        "Ray, two processes": lambda: one(executor="ray"),
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(runs):
        for name, way in ways.items():
            found[name].append(way())
    client.close()  # type: ignore[no-untyped-call]
    cluster.close()
    ray.shutdown()
    assert len(digests) == 1, "the data set does not depend on the executor"
    return found


def over(seconds: list[float], other: list[float]) -> float:
    """The median of the ratios of the rounds: a machine that slows down changes both times of one."""
    return statistics.median(a / b for a, b in zip(seconds, other, strict=True))


def memory(rows: int) -> dict[str, int]:
    """Bytes of the process before and after rows of requests go to Polars."""

    def resident() -> int:
        text = pathlib.Path("/proc/self/statm").read_text()
        return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")

    job = {**JOB, "io_size": f"{rows * 4}k"}
    result = prism.simulate(job, requests=True, progress=False)
    table = result.requests
    before = resident()
    frame = polars.DataFrame(table)
    after = resident()
    return {"rows": len(frame), "bytes": table.nbytes, "added": after - before}


def main() -> None:
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", default=str(ROOT / "target/release/prism"))
    parser.add_argument("--runs", type=int, default=15, help="runs of one simulation")
    parser.add_argument("--size", default="10g", help="bytes that it writes")
    parser.add_argument("--designs", type=int, default=1000)
    parser.add_argument("--sweeps", type=int, default=3, help="runs of each sweep")
    parser.add_argument("--rows", type=int, default=10_240_000)
    parser.add_argument("--only", choices=["overhead", "sweeps", "memory"])
    given = parser.parse_args()
    result: dict[str, Any] = {}
    if given.only in (None, "overhead"):
        result["overhead"] = costs = overhead(given.command, given.runs, given.size)
        command = costs["command"]
        for name in ("python", "call"):
            ratio = [costs[name][at] / command[at] - 1 for at in range(2)]
            print(f"{name}: {ratio[0]:+.1%} wall, {ratio[1]:+.1%} CPU", flush=True)
    if given.only in (None, "sweeps"):
        result["sweeps"] = seconds = sweeps(given.command, given.designs, given.sweeps)
        one, two = seconds["one thread"], seconds["two threads"]
        for name, values in seconds.items():
            middle = statistics.median(values)
            ratios = f"one thread over it {over(one, values):.2f}, it over two {over(values, two):.2f}"
            print(f"{name}: {middle:.2f} s; {ratios}", flush=True)
    if given.only in (None, "memory"):
        result["memory"] = memory(given.rows)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
