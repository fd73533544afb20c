"""What several functions of the package share: types, conversions of arguments, progress."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias

from . import _prism

PathLike: TypeAlias = "str | os.PathLike[str]"

if sys.version_info >= (3, 12):
    from collections.abc import Buffer as Buffer
else:
    Buffer: TypeAlias = Any
    """An object with the buffer protocol: bytes, bytearray, memoryview, a NumPy array."""

DeviceLike: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"
"""A preset, the path of a device file, the text of one, or its fields as a dictionary."""


Size: TypeAlias = "str | int"
"""A number of bytes, or text with a unit: ``"64MiB"``, ``"1GB"``."""


class Progress(Protocol):
    """Shows the progress of long work. An exception of a method ends the work."""

    def begin(self, label: str, things: str, total: int | None) -> None:
        """A step begins, over ``total`` ``things``, if that is known."""

    def reached(self, done: int) -> None:
        """So much of the step is done; called some twenty times a second."""

    def end(self, done: int) -> None:
        """The step is over."""


class _Tqdm:
    """Shows progress by tqdm."""

    def __init__(self, bar: Any) -> None:
        self._new = bar
        self._bar: Any = None

    def begin(self, label: str, things: str, total: int | None) -> None:
        scale = things == "bytes"
        unit = "B" if scale else f" {things}"
        self._bar = self._new(
            desc=label.rstrip(":"), total=total, unit=unit, unit_scale=True,
            unit_divisor=1024 if scale else 1000, leave=False,
        )

    def reached(self, done: int) -> None:
        if self._bar is not None:
            self._bar.update(done - self._bar.n)

    def end(self, done: int) -> None:
        if self._bar is not None:
            self._bar.update(done - self._bar.n)
            self._bar.close()
            self._bar = None


def progress_of(progress: bool | Progress | None) -> Progress | None:
    """The object that shows progress.

    ``None`` shows it by tqdm, if that is installed and standard error is a terminal or this is a
    notebook; ``True`` always shows it and needs tqdm.
    """
    progress = truth_of(progress)
    if progress is False:
        return None
    if progress is not None and progress is not True:
        for method in ("begin", "reached", "end"):
            if not callable(getattr(progress, method, None)):
                what = "True, False, None or an object with the methods begin, reached and end"
                raise _unexpected("progress", what, progress)
        return progress
    if progress is None and not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        return None
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        if progress is True:
            raise
        return None
    return _Tqdm(tqdm)


def _unexpected(name: str, expected: str, value: object) -> TypeError:
    """The exception for an argument of a wrong type."""
    return TypeError(f"{name}: {expected} is expected, not {type(value).__name__}")


def path_of(name: str, path: PathLike) -> str:
    """The path that is the argument called ``name``."""
    if not isinstance(path, (str, os.PathLike)):
        raise _unexpected(name, "a path", path)
    return os.fsdecode(path)


def optional_path(name: str, path: PathLike | None) -> str | None:
    """The path that is the argument called ``name``, if it was given."""
    return None if path is None else path_of(name, path)


def paths_of(name: str, paths: PathLike | Iterable[PathLike]) -> list[str]:
    """The files that a path or several name."""
    return [path_of(name, path) for path in several(name, "a path or several", paths)]


def several(name: str, expected: str, values: Any) -> list[Any]:
    """One value, which may be text or a path, or several."""
    if isinstance(values, (str, os.PathLike)):
        return [values]
    # Dictionaries and results would give their keys.
    is_one = isinstance(values, (bytes, bytearray)) or hasattr(values, "keys")
    if is_one or not isinstance(values, Iterable):
        raise _unexpected(name, expected, values)
    return list(values)


def check_names(
    name: str, given: Iterable[str], function: Callable[..., Any], *, but: Iterable[str] = ()
) -> None:
    """Raises a ``TypeError`` if an argument that is ``given`` for ``function`` is none of its own.

    ``name`` is the argument or the function that the caller has used, and ``but`` are arguments that
    cannot be given there.
    """
    known = [one for one in function.__kwdefaults__ or () if one not in but]
    for one in given:
        if one not in known:
            raise TypeError(
                f"{name}: {one!r} is no argument of {function.__name__} that can be given here; these "
                f"are {', '.join(known)}"
            )


def names_of(name: str, values: str | Iterable[str]) -> list[str]:
    """One name or several."""
    names = several(name, "a name or several", values)
    for one in names:
        if not isinstance(one, str):
            raise _unexpected(name, "a name or several", one)
    return names


def truth_of(value: Any) -> Any:
    """``True`` or ``False`` for a truth value of NumPy, which is no ``bool``; any other value itself."""
    return bool(value) if getattr(getattr(value, "dtype", None), "kind", None) == "b" else value


def text_of(value: object) -> str:
    """A value of an option as its text: ``True`` is ``true``."""
    value = truth_of(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def optional_text(value: object) -> str | None:
    """A value as text, or none."""
    return None if value is None else text_of(value)


def size_of(name: str, size: Size) -> str:
    """A size as text with a unit; integers of NumPy are numbers, too."""
    if isinstance(size, str):
        return size
    try:
        return f"{operator.index(size)}B"
    except TypeError as error:
        raise _unexpected(name, 'a whole number of bytes, or text such as "64MiB"', size) from error


def optional_size(name: str, size: Size | None) -> str | None:
    """A size as text with a unit, if it was given."""
    return None if size is None else size_of(name, size)


def count_of(name: str, value: object, *, least: int = 0, most: int = sys.maxsize) -> int:
    """A whole number from ``least`` to ``most`` that is the argument called ``name``."""
    try:
        count = operator.index(value)  # type: ignore[arg-type]
    except TypeError as error:
        raise _unexpected(name, "a whole number", value) from error
    if count < least:
        raise _prism.Error(f"{name}: {count} is out of range; the least is {least}")
    if count > most:
        raise _prism.Error(f"{name}: {count} is out of range")
    return count


def seed_of(seed: object) -> int:
    """A seed: a whole number of 64 bits."""
    return count_of("seed", seed, most=2**64 - 1)


def sizes_of(name: str, sizes: Size | Iterable[Size]) -> list[str]:
    """One size or several."""
    if isinstance(sizes, str) or not isinstance(sizes, Iterable):
        return [size_of(name, sizes)]
    return [size_of(name, one) for one in several(name, "a size or several", sizes)]
