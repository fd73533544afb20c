"""Flash-aware storage: simulated drives, the unwritten contract, a user-level flash library.

``prism.report`` and ``prism.simulate`` are the commands of the same names, ``prism.read_trace`` and
``prism.convert`` read and write traces. Results are objects whose tables every library that knows
Arrow takes without a copy: ``polars.DataFrame(table)``, ``pyarrow.table(table)``, ``duckdb.sql``.

>>> import prism
>>> result = prism.simulate(rw="randwrite", bs="4k", iodepth=32, io_size="64m", capacity="256MiB")
>>> result["seed"]
1
"""

from . import flash, graph
from ._prism import Error, FlashError, Table, __version__
from .cache import CacheSimulation, simulate_cache
from .device import device, presets
from .report import Report, report
from .simulate import Simulation, simulate
from .trace import Trace, convert, read_trace

__all__ = [
    "CacheSimulation",
    "Error",
    "FlashError",
    "Report",
    "Simulation",
    "Table",
    "Trace",
    "__version__",
    "convert",
    "device",
    "flash",
    "graph",
    "presets",
    "read_trace",
    "report",
    "simulate",
    "simulate_cache",
]
