"""Makes the gallery of the notebooks' pictures: ``make gallery``.

It runs every notebook, keeps the pictures in ``docs/gallery``, and writes ``docs/gallery.md``, in which
each picture has the cell of its notebook that drew it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import pathlib
import sys
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = pathlib.Path(__file__).parents[2]
NOTEBOOKS = ROOT / "python/notebooks"
PICTURES = ROOT / "docs/gallery"
PAGE = ROOT / "docs/gallery.md"

HEAD = """# Gallery

Pictures of the [notebooks](python.md#notebooks), each with the cell that drew it. `make gallery` runs
the notebooks and renews this page.
"""


def digest(path: pathlib.Path) -> str:
    """The digest of the cells of a notebook, which the page has to tell when it is out of date."""
    cells = [cell["source"] for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()[:16]


def entry(path: pathlib.Path) -> str:
    """The entry of a notebook: its title, its first paragraph, its pictures and their cells."""
    notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(NOTEBOOKS)}}).execute()
    title, text = notebook.cells[0].source.split("\n\n", 1)
    link = f"[The notebook](../python/notebooks/{path.name}) has the simulations."
    made = f"<!-- {path.name}, cells {digest(path)} -->"
    parts = [title.replace("# ", "## ", 1), made, f"{text}\n{link}"]
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            picture = output.get("data", {}).get("image/png")
            if picture is None:
                continue
            number = sum("![" in part for part in parts) + 1
            name = f"{path.stem}-{number}.png"
            (PICTURES / name).write_bytes(base64.b64decode(picture))
            parts += [f"![{title.removeprefix('# ')}](gallery/{name})", f"```python\n{cell.source}\n```"]
    return "\n\n".join(parts)


def main() -> None:
    """Makes all entries."""
    PICTURES.mkdir(exist_ok=True)
    for old in PICTURES.glob("*.png"):
        old.unlink()
    entries = []
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        print(path.stem, file=sys.stderr)
        entries.append(entry(path))
    PAGE.write_text("\n\n".join([HEAD.rstrip(), *entries]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
