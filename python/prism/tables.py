"""Checks, calculations and published results: commands whose result is tables."""

from __future__ import annotations

import numbers
from collections.abc import Iterable

from . import _prism
from ._common import (
    PathLike,
    Progress,
    Size,
    count_of,
    path_of,
    progress_of,
    seed_of,
    several,
    size_of,
    text_of,
)
from ._prism import Table
from .results import Result, table_of_rows


class Validation(Result):
    """The simulation compared with theory and data sheets."""

    @property
    def checks(self) -> Table:
        """A row for each check: what was expected, what was simulated, whether it passed."""
        return table_of_rows(self["checks"])

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return bool(self["failed"] == 0)


def validate(
    only: str | None = None, *, seed: int = 1, progress: bool | Progress | None = None
) -> Validation:
    """Compares the simulation with theory, other simulators and data sheets, on all cores.

    ``only`` selects checks whose names contain it, as ``prism validate --only`` does. A failed check
    is a row, not an exception. Ctrl-C ends it when the checks that have begun are done.
    """
    return Validation(_prism.validate(only, seed_of(seed), progress_of(progress)))


class Cleaning(Result):
    """What freeing a block costs: the keys are those of ``prism calc cleaning --json``."""

    @property
    def rows(self) -> Table:
        """A row for each utilization: of a victim of average utilization, and of the emptiest."""
        return table_of_rows(self["rows"])


def calc_cleaning(
    utilization: str | float | Iterable[str | float] = ("50%", "60%", "70%", "80%", "90%", "95%"),
    *,
    pages_per_block: int = 128,
    seed: int = 1,
    progress: bool | Progress | None = None,
) -> Cleaning:
    """The cost of a free block by utilization of the drive, as ``prism calc cleaning`` computes it.

    >>> import prism
    >>> victim = prism.calc_cleaning(0.8)["rows"][0]["average_victim"]
    >>> round(victim["write_amplification"], 3)
    5.0
    """
    if isinstance(utilization, numbers.Real):
        utilization = str(utilization)
    shares = several("utilization", "a share or several", utilization)
    texts = [text_of(share) for share in shares]
    pages = count_of("pages_per_block", pages_per_block, least=1, most=2**32 - 1)
    return Cleaning(_prism.calc_cleaning(texts, pages, seed_of(seed), progress_of(progress)))


def calc_lifetime(
    capacity: Size,
    rate: str,
    write_amplification: float,
    *,
    cycles: int | None = None,
    cell: str | None = None,
) -> Result:
    """The lifetime of a drive: size x cycles / (write amplification x rate).

    The endurance is ``cycles`` or that of a ``cell``: ``slc``, ``mlc``, ``tlc`` or ``qlc``.

    >>> import prism
    >>> life = prism.calc_lifetime("1TB", "100MB/s", 4, cycles=10_000)
    >>> round(life["days"])
    289
    """
    size = size_of("capacity", capacity)
    cycles = None if cycles is None else count_of("cycles", cycles, most=2**32 - 1)
    return Result(_prism.calc_lifetime(size, cycles, cell, write_amplification, rate))


def papers() -> dict[str, str]:
    """The publications whose results ``reproduce`` repeats."""
    return dict(_prism.papers())


def reproduce(
    paper: str,
    *,
    traces: PathLike = "samples",
    scale: str = "full",
    seed: int = 1,
    progress: bool | Progress | None = None,
) -> Result:
    """Repeats the results of a publication and compares them, as ``prism reproduce`` does.

    ``papers()`` lists them. ``traces`` is the folder of the traces of ``unwritten-contract``, or of
    the recordings of ext4 and Btrfs for ``sfs``; ``scale`` is ``full`` or ``quarter``. Ctrl-C ends it when the parts that have begun are done.
    """
    folder = path_of("traces", traces)
    return Result(_prism.reproduce(paper, folder, scale, seed_of(seed), progress_of(progress)))
