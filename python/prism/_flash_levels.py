"""The levels of the flash library: raw and function level, ranges of addresses, objects, keys."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from . import _prism
from ._common import Buffer, count_of
from ._flash_queues import Address, BlockQueue, Closing, PolicyQueue, Timed


class Range(NamedTuple):
    """A range of the policy level: its addresses, and how much of it holds data."""

    begin: int
    end: int
    mapped: int


class _Blocks(Timed):
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
        return self._native.read_container(self.name, offset, length)

    def read_into(self, offset: int, buffer: Buffer) -> None:
        """Reads into a writable buffer."""
        self._native.read_container_into(self.name, offset, buffer)

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


class Policy(Timed):
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

        ``mapping`` is ``page``, ``block``, or ``hybrid``: block-level with up to
        ``group_log_blocks`` log blocks for each group of ``group_blocks``. ``cleaning`` is
        ``greedy``, ``fifo``, ``cost-benefit`` or ``lru``; ``over_provisioning`` is in percent, or ``None`` for all that is left.
        """
        groups = (group_blocks, group_log_blocks)
        handles = count_of("handles", handles, least=1, most=2**32 - 1)
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


class Objects(Closing):
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
        size = max(self.size(id) - count_of("offset", offset), 0)
        most = size if length is None else count_of("length", length)
        buffer = bytearray(min(most, size))
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


class _Part(Collection[bytes]):
    """The keys or the values of a store. It shows what the store has, and can be iterated again."""

    def __init__(
        self, store: KeyValue, place: int, begin: bytes | None, end: bytes | None
    ) -> None:
        self._store, self._place, self._begin, self._end = store, place, begin, end

    def __iter__(self) -> Iterator[bytes]:
        return (item[self._place] for item in self._store.items(self._begin, self._end))

    def __len__(self) -> int:
        if self._begin is None and self._end is None:
            return len(self._store)
        return sum(1 for _ in self)

    def __contains__(self, one: object) -> bool:
        return any(own == one for own in self)


class KeyValue(Closing):
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
        """Keys and values from ``begin`` up to but excluding ``end``, some at a time.

        ``dict(store.items())`` copies the store with one pass; ``dict(store)`` reads each value by
        its key.
        """
        after = False
        while found := self._native.scan(begin, after, end, 1000):
            yield from found
            begin, after = found[-1][0], True

    def keys(self, begin: bytes | None = None, end: bytes | None = None) -> Collection[bytes]:
        """The keys from ``begin`` up to but excluding ``end``, in their order."""
        return _Part(self, 0, begin, end)

    def values(self, begin: bytes | None = None, end: bytes | None = None) -> Collection[bytes]:
        """The values of these keys, in the order of the keys."""
        return _Part(self, 1, begin, end)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.keys())

    def flush(self) -> None:
        """Makes everything durable."""
        self._native.flush()

    def close(self) -> None:
        """Closes the store; what was not flushed is lost."""
        self._native.close()
