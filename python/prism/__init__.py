"""Flash-aware storage: simulated drives, the unwritten contract, a user-level flash library.

``prism.report``, ``prism.simulate`` and ``prism.sweep`` are the commands of the same names,
``prism.read_trace`` and ``prism.convert`` read and write traces. Results are objects whose tables
every library that knows Arrow takes without a copy: ``polars.DataFrame(table)``,
``pyarrow.table(table)``, ``duckdb.sql``.

>>> import prism
>>> result = prism.simulate(rw="randwrite", bs="4k", iodepth=32, io_size="64m", capacity="256MiB")
>>> result["seed"]
1
"""

from . import flash, graph
from ._prism import Error, FlashError, Table, __version__
from .cache import CacheSimulation, simulate_cache
from .capture import Capture, capture
from .device import device, presets
from .report import Report, report
from .simulate import Simulation, simulate
from .sweep import SweepResult, run_design, sweep
from .tables import (
    Cleaning,
    Validation,
    calc_cleaning,
    calc_lifetime,
    papers,
    reproduce,
    validate,
)
from .trace import Trace, convert, generate_trace, read_trace

__all__ = [
    "CacheSimulation",
    "Capture",
    "Cleaning",
    "Error",
    "FlashError",
    "Report",
    "Simulation",
    "SweepResult",
    "Table",
    "Trace",
    "Validation",
    "__version__",
    "calc_cleaning",
    "calc_lifetime",
    "capture",
    "convert",
    "device",
    "flash",
    "generate_trace",
    "graph",
    "papers",
    "presets",
    "read_trace",
    "report",
    "reproduce",
    "run_design",
    "simulate",
    "simulate_cache",
    "sweep",
    "validate",
]
