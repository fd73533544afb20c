"""The simulator of caches."""

from __future__ import annotations

import pathlib

import polars
import pytest

import prism

ETC = {"keys": 200000, "requests": 100000, "zipf": 0.8, "sets": 0.1}


def test_sizes_and_engines_are_rows() -> None:
    options = {"slab": "64KiB", "memory": "2MiB", "size": ["8MiB", "64MiB"]}
    result = prism.simulate_cache(etc=ETC, engine=["raw", "stock"], **options)  # type: ignore[arg-type]
    rows = polars.DataFrame(result.rows)
    assert list(zip(rows["engine"], rows["flash_bytes"], strict=True)) == [
        ("raw", 8 << 20), ("stock", 8 << 20), ("raw", 64 << 20), ("stock", 64 << 20)
    ]
    assert (rows["gets"] + rows["sets"] + rows["deletes"] == 100000).all()
    small, large = rows["hit_ratio"][0], rows["hit_ratio"][2]
    assert 0 < small < large < 1
    assert set(result.charts) == {"Hit ratio", "Write amplification"}
    again = prism.simulate_cache(
        etc="keys=200000,requests=100000,zipf=0.8,sets=0.1", engine=["raw", "stock"], **options
    )  # type: ignore[arg-type]
    assert again.json == result.json


def test_a_trace_is_read(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "trace.csv"
    lines = [f"{number},{number % 50},1000,get" for number in range(1000)]
    path.write_text("time,key,size,op\n" + "\n".join(lines) + "\n")
    result = prism.simulate_cache(path, engine="raw", size="64MiB")
    assert result["rows"][0]["gets"] == 1000
    assert result["rows"][0]["hit_ratio"] == pytest.approx(0.95)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "trace: name a trace, or give etc"),
        ({"etc": ETC, "engine": "row"}, "engines are raw"),
        ({"etc": ETC, "size": "1MiB"}, "too small for engine raw"),
        ({"etc": ETC, "size": "1"}, "size: "),
        ({"etc": ETC, "slab": "5KiB"}, "give a power of two"),
        ({"etc": ETC, "spare": 0}, "spare: give a number from 1 to 90"),
        ({"etc": {"keys": 0}}, "etc: keys"),
        ({"etc": {"keys": 1e30}}, "etc: keys"),
        ({"etc": {"requests": 0}}, "etc: requests"),
        ({"etc": ETC, "engine": []}, "give at least one engine"),
        ({"etc": ETC, "size": []}, "give at least one engine and one size"),
        ({"etc": ETC, "seed": -1}, "seed: -1 is out of range"),
        ({"trace": "nowhere.csv"}, "nowhere.csv: "),
    ],
)
def test_bad_arguments_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(prism.Error) as error:
        prism.simulate_cache(**options)  # type: ignore[arg-type]
    assert message in str(error.value)
