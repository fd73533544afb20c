"""Captures of this system, where it allows them."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import polars
import pytest

import prism

pytestmark = pytest.mark.usefixtures("turn")


def begin() -> prism.Capture:
    """A capture of every disk, or a skipped test that says why."""
    try:
        return prism.capture()
    except prism.Error as error:
        pytest.skip(f"capture: {error}")


def test_a_capture_is_a_trace(tmp_path: pathlib.Path) -> None:
    with begin() as capture:
        assert capture.backend in {"bpf", "ftrace", "blk"}
        with pytest.raises(prism.Error, match="the capture is running"):
            _ = capture.trace
        capture.mark("load")
        with open(tmp_path / "data", "wb") as file:
            file.write(os.urandom(1 << 20))
            os.fsync(file.fileno())
        assert "PRISM_CAPTURE" in capture.environ
    trace = capture.trace
    assert capture.stop() is trace and capture.lost_events == 0
    assert capture.backend in trace.info["format"]
    assert polars.DataFrame(trace).height == len(trace)


def test_a_capture_that_is_forgotten_leaves_nothing_behind() -> None:
    capture = begin()
    socket = pathlib.Path(capture.environ["PRISM_CAPTURE"])
    assert socket.exists()
    del capture
    assert not socket.exists()


def test_bad_arguments_are_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(prism.Error, match="backend: \"x\" is unknown; known are bpf, ftrace, blk"):
        prism.capture(backend="x")
    plain = tmp_path / "file"
    plain.write_text("no disk")
    with pytest.raises(prism.Error, match="no block device"):
        prism.capture(plain)


def test_ctrl_c_ends_a_capture() -> None:
    """An exception in the block stops it, too."""
    begin().stop()
    code = "import prism\nwith prism.capture() as c:\n    raise KeyboardInterrupt"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert b"KeyboardInterrupt" in done.stderr
