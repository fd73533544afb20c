//! The extension module of the Python package `prism-flash`.
//!
//! It passes arguments from Python to the crates that the commands call, and results back: tables
//! as Arrow arrays, which are shared and not copied, other results as JSON. What needs no Rust (the
//! classes that a user sees, defaults, conversions of arguments) is Python, in `python/prism`.

// Python's macros generate functions for the methods below.
#![allow(missing_docs, reason = "the documents of the package are in Python")]

mod arguments;
mod cache;
mod capture;
mod device;
mod error;
mod flash;
mod frames;
mod graph;
mod requests;
mod results;
mod simulate;
mod sweep;
mod table;
mod tables;
mod trace;
mod watch;

use pyo3::prelude::*;

/// The functions and classes behind the package `prism`.
#[pymodule]
mod _prism {
    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_export]
    use crate::cache::simulate_caches;
    #[pymodule_export]
    use crate::capture::{CaptureSession, start_capture};
    #[pymodule_export]
    use crate::device::{device_fields, is_device, near_presets, preset_names};
    #[pymodule_export]
    use crate::flash::{
        CommandQueue, FlashDevice, FlashShare, FunctionLevel, KeyValueStore, ObjectLevel,
        PolicyLevel, RawLevel,
    };
    #[pymodule_export]
    use crate::graph::{graph_export, graph_info, graph_ingest, graph_run, graph_verify};
    #[pymodule_export]
    use crate::results::{Results, report};
    #[pymodule_export]
    use crate::simulate::simulate;
    #[pymodule_export]
    use crate::sweep::{Sweep, plan_sweep, run_design};
    #[pymodule_export]
    use crate::table::{Table, table_of_rows};
    #[pymodule_export]
    use crate::tables::{calc_cleaning, calc_lifetime, papers, reproduce, validate};
    #[pymodule_export]
    use crate::trace::{Trace, generate_trace, read_trace};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("FlashError", module.py().get_type::<crate::flash::FlashError>())?;
        module.add("Error", module.py().get_type::<crate::error::Error>())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
