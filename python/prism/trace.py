"""Traces: of any format that Prism reads, to Arrow and to the formats that it writes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NoReturn

from . import _prism
from ._common import (
    PathLike,
    Progress,
    Size,
    check_names,
    optional_path,
    optional_size,
    optional_text,
    path_of,
    paths_of,
    progress_of,
    size_of,
    sizes_of,
)


class Trace:
    """A trace that has been read: its records in order of time, and what is known of it.

    It exports itself as Arrow, with the columns of ``docs/spec/trace-parquet.md``, so that
    ``polars.DataFrame(trace)``, ``pyarrow.table(trace)`` and DuckDB take it. Each export makes its
    arrays anew; a trace of more than a million records is kept in a temporary file.
    """

    def __init__(self, native: _prism.Trace) -> None:
        self._native = native

    @property
    def info(self) -> dict[str, Any]:
        """What ``prism trace info --json`` reports of the trace."""
        result: dict[str, Any] = json.loads(self._native.info_json)
        return result

    @property
    def name(self) -> str:
        """The first of its files."""
        return self._native.name

    def __len__(self) -> int:
        return len(self._native)

    def __repr__(self) -> str:
        info = self.info
        return f"<prism.Trace {self.name}: {info['format']}, {len(self):,} records>"

    def __copy__(self) -> Trace:
        return Trace(self._native)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a trace cannot be pickled or copied deeply, as its records are outside of Python; use its "
            "files, write() it to one, or use a frame such as polars.DataFrame(trace)"
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def write(
        self, path: PathLike, *, to: str | None = None, progress: bool | Progress | None = None
    ) -> dict[str, Any]:
        """Writes the trace as ``parquet``, ``fio`` or ``mqsim``, by default by the extension.

        Returns what ``prism trace convert --json`` reports, also what the format cannot represent.
        """
        written = self._native.write(path_of("path", path), to, progress_of(progress))
        result: dict[str, Any] = json.loads(written)
        return result


def read_trace(
    paths: PathLike | Iterable[PathLike],
    *,
    format: str | None = None,
    map: PathLike | None = None,
    blkparse_format: str | None = None,
    block_size: Size | None = None,
    disorder: str | None = None,
    phase: str | None = None,
    source: str | None = None,
    progress: bool | Progress | None = None,
) -> Trace:
    """Reads a trace, of which the format is recognised by its content (``docs/formats.md``).

    The arguments are those of ``prism trace info``: ``format`` names the format; ``map`` is a TOML
    file that describes the columns of a text; ``phase`` and ``source`` select requests.

    Raises ``prism.Error``, which names the file and the line, if it cannot be read.
    """
    return Trace(
        _prism.read_trace(
            paths_of("paths", paths),
            format,
            optional_path("map", map),
            blkparse_format,
            optional_size("block_size", block_size),
            optional_text(disorder),
            phase,
            source,
            progress_of(progress),
        )
    )


def generate_trace(
    pattern: str,
    *,
    requests: int = 100_000,
    span: Size = "1GiB",
    align: Size = "4KiB",
    size: Size | Iterable[Size] = (),
    reads: float | None = None,
    discards: float | None = None,
    flush_every: int | None = None,
    arrival: str | None = None,
    seed: int = 1,
    progress: bool | Progress | None = None,
) -> Trace:
    """Makes a trace of a pattern and a seed, as ``prism trace generate`` does.

    ``pattern`` is ``uniform``, ``sequential``, ``zipf:1.2``, ``hotcold:20/80``, ``mixed`` or
    ``bursty``, which gives defaults for what is not given. ``size`` is a size or several with
    weights: ``["4KiB:7", "64KiB:3"]``; ``arrival`` is ``fixed:100us``, ``poisson:100us`` or
    ``bursts:10us/100ms/900ms``.

    >>> import prism
    >>> trace = prism.generate_trace("hotcold:20/80", requests=1000, reads=0.3)
    >>> len(trace)
    1000
    """
    options = {
        "pattern": pattern,
        "requests": requests,
        "span": size_of("span", span),
        "align": size_of("align", align),
        "sizes": size.split(",") if isinstance(size, str) else sizes_of("size", size),
        "reads": reads,
        "discards": discards,
        "flush_every": flush_every,
        "arrival": arrival,
        "seed": seed,
    }
    return Trace(_prism.generate_trace(options, progress_of(progress)))


def convert(
    trace: Trace | PathLike | Iterable[PathLike],
    output: PathLike,
    *,
    to: str | None = None,
    progress: bool | Progress | None = None,
    **select: Any,
) -> dict[str, Any]:
    """Writes a trace in another format, as ``prism trace convert`` does.

    ``select`` are arguments of ``read_trace``, if the trace is still to be read.
    """
    check_names("convert", select, read_trace, but=("progress",))
    if not isinstance(trace, Trace):
        trace = read_trace(trace, progress=progress, **select)
    elif select:
        raise _prism.Error(f"{next(iter(select))}: the trace has been read already; leave it out")
    return trace.write(output, to=to, progress=progress)
