"""Results of reports and simulations."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, Self

from . import _prism
from ._common import PathLike, count_of, path_of
from ._prism import Table


def table_of_rows(rows: Sequence[Any]) -> Table:
    """A table with a row for each dictionary; keys of dictionaries in them are joined by dots."""
    return _prism.table_of_rows(json.dumps(rows))


class Result:
    """A result: the JSON of the command as a dictionary, its text, its page, and its tables."""

    def __init__(self, native: _prism.Results) -> None:
        self._native = native
        self._json: dict[str, Any] | None = None

    @property
    def json(self) -> dict[str, Any]:
        """The dictionary that the command writes with ``--json``."""
        if self._json is None:
            self._json = json.loads(self._native.json)
        return self._json

    def __getitem__(self, key: str) -> Any:
        return self.json[key]

    def __contains__(self, key: object) -> bool:
        return key in self.json

    def __iter__(self) -> Iterator[str]:
        return iter(self.json)

    def keys(self) -> list[str]:
        """The keys of the dictionary."""
        return list(self.json)

    def text(self, width: int = 100, *, unicode: bool = False) -> str:
        """The text that the command prints to a file, in lines of at most ``width`` columns (72 to 1000).

        It is ASCII: other characters in names are ``?``. With ``unicode`` they are shown, and charts
        are as on a terminal.
        """
        return self._native.text(count_of("width", width, least=72, most=1000), unicode)

    def html(self) -> str:
        """The page that the command writes with ``--html``: one file with all charts."""
        return self._native.html()

    def write_html(self, path: PathLike) -> None:
        """Writes the page to a file; an older one is replaced when the page is complete.

        Raises ``prism.Error`` if it cannot be written.
        """
        self._native.write_html(path_of("path", path))

    @property
    def requests(self) -> Table:
        """Each measured request (``docs/spec/requests-parquet.md``), of a call with ``requests=True``.

        Raises ``prism.Error`` after a call without.
        """
        requests = self._native.requests
        if requests is None:
            raise _prism.Error("requests: there are none; report and simulate keep them with requests=True")
        return requests

    @property
    def tables(self) -> dict[str, Table]:
        """Every table of the page by its section, and by its caption if a section has several."""
        return self._named("table")

    @property
    def charts(self) -> dict[str, Table]:
        """The numbers of every chart of the page by its title."""
        return self._named("chart")

    def _named(self, kind: str) -> dict[str, Table]:
        found: dict[str, Table] = {}
        for section, its_kind, title, table in self._native.tables():
            if its_kind == kind:
                name = title if kind == "chart" else section
                if name in found:
                    name = f"{section}: {title}"
                number = 2
                while name in found:
                    name = f"{section} ({number})"
                    number += 1
                found[name] = table
        return found

    def _repr_html_(self) -> str:
        page = html.escape(self.html(), quote=True)
        style = "width: 100%; height: 40em; border: 1px solid #ccc"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'

    def __str__(self) -> str:
        return self.text()

    def __copy__(self) -> Self:
        same = type(self).__new__(type(self))
        same.__dict__.update(self.__dict__)
        return same

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a result cannot be pickled or copied deeply, as it holds tables outside of Python; use "
            "result.json, or frames of its tables"
        )
