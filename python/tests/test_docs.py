"""The examples of the documents run: those of the page and of docstrings."""

from __future__ import annotations

import doctest
import os
import pathlib
import re
import sys

import pytest

import prism

ROOT = pathlib.Path(__file__).parents[2]


def test_examples_of_the_page_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    os.makedirs("target", exist_ok=True)
    page = (ROOT / "docs/python.md").read_text()
    examples = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(examples) == 6
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, "docs/python.md", "exec"), names)


def test_examples_of_docstrings_run() -> None:
    # `prism.trace` and others are functions of the package, which hide their modules.
    modules = [sys.modules[f"prism.{name}"] for name in ["flash", "tables", "trace"]]
    for module in [prism, *modules]:
        result = doctest.testmod(module)
        assert result.attempted > 0 and result.failed == 0


def test_every_public_name_has_a_docstring() -> None:
    for name in prism.__all__:
        public = getattr(prism, name)
        if name != "__version__":
            assert public.__doc__, name
    for part in [prism.flash, prism.graph]:
        for name in part.__all__:
            kind = getattr(part, name)
            check(name, kind)


def check(name: str, kind: object) -> None:
    assert kind.__doc__, name
    for member, value in vars(kind).items() if isinstance(kind, type) else ():
        if not member.startswith("_") and (callable(value) or isinstance(value, property)):
            assert value.__doc__, f"{name}.{member}"
