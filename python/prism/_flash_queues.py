"""Commands in flight on a flash device, and clocks of its shares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

from . import _prism
from ._common import Buffer
from ._prism import FlashError


class Address(NamedTuple):
    """A page of a share; calls on a block ignore ``page``."""

    channel: int = 0
    lun: int = 0
    block: int = 0
    page: int = 0


class Completion(NamedTuple):
    """A command that was completed."""

    tag: Any
    """What was passed with the command."""
    end_ns: int
    """When it was complete, in the time of the share; 0 on a device without timing."""
    error: str | None
    """Why it failed; ``None`` if it did not."""


class Closing:
    """Closes what it is at the end of a ``with`` block."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Timed(Closing):
    """The clock of a share."""

    _native: _prism.RawLevel | _prism.FunctionLevel | _prism.PolicyLevel

    @property
    def is_timed(self) -> bool:
        """Whether operations take time."""
        return self._native.time(None)[0]

    @property
    def now_ns(self) -> int:
        """The share's clock, which stands still on a device without timing."""
        return self._native.time(None)[1]

    def pass_time(self, ns: int) -> None:
        """Lets time pass for the share; in real time it waits."""
        self._native.time(ns)


class _Queue(Closing):
    """Commands in flight. A tag is any object by which the caller knows a command again.

    The memory of a command belongs to it until it is completed: a read fills a writable buffer, and
    a write takes its bytes from one without a copy (``bytes``, which may not be changed, are copied).
    """

    def __init__(self, native: _prism.CommandQueue) -> None:
        self._native = native
        self._tags: dict[int, Any] = {}
        self._next = 0

    def _number(self, tag: object) -> int:
        self._next += 1
        self._tags[self._next] = tag
        return self._next

    def _submitted(self, number: int, call: Any, *arguments: Any) -> None:
        try:
            call(*arguments, number)
        except BaseException:
            del self._tags[number]
            raise

    def _completion(self, found: tuple[int, int, str | None] | None) -> Completion | None:
        if found is None:
            return None
        number, end_ns, error = found
        return Completion(self._tags.pop(number), end_ns, error)

    def sync(self, tag: object = None) -> None:
        """Submits that everything written before is made durable."""
        self._submitted(self._number(tag), self._native.sync)

    def poll(self) -> Completion | None:
        """The next completion, if there is one, without waiting."""
        return self._completion(self._native.poll())

    def complete(self) -> Completion | None:
        """Waits for the next completion; ``None`` if no command is in flight."""
        return self._completion(self._native.complete())

    def wait(self, timeout_ns: int | None = None) -> bool:
        """Waits until there is a completion to take; returns whether there is one."""
        return self._native.wait(timeout_ns)

    def fileno(self) -> int:
        """A file descriptor for event loops; raises ``FlashError`` if the device has none.

        It becomes readable when a command completes. Before each sleep, ``poll`` until ``None``: that
        submits the last commands, and completions for which no disk was needed do not make it
        readable. It changes when another thread takes over the queue. Devices in memory, with the
        engine ``portable``, or in virtual time have none. A sleep on it can end early with
        ``InterruptedError`` or without an event: poll and sleep again.
        """
        found = self._native.event_fd()
        if found is None:
            raise FlashError("commands of this device are complete when they are submitted; poll")
        return found

    def __len__(self) -> int:
        return len(self._native)

    def __iter__(self) -> Iterator[Completion]:
        """The completions of all commands in flight, in their order."""
        while (completion := self.complete()) is not None:
            yield completion

    def close(self) -> None:
        """Waits for the commands in flight, whose completions are lost."""
        self._native.close()


class BlockQueue(_Queue):
    """Commands on pages and blocks in flight, at the raw or the function level."""

    def read(
        self, at: Address, buffer: Buffer, *, offset: int = 0, tag: object = None
    ) -> None:
        """Submits a read into a buffer; at the function level, of whole pages."""
        self._submitted(self._number(tag), self._native.read_pages, at, offset, buffer)

    def write(
        self, at: Address, data: Buffer, *, oob: bytes = b"", tag: object = None
    ) -> None:
        """Submits a write: a page at the raw level, whole pages at the function level."""
        self._submitted(self._number(tag), self._native.write_pages, at, data, oob)

    def erase(self, at: Address, *, tag: object = None) -> None:
        """Submits an erase of a block; at the function level, a trim."""
        self._submitted(self._number(tag), self._native.erase, at)


class PolicyQueue(_Queue):
    """Commands on addresses in flight."""

    def read(self, at: int, buffer: Buffer, *, tag: object = None) -> None:
        """Submits a read into a buffer."""
        self._submitted(self._number(tag), self._native.read, at, buffer)

    def write(self, at: int, data: Buffer, *, handle: int = 0, tag: object = None) -> None:
        """Submits a write, as data of a placement handle."""
        self._submitted(self._number(tag), self._native.write, at, data, handle)

    def trim(self, at: int, length: int, *, tag: object = None) -> None:
        """Submits a trim of whole units."""
        self._submitted(self._number(tag), self._native.trim, at, length)
