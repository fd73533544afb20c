"""Graphs: values of algorithms against definitions."""

from __future__ import annotations

import pathlib
import random
from collections.abc import Callable

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
        following = []
        for vertex in level:
            for other in near[vertex] - levels.keys():
                levels[other] = levels[vertex] + 1
                following.append(other)
        level = following
    found = by_vertex(graph.run("bfs", path, source=0))
    assert {v: x for v, x in found.items() if x is not None} == levels and len(found) == 400
    degrees = by_vertex(graph.run("degrees", path))
    assert degrees == {vertex: len(others) for vertex, others in near.items()}
    ranks = graph.run("pagerank", path, iterations=30)
    assert ranks["rounds"] == 30 and "pagerank" in repr(ranks)
    assert sum(by_vertex(ranks).values()) == pytest.approx(1)  # type: ignore[arg-type]


def test_edges_from_a_frame_and_values_in_files(tmp_path: pathlib.Path) -> None:
    """The columns of a Parquet file are named, and what is written is what is returned."""
    edges = [(0, 1, 0.5), (1, 2, 2.0), (0, 3, 4.0), (7, 8, 1.0)]
    frame = polars.DataFrame(edges, schema=["to", "from", "length"], orient="row")
    frame.write_parquet(tmp_path / "edges.parquet")
    path = tmp_path / "roads.prism"
    made = graph.ingest(
        tmp_path / "edges.parquet", path, weighted=True, columns=["from", "to", "length"]
    )
    assert (made["vertices"], made["edges"]) == (6, 4)
    found = graph.run("sssp", path, source=0, output=tmp_path / "far.parquet", histogram=True)
    assert by_vertex(found) == {0: 0.0, 1: 0.5, 2: 2.5, 3: 4.0, 7: None, 8: None}
    assert found.top[0] == (3, 4.0)
    found.top.clear()
    assert found.top[0] == (3, 4.0)
    parts = graph.run("wcc", path, top=1)
    assert parts.top == [(0, 4)] and graph.run("wcc", path).top == []
    far = polars.read_parquet(tmp_path / "far.parquet")
    assert far.filter(polars.col("value").is_finite()).rows() == [
        (vertex, value) for vertex, value in by_vertex(found).items() if value is not None
    ]
    assert found["histogram"]["unreached"] == 2
    counts = polars.DataFrame(found.histogram)
    assert counts.rows() == [(0.0, None, 1), (0.5, 1.0, 1), (2.0, 4.0, 1), (4.0, 8.0, 1)]
    graph.run("wcc", path, output=tmp_path / "parts.csv")
    assert polars.read_csv(tmp_path / "parts.csv")["value"].to_list() == [0, 0, 0, 0, 7, 7]
    with pytest.raises(prism.Error, match="histogram: there is none"):
        _ = graph.run("wcc", path).histogram
    with pytest.raises(prism.Error, match="this is the store"):
        graph.run("wcc", path, output=path)
    with pytest.raises(prism.Error, match="there is no column .* columns are to, from, length"):
        graph.ingest(tmp_path / "edges.parquet", tmp_path / "x.prism", columns="a,b")


def test_figures_are_those_of_the_command(
    store: tuple[str, set[tuple[int, int]]],
    by_command: Callable[..., dict[str, object]],
    tmp_path: pathlib.Path,
) -> None:
    path, _ = store
    ours = graph.run("pagerank", path, iterations=3, histogram=True, top=2).json
    options = ["--iterations", "3", "--histogram", "--top", "2"]
    theirs = by_command("graph", "run", "pagerank", path, *options)
    times = {"seconds", "edges_per_second"}
    assert ours.keys() == theirs.keys()
    assert {k: v for k, v in ours.items() if k not in times} == {
        k: v for k, v in theirs.items() if k not in times
    }
    edges = tmp_path / "edges.txt"
    edges.write_text("1 2\n2 3\n3 3\n")
    made = graph.ingest(edges, tmp_path / "a.prism", keep_self_loops=False)
    output = str(tmp_path / "b.prism")
    command = by_command("graph", "ingest", str(edges), "-o", output, "--self-loops", "drop")
    assert made | {"store": ""} == command | {"store": ""}
    with pytest.raises(prism.Error, match="this is the input"):
        graph.ingest(tmp_path / "a.prism", tmp_path / "a.prism")
    bare = graph.run("wcc", path, values=False)
    assert bare["vertices"] == 400
    with pytest.raises(prism.Error, match="values=False"):
        _ = bare.values


def test_a_store_is_described_checked_and_exported(
    store: tuple[str, set[tuple[int, int]]],
    by_command: Callable[..., dict[str, object]],
    tmp_path: pathlib.Path,
) -> None:
    path, edges = store
    assert graph.info(path) == by_command("graph", "info", path)
    assert graph.verify(path) == by_command("graph", "verify", path)
    assert graph.verify(path)["damage"] == []
    output = tmp_path / "edges.txt"
    graph.export(path, output)
    lines = [line.split("\t") for line in output.read_text().splitlines() if line[0] != "#"]
    assert {(int(a), int(b)) for a, b in lines} == edges and len(lines) == len(edges)
    damaged = tmp_path / "damaged.prism"
    content = bytearray(pathlib.Path(path).read_bytes())
    content[content.index(b"PRGRAPH1\x01\0\0\0") + 70] ^= 1
    damaged.write_bytes(content)
    assert "no root" in graph.verify(damaged)["damage"][0]
    with pytest.raises(prism.Error, match="no root"):
        graph.info(damaged)
    with pytest.raises(prism.Error, match="this is the store"):
        graph.export(path, path)
    with pytest.raises(prism.Error, match="memory: "):
        graph.export(path, output, memory="x")


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
    check("wcc has no use for source=;", lambda: graph.run("wcc", path, source=1))
    check("name it by source=", lambda: graph.run("bfs", path))
    check("give more by memory=", lambda: graph.run("wcc", path, memory="1KiB"))
    check("iterations=0: there is", lambda: graph.run("pagerank", path, iterations=0))
    check("checkpoint=;", lambda: graph.run("wcc", path, checkpoint=1))
    check("asynchronous=True;", lambda: graph.run("wcc", path, asynchronous=True))
    check("leave weighted=True away", lambda: graph.ingest(bad, path + "x", format="adjacency", weighted=True))
    check("format=csv, or no columns=", lambda: graph.ingest(bad, path + "x", format="edges", columns="a,b"))
    check("for both ends", lambda: graph.ingest(bad, path + "x", columns=["a", "a"]))
    check("by output= that ends", lambda: graph.run("wcc", path, output=tmp_path / "x.foo"))
    check("damping: 2 is not", lambda: graph.run("pagerank", path, damping=2.0))
    check("nowhere.prism", lambda: graph.run("wcc", "nowhere.prism"))
    assert not (tmp_path / "g.prism").exists()


def test_a_graph_may_be_in_memory_or_on_a_simulated_drive(tmp_path: pathlib.Path) -> None:
    edges = tmp_path / "edges.txt"
    edges.write_text("".join(f"{at % 31} {at * 7 % 29}\n" for at in range(500)))
    store = tmp_path / "g.prism"
    graph.ingest(edges, store, directed=True, restart=True)
    expected = by_vertex(graph.run("pagerank", store, checkpoint=1))
    saved = graph.run("pagerank", store, checkpoint=1)
    anew = graph.run("pagerank", store, checkpoint=1, restart=True)
    assert by_vertex(saved) == by_vertex(anew) == expected
    assert saved["edges_streamed"] == 0 < anew["edges_streamed"]
    with pytest.raises(ValueError, match="restart"):
        graph.run("pagerank", edges=edges, restart=True)
    options = {"directed": True}
    for ignored in ("threads", "restart"):
        with pytest.raises(TypeError, match=ignored):
            graph.run("pagerank", edges=edges, edge_options={**options, ignored: 1})
    memory = graph.run("pagerank", edges=edges, edge_options=options)
    assert by_vertex(memory) == expected
    assert memory["device"]["kind"] == "memory"
    drive = graph.run("pagerank", edges=edges, edge_options=options, preset="dc-tlc")
    assert by_vertex(drive) == expected
    assert drive["device"]["kind"] == "dc-tlc"
    assert drive["device"]["ingest"]["virtual_seconds"] > 0
    with pytest.raises(prism.Error, match="edges"):
        graph.run("pagerank")
    with pytest.raises(prism.Error, match="edges"):
        graph.run("pagerank", store, edges=edges)
    with pytest.raises(prism.Error, match="preset"):
        graph.run("pagerank", edges=edges, preset="none")
    with pytest.raises(ValueError, match="preset"):
        graph.run("pagerank", tmp_path / "g.prism", preset="dc-tlc")
    with pytest.raises(prism.Error, match="memory"):
        graph.ingest(edges, "memory")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.txt", "g.prism"]


def test_an_interrupted_ingest_names_arguments_that_differ(tmp_path: pathlib.Path) -> None:
    class Enough(Exception):
        pass

    class Stops:
        """A display that ends the ingest after what was read was saved."""

        def begin(self, label: str, things: str, total: int | None) -> None:
            pass

        def reached(self, done: int) -> None:
            if (tmp_path / "g.prism.ingest" / "state").exists():
                raise Enough

        def end(self, done: int) -> None:
            pass

    edges, store = tmp_path / "edges.txt", tmp_path / "g.prism"
    # Several pieces of input, of which the first ones are saved because they leave memory.
    edges.write_text("1 2\n" * (8 << 20))
    with pytest.raises(Enough):
        graph.ingest(edges, store, memory="64KiB", progress=Stops())
    with pytest.raises(prism.Error, match="it is with keep_duplicates=False; give the same"):
        graph.ingest(edges, store, memory="64KiB", keep_duplicates=True)
    made = graph.ingest(edges, store, memory="64KiB")
    assert (made["vertices"], made["edges"]) == (2, 1)
    assert not (tmp_path / "g.prism.ingest").exists()
