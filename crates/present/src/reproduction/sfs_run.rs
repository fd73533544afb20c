//! Repeats SFS, with the file systems of the kernel where their traces are.

use std::path::{Path, PathBuf};

use prism_experiments::Scale;
use prism_experiments::sfs::{self, KernelFs, KernelTraceError, Part, Results, Workload};
use prism_trace::LoadSpec;

use super::run::{LABEL, LoadTrace, THINGS};
use super::sfs::Sfs;
use crate::analysis::Trace;
use crate::env::{Env, run_all};
use crate::error::PresentError;

/// The traces of file systems of the kernel.
#[derive(Clone, Debug)]
pub struct KernelTraces {
    /// The folder in which they were looked for.
    folder: PathBuf,
    files: Vec<(Workload, KernelFs, PathBuf)>,
}

impl KernelTraces {
    /// The traces in `folder`, as `prism capture stack` names them; there may be none.
    pub fn find(folder: &Path, is_file: impl Fn(&Path) -> bool) -> Self {
        let mut files = Vec::new();
        for writes in Workload::ALL {
            for fs in KernelFs::ALL {
                let path = folder.join(fs.trace(writes));
                if is_file(&path) {
                    files.push((writes, fs, path));
                }
            }
        }
        Self { folder: folder.to_path_buf(), files }
    }

    /// What is left out; `None` if no trace is missing.
    fn left_out(&self) -> Option<String> {
        let all = Workload::ALL.len() * KernelFs::ALL.len();
        let missing = all - self.files.len();
        (missing > 0).then(|| {
            format!(
                "Left out: {missing} of {all} runs of ext4 and Btrfs, whose traces (such as {}) \
                 are not in {}. Record them as root, with prism capture stack, and name their \
                 folder with --traces; docs/sfs.md has the command.",
                KernelFs::Ext4.trace(Workload::Zipf),
                self.folder.display()
            )
        })
    }
}

/// Repeats the results on all cores.
pub(super) fn sfs(
    traces: KernelTraces,
    scale: Scale,
    seed: u64,
    load: LoadTrace<'_>,
    env: &impl Env,
) -> Result<Sfs, PresentError> {
    let left_out = traces.left_out();
    // A trace that is refused ends the command before the long runs.
    let of_trace =
        |(writes, fs, path): (_, _, PathBuf)| move || kernel(scale, writes, fs, &path, load);
    let jobs = traces.files.into_iter().map(of_trace).collect();
    let rows: Result<Vec<Results>, PresentError> =
        run_all(env, "traces", THINGS, jobs).into_iter().collect();
    let mut parts = rows?;
    let of_part = |part: Part| move || part.run(scale, seed);
    parts.extend(run_all(env, LABEL, THINGS, Part::all(scale).into_iter().map(of_part).collect()));
    Ok(Sfs::new(seed, scale, Results::of(parts), left_out))
}

fn kernel(
    scale: Scale,
    writes: Workload,
    fs: KernelFs,
    path: &Path,
    load: LoadTrace<'_>,
) -> Result<Results, PresentError> {
    let spec = LoadSpec { paths: vec![path.to_path_buf()], ..LoadSpec::default() };
    let Trace { info, mut records } = load(spec).map_err(PresentError::Outside)?;
    let row = sfs::kernel_row(scale, writes, fs, &mut *records, &info.symbols);
    let row = row.map_err(|error| match error {
        KernelTraceError::Source(error) => error.into(),
        error => PresentError::refused(format!(
            "{}: {error}; record it with the prism capture stack of docs/sfs.md",
            path.display()
        )),
    })?;
    Ok(Results { kernel: vec![row], ..Results::default() })
}
