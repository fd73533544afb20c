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

from typing import Any, NamedTuple

from . import _prism
from ._common import DeviceLike, PathLike, Size, count_of, path_of, size_of
from ._flash_levels import Container, Function, KeyValue, Objects, Policy, Range, Raw
from ._flash_queues import Address, BlockQueue, Closing, Completion, PolicyQueue
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


class Device(Closing):
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
        chosen = _geometry(geometry, fields)
        return cls(_prism.FlashDevice.create(path_of("path", path), chosen, session))

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
        return cls(_prism.FlashDevice.open(path_of("path", path), session))

    def allocate(self, name: str, capacity: Size, *, over_provisioning: int = 25) -> Share:
        """A new share of at least this capacity, ``"64MiB"`` or bytes, in whole LUNs.

        The name has 1 to 255 bytes and no control characters.
        ``over_provisioning`` is in percent of the capacity.
        """
        size = size_of("capacity", capacity)
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
    drive = None if timing is None else name_and_text("timing", timing)
    return {
        "timing": drive,
        "real_time": real_time,
        "engine": engine,
        "depth": count_of("depth", depth, least=1, most=2**32 - 1),
        "preallocate": preallocate,
        "read_only": read_only,
    }


def _geometry(geometry: Geometry | None, fields: dict[str, int]) -> dict[str, int | None]:
    if geometry is not None and not isinstance(geometry, Geometry):
        raise TypeError(f"geometry: a Geometry is expected, not {type(geometry).__name__}")
    chosen = (geometry or Geometry())._asdict()
    for name, value in fields.items():
        if name not in chosen:
            known = ", ".join(chosen)
            raise _prism.Error(f"{name}: a geometry has no such field; fields are {known}")
        chosen[name] = value
    return chosen


class Share(Closing):
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
