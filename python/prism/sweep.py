"""Design studies: many designs of a drive and its workload, as one data set."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import pathlib
import queue
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from . import _prism
from ._common import PathLike, Progress, count_of, optional_path, progress_of
from ._toml import toml_of
from .device import is_text, name_and_text

__all__ = ["Study", "SweepResult", "run_design", "sweep"]

Study: TypeAlias = "PathLike | Mapping[str, Any]"
"""The path of the file of a sweep, or what is in one as a dictionary."""

Rows: TypeAlias = Callable[[Sequence[str]], Iterator[str]]
"""Runs designs, and gives their rows."""

RETRIES = 3
"""How often Ray runs designs again whose worker has died. Dask does so by itself."""

BATCH_SECONDS = 0.5
"""When a worker returns the rows that it has. Executors need some milliseconds for each task, so a
task is several short designs, or one long design."""

BATCH_DESIGNS = 16
"""Designs in a task at most: some kilobytes each."""


class SweepResult:
    """The data set of a sweep: ``polars.DataFrame(result.table)``, and its summary."""

    def __init__(self, table: _prism.Table, summary: dict[str, Any]) -> None:
        self.table = table
        """A row for each design, with all inputs and results."""
        self.summary = summary
        """What ``prism sweep --json`` gives."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.table.__arrow_c_schema__()

    def __len__(self) -> int:
        return len(self.table)

    def __copy__(self) -> SweepResult:
        return SweepResult(self.table, self.summary)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "the result of a sweep cannot be pickled or copied deeply, as it holds a table outside of "
            "Python; use result.summary, or a frame such as polars.DataFrame(result.table)"
        )

    def __repr__(self) -> str:
        over = " x ".join(self.summary["swept"]) or "one design"
        return f"<prism.SweepResult over {over}: {len(self)} designs>"


def run_design(design: str) -> str:
    """Runs one design, which is JSON, and returns its row, also JSON.

    Workers of a cluster call this. The row depends on the design alone: a design that cannot be
    simulated gives a row with its error. Raises ``prism.Error`` if a trace cannot be read.
    """
    return _prism.run_design(design)


def sweep(
    base: Mapping[str, Any] | None = None,
    grid: Mapping[str, Any] | None = None,
    *,
    random: Mapping[str, Any] | None = None,
    repeats: int | None = None,
    study: Study | None = None,
    output: PathLike | None = None,
    executor: Any = "threads",
    jobs: int | None = None,
    restart: bool = False,
    progress: bool | Progress | None = None,
) -> SweepResult:
    """Simulates every design of a study, as ``prism sweep`` does (``docs/sweep.md``).

    ``base``, ``grid``, ``random`` and ``repeats`` are what the file of a sweep has, with the same
    names of settings: ``prism.sweep({"rw": "randwrite"}, {"ftl.victim": ["greedy", "fifo"]})``. Or
    ``study`` is the path of such a file, or all of it as a dictionary. Names of files are relative
    to the folder of that file, or else to the current one. The setting ``device`` may also be the
    fields of a drive as a dictionary, or the text of its file, also in a list.

    ``executor`` runs the designs: ``"threads"`` of this process, ``jobs`` at once (all cores by
    default); a ``distributed.Client`` of Dask; ``"ray"``, for the cluster that ``ray.init`` has
    joined; or any ``concurrent.futures.Executor``. The data set does not depend on it.

    With ``output`` the data set is also written to that file, as Parquet or CSV, and rows are kept
    next to it until then: after an interruption the same call goes on. ``restart`` discards them.

    Raises ``prism.Error`` with the message of the command if the study cannot be used.
    """
    jobs = None if jobs is None else count_of("jobs", jobs, least=1)
    by_executor = _rows(executor, jobs)
    name, folder, text, devices = _study(study, base, grid, random, repeats)
    target = optional_path("output", output)
    planned = _prism.plan_sweep(name, folder, text, devices, target, restart)
    try:
        _run(planned, by_executor, jobs, progress_of(progress))
        table, summary = planned.finish()
    finally:
        # The traceback of an exception may outlive this call, and the rows are locked until then.
        planned.close()
    return SweepResult(table, json.loads(summary))


def _run(
    planned: _prism.Sweep, by_executor: Rows | None, jobs: int | None, shown: Progress | None
) -> None:
    """Runs the designs that have no row yet."""
    if by_executor is None:
        planned.execute(jobs, shown)
        return
    designs = planned.open_designs()
    done = len(planned) - len(designs)
    if shown is not None:
        shown.begin("simulating:", "designs", len(planned))
    for done, row in enumerate(by_executor(designs), done + 1):
        planned.keep(row)
        if shown is not None:
            shown.reached(done)
    if shown is not None:
        shown.end(done)


def _rows(executor: Any, jobs: int | None) -> Rows | None:
    """Gives the rows of designs, as they become complete; ``None`` for threads of this process."""
    if isinstance(executor, str) and executor == "threads":
        return None
    if jobs is not None:
        raise _prism.Error("jobs: it is for threads; the executor has its own workers")
    if isinstance(executor, str) and executor == "ray":
        return _by_ray
    # The executor that a client makes belongs to this module, too.
    is_client = hasattr(executor, "cancel")
    if is_client and type(executor).__module__.split(".")[0] == "distributed":
        return functools.partial(_by_dask, executor)
    if hasattr(executor, "submit"):
        return functools.partial(_by_futures, executor)
    raise _prism.Error(
        f"executor: {executor!r} is none; give \"threads\", \"ray\", a distributed.Client or a "
        "concurrent.futures.Executor"
    )


def _batches(designs: Sequence[str], workers: int) -> Iterator[Sequence[str]]:
    """Designs for a task each, fewer towards the end, so that all workers end at the same time."""
    begin = 0
    while begin < len(designs):
        share = (len(designs) - begin) // (4 * max(workers, 1))
        end = begin + max(1, min(share, BATCH_DESIGNS))
        yield designs[begin:end]
        begin = end


def _run_batch(designs: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Runs designs for some time; returns their rows, and batches of those that were not run."""
    begun = time.monotonic()
    rows = [run_design(designs[0])]
    for design in designs[1:]:
        if time.monotonic() - begun > BATCH_SECONDS:
            break
        try:
            rows.append(run_design(design))
        except _prism.Error:
            # The rows so far are kept; the task of this design alone fails.
            break
    return rows, [[design] for design in designs[len(rows):]]


def _by_dask(client: Any, designs: Sequence[str]) -> Iterator[str]:
    import distributed

    # It has no types.
    as_completed: Any = distributed.as_completed
    done = as_completed(with_results=True)
    futures = []

    def submit(batches: Iterable[Sequence[str]]) -> None:
        # Equal designs are no reason to take an earlier result, nor is it kept after this.
        more = client.map(_run_batch, list(batches), pure=False)
        futures.extend(more)
        done.update(more)

    try:
        submit(_batches(designs, sum(client.nthreads().values())))
        for _, (rows, rest) in done:
            yield from rows
            if rest:
                submit(rest)
    finally:
        client.cancel(futures)


def _by_ray(designs: Sequence[str]) -> Iterator[str]:
    import ray

    # These have no types.
    has_joined: Any = ray.is_initialized
    resources: Any = ray.cluster_resources
    if not has_joined():
        raise _prism.Error("executor: no cluster of Ray was joined; call ray.init() first")
    remote = ray.remote(max_retries=RETRIES)(_run_batch)
    workers = int(resources().get("CPU", 1))
    open_batches = [remote.remote(batch) for batch in _batches(designs, workers)]
    try:
        while open_batches:
            done, open_batches = ray.wait(open_batches)
            for rows, rest in ray.get(done):
                yield from rows
                open_batches.extend(remote.remote(batch) for batch in rest)
    finally:
        for batch in open_batches:
            ray.cancel(batch)


def _by_futures(executor: Any, designs: Sequence[str]) -> Iterator[str]:
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()
    open_futures = set()

    def submit(batches: Iterable[Sequence[str]]) -> None:
        for batch in batches:
            future = executor.submit(_run_batch, batch)
            open_futures.add(future)
            future.add_done_callback(done.put)

    failure: Exception | None = None
    try:
        # The executors of the standard library have this; workers of others are not known.
        workers = getattr(executor, "_max_workers", None) or os.cpu_count() or 1
        submit(_batches(designs, workers))
        while open_futures:
            future = done.get()
            open_futures.discard(future)
            try:
                rows, rest = future.result()
            except Exception as error:
                # The rows of designs that run or are done are kept, whatever order they come in.
                failure = failure or error
                for other in list(open_futures):
                    other.cancel()
            else:
                yield from rows
                if failure is None:
                    submit(rest)
    finally:
        for future in open_futures:
            future.cancel()
    if failure is not None:
        raise failure


def _study(
    study: Study | None,
    base: Mapping[str, Any] | None,
    grid: Mapping[str, Any] | None,
    random: Mapping[str, Any] | None,
    repeats: int | None,
) -> tuple[str, str, str, dict[str, str]]:
    """The name, the folder and the text of the file of a sweep, and devices that it names."""
    devices: dict[str, str] = {}
    parts = {"base": base, "grid": grid, "random": random, "repeats": repeats}
    given = {key: value for key, value in parts.items() if value is not None}
    if study is None:
        # Workers on other machines or in other folders have the same path.
        return "sweep", os.getcwd(), toml_of(_with_devices(given, devices)), devices
    if given:
        raise _prism.Error(f"{next(iter(given))}: it is a part of the study; leave out one of both")
    if isinstance(study, Mapping):
        return "sweep", os.getcwd(), toml_of(_with_devices(study, devices)), devices
    path = pathlib.Path(study)
    try:
        return str(path), str(path.parent.absolute()), path.read_text(encoding="utf-8"), devices
    except (OSError, UnicodeDecodeError) as error:
        raise _prism.Error(f"{path}: it cannot be read: {error}") from error


def _own_name(drive: Mapping[str, Any] | str | os.PathLike[str]) -> str:
    """The ``name`` of a drive that is a dictionary or a text, as a part of the name of a file."""
    name: Any = None
    if isinstance(drive, Mapping):
        name = drive.get("name")
    else:
        # A text that cannot be used is refused with the place of the setting.
        with contextlib.suppress(_prism.Error):
            name = json.loads(_prism.device_fields("device", os.fsdecode(drive))).get("name")
    shown = "device" if name is None else str(name)
    return "".join("-" if char == "/" or not char.isprintable() else char for char in shown)


def _with_devices(parts: Mapping[str, Any], devices: dict[str, str]) -> dict[str, Any]:
    """The parts of a study, in which names stand for drives that are dictionaries or texts.

    Their texts are added to ``devices``.
    """

    def named(drive: Any) -> Any:
        if not isinstance(drive, Mapping) and not is_text(drive):
            return drive
        _, text = name_and_text("device", drive)
        assert text is not None
        own = _own_name(drive)
        for number in itertools.count(1):
            name = f"<{own}>.toml" if number == 1 else f"<{own} {number}>.toml"
            if devices.setdefault(name, text) == text:
                return name

    def in_any(value: Any) -> Any:
        """A drive, a list of them, or a range of ``random``, which has them in ``choice``."""
        if isinstance(value, Mapping) and "choice" in value:
            return {**value, "choice": in_any(value["choice"])}
        if isinstance(value, (str, os.PathLike, Mapping)) or not isinstance(value, Iterable):
            return named(value)
        return [named(drive) for drive in value]

    changed = dict(parts)
    for name, part in parts.items():
        if isinstance(part, Mapping) and "device" in part:
            changed[name] = {**part, "device": in_any(part["device"])}
    return changed
