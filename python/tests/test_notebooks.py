"""Every notebook runs from its first cell to its last."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import re

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = pathlib.Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def digest(path: pathlib.Path) -> str:
    """The digest of a notebook's cells that the page has."""
    spec = importlib.util.spec_from_file_location("gallery", FOLDER.parent / "tools/gallery.py")
    assert spec is not None and spec.loader is not None
    gallery = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gallery)
    found: str = gallery.digest(path)
    return found


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: pathlib.Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(FOLDER)}}).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in code for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs), "it has a picture"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_outputs(path: pathlib.Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    assert all(not cell.get("outputs") for cell in cells)


def test_the_gallery_has_the_cells_and_pictures_of_the_notebooks() -> None:
    """`make gallery` was run after the last change of a notebook's picture."""
    docs = FOLDER.parents[1] / "docs"
    page = (docs / "gallery.md").read_text()
    cells = {
        "".join(cell["source"])
        for path in NOTEBOOKS
        for cell in json.loads(path.read_text())["cells"]
    }
    shown = re.findall(r"^```python\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL)
    assert len(shown) >= len(NOTEBOOKS) and set(shown) <= cells
    pictures = re.findall(r"\(gallery/(.*?)\)", page)
    assert sorted(pictures) == sorted(path.name for path in (docs / "gallery").iterdir())
    sizes = [(docs / "gallery" / name).stat().st_size for name in pictures]
    assert sum(sizes) < 300_000
    for path in NOTEBOOKS:
        assert f"<!-- {path.name}, cells {digest(path)} -->" in page, "run make gallery"
