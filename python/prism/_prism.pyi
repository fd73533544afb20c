"""The extension module: its classes and functions are wrapped by the other modules."""

from collections.abc import Sequence
from typing import Any, final

from ._common import Progress

__all__ = [
    "Error",
    "Results",
    "Table",
    "Trace",
    "__version__",
    "device_fields",
    "preset_names",
    "read_trace",
    "report",
    "simulate",
    "table_of_rows",
]

__version__: str

class Error(ValueError):
    """Input that cannot be used.

    The message names the file, line or field, and says what to do: it is that of the command.
    """

@final
class Table:
    """Rows and columns, which libraries that know Arrow take without a copy.

    ``polars.DataFrame(table)``, ``pyarrow.table(table)``, ``pyarrow.table(table).to_pandas()``, and
    ``duckdb.sql("select ... from table")``.
    """

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...
    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
    @property
    def units(self) -> list[tuple[str, str]]:
        """The units of the columns that have one: ``ns``, ``bytes``, ``ratio`` and so on."""
    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""

@final
class Trace:
    @property
    def info_json(self) -> str: ...
    @property
    def name(self) -> str: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def write(self, path: str, to: str | None = None, progress: Progress | None = None) -> str: ...

@final
class Results:
    @property
    def json(self) -> str: ...
    @property
    def fio_json(self) -> str | None: ...
    @property
    def requests(self) -> Table | None: ...
    def text(self, width: int) -> str: ...
    def html(self) -> str: ...
    def tables(self) -> list[tuple[str, str, str, Table]]: ...

def preset_names() -> list[str]: ...
def device_fields(name: str, text: str | None = None, fields: str | None = None) -> str: ...
def table_of_rows(json: str) -> Table: ...
def read_trace(
    paths: Sequence[str],
    format: str | None,
    map: str | None,
    blkparse_format: str | None,
    block_size: str | None,
    disorder: str | None,
    phase: str | None,
    source: str | None,
    progress: Progress | None,
) -> Trace: ...
def report(
    trace: Trace,
    device: dict[str, Any],
    options: dict[str, Any],
    against_trace: Trace | None,
    against_device: str | None,
    progress: Progress | None,
) -> Results: ...
def simulate(
    options: dict[str, Any], device: dict[str, Any], progress: Progress | None
) -> Results: ...
