"""Graphs on flash: larger than memory, in a store of one file (``docs/graph.md``).

::

    prism.graph.ingest("soc-pokec.txt.gz", "pokec.prism", directed=True)
    ranks = prism.graph.run("pagerank", "pokec.prism", iterations=20)
    polars.DataFrame(ranks.values).sort("value", descending=True).head()
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from . import _prism
from ._common import (
    PathLike,
    Progress,
    Size,
    check_names,
    names_of,
    optional_path,
    optional_size,
    path_of,
    progress_of,
    size_of,
)
from ._prism import Table
from .results import table_of_rows

__all__ = ["Values", "export", "info", "ingest", "run", "verify"]


class Values:
    """The result of an algorithm."""

    def __init__(self, figures: dict[str, Any], values: Table | None) -> None:
        self.json = figures
        """Figures of the run, with the keys of ``prism graph run --json``: ``rounds``,
        ``read_bytes``, and ``facts`` such as the number of components."""
        self._values = values

    @property
    def values(self) -> Table:
        """The columns ``vertex``, by its number in the input, and ``value``; null is a vertex that
        is not reached. Raises ``prism.Error`` after a run with ``values=False``.
        """
        if self._values is None:
            raise _prism.Error("values: there are none after a run with values=False")
        return self._values

    @property
    def top(self) -> list[tuple[int, int | float]]:
        """The vertices with the largest values, with their values.

        Of components and communities it is the labels of the largest ones, with their numbers of
        vertices, after a run with ``top=K``.
        """
        return [(vertex, number_of(value)) for vertex, value in self.json["top"]]

    @property
    def histogram(self) -> Table:
        """How many vertices have values from ``from`` to below ``below``, or exactly ``from``.

        Of components and communities it is how many have which sizes. Raises ``prism.Error`` after
        a run without ``histogram=True``.
        """
        histogram = self.json.get("histogram")
        if histogram is None:
            raise _prism.Error("histogram: there is none; run counts values with histogram=True")
        return table_of_rows(histogram["rows"])

    def __getitem__(self, key: str) -> Any:
        return self.json[key]

    def __repr__(self) -> str:
        algorithm, store = self.json["algorithm"], self.json["store"]
        return f"<prism.graph.Values: {algorithm} of {store}, {self.json['vertices']:,} vertices>"


def number_of(text: str) -> int | float:
    """The value in this text: a whole number, or one with a fraction or an exponent."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def ingest_options(
    *,
    directed: bool = False,
    weighted: bool = False,
    format: str | None = None,
    columns: str | Sequence[str] | None = None,
    vertices: PathLike | None = None,
    keep_duplicates: bool = False,
    keep_self_loops: bool = True,
    memory: Size = "1GiB",
    run_memory: Size | None = None,
    order: str = "degree",
    restart: bool = False,
    threads: int = 2,
) -> dict[str, Any]:
    """The options of ``ingest``, as the extension takes them."""
    names = None if columns is None else ",".join(names_of("columns", columns))
    return {
        "directed": directed,
        "weighted": weighted,
        "format": format,
        "columns": names,
        "vertices": optional_path("vertices", vertices),
        "keep_duplicates": keep_duplicates,
        "keep_self_loops": keep_self_loops,
        "memory": size_of("memory", memory),
        "run_memory": optional_size("run_memory", run_memory),
        "order": order,
        "restart": restart,
        "threads": threads,
    }


def ingest(
    edges: PathLike,
    store: PathLike,
    *,
    directed: bool = False,
    weighted: bool = False,
    format: str | None = None,
    columns: str | Sequence[str] | None = None,
    vertices: PathLike | None = None,
    keep_duplicates: bool = False,
    keep_self_loops: bool = True,
    memory: Size = "1GiB",
    run_memory: Size | None = None,
    order: str = "degree",
    restart: bool = False,
    threads: int = 2,
    progress: bool | Progress | None = None,
) -> dict[str, Any]:
    """Makes a store of a file of edges, as ``prism graph ingest`` does.

    Edges are text, Matrix Market, METIS, binary or Parquet (``docs/graph.md``); ``columns``
    names the columns of sources, targets and weights in CSV and Parquet. ``order`` is that of the
    vertices in the store: ``"degree"``, those with the most edges first, or ``"input"``.
    A graph that is there is replaced when the new one is complete. After an interruption the same
    call goes on where it was; ``restart=True`` begins anew. Returns the numbers of vertices
    and edges. Raises ``prism.Error``, which names the file and the line, if they cannot be read.
    """
    options = ingest_options(
        directed=directed,
        weighted=weighted,
        format=format,
        columns=columns,
        vertices=vertices,
        keep_duplicates=keep_duplicates,
        keep_self_loops=keep_self_loops,
        memory=memory,
        run_memory=run_memory,
        order=order,
        restart=restart,
        threads=threads,
    )
    made = _prism.graph_ingest(
        path_of("edges", edges), path_of("store", store), options, progress_of(progress)
    )
    result: dict[str, Any] = json.loads(made)
    return result


def run(
    algorithm: str,
    store: PathLike = "memory",
    *,
    edges: PathLike | None = None,
    edge_options: Mapping[str, Any] | None = None,
    preset: str | None = None,
    iterations: int | None = None,
    source: int | None = None,
    damping: float | None = None,
    tolerance: float | None = None,
    graphchi_compat: bool = False,
    asynchronous: bool = False,
    single_precision: bool = False,
    checkpoint: int | None = None,
    restart: bool = False,
    output: PathLike | None = None,
    top: int | None = None,
    histogram: bool = False,
    values: bool = True,
    memory: Size = "256MiB",
    threads: int = 2,
    progress: bool | Progress | None = None,
) -> Values:
    """Runs an algorithm on a store, as ``prism graph run`` does.

    Algorithms are ``pagerank``, ``ppr``, ``wcc``, ``bfs``, ``sssp``, ``cdlp``, ``lcc``,
    ``triangles``, ``kcore`` and ``degrees``. With ``output``, a file in the format of its extension
    (``.csv``, ``.parquet``, else lines with a tab), the values are written there too.
    ``single_precision`` keeps the values of PageRank in four bytes, with errors of about a
    millionth. ``restart`` begins anew, without the rounds that an earlier run saved. The table of
    ``values`` takes 16 bytes a vertex beyond the limit ``memory``; ``values=False`` leaves it out.
    Instead of a store, ``edges`` names a file of edges, and ``edge_options`` has arguments of
    ``ingest``: then the graph is in memory, or on a simulated drive of the kind ``preset``, until
    the end of the call, and ``json["device"]`` has what that device did.
    Raises ``prism.Error`` if the store or an option cannot be used.
    """
    options = {
        "iterations": iterations,
        "source": source,
        "damping": damping,
        "tolerance": tolerance,
        "graphchi_compat": graphchi_compat,
        "asynchronous": asynchronous,
        "single_precision": single_precision,
        "checkpoint": checkpoint,
        "restart": restart,
        "output": optional_path("output", output),
        "top": top,
        "histogram": histogram,
        "values": values,
        "memory": size_of("memory", memory),
        "threads": threads,
    }
    in_memory = None
    if restart and edges is not None:
        raise _prism.Error("restart: a graph in memory has no saved rounds; leave it out")
    check_names("edge_options", edge_options or {}, ingest, but=("restart", "threads", "progress"))
    if edges is not None:
        in_memory = (path_of("edges", edges), ingest_options(**(edge_options or {})), preset)
    elif edge_options is not None or preset is not None:
        raise _prism.Error("edge_options and preset are for a graph of edges")
    figures, table = _prism.graph_run(
        algorithm, path_of("store", store), options, in_memory, progress_of(progress)
    )
    return Values(json.loads(figures), table)


def info(store: PathLike) -> dict[str, Any]:
    """What the graph in a store is, and its space and wear, as ``prism graph info --json`` gives it.

    Raises ``prism.Error`` if there is none.
    """
    found: dict[str, Any] = json.loads(_prism.graph_info(path_of("store", store)))
    return found


def verify(store: PathLike, *, memory: Size = "1GiB") -> dict[str, Any]:
    """Reads all of a graph and checks it, as ``prism graph verify`` does.

    Returns ``segments`` and ``bytes`` that were read, and ``damage``, a list of texts, which is empty
    if the graph is whole. Raises ``prism.Error`` if there is no graph.
    """
    verified = _prism.graph_verify(path_of("store", store), size_of("memory", memory))
    found: dict[str, Any] = json.loads(verified)
    return found


def export(store: PathLike, output: PathLike, *, memory: Size = "1GiB") -> None:
    """Writes the edges of a graph to a file, as ``prism graph export`` does.

    A line is source, tab, target, and for a graph with weights tab, weight. An undirected edge is
    written once. Raises ``prism.Error`` if the store or the file cannot be used.
    """
    _prism.graph_export(path_of("store", store), path_of("output", output), size_of("memory", memory))
