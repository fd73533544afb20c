"""Design studies: the same data set from every executor, failures, resumption."""

from __future__ import annotations

import concurrent.futures
import importlib
import json
import multiprocessing
import os
import pathlib
import signal
import tomllib
from collections.abc import Iterator
from typing import Any

import numpy
import polars
import pytest

import prism
from prism._toml import toml_of

BASE = {"capacity": "64MiB", "rw": "randwrite", "bs": "4k", "io_size": "4m"}
GRID = {"iodepth": [1, 4], "ftl.victim": ["greedy", "fifo"]}


def data(path: pathlib.Path) -> bytes:
    """The bytes of a data set."""
    return path.read_bytes()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The data set by one thread."""
    path = tmp_path_factory.mktemp("sweep") / "one.parquet"
    prism.sweep(BASE, GRID, repeats=3, output=path, jobs=1)
    return data(path)


def die_once(marker: str, design: str) -> str:
    """Ends the worker process the first time that it is called; else runs the design."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return prism.run_design(design)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("the process is dead")


def test_grid_random_and_repeats_are_rows_with_types() -> None:
    """The table has every design with its inputs; NumPy's numbers are numbers."""
    result = prism.sweep(
        BASE,
        {"iodepth": numpy.array([1, 8])},
        random={"designs": 2, "op": {"uniform": [0.1, numpy.float64(0.3)]}},
        repeats=2,
        progress=False,
    )
    frame = polars.DataFrame(result.table)
    assert frame["design"].to_list() == list(range(8))
    assert frame["iodepth"].to_list() == [1] * 4 + [8] * 4
    assert frame["op"].dtype == polars.Float64 and frame["op"].is_between(0.1, 0.3).all()
    assert frame["seed"].to_list() == [1, 2] * 4
    assert frame["error"].null_count() == 8
    assert result.summary["failed"] == 0 and "iodepth x op x seed" in repr(result)
    one = prism.simulate(
        device="dc-tlc", capacity="64MiB", rw="randwrite", bs="4k", io_size="4m", iodepth=1
    )
    same = polars.DataFrame(prism.sweep(BASE, {"iodepth": [1]}).table)
    assert same["latency_write_p99_ns"][0] == one["result"]["latency_ns"]["write"]["p99"]


def test_numbers_of_channels_are_those_of_the_drive() -> None:
    """Capacities may be numbers of bytes, and scaling to them keeps the swept channels."""
    grid = {"flash.channels": [1, 4], "capacity": [64 << 20, 16 << 30]}
    base = {"rw": "randread", "bs": "16k", "io_size": "16m", "iodepth": 64}
    frame = polars.DataFrame(prism.sweep(base, grid, progress=False).table)
    assert frame["error"].null_count() == 4
    assert frame["capacity_bytes"].to_list() == [64 << 20, 16 << 30] * 2
    seconds = frame["simulated_ns"]
    assert (seconds[:2] > 2 * seconds[2:]).all(), seconds


def test_devices_are_dictionaries_and_texts(tmp_path: pathlib.Path) -> None:
    """They are drives like those of files: in a list, in the base, and in a random choice."""
    slow = prism.device("dc-tlc")
    slow["flash"]["t_program"] = "5ms"
    text = "# A comment.\n" + toml_of(slow)
    grid = {"device": ["dc-tlc", slow, text, slow]}
    path = tmp_path / "out.parquet"
    base = {**BASE, "capacity": 64 << 20}
    frame = polars.DataFrame(prism.sweep(base, grid, output=path, executor=concurrent.futures.ThreadPoolExecutor(2)).table)
    assert frame["error"].null_count() == 4
    seconds = frame["simulated_ns"].to_list()
    assert seconds[0] < seconds[1] and seconds[1:] == [seconds[1]] * 3
    name = slow["name"]
    first, second = f"<{name}>.toml", f"<{name} 2>.toml"
    assert frame["device"].to_list() == ["dc-tlc", first, second, first]
    assert frame["design"].len() == 4 and polars.read_parquet(path).equals(frame)
    one = polars.DataFrame(prism.sweep({**base, "device": slow}).table)
    other = prism.sweep(study={"base": {**base, "device": text}})
    assert [one["simulated_ns"][0], polars.DataFrame(other.table)["simulated_ns"][0]] == seconds[1:3]
    chosen = prism.sweep(base, random={"designs": 16, "device": {"choice": [slow, "dc-tlc"]}})
    assert set(polars.DataFrame(chosen.table)["simulated_ns"]) == set(seconds[:2])
    del slow["flash"]["t_program"]
    with pytest.raises(prism.Error, match="t_program"):
        prism.sweep({**base, "device": slow})


def test_names_of_devices_are_no_paths(tmp_path: pathlib.Path) -> None:
    """Any iterable of drives is a list, and each drive has its own name, whatever is in it."""
    drives = {name: {**prism.device("dc-tlc"), "name": name} for name in ("a/b", "../x", "two\nlines")}
    names = ["<a-b>.toml", "<..-x>.toml", "<two-lines>.toml"]
    base = {**BASE, "capacity": 64 << 20}
    for given in (
        drives.values(),
        (drive for drive in drives.values()),
        numpy.array(list(drives.values())),
        [toml_of(drive) for drive in drives.values()],
    ):
        frame = polars.DataFrame(prism.sweep(base, {"device": given}).table)
        assert frame["error"].null_count() == 3 and frame["device"].to_list() == names
    # A file of the name of such a drive is another drive.
    slow = prism.device("dc-tlc")
    slow["flash"]["t_program"] = "5ms"
    (tmp_path / "<x>.toml").write_text(toml_of(slow), encoding="utf-8")
    given = [{**prism.device("dc-tlc"), "name": "x"}, str(tmp_path / "<x>.toml")]
    frame = polars.DataFrame(prism.sweep(base, {"device": given}).table)
    assert frame["simulated_ns"][0] < frame["simulated_ns"][1]


def test_the_number_of_jobs_is_checked() -> None:
    for jobs in (-1, 1 << 70):
        with pytest.raises(prism.Error, match=f"jobs: {jobs} is out of range"):
            prism.sweep(BASE, jobs=jobs)
    with pytest.raises(TypeError, match="jobs: a whole number is expected, not str"):
        prism.sweep(BASE, jobs="x")  # type: ignore[arg-type]


def test_rows_of_another_dictionary_are_not_taken(tmp_path: pathlib.Path) -> None:
    drive = prism.device("dc-tlc")
    grid = {"iodepth": [1, 2]}
    path = tmp_path / "out.csv"

    class Interrupts:
        def begin(self, label: str, things: str, total: int | None) -> None:
            pass

        def reached(self, done: int) -> None:
            raise ZeroDivisionError

        def end(self, done: int) -> None:
            pass

    with concurrent.futures.ThreadPoolExecutor(1) as pool, pytest.raises(ZeroDivisionError):
        prism.sweep({**BASE, "device": drive}, grid, output=path, executor=pool, progress=Interrupts())
    drive["flash"]["t_program"] = "5ms"
    with pytest.raises(prism.Error, match="restart"):
        prism.sweep({**BASE, "device": drive}, grid, output=path)
    result = prism.sweep({**BASE, "device": drive}, grid, output=path, restart=True)
    assert len(result) == 2


def test_threads_and_processes_give_the_same_bytes(tmp_path: pathlib.Path, expected: bytes) -> None:
    """Neither the number of threads nor the order of completion matters."""
    path = tmp_path / "out.parquet"
    prism.sweep(BASE, GRID, repeats=3, output=path, jobs=2)
    assert data(path) == expected
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=spawn) as pool:
        prism.sweep(BASE, GRID, repeats=3, output=path, executor=pool)
    assert data(path) == expected


def test_a_file_is_the_same_study(tmp_path: pathlib.Path, expected: bytes) -> None:
    """A file, a dictionary and arguments describe the same designs."""
    study = tmp_path / "s.toml"
    study.write_text(
        'repeats = 3\n[base]\ncapacity = "64MiB"\nrw = "randwrite"\nbs = "4k"\nio_size = "4m"\n'
        '[grid]\niodepth = [1, 4]\nftl.victim = ["greedy", "fifo"]\n'
    )
    path = tmp_path / "out.parquet"
    prism.sweep(study=study, output=path)
    assert data(path) == expected
    prism.sweep(study={"base": BASE, "grid": GRID, "repeats": 3}, output=path)
    assert data(path) == expected


def test_an_interrupted_sweep_goes_on(tmp_path: pathlib.Path, expected: bytes) -> None:
    """Rows are kept when an executor fails, and are not computed again."""

    class Failing:
        """Fails after some designs."""

        def __init__(self, after: int) -> None:
            self.ran = 0
            self.after = after

        def submit(self, function: Any, designs: list[str]) -> concurrent.futures.Future[Any]:
            """Runs the designs at once."""
            future: concurrent.futures.Future[Any] = concurrent.futures.Future()
            self.ran += len(designs)
            if self.ran > self.after:
                future.set_exception(RuntimeError("the cluster is gone"))
            else:
                future.set_result(function(designs))
            return future

    path = tmp_path / "out.parquet"
    with pytest.raises(RuntimeError, match="the cluster is gone"):
        prism.sweep(BASE, GRID, repeats=3, output=path, executor=Failing(5))
    assert not path.exists()
    kept = Failing(100)
    result = prism.sweep(BASE, GRID, repeats=3, output=path, executor=kept)
    assert data(path) == expected
    assert (result.summary["kept"], kept.ran) == (5, 7)
    assert not (tmp_path / "out.parquet.rows").exists()


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_tasks_have_several_designs(
    tmp_path: pathlib.Path, expected: bytes, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """A worker runs several short designs at once, and returns long ones one by one."""
    # The name prism.sweep is that of the function.
    monkeypatch.setattr(importlib.import_module("prism.sweep"), "BATCH_SECONDS", seconds)
    sizes = []

    class Pool(concurrent.futures.ThreadPoolExecutor):
        """One thread, which notes the sizes of tasks."""

        def submit(self, function: Any, *designs: Any, **_: Any) -> concurrent.futures.Future[Any]:
            sizes.append(len(designs[0]))
            return super().submit(function, *designs)

    path = tmp_path / "out.parquet"
    with Pool(1) as pool:
        prism.sweep(BASE, GRID, repeats=3, output=path, executor=pool)
    assert data(path) == expected
    singles = 3 if seconds == 0.0 else 0
    assert sizes == [3, 2, 1, 1, 1, 1, 1, 1, 1] + [1] * singles


def test_failures_are_rows_and_mistakes_are_errors(tmp_path: pathlib.Path) -> None:
    """A design that cannot be simulated is a row; what is wrong by itself is an error."""
    frame = polars.DataFrame(prism.sweep(BASE, {"size": ["1m", "1g"]}).table)
    assert frame["error"][0] is None and "reaches beyond" in frame["error"][1]
    for grid, message in [
        ({"iodepht": [1]}, r"sweep:\d+: \[grid\] iodepht=1: no axis of this name"),
        ({"ftl.victim": ["best"]}, "no victim policy is called `best`"),
        ({"iodepth": 4}, "give a list of values"),
        ({"iodepth": [None]}, "iodepth: None is no value of a setting"),
    ]:
        with pytest.raises(prism.Error, match=message):
            prism.sweep(BASE, grid)
    with pytest.raises(prism.Error, match="must end in .parquet or .csv"):
        prism.sweep(BASE, output=tmp_path / "x.txt")
    with pytest.raises(prism.Error, match="leave out one of both"):
        prism.sweep(BASE, study={"base": BASE})
    with pytest.raises(prism.Error, match="executor: 5 is none"):
        prism.sweep(BASE, output=tmp_path / "x.csv", executor=5)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(prism.Error, match="design: "):
        prism.run_design("{}")


@pytest.fixture(scope="module")
def dask() -> Iterator[Any]:
    """A local cluster of Dask, of two processes."""
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


def test_dask_gives_the_same_bytes(
    tmp_path: pathlib.Path, expected: bytes, dask: Any
) -> None:
    """Two processes of Dask; a worker that is killed is replaced, and its design runs again."""
    path = tmp_path / "out.parquet"
    prism.sweep(BASE, GRID, repeats=3, output=path, executor=dask)
    assert data(path) == expected
    futures = tmp_path / "futures.parquet"
    prism.sweep(BASE, GRID, repeats=3, output=futures, executor=dask.get_executor())
    assert data(futures) == expected
    marker = str(tmp_path / "died")
    design = json.dumps(designs()[0])
    row = dask.submit(die_once, marker, design, pure=False).result(timeout=120)
    assert os.path.exists(marker) and row == prism.run_design(design)


def test_ray_gives_the_same_bytes(tmp_path: pathlib.Path, expected: bytes) -> None:
    """Two processes of Ray; a worker that is killed is replaced, and its design runs again."""
    ray = pytest.importorskip("ray")
    path = tmp_path / "out.parquet"
    with pytest.raises(prism.Error, match="ray.init"):
        prism.sweep(BASE, GRID, repeats=3, output=tmp_path / "none.parquet", executor="ray")
    # Another cluster may run on this machine.
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=80 << 20,
    )
    try:
        prism.sweep(BASE, GRID, repeats=3, output=path, executor="ray")
        assert data(path) == expected
        marker = str(tmp_path / "died")
        design = json.dumps(designs()[0])
        remote = ray.remote(max_retries=3)(die_once)
        row = ray.get(remote.remote(marker, design), timeout=120)
        assert os.path.exists(marker) and row == prism.run_design(design)
    finally:
        ray.shutdown()


def designs() -> list[dict[str, Any]]:
    """The designs of a study, as workers get them."""
    from prism import _prism

    text = '[base]\ncapacity = "64MiB"\nrw = "randwrite"\nio_size = "1m"\n'
    planned = _prism.plan_sweep("s", "", text, {}, None, False)
    return [json.loads(design) for design in planned.open_designs()]


def test_dictionaries_become_toml_that_says_the_same() -> None:
    given = {
        "a key": "\x7f \U0001f4be \"quoted\" \\",
        "list": [1, 2.5, True, "x"],
        "a.b": {"c d": numpy.int64(3), "e": {"f.g": numpy.float64(0.5)}},
    }
    assert tomllib.loads(toml_of(given)) == given
    with pytest.raises(prism.Error, match="flash: b'1' is no value of a setting; give text"):
        toml_of({"flash": b"1"})
