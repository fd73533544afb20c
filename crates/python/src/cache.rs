//! The simulator of caches on flash.

use std::path::PathBuf;

use prism_base::Bytes;
use prism_cache::workload::{EtcConfig, Traces};
use prism_present::cache::{Study, document, json, page};
use prism_present::{Env, Step};
use pyo3::prelude::*;

use crate::arguments::{Arguments, parsed, parsed_if_any};
use crate::error::Failure;
use crate::results::Results;
use crate::watch;

/// What is simulated, as a dictionary of Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct CacheOptions {
    engines: Vec<String>,
    sizes: Vec<String>,
    spare: u32,
    max_writes: Option<String>,
    slab: String,
    channels: u32,
    memory: String,
    items: Option<u64>,
    cycles: u32,
    seed: u64,
}

/// Checks that a number is from 1 to `most`.
fn within(name: &str, number: u32, most: u32) -> Result<u32, Failure> {
    match number {
        0 => Err(Failure::argument(name, format!("give a number from 1 to {most}"))),
        number if number > most => {
            Err(Failure::argument(name, format!("{number} is more than {most}")))
        }
        number => Ok(number),
    }
}

impl CacheOptions {
    fn study(self) -> Result<Study, Failure> {
        let sizes = self.sizes.iter().map(|size| parsed("size", size, Bytes::parse));
        Ok(Study {
            engines: self.engines,
            sizes: sizes.collect::<Result<_, _>>()?,
            spare: within("spare", self.spare, 90)?,
            max_writes: parsed_if_any("max_writes", self.max_writes.as_deref(), Bytes::parse_rate)?,
            slab: parsed("slab", &self.slab, Bytes::parse)?,
            channels: within("channels", self.channels, 64)?,
            memory: parsed("memory", &self.memory, Bytes::parse)?,
            items: self.items,
            cycles: within("cycles", self.cycles, u32::MAX)?,
        })
    }
}

/// Replays requests to caches: the arguments are those of `prism cache simulate`.
#[pyfunction]
#[pyo3(signature = (trace, etc, options, progress))]
pub fn simulate_caches(
    py: Python<'_>,
    trace: Option<PathBuf>,
    etc: Option<&str>,
    options: Arguments<CacheOptions>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Results> {
    let etc = parsed_if_any("etc", etc, EtcConfig::parse)?;
    let seed = options.0.seed;
    let study = options.0.study()?;
    watch::run(py, progress, [], |env| {
        let mut running = study.begin()?;
        let name = match (&trace, etc) {
            (Some(path), None) => {
                let mut traces = Traces::new();
                prism_host::input::pieces(path, &env.progress(), |bytes, is_last| {
                    running.read(&mut traces, bytes, is_last)
                })?;
                path.display().to_string()
            }
            (None, Some(config)) => {
                let (label, things) = ("simulating:", "requests");
                env.show(Step::Begin { label, things, total: Some(config.requests) });
                let config = EtcConfig { seed, ..config };
                running.generate(config, |done| env.show(Step::Reached(done)));
                env.show(Step::End);
                "ETC".to_owned()
            }
            _ => return Err(Failure::argument("trace", "name a trace, or give etc, not both")),
        };
        let done = running.finish();
        Ok(Results::new(json(&name, &done), document(&name, &done), page(&name, &done)))
    })
}
