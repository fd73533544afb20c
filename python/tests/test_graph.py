"""Graphs: values of algorithms against definitions."""

from __future__ import annotations

import pathlib
import random

import polars
import pytest

import prism
from prism import graph


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, set[tuple[int, int]]]:
    """A random undirected graph of two parts, and its edges."""
    sample = random.Random(1)
    edges = set()
    for part in (0, 1000):
        for vertex in range(1, 200):
            other = sample.randrange(vertex)
            edges.add((part + other, part + vertex))
    folder = tmp_path_factory.mktemp("graph")
    text = "".join(f"{a} {b}\n" for a, b in sorted(edges))
    (folder / "edges.txt").write_text(text)
    made = graph.ingest(folder / "edges.txt", folder / "graph.prism")
    assert made["vertices"] == 400 and made["edges"] == len(edges)
    return str(folder / "graph.prism"), edges


def by_vertex(values: graph.Values) -> dict[int, object]:
    frame = polars.DataFrame(values.values)
    return dict(zip(frame["vertex"], frame["value"], strict=True))


def test_components_levels_degrees_and_ranks(store: tuple[str, set[tuple[int, int]]]) -> None:
    path, edges = store
    parts = by_vertex(graph.run("wcc", path))
    assert all(label == (0 if vertex < 1000 else 1000) for vertex, label in parts.items())
    near: dict[int, set[int]] = {}
    for a, b in edges:
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    levels, level = {0: 0}, [0]
    while level:
        level = [b for a in level for b in near[a] if b not in levels and not levels.update(
            {b: levels[a] + 1})]  # type: ignore[func-returns-value]
    found = by_vertex(graph.run("bfs", path, source=0))
    assert {v: x for v, x in found.items() if x is not None} == levels and len(found) == 400
    degrees = by_vertex(graph.run("degrees", path))
    assert degrees == {vertex: len(others) for vertex, others in near.items()}
    ranks = graph.run("pagerank", path, iterations=30)
    assert ranks["rounds"] == 30 and "pagerank" in repr(ranks)
    assert sum(by_vertex(ranks).values()) == pytest.approx(1)  # type: ignore[arg-type]


def test_bad_input_is_named(
    store: tuple[str, set[tuple[int, int]]], tmp_path: pathlib.Path
) -> None:
    path, _ = store
    bad = tmp_path / "bad.txt"
    bad.write_text("1 2\n3 x\n")

    def check(message: str, call: object) -> None:
        with pytest.raises(prism.Error) as error:
            call()  # type: ignore[operator]
        assert message in str(error.value)

    check("bad.txt:2: ", lambda: graph.ingest(bad, tmp_path / "g.prism"))
    check("formats are edges", lambda: graph.ingest(bad, tmp_path / "g.prism", format="x"))
    check("threads: 0 is not", lambda: graph.ingest(bad, tmp_path / "g.prism", threads=0))
    check("algorithms are pagerank", lambda: graph.run("rank", path))
    check("wcc has no use for --source", lambda: graph.run("wcc", path, source=1))
    check("damping: 2 is not", lambda: graph.run("pagerank", path, damping=2.0))
    check("nowhere.prism", lambda: graph.run("wcc", "nowhere.prism"))
    assert not (tmp_path / "g.prism").exists()
