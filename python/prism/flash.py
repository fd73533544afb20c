"""The user-level flash library: a device that applications share, each at the level that it wants.

>>> import prism
>>> device = prism.flash.Device.memory(blocks_per_lun=32)
>>> with device.allocate("mine", "16MiB") as share, share.key_value() as store:
...     store[b"key"] = b"value"
...     store.flush()
...     store[b"key"]
b'value'

Data is passed by the buffer protocol: ``write`` reads from the memory of ``bytes``, a ``bytearray``
or a NumPy array, ``read_into`` writes to it. Calls release the interpreter's lock, so threads of
Python use the device at once. ``docs/library.md`` describes the levels.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple, Self

from . import _prism
from ._common import Buffer, DeviceLike, PathLike
from ._prism import FlashError
from .device import name_and_text

__all__ = [
    "Address",
    "BlockQueue",
    "Completion",
    "Container",
    "Device",
    "FlashError",
    "Function",
    "Geometry",
    "KeyValue",
    "Objects",
    "Policy",
    "PolicyQueue",
    "Range",
    "Raw",
    "Share",
    "ShareInfo",
    "Wear",
]


class Geometry(NamedTuple):
    """The geometry of a device."""

    channels: int = 4
    """Channels (buses)."""
    luns_per_channel: int = 2
    """LUNs (dies) on each channel."""
    blocks_per_lun: int = 64
    """Blocks of a LUN."""
    pages_per_block: int = 64
    """Pages of a block."""
    page_size: int = 4096
    """Bytes of a page."""
    oob_size: int = 64
    """Out-of-band bytes of a page."""
    max_open_blocks: int | None = None
    """Blocks that may be partly written at once."""


class Address(NamedTuple):
    """A page of a share; calls on a block ignore ``page``."""

    channel: int = 0
    lun: int = 0
    block: int = 0
    page: int = 0


class ShareInfo(NamedTuple):
    """A share, as a device lists it."""

    name: str
    luns: int
    over_provisioning_luns: int
    attached: bool


class Wear(NamedTuple):
    """How evenly a device is worn: mean erase counts of LUNs."""

    max: float
    mean: float
    min: float
    exchanges: int


class Range(NamedTuple):
    """A range of the policy level: its addresses, and how much of it holds data."""

    begin: int
    end: int
    mapped: int


class Completion(NamedTuple):
    """A command that was completed."""

    tag: Hashable
    """What was passed with the command."""
    end_ns: int
    """When it was complete, in the time of the share; 0 on a device without timing."""
    error: str | None
    """Why it failed; ``None`` if it did not."""


class _Closing:
    """Closes what it is at the end of a ``with`` block."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Device(_Closing):
    """A flash device in memory or in a file, which shares divide among them.

    It is closed at the end of a ``with`` block; what a level has not flushed is lost then.
    """

    def __init__(self, native: _prism.FlashDevice) -> None:
        self._native = native

    @classmethod
    def memory(
        cls,
        geometry: Geometry | None = None,
        *,
        timing: DeviceLike | None = None,
        real_time: bool = False,
        **fields: int,
    ) -> Device:
        """An empty device in memory: ``Device.memory(channels=2)``.

        With ``timing``, a drive as for ``prism.simulate``, operations take as long as those of its
        flash: in virtual time, or with ``real_time`` also for the caller.
        """
        session = _session(timing=timing, real_time=real_time)
        return cls(_prism.FlashDevice.memory(_geometry(geometry, fields), session))

    @classmethod
    def create(
        cls,
        path: PathLike,
        geometry: Geometry | None = None,
        *,
        timing: DeviceLike | None = None,
        real_time: bool = False,
        engine: str = "best",
        depth: int = 64,
        preallocate: bool = False,
        **fields: int,
    ) -> Device:
        """An empty device in a new file, which grows as pages are programmed.

        ``engine`` is ``uring`` with direct I/O, ``portable``, or the best of both; ``depth`` limits
        the pages in flight of each writer; ``preallocate`` writes the whole file, which makes syncs
        faster. ``timing`` and ``real_time`` are those of ``memory``.
        """
        session = _session(timing, real_time, engine, depth, preallocate)
        fspath = os.fspath(path)
        return cls(_prism.FlashDevice.create(fspath, _geometry(geometry, fields), session))

    @classmethod
    def open(
        cls,
        path: PathLike,
        *,
        timing: DeviceLike | None = None,
        real_time: bool = False,
        engine: str = "best",
        depth: int = 64,
        read_only: bool = False,
    ) -> Device:
        """The device of a file; it recovers from a loss of power or a killed process.

        The arguments are those of ``create``; with ``read_only`` nothing in the file is changed.
        """
        session = _session(timing, real_time, engine, depth, read_only=read_only)
        return cls(_prism.FlashDevice.open(os.fspath(path), session))

    def allocate(self, name: str, capacity: str | int, *, over_provisioning: int = 25) -> Share:
        """A new share of at least this capacity, ``"64MiB"`` or bytes, in whole LUNs.

        ``over_provisioning`` is in percent of the capacity.
        """
        size = f"{capacity}B" if isinstance(capacity, int) else capacity
        return Share(self._native.allocate(name, size, over_provisioning), name)

    def attach(self, name: str) -> Share:
        """A share that was allocated before."""
        return Share(self._native.attach(name), name)

    def release(self, name: str) -> None:
        """Gives the LUNs of a share back: its data is lost."""
        self._native.release(name)

    @property
    def shares(self) -> list[ShareInfo]:
        """The shares, in the order in which they were allocated."""
        return [ShareInfo(*share) for share in self._native.shares()]

    @property
    def geometry(self) -> Geometry:
        """The geometry of the device, spare blocks and tables included."""
        return Geometry(*self._native.geometry())

    @property
    def lun_capacity(self) -> int:
        """Bytes of a LUN that a share can use."""
        return self._native.free()[0]

    @property
    def free_luns(self) -> int:
        """LUNs that belong to no share."""
        return self._native.free()[1]

    @property
    def wear(self) -> Wear:
        """How evenly it is worn."""
        return Wear(*self._native.wear())

    def close(self) -> None:
        """Closes it: a file is synced. Calls on its levels fail from then on."""
        self._native.close()


def _session(
    timing: DeviceLike | None = None,
    real_time: bool = False,
    engine: str = "best",
    depth: int = 64,
    preallocate: bool = False,
    read_only: bool = False,
) -> dict[str, Any]:
    drive = None if timing is None else name_and_text(timing)
    return {
        "timing": drive,
        "real_time": real_time,
        "engine": engine,
        "depth": depth,
        "preallocate": preallocate,
        "read_only": read_only,
    }


def _geometry(geometry: Geometry | None, fields: dict[str, int]) -> dict[str, int | None]:
    chosen = (geometry or Geometry())._asdict()
    for name, value in fields.items():
        if name not in chosen:
            known = ", ".join(chosen)
            raise _prism.Error(f"{name}: a geometry has no such field; fields are {known}")
        chosen[name] = value
    return chosen


class Share(_Closing):
    """A share of a device, in which one level is opened."""

    def __init__(self, native: _prism.FlashShare, name: str) -> None:
        self._native = native
        self.name = name

    def raw(self) -> Raw:
        """Opens the raw level: pages and blocks, under the rules of flash."""
        return Raw(_prism.RawLevel(self._native))

    def function(self) -> Function:
        """Opens the function level: the library allocates and erases blocks."""
        return Function(_prism.FunctionLevel(self._native))

    def policy(self) -> Policy:
        """Opens the policy level: ranges of addresses with a mapping and a cleaning."""
        return Policy(_prism.PolicyLevel(self._native))

    def objects(self) -> Objects:
        """Opens the object level: byte arrays that are placed by their lifetime."""
        return Objects(_prism.ObjectLevel(self._native))

    def key_value(self) -> KeyValue:
        """Opens the level of keys and values."""
        return KeyValue(_prism.KeyValueStore(self._native))

    def close(self) -> None:
        """Gives the share up, if no level was opened in it; a level gives it up when it is closed."""
        self._native.close()


class _Timed(_Closing):
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


class _Queue(_Closing):
    """Commands in flight. A tag is any object by which the caller knows a command again.

    The memory of a command belongs to it until it is completed: a read fills a writable buffer, and
    a write takes its bytes from one without a copy (``bytes``, which may not be changed, are copied).
    """

    def __init__(self, native: _prism.CommandQueue) -> None:
        self._native = native
        self._tags: dict[int, Hashable] = {}
        self._next = 0

    def _number(self, tag: Hashable) -> int:
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

    def sync(self, tag: Hashable = None) -> None:
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

        It is readable when a command completes. ``poll`` until ``None`` before each sleep.
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
        self, at: Address, buffer: Buffer, *, offset: int = 0, tag: Hashable = None
    ) -> None:
        """Submits a read into a buffer; at the function level, of whole pages."""
        self._submitted(self._number(tag), self._native.read_pages, at, offset, buffer)

    def write(
        self, at: Address, data: Buffer, *, oob: bytes = b"", tag: Hashable = None
    ) -> None:
        """Submits a write: a page at the raw level, whole pages at the function level."""
        self._submitted(self._number(tag), self._native.write_pages, at, data, oob)

    def erase(self, at: Address, *, tag: Hashable = None) -> None:
        """Submits an erase of a block; at the function level, a trim."""
        self._submitted(self._number(tag), self._native.erase, at)


class PolicyQueue(_Queue):
    """Commands on addresses in flight."""

    def read(self, at: int, buffer: Buffer, *, tag: Hashable = None) -> None:
        """Submits a read into a buffer."""
        self._submitted(self._number(tag), self._native.read, at, buffer)

    def write(self, at: int, data: Buffer, *, handle: int = 0, tag: Hashable = None) -> None:
        """Submits a write, as data of a placement handle."""
        self._submitted(self._number(tag), self._native.write, at, data, handle)

    def trim(self, at: int, length: int, *, tag: Hashable = None) -> None:
        """Submits a trim of whole units."""
        self._submitted(self._number(tag), self._native.trim, at, length)


class _Blocks(_Timed):
    """What the levels of blocks have in common."""

    _native: _prism.RawLevel | _prism.FunctionLevel

    def queue(self, depth: int = 32) -> BlockQueue:
        """A queue of at most ``depth`` commands; each thread has one of its own.

        The share is free again when the level and its queues are closed.
        """
        return BlockQueue(self._native.queue(depth))

    def write_vectored(self, at: Address, parts: Sequence[Buffer]) -> None:
        """Writes buffers of whole pages one after the other into a block."""
        self._native.write_vectored(at, list(parts))

    @property
    def page_size(self) -> int:
        """Bytes of a page."""
        return self._native.geometry()[3]

    @property
    def pages_per_block(self) -> int:
        """Pages of a block."""
        return self._native.geometry()[2]

    @property
    def channels(self) -> list[int]:
        """The LUNs of the share on each channel."""
        return self._native.geometry()[0]

    def sync(self) -> None:
        """Makes everything durable that was written."""
        self._native.sync()

    def close(self) -> None:
        """Closes the level; the share can be attached again."""
        self._native.close()


class Raw(_Blocks):
    """Pages and blocks: the application maps, allocates, cleans and levels wear."""

    _native: _prism.RawLevel

    def __init__(self, native: _prism.RawLevel) -> None:
        self._native = native

    def blocks(self) -> Iterator[Address]:
        """The addresses of all blocks, LUN by LUN."""
        return (Address(*at) for at in self._native.blocks())

    def read_page(self, at: Address, length: int | None = None, *, offset: int = 0) -> bytes:
        """A page, or part of it."""
        return self._native.read_page(at, offset, self.page_size if length is None else length)

    def read_page_into(self, at: Address, buffer: Buffer, *, offset: int = 0) -> None:
        """Reads from a page into a writable buffer."""
        self._native.read_page_into(at, buffer, offset)

    def read_oob(self, at: Address, length: int) -> bytes:
        """The first out-of-band bytes of a page."""
        return self._native.read_oob(at, length)

    def write_page(self, at: Address, data: Buffer, oob: Buffer = b"") -> None:
        """Writes a page, the next of its block."""
        self._native.write_page(at, data, oob)

    def erase_block(self, at: Address) -> None:
        """Erases a block."""
        self._native.erase_block(at)

    def erase_blocks(self, blocks: Sequence[Address]) -> None:
        """Erases blocks, at the same time on a device with timing."""
        self._native.erase_blocks(list(blocks))

    def read_pages_into(self, pages: Sequence[Address], buffer: Buffer) -> None:
        """Reads pages, each anywhere, one after the other into a writable buffer."""
        self._native.read_pages_into(list(pages), buffer)

    def grow(self, luns: int) -> None:
        """Adds LUNs to the share, which get the next numbers."""
        self._native.grow(luns)

    def shrink(self, luns: int) -> None:
        """Gives back the last LUNs of the share, which have to be erased."""
        self._native.shrink(luns)

    def write_pointer(self, at: Address) -> int:
        """The page of the block that is to be written next."""
        return self._native.write_pointer(at)

    def erase_count(self, at: Address) -> int:
        """How often the block was erased."""
        return self._native.erase_count(at)


class Function(_Blocks):
    """Blocks that the library allocates, erases and levels; the application maps and cleans."""

    _native: _prism.FunctionLevel

    def __init__(self, native: _prism.FunctionLevel) -> None:
        self._native = native

    def allocate_block(self, channel: int | None = None) -> Address:
        """An erased block, of the channel with the least work unless one is named."""
        return Address(*self._native.allocate(channel, True)[0])

    def allocate_page(self, channel: int | None = None) -> Address:
        """The next page of an open block."""
        return Address(*self._native.allocate(channel, False)[0])

    def write(self, at: Address, data: Buffer) -> None:
        """Writes whole pages of one block, from its next page on."""
        self._native.write(at, data)

    def read(self, at: Address, length: int) -> bytes:
        """Reads whole pages of one block."""
        return self._native.read(at, length)

    def read_into(self, at: Address, buffer: Buffer) -> None:
        """Reads whole pages of one block into a writable buffer."""
        self._native.read_into(at, buffer)

    def trim_block(self, at: Address) -> None:
        """Trims a block, which is erased in the background."""
        self._native.trim(at, True)

    def trim_page(self, at: Address) -> None:
        """Trims a page; its block is erased when all of its pages are trimmed."""
        self._native.trim(at, False)

    def drain(self) -> None:
        """Waits until all trimmed blocks are erased."""
        self._native.drain()

    def allocated(self) -> list[Address]:
        """The allocated blocks, each with its next page to write."""
        return [Address(*at) for at in self._native.allocated()]

    def free(self, channel: int) -> int:
        """Erased blocks of a channel, over-provisioning included."""
        return self._native.free(channel)

    def set_over_provisioning(self, percent: int) -> int:
        """Changes the over-provisioning; returns its number of blocks."""
        return self._native.set_over_provisioning(percent)

    def wear_level(self, max_pairs: int, min_gap: int) -> int:
        """Exchanges the data of pairs of blocks whose erase counts differ by more than ``min_gap``.

        Returns how many pairs were exchanged, at most ``max_pairs``.
        """
        return self._native.wear_level(max_pairs, min_gap)


class Container:
    """A named part of a range, for data of one lifetime; its addresses begin at 0."""

    def __init__(
        self, native: _prism.PolicyLevel, name: str, begin: int, end: int, lifetime: str
    ) -> None:
        self._native = native
        self.name = name
        self.begin = begin
        """Its first address in the range."""
        self.size = end - begin
        """Its bytes."""
        self.lifetime = lifetime

    def read(self, offset: int, length: int) -> bytes:
        """Reads."""
        data = bytearray(length)
        self.read_into(offset, data)
        return bytes(data)

    def read_into(self, offset: int, buffer: Buffer) -> None:
        """Reads into a writable buffer."""
        self._native.read_container(self.name, offset, buffer)

    def write(self, offset: int, data: Buffer) -> None:
        """Writes, as data of its lifetime."""
        self._native.write_container(self.name, offset, data)

    def trim(self, offset: int, length: int) -> None:
        """Trims whole units."""
        self._native.trim_container(self.name, offset, length)

    def delete(self) -> None:
        """Deletes it with its data, durably."""
        self._native.delete_container(self.name)

    def __repr__(self) -> str:
        return f"<prism.flash.Container {self.name}: {self.size} bytes, {self.lifetime}>"


class Policy(_Timed):
    """Ranges of addresses, each with a mapping and a cleaning policy."""

    _native: _prism.PolicyLevel

    def __init__(self, native: _prism.PolicyLevel) -> None:
        self._native = native

    @property
    def unit(self) -> int:
        """Bytes of a mapping unit: ranges and trims are whole units."""
        return self._native.units()[0]

    @property
    def block_bytes(self) -> int:
        """Bytes of data in a block."""
        return self._native.units()[1]

    def configure(
        self,
        begin: int,
        end: int,
        *,
        mapping: str = "page",
        cleaning: str = "greedy",
        over_provisioning: int | None = 25,
        handles: int = 1,
        group_blocks: int = 4,
        group_log_blocks: int = 1,
    ) -> None:
        """Makes a range of the addresses from ``begin`` up to but excluding ``end``.

        ``mapping`` is ``page``, ``block``, or ``hybrid``: block-level with up to ``group_log_blocks``
        log blocks for each group of ``group_blocks``. ``cleaning`` is ``greedy``, ``fifo``, ``cost-benefit``
        or ``lru``; ``over_provisioning`` is in percent, or ``None`` for all that is left.
        """
        groups = (group_blocks, group_log_blocks)
        self._native.configure(begin, end, mapping, cleaning, over_provisioning, handles, groups)

    def remove(self, begin: int) -> None:
        """Removes an empty range."""
        self._native.remove(begin)

    @property
    def ranges(self) -> list[Range]:
        """The ranges, by address."""
        return [Range(*of) for of in self._native.ranges()]

    def read(self, at: int, length: int) -> bytes:
        """Reads within a range; bytes that were never written are zero."""
        return self._native.read(at, length)

    def read_into(self, at: int, buffer: Buffer) -> None:
        """Reads within a range into a writable buffer."""
        self._native.read_into(at, buffer)

    def write(self, at: int, data: Buffer, *, handle: int = 0) -> None:
        """Writes within a range, as data of a placement handle."""
        self._native.write(at, data, handle)

    def read_vectored(self, parts: Sequence[tuple[int, Buffer]]) -> None:
        """Reads from several addresses at once, each into its writable buffer."""
        self._native.read_vectored(list(parts))

    def write_vectored(self, at: int, parts: Sequence[Buffer]) -> None:
        """Writes buffers one after the other, from an address on."""
        self._native.write_vectored(at, list(parts))

    def queue(self, depth: int = 32) -> PolicyQueue:
        """A queue of at most ``depth`` commands; each thread has one of its own.

        The share is free again when the level and its queues are closed.
        """
        return PolicyQueue(self._native.queue(depth))

    def create_container(
        self, range: int, name: str, size: int, *, lifetime: str = "unknown"
    ) -> Container:
        """Makes a container in the range that begins at the address ``range``.

        ``lifetime`` is ``unknown``, ``short``, ``medium``, ``long`` or ``extreme``: data of one
        lifetime is stored in the same blocks.
        """
        self._native.create_container(range, name, size, lifetime)
        return self.containers[name]

    @property
    def containers(self) -> dict[str, Container]:
        """The containers of all ranges by name."""
        return {of[0]: Container(self._native, *of) for of in self._native.containers()}

    def trim(self, at: int, length: int) -> None:
        """Trims whole units: they read as zeros from then on."""
        self._native.trim(at, length)

    def flush(self) -> None:
        """Makes everything durable that was written and trimmed."""
        self._native.flush()

    def idle(self, program_units: int) -> bool:
        """Cleans in idle time; returns whether there was anything to do."""
        return self._native.idle(program_units)

    def close(self) -> None:
        """Closes the level; what was not flushed is lost."""
        self._native.close()


class Objects(_Closing):
    """Byte arrays with attributes."""

    def __init__(self, native: _prism.ObjectLevel) -> None:
        self._native = native

    @property
    def capacity(self) -> int:
        """Bytes for all objects together."""
        return self._native.capacity()[0]

    @property
    def free(self) -> int:
        """Bytes that are free."""
        return self._native.capacity()[1]

    def create(
        self, *, lifetime: str = "unknown", cold: bool = False, priority: bool = False
    ) -> int:
        """An empty object; returns its id.

        ``lifetime`` is ``unknown``, ``short``, ``medium``, ``long`` or ``extreme``: objects of one
        lifetime are placed in the same blocks.
        """
        return self._native.create(lifetime, cold, priority)

    def list(self) -> dict[int, int]:
        """The size of each object by its id."""
        return dict(self._native.list())

    def size(self, id: int) -> int:
        """The size of an object."""
        return self._native.size(id)

    def read(self, id: int, length: int | None = None, *, offset: int = 0) -> bytes:
        """Bytes of an object: all from ``offset`` on, or at most ``length``."""
        size = max(self.size(id) - offset, 0)
        buffer = bytearray(size if length is None else min(length, size))
        read = self.read_into(id, buffer, offset=offset)
        return bytes(memoryview(buffer)[:read])

    def read_into(self, id: int, buffer: Buffer, *, offset: int = 0) -> int:
        """Reads into a writable buffer; returns the number of bytes."""
        return self._native.read_into(id, offset, buffer)

    def write(self, id: int, data: Buffer, *, offset: int = 0) -> None:
        """Writes from ``offset`` on; the object grows as needed."""
        self._native.write(id, offset, data)

    def append(self, id: int, data: Buffer) -> int:
        """Appends; returns where the data begins."""
        return self._native.append(id, data)

    def truncate(self, id: int, size: int) -> None:
        """Changes the size."""
        self._native.truncate(id, size)

    def delete(self, id: int) -> None:
        """Deletes an object."""
        self._native.delete(id)

    def flush(self) -> None:
        """Makes everything durable."""
        self._native.flush()

    def close(self) -> None:
        """Closes the store; what was not flushed is lost."""
        self._native.close()


class KeyValue(_Closing):
    """Keys and values, in the order of keys; it works as a dictionary of bytes."""

    def __init__(self, native: _prism.KeyValueStore) -> None:
        self._native = native

    @property
    def key_max(self) -> int:
        """The longest key, in bytes."""
        return self._native.stats()[2]

    def __setitem__(self, key: Buffer, value: Buffer) -> None:
        self._native.set(key, value)

    def __getitem__(self, key: Buffer) -> bytes:
        value = self._native.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __delitem__(self, key: Buffer) -> None:
        if not self._native.delete(key):
            raise KeyError(key)

    def __contains__(self, key: Buffer) -> bool:
        return self._native.get(key) is not None

    def __len__(self) -> int:
        return self._native.stats()[0]

    def get(self, key: Buffer, default: bytes | None = None) -> bytes | None:
        """The value of a key, or ``default``."""
        value = self._native.get(key)
        return default if value is None else value

    def items(
        self, begin: bytes | None = None, end: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values from ``begin`` up to but excluding ``end``, some at a time."""
        after = False
        while found := self._native.scan(begin, after, end, 1000):
            yield from found
            begin, after = found[-1][0], True

    def __iter__(self) -> Iterator[bytes]:
        return (key for key, _ in self.items())

    def flush(self) -> None:
        """Makes everything durable."""
        self._native.flush()

    def close(self) -> None:
        """Closes the store; what was not flushed is lost."""
        self._native.close()
