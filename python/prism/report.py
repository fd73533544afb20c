"""Reports on traces."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from . import _prism
from ._common import (
    DeviceLike,
    PathLike,
    Progress,
    Size,
    names_of,
    optional_path,
    paths_of,
    progress_of,
)
from ._prism import Table
from .device import device_options, name_and_text, presets
from .results import Result, table_of_rows
from .trace import Trace, read_trace


class Report(Result):
    """A trace on a drive: ``report["rules"]`` and so on are the keys of ``prism report --json``."""

    def __init__(self, native: _prism.Results, trace: Trace) -> None:
        super().__init__(native)
        self.trace = trace

    @property
    def rules(self) -> Table:
        """A row for each rule of the contract, with its score, its verdict and its figures."""
        rows = []
        for name, rule in self["rules"].items():
            rest = {key: value for key, value in rule.items() if key != "offenders"}
            rows.append({"rule": name, **rest})
        return table_of_rows(rows)

    @property
    def offenders(self) -> Table:
        """A row for each process, file, range and so on that breaks a rule, with its share."""
        return table_of_rows([
            {"rule": name, **offender}
            for name, rule in self["rules"].items()
            for offender in rule.get("offenders") or []
        ])

    @property
    def advice(self) -> Table:
        """A row for each design rule, with its verdict and its advice."""
        return table_of_rows(self["advice"])

    @property
    def what_ifs(self) -> Table:
        """A row for each change that was simulated, with the figures before and after."""
        return table_of_rows(self["what_if"])

    @property
    def terms(self) -> Table:
        """A row for each assumption about storage, and whether it holds on this drive."""
        return table_of_rows(self["terms"])

    def __repr__(self) -> str:
        wa = self["result"]["write_amplification"]
        return f"<prism.Report on {self.trace.name}: write amplification {wa}>"


def _drive_of(against: object) -> tuple[str, str | None] | None:
    """The drive that a report is compared with, if it is one and not a trace."""
    if isinstance(against, Report):
        raise TypeError("against: a trace or a drive is expected; of this report, pass against.trace")
    if not isinstance(against, (str, os.PathLike, Mapping)):
        return None
    name, text = name_and_text("against", against)
    if text is not None or _prism.is_device(name):
        return name, text
    if not os.path.exists(name):
        near = _prism.near_presets(name) or f"; presets are {', '.join(presets())}"
        raise _prism.Error(f"against: there is no trace, device file or preset called {name}{near}")
    return None


def report(
    trace: Trace | PathLike | Iterable[PathLike],
    *,
    device: DeviceLike = "dc-tlc",
    capacity: Size | None = None,
    state: str | PathLike = "filled",
    save_state: PathLike | None = None,
    faults: str | None = None,
    wear: int | None = None,
    retention: str | None = None,
    set: Mapping[str, object] | None = None,
    pace: str = "open",
    passes: str | int = "steady",
    seed: int = 1,
    what_if: str | Iterable[str] = "all",
    layout: PathLike | None = None,
    against: Trace | DeviceLike | Iterable[PathLike] | None = None,
    requests: bool = False,
    progress: bool | Progress | None = None,
) -> Report:
    """Replays a trace on a drive, scores it by the rules of the contract, and simulates fixes.

    The arguments are those of ``prism report`` (``docs/reports.md``); ``set`` is a dictionary, such
    as ``{"ftl.victim": "fifo"}``. ``against`` is another trace, or its file or files, or
    another drive, which is described as ``device`` is. With ``requests=True`` the report has a row for
    each request.

    Raises ``prism.Error`` with the message of the command if the input cannot be used.
    """
    shown = progress_of(progress)
    if isinstance(trace, Report):
        raise TypeError("trace: a trace or its files are expected; of a report, pass report.trace")
    if not isinstance(trace, Trace):
        trace = read_trace(trace, progress=shown if shown is not None else False)
    drive = _drive_of(against)
    if drive is not None or against is None:
        other = None
    elif isinstance(against, Trace):
        other = against._native
    else:
        files = paths_of("against", against)
        if not files:
            raise _prism.Error("against: name at least one file")
        other = read_trace(files, progress=shown if shown is not None else False)._native
    options = {
        "pace": pace,
        "passes": str(passes),
        "seed": seed,
        "what_if": ",".join(names_of("what_if", what_if)) or "none",
        "layout": optional_path("layout", layout),
        "requests": requests,
    }
    chosen = device_options(
        device, capacity=capacity, state=state, save_state=save_state, faults=faults, wear=wear,
        retention=retention, set=set,
    )
    native = _prism.report(trace._native, chosen, options, other, drive, shown)
    return Report(native, trace)
