"""What the tests share."""

from __future__ import annotations

import pathlib

import pytest

import prism

SAMPLES = pathlib.Path(__file__).parents[2] / "samples"


@pytest.fixture(scope="session")
def sample() -> str:
    """The path of a trace of SQLite on ext4."""
    return str(SAMPLES / "ext4-sqlite-wal.ftrace.zst")


@pytest.fixture(scope="session")
def trace(sample: str) -> prism.Trace:
    """That trace, its application only."""
    return prism.read_trace(sample, phase="app")
