"""Jobs with fio options, and traces, on simulated drives."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, overload

from . import _prism
from ._common import (
    DeviceLike,
    PathLike,
    Progress,
    Size,
    optional_text,
    progress_of,
    several,
    truth_of,
)
from ._prism import Table
from .device import device_options
from .report import Report, report
from .results import Result, table_of_rows
from .trace import Trace

Job: TypeAlias = "Mapping[str, object]"
Jobs: TypeAlias = "str | os.PathLike[str] | Job | Iterable[Job]"


class Simulation(Result):
    """Jobs on a drive: ``result["jobs"]`` and so on are the keys of ``prism sim --json``."""

    @property
    def jobs(self) -> Table:
        """A row for each job, with its rates and latencies."""
        return table_of_rows(self["jobs"])

    @property
    def fio(self) -> dict[str, Any]:
        """The result with the keys of fio 3, with every latency that occurred (``json+``)."""
        text = self._native.fio_json
        result: dict[str, Any] = json.loads(text) if text is not None else {}
        return result

    def __repr__(self) -> str:
        names = ", ".join(job["name"] for job in self["jobs"])
        wa = self["result"]["write_amplification"]
        return f"<prism.Simulation of {names}: write amplification {wa}>"


def _option(name: str, value: object) -> str:
    value = truth_of(value)
    if isinstance(value, bool):
        value = int(value)
    return f"--{name}={value}"


def _arguments(job: Job, number: int) -> list[str]:
    """A job as arguments of fio: the name comes first, as it begins the job."""
    options = dict(job)
    name = options.pop("name", f"job{number}")
    return [f"--name={name}", *(_option(key, value) for key, value in options.items())]


_WORKLOADS = "a job file, a trace, or a dictionary of fio options or a list of them"


def _jobs(workload: object) -> list[Job]:
    """Several jobs."""
    jobs: list[Job] = []
    for job in several("workload", _WORKLOADS, workload):
        if isinstance(job, Mapping):
            jobs.append(job)
        else:
            what = f"in a list, dictionaries of fio options are expected, not {type(job).__name__}"
            raise TypeError(f"workload: {what}")
    return jobs


@overload
def simulate(
    workload: Trace,
    *,
    device: DeviceLike = "dc-tlc",
    capacity: Size | None = None,
    state: str | PathLike = "filled",
    save_state: PathLike | None = None,
    faults: str | None = None,
    wear: int | None = None,
    retention: str | None = None,
    set: Mapping[str, object] | None = None,
    seed: int = 1,
    requests: bool = False,
    pace: str = "open",
    passes: str | int = "steady",
    progress: bool | Progress | None = None,
) -> Report: ...
@overload
def simulate(
    workload: Jobs | None = None,
    *,
    device: DeviceLike = "dc-tlc",
    capacity: Size | None = None,
    state: str | PathLike = "filled",
    save_state: PathLike | None = None,
    faults: str | None = None,
    wear: int | None = None,
    retention: str | None = None,
    set: Mapping[str, object] | None = None,
    seed: int = 1,
    over_provisioning: float | str | None = None,
    until_read_only: bool = False,
    charts: bool = False,
    requests: bool = False,
    pace: str = "open",
    passes: str | int = "steady",
    progress: bool | Progress | None = None,
    **options: object,
) -> Simulation: ...
def simulate(
    workload: Trace | Jobs | None = None,
    *,
    device: DeviceLike = "dc-tlc",
    capacity: Size | None = None,
    state: str | PathLike = "filled",
    save_state: PathLike | None = None,
    faults: str | None = None,
    wear: int | None = None,
    retention: str | None = None,
    set: Mapping[str, object] | None = None,
    seed: int = 1,
    over_provisioning: float | str | None = None,
    until_read_only: bool = False,
    charts: bool = False,
    requests: bool = False,
    pace: str = "open",
    passes: str | int = "steady",
    progress: bool | Progress | None = None,
    **options: object,
) -> Report | Simulation:
    """Runs jobs with fio options, or a trace, on a simulated drive, as ``prism sim`` does.

    ``workload`` is the path or the text of a job file, a dictionary of fio options
    (``docs/spec/fio-options.md``), a list of them, or a ``Trace``. Further arguments are fio
    options, for one job: ``prism.simulate(rw="randwrite", bs="4k", iodepth=32)``. ``pace`` and
    ``passes`` are for a trace only, ``over_provisioning``, ``until_read_only`` and ``charts`` for jobs
    only. ``over_provisioning`` is the effective share, such as 0.07 or ``"7%"``, that the drive gets by
    more or fewer blocks: the axis ``op`` of ``prism sim --sweep``.

    With ``requests=True`` the result has a row for each measured request, with ``charts=True`` its
    page has charts; a run without both is faster.

    Raises ``prism.Error`` with the message of the command if the input cannot be used.
    """
    if isinstance(workload, Trace):
        unused = [*options, *(["until_read_only"] if until_read_only else []),
                  *(["charts"] if charts else []),
                  *(["over_provisioning"] if over_provisioning is not None else [])]
        if unused:
            raise _prism.Error(f"{unused[0]}: it is for jobs, and this is a trace; leave it out")
        return report(
            workload, device=device, capacity=capacity, state=state, save_state=save_state,
            faults=faults, wear=wear, retention=retention, set=set, pace=pace, passes=passes,
            seed=seed, what_if="none", requests=requests, progress=progress,
        )
    if pace != "open" or passes != "steady":
        raise _prism.Error("pace, passes: they are for a trace, and these are jobs; leave them out")
    arguments: list[str] = []
    texts: list[tuple[str, str]] = []
    if isinstance(workload, str) and "\n" in workload:
        texts.append(("jobs", workload))
    elif isinstance(workload, (str, os.PathLike)):
        arguments.append(os.fsdecode(workload))
    elif isinstance(workload, Mapping):
        arguments.extend(_arguments({**workload, **options}, 1))
        options = {}
    elif workload is not None:
        for number, job in enumerate(_jobs(workload), 1):
            arguments.extend(_arguments(job, number))
    if options:
        if workload is not None:
            raise _prism.Error(f"{next(iter(options))}: options of one job go with no other jobs")
        arguments.extend(_arguments(options, 1))
    chosen = device_options(
        device, capacity=capacity, state=state, save_state=save_state, faults=faults, wear=wear,
        retention=retention, set=set,
    )
    plan = {
        "arguments": arguments,
        "texts": texts,
        "seed": seed,
        "over_provisioning": optional_text(over_provisioning),
        "until_read_only": until_read_only,
        "charts": charts,
        "requests": requests,
    }
    return Simulation(_prism.simulate(plan, chosen, progress_of(progress)))
