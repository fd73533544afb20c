"""Dictionaries as TOML: files of sweeps and device files."""

from __future__ import annotations

import json
import math
import numbers
import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import _prism


def toml_of(parts: Mapping[str, Any]) -> str:
    """The text of a file with these keys and tables, in the order of the dictionaries."""
    lines = [f"{key} = {_value(parts[key])}" for key in parts if not isinstance(parts[key], Mapping)]
    for key, part in parts.items():
        if isinstance(part, Mapping):
            lines.append(f"[{key}]")
            lines += [f"{json.dumps(name)} = {_value(value)}" for name, value in part.items()]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    """A value in TOML. Numbers of NumPy are numbers."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(os.fspath(value), ensure_ascii=False)
    if type(value).__name__ in {"bool", "bool_"}:
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real) and math.isfinite(value):
        return repr(float(value))
    if isinstance(value, Iterable):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    raise _prism.Error(f"{value!r} is no value of a setting")
