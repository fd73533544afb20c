"""What the tests share."""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Callable, Iterator

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


@pytest.fixture
def turn() -> Iterator[None]:
    """Waits until no other test of this machine captures or mounts. Tests of the command compare
    the state of the kernel before and after, and lock the same file
    (``crates/cli/tests/it/common/loop_disk.rs``)."""
    name = f"prism-tests-{os.getuid()}.lock"
    with open(pathlib.Path(tempfile.gettempdir(), name), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def command() -> str:
    """The path of the command ``prism``."""
    path = os.environ.get("PRISM_COMMAND")
    if path is None:
        pytest.skip("the command was not built")
    return path


@pytest.fixture(scope="session")
def by_command(command: str) -> Callable[..., dict[str, object]]:
    """A function that runs a command and returns its JSON."""

    def run(*arguments: str) -> dict[str, object]:
        all_of_it = [command, *arguments, "--json", "-"]
        done = subprocess.run(all_of_it, check=False, stdout=subprocess.PIPE)
        found: dict[str, object] = json.loads(done.stdout)
        return found

    return run
