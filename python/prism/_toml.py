"""Dictionaries as TOML: files of sweeps and device files."""

from __future__ import annotations

import json
import math
import numbers
import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import _prism
from ._common import size_of, truth_of


def toml_of(parts: Mapping[str, Any]) -> str:
    """The text of a file with these keys and tables, in the order of the dictionaries."""
    tables = {name: part for name, part in parts.items() if isinstance(part, Mapping)}
    lines = [_line(name, value) for name, value in parts.items() if name not in tables]
    for name, part in tables.items():
        lines += [f"[{_text(name)}]", *(_line(key, value) for key, value in part.items())]
    return "\n".join(lines) + "\n"


def _line(name: str, value: object) -> str:
    return f"{_text(name)} = {_value(name, value)}"


def _text(text: str) -> str:
    """A string of JSON is one of TOML, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(name: str, value: object) -> str:
    """A value in TOML. Numbers of NumPy are numbers, and a capacity that is one has bytes."""
    if isinstance(value, Mapping):
        parts = (f"{_text(key)} = {_value(f'{name}.{key}', one)}" for key, one in value.items())
        return "{ " + ", ".join(parts) + " }"
    value = truth_of(value)
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        is_capacity = name == "capacity" or name.startswith("capacity.")
        return _text(size_of("capacity", int(value))) if is_capacity else str(int(value))
    if isinstance(value, numbers.Real) and math.isfinite(value):
        return repr(float(value))
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return "[" + ", ".join(_value(name, one) for one in value) + "]"
    what = "give text, a number, True or False, a path, a list or a dictionary"
    raise _prism.Error(f"{name}: {value!r} is no value of a setting; {what}")
