"""Captures: what this system asks of its disks while a program runs. They need root."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Self

from . import _prism
from ._common import PathLike, Size, paths_of, size_of
from .trace import Trace


class Capture:
    """A running capture, which is stopped at the end of a ``with`` block; then it has a ``trace``."""

    def __init__(self, native: _prism.CaptureSession) -> None:
        self._native = native
        self._trace: Trace | None = None
        self.backend = native.backend()
        """``bpf``, ``ftrace`` or ``blk``."""
        self.refused = dict(native.refused())
        """The backends that were tried before, and why they do not work here."""
        self.lost_events = 0
        """Events that the kernel dropped, known when it was stopped; a larger buffer helps."""

    @property
    def requests(self) -> int:
        """Requests and flushes seen so far."""
        return self._native.requests()

    @property
    def environ(self) -> dict[str, str]:
        """The environment for processes that mark phases: ``subprocess.run(..., env=c.environ)``."""
        name, value = self._native.variable()
        return {**os.environ, name: value}

    def mark(self, phase: str) -> None:
        """From now on requests belong to this phase."""
        self._native.mark(phase)

    def stop(self) -> Trace:
        """Ends it, and returns the trace."""
        if self._trace is None:
            native, self.lost_events = self._native.stop()
            self._trace = Trace(native)
        return self._trace

    @property
    def trace(self) -> Trace:
        """The trace, of a capture that was stopped."""
        if self._trace is None:
            raise _prism.Error("the capture is running; its trace is there when it was stopped")
        return self._trace

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def capture(
    devices: PathLike | Iterable[PathLike] = (),
    *,
    backend: str | None = None,
    buffer: Size = "16MiB",
) -> Capture:
    """Begins to record the requests to these disks, or to all, as ``prism capture`` does.

    ::

        with prism.capture() as capture:
            capture.mark("load")
            run_my_workload()
        prism.report(capture.trace)

    Raises ``prism.Error``, which says why, where the system does not allow it (it needs root).
    """
    disks = paths_of("devices", devices)
    if not disks and devices != ():
        raise _prism.Error("devices: name a disk, or leave it out to record all")
    return Capture(_prism.start_capture(disks, backend, size_of("buffer", buffer)))
