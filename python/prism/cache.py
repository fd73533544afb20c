"""Caches on flash, simulated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from . import _prism
from ._common import (
    PathLike,
    Progress,
    Size,
    names_of,
    optional_path,
    progress_of,
    size_of,
    sizes_of,
)
from ._prism import Table
from .results import Result, table_of_rows


class CacheSimulation(Result):
    """Caches on flash: the keys are those of ``prism cache simulate --json``."""

    @property
    def rows(self) -> Table:
        """A row for each size and engine."""
        return table_of_rows(self["rows"])


def simulate_cache(
    trace: PathLike | None = None,
    *,
    etc: str | Mapping[str, float] | None = None,
    engine: str | Iterable[str] = ("raw", "policy", "original"),
    size: Size | Iterable[Size] = "1GiB",
    spare: int = 20,
    max_writes: str | None = None,
    slab: Size = "1MiB",
    channels: int = 4,
    memory: Size = "16MiB",
    items: int | None = None,
    cycles: int = 3000,
    seed: int = 1,
    progress: bool | Progress | None = None,
) -> CacheSimulation:
    """Replays requests to caches of several engines and sizes, as ``prism cache simulate`` does.

    ``trace`` is a trace of a cache (``docs/cache.md``); instead of one, ``etc`` describes generated
    requests: ``{"keys": 1e6, "requests": 1e7, "zipf": 0.9}``. ``max_writes`` is a rate, such as
    ``"50MB/s"``.

    Raises ``prism.Error`` if the input cannot be used.
    """
    if isinstance(etc, Mapping):
        etc = ",".join(f"{name}={value}" for name, value in etc.items())
    options = {
        "engines": names_of("engine", engine),
        "sizes": sizes_of("size", size),
        "spare": spare,
        "max_writes": max_writes,
        "slab": size_of("slab", slab),
        "channels": channels,
        "memory": size_of("memory", memory),
        "items": items,
        "cycles": cycles,
        "seed": seed,
    }
    path = optional_path("trace", trace)
    native = _prism.simulate_caches(path, etc, options, progress_of(progress))
    return CacheSimulation(native)
