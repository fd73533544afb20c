//! Reads the traces of the unwritten contract and judges its observations by them.

use std::path::{Path, PathBuf};

use prism_experiments::Scale;
use prism_experiments::contract_micro::{Benchmark, Comparison};
use prism_experiments::unwritten::{
    ColdReads, Facts, INSTANCES, Observed, PHASE, Pair, READ_AHEADS, REMOVE_PHASE, Sequential,
    TRACED, TRACED_FIRST, judge_all, observe, observe_sequential, reads_of,
};
use prism_trace::LoadSpec;

use super::Reproduced;
use super::run::{LABEL, LoadTrace, THINGS};
use crate::analysis::Trace;
use crate::env::{Env, run_all};
use crate::error::PresentError;

/// The traces of the unwritten contract.
#[derive(Clone, Debug)]
pub struct TraceFiles {
    usual: Vec<(Pair, PathBuf)>,
    sequential: Vec<(Pair, u32, PathBuf)>,
    missing: Vec<Pair>,
}

impl TraceFiles {
    /// The traces in `folder` or in its subfolders `unwritten` and `app-fs`: as
    /// `prism capture stack` names them, or the text of ftrace.
    ///
    /// # Errors
    /// [`PresentError::Refused`] if there is none.
    pub fn find(folder: &Path, is_file: impl Fn(&Path) -> bool) -> Result<Self, PresentError> {
        let folders = [folder.to_path_buf(), folder.join("unwritten"), folder.join("app-fs")];
        let find = |names: &[String]| {
            let paths = |name: &String| folders.each_ref().map(|folder| folder.join(name));
            names.iter().flat_map(paths).find(|path| is_file(path))
        };
        let mut files = Self { usual: Vec::new(), sequential: Vec::new(), missing: Vec::new() };
        for pair in Pair::all() {
            let parquet = format!("{}.parquet", pair.usual());
            match find(&[parquet, format!("{}.ftrace.zst", pair.name())]) {
                Some(path) => files.usual.push((pair, path)),
                None => files.missing.push(pair),
            }
            for instances in INSTANCES {
                let path = find(&[format!("{}.parquet", pair.sequential(instances))]);
                files.sequential.extend(path.map(|path| (pair, instances, path)));
            }
        }
        if files.usual.is_empty() {
            let folder = folder.display();
            return Err(PresentError::refused(format!(
                "{folder}: no trace named FS-APP-PATTERN.parquet (such as \
                 ext4-leveldb-rand.parquet) or FS-APP.ftrace.zst is there or in its subfolders \
                 unwritten and app-fs; name the folder of the traces with --traces"
            )));
        }
        Ok(files)
    }
}

/// The result of a job.
enum Part {
    Benchmark(Vec<Comparison>),
    Trace(Box<Result<Observed, PresentError>>),
    Sequential(Pair, Result<Sequential, PresentError>),
}

/// Repeats the benchmarks and judges the traces, on all cores.
pub(super) fn unwritten_contract(
    traces: TraceFiles,
    scale: Scale,
    seed: u64,
    load: LoadTrace<'_>,
    env: &impl Env,
) -> Result<Reproduced, PresentError> {
    let mut jobs: Vec<Box<dyn FnOnce() -> Part + Send + '_>> = Vec::new();
    for (pair, path) in traces.usual {
        jobs.push(Box::new(move || Part::Trace(Box::new(usual(pair, &path, load)))));
    }
    for (pair, instances, path) in traces.sequential {
        let read = move || Part::Sequential(pair, sequential(pair, instances, &path, load));
        jobs.push(Box::new(read));
    }
    for benchmark in Benchmark::ALL {
        jobs.push(Box::new(move || Part::Benchmark(benchmark.run(scale, seed))));
    }
    let (mut comparisons, mut observed) = (Vec::new(), Vec::<Observed>::new());
    for part in run_all(env, LABEL, THINGS, jobs) {
        match part {
            Part::Benchmark(some) => comparisons.extend(some),
            Part::Trace(one) => observed.push((*one)?),
            // The usual traces come first.
            Part::Sequential(pair, one) => {
                let one = one?;
                let known = observed.iter_mut().find(|observed| observed.facts.pair == pair);
                if let Some(known) = known {
                    known.facts.sequential.push(one);
                }
            }
        }
    }
    let facts: Vec<Facts> = observed.iter().map(|one| one.facts.clone()).collect();
    let judged = judge_all(&facts);
    Ok(Reproduced { seed, scale, comparisons, observed, missing: traces.missing, judged })
}

/// Loads the phase `phase` of a trace, or all of it.
fn phase(path: &Path, phase: Option<&str>, load: LoadTrace<'_>) -> Result<Trace, PresentError> {
    let phase = phase.map(str::to_owned);
    let spec = LoadSpec { paths: vec![path.to_path_buf()], phase, ..LoadSpec::default() };
    load(spec).map_err(PresentError::Outside)
}

/// Observes the usual run of a pair, and its reads with cold caches where they were recorded.
fn usual(pair: Pair, path: &Path, load: LoadTrace<'_>) -> Result<Observed, PresentError> {
    let Trace { info, mut records } = phase(path, Some(PHASE), load)?;
    let is_captured = path.extension().is_some_and(|ending| ending == "parquet");
    let device = if is_captured { TRACED } else { TRACED_FIRST };
    let mut observed = observe(pair, device, &mut *records, &info.later_discards, &info.symbols)?;
    let phases = info.facts.phase_names();
    for read_ahead in READ_AHEADS {
        let names = ColdReads::phases(read_ahead);
        if !names.iter().all(|name| phases.contains(name)) {
            continue;
        }
        let [ordered, random] = names.map(|name| -> Result<_, PresentError> {
            Ok(reads_of(&mut *phase(path, Some(&name), load)?.records)?)
        });
        let cold = ColdReads { read_ahead, ordered: ordered?, random: random? };
        observed.facts.cold.push(cold);
    }
    Ok(observed)
}

/// Observes sequential work by `instances`, and what the removal of the first one's folder frees.
fn sequential(
    pair: Pair,
    instances: u32,
    path: &Path,
    load: LoadTrace<'_>,
) -> Result<Sequential, PresentError> {
    let Trace { mut info, mut records } = phase(path, Some(PHASE), load)?;
    let later = std::mem::take(&mut info.later_discards);
    let app = &mut *records;
    if instances == 1 {
        return Ok(observe_sequential(pair, instances, app, &later, &info.symbols, None)?);
    }
    let mut whole = phase(path, None, load)?.records;
    let mut removal = phase(path, Some(REMOVE_PHASE), load)?.records;
    let removal = Some((&mut *whole as _, &mut *removal as _));
    Ok(observe_sequential(pair, instances, app, &later, &info.symbols, removal)?)
}
