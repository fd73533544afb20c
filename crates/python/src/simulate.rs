//! Jobs with fio options on a simulated drive.

use prism_present::over_provisioning;
use prism_present::sim::{self, fio_json};
use prism_present::simulation::Plan;
use prism_workload::Finished;
use prism_workload::fio::{self, AtReadOnly, JobReader, Section};
use pyo3::prelude::*;

use crate::arguments::{Arguments, parsed_if_any};
use crate::device::DeviceOptions;
use crate::error::Failure;
use crate::requests::RequestTable;
use crate::results::Results;
use crate::watch;

/// What is simulated, as a dictionary of Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct JobOptions {
    /// Jobs as arguments of fio; a word that is no option names a job file.
    arguments: Vec<String>,
    /// The name and the text of each job file.
    texts: Vec<(String, String)>,
    seed: u64,
    over_provisioning: Option<String>,
    until_read_only: bool,
    charts: bool,
    requests: bool,
}

/// Runs jobs: the arguments are those of `prism sim`.
#[pyfunction]
#[pyo3(signature = (options, device, progress))]
pub fn simulate(
    py: Python<'_>,
    options: Arguments<JobOptions>,
    device: Arguments<DeviceOptions>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Results> {
    let (drive, inline) = device.0.choice()?;
    let options = options.0;
    let JobOptions { arguments, texts, seed, until_read_only, charts, requests, .. } = options;
    let sections = jobs(&arguments, &texts)?;
    let op = options.over_provisioning.as_deref();
    let op = parsed_if_any("over_provisioning", op, over_provisioning::parse)?;
    let plan = Plan { drive, seed, op, settings: Vec::new() };
    watch::run(py, progress, inline, |env| {
        let setup = plan.setup(&sections, env)?;
        if until_read_only && setup.scaled.device.faults.is_none() {
            let what = "it needs a drive that ages: give faults";
            return Err(Failure::argument("until_read_only", what));
        }
        let at_read_only = if until_read_only { AtReadOnly::Stop } else { AtReadOnly::GoOn };
        let names = fio::run::symbols(&setup.jobs).0;
        let mut table = requests.then(RequestTable::default);
        let mut each = |finished: &Finished| {
            if let Some(table) = &mut table {
                table.add(finished, &names);
            }
            true
        };
        let each: &mut dyn FnMut(&Finished) -> bool = &mut each;
        let watched = (charts || requests).then_some(each);
        let (simulated, charts) = setup.run(at_read_only, env, watched)?;
        let short = sim::document(&simulated);
        let page = sim::page(short.clone(), charts);
        let fio = fio_json::output(&simulated, &sections, true);
        let fio = serde_json::to_value(&fio).expect("its keys are strings");
        let results = Results::new(sim::json(&simulated), short, page).with_fio(fio);
        Ok(results.with_requests(table.map(|table| table.finish(&names))))
    })
}

fn jobs(arguments: &[String], texts: &[(String, String)]) -> Result<Vec<Section>, Failure> {
    let wrong = |error: fio::FioError| Failure::Text(error.to_string());
    let mut reader = JobReader::new();
    for name in reader.arguments(arguments).map_err(wrong)? {
        let text = prism_host::input::read_text(std::path::Path::new(&name))?;
        reader.file(&name, &text).map_err(wrong)?;
    }
    for (name, text) in texts {
        reader.file(name, text).map_err(wrong)?;
    }
    reader.finish().map_err(wrong)
}
