"""Drives: presets, device files, dictionaries."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from . import _prism
from ._common import DeviceLike, PathLike, Size, optional_path, optional_size, path_of, text_of
from ._toml import toml_of


def presets() -> list[str]:
    """The names of the drives that come with Prism (``docs/presets.md`` describes them)."""
    return _prism.preset_names()


def device(name: DeviceLike) -> dict[str, Any]:
    """The fields of a drive as a dictionary, which can be changed and passed as ``device=``.

    ``name`` is a preset, the path of a device file, or the text of one. Texts have units, as in the
    file (``docs/spec/device-file.md``)::

        drive = prism.device("dc-tlc")
        drive["flash"]["t_program"] = "500us"
        prism.report(trace, device=drive)

    Raises ``prism.Error`` if there is no such preset, or the description is not one of a drive.
    """
    path, text = name_and_text("name", name)
    fields = _prism.device_fields(path if text is None else "device", text)
    result: dict[str, Any] = json.loads(fields)
    return result


def is_text(name: str | os.PathLike[str]) -> bool:
    """Whether this is the text of a device file, not its name."""
    return isinstance(name, str) and "\n" in name


def name_and_text(argument: str, device: DeviceLike) -> tuple[str, str | None]:
    """The name of a drive, and the text of its file if it is not in one.

    ``argument`` is the name of the argument that describes the drive.
    """
    if isinstance(device, Mapping):
        return "device", toml_of(device)
    if not isinstance(device, (str, os.PathLike)):
        what = "a preset, a device file, its text or a dictionary"
        raise TypeError(f"{argument}: {what} is expected, not {type(device).__name__}")
    name = os.fsdecode(device)
    return name, name if is_text(name) else None


def device_options(
    device: DeviceLike,
    *,
    capacity: Size | None,
    state: str | PathLike,
    save_state: PathLike | None,
    faults: str | None,
    wear: int | None,
    retention: str | None,
    set: Mapping[str, object] | None,
) -> dict[str, Any]:
    """The drive of a simulation as the extension takes it."""
    name, inline = name_and_text("device", device)
    if set is not None and not isinstance(set, Mapping):
        raise TypeError(f"set: a dictionary of fields is expected, not {type(set).__name__}")
    return {
        "name": name,
        "text": inline,
        "capacity": optional_size("capacity", capacity),
        "state": path_of("state", state),
        "save_state": optional_path("save_state", save_state),
        "faults": faults,
        "wear": wear,
        "retention": retention,
        "overrides": [f"{field}={text_of(value)}" for field, value in (set or {}).items()],
    }
