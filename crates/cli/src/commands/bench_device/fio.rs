//! fio on a file next to that of the device.

use std::path::Path;
use std::process::Command;

use prism_base::{Bytes, Nanos};
use serde_json::Value;

use super::Args;
use crate::failure::Failure;

/// A job of fio.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub pattern: &'static str,
    pub block: u32,
    pub threads: u32,
    pub depth: u32,
    /// Whether each write is followed by `fdatasync`.
    pub syncs: bool,
    /// One pass over the file without it.
    pub time: Option<Nanos>,
    /// Whether its buffers are in huge pages, if the system has reserved some.
    pub huge: bool,
}

impl Job {
    /// A pass of one thread over the file.
    pub const fn of(pattern: &'static str, block: u32) -> Self {
        let (threads, depth, syncs, time, huge) = (1, 1, false, None, false);
        Self { pattern, block, threads, depth, syncs, time, huge }
    }

    fn arguments(&self, name: &str) -> Vec<String> {
        let mut arguments = vec![
            format!("--name={name}"),
            format!("--rw={}", self.pattern),
            format!("--bs={}", self.block),
            format!("--numjobs={}", self.threads),
            format!("--iodepth={}", self.depth),
        ];
        arguments.push(if self.syncs { "--fdatasync=1" } else { "--end_fsync=1" }.to_owned());
        // io_uring makes a sync that follows a write wait for a kernel thread.
        arguments.push(format!("--ioengine={}", if self.syncs { "psync" } else { "io_uring" }));
        if self.huge && has_huge_pages() {
            arguments.push("--mem=shmhuge".to_owned());
        }
        if let Some(time) = self.time {
            let ms = time.0 / 1_000_000;
            arguments.extend(["--time_based".to_owned(), format!("--runtime={ms}ms")]);
        }
        arguments
    }
}

/// Whether the system has huge pages for fio's buffers (`sysctl vm.nr_hugepages=16`).
fn has_huge_pages() -> bool {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = info.lines().find_map(|line| line.strip_prefix("HugePages_Free:"));
    free.and_then(|count| count.trim().parse::<u32>().ok()).is_some_and(|count| count >= 8)
}

/// Bytes per second of each job with direct I/O, all at once.
///
/// # Errors
/// [`Failure`] if fio is not installed or fails.
pub fn run(args: &Args, file: &Path, jobs: &[Job]) -> Result<Vec<f64>, Failure> {
    run_on(args.size, args.seed, file, jobs)
}

/// As [`run`], on a file of `size`.
///
/// # Errors
/// As [`run`].
pub fn run_on(size: Bytes, seed: u64, file: &Path, jobs: &[Job]) -> Result<Vec<f64>, Failure> {
    let failed = |what: String| Failure::Usage(format!("fio failed: {what}"));
    let mut command = Command::new("fio");
    command.args(["--direct=1", "--thread", "--group_reporting", "--output-format=json"]);
    command.arg(format!("--filename={}", file.display())).arg(format!("--size={}", size.0));
    command.arg(format!("--randseed={seed}"));
    for (number, job) in jobs.iter().enumerate() {
        command.args(job.arguments(&format!("job{number}")));
        command.arg("--new_group");
    }
    let output = command.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::Usage("fio is not installed".into()),
        _ => failed(error.to_string()),
    })?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    // fio prints warnings before the JSON.
    let json = &text[text.find('{').unwrap_or(0)..];
    let json: Value = serde_json::from_str(json).map_err(|error| failed(error.to_string()))?;
    let rate = |(number, job): (usize, &Job)| {
        let way = if job.pattern.ends_with("read") { "read" } else { "write" };
        let rate = json["jobs"][number][way]["bw_bytes"].as_f64();
        rate.ok_or_else(|| failed("its JSON has no bandwidth".into()))
    };
    jobs.iter().enumerate().map(rate).collect()
}
