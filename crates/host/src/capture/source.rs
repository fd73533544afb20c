//! One interface to all backends: choose, start, read, stop.

use std::fmt::Display;

use prism_trace::{CountFrom, Live};

use super::blk_tracer::BlkTracer;
use super::bpf::Programs;
use super::devices::Disk;
use super::ftrace::Instance;
use super::{Backend, CaptureError, CaptureSpec, Refusal};

/// A backend that records; the kernel's tracing settings are restored when it is dropped.
pub(super) trait Running: Send {
    /// Passes the events that the kernel has so far to `live`.
    fn pump(&mut self, live: &mut Live) -> Result<(), String>;

    /// Stops, and passes the rest to `live`.
    fn stop(&mut self, live: &mut Live) -> Result<(), String>;
}

/// The backend that was chosen.
pub(super) struct Source {
    running: Box<dyn Running>,
    pub backend: Backend,
    /// Whether bios are counted instead of requests.
    pub by_bio: bool,
}

impl Source {
    /// Starts the backend that `spec` names, or the first that works.
    pub fn start(
        spec: &CaptureSpec,
        disks: &[Disk],
    ) -> Result<(Self, Live, Vec<Refusal>), CaptureError> {
        // Stacked devices have only bios; with a real disk among the devices its requests are
        // counted.
        let by_bio = !disks.is_empty() && disks.iter().all(|disk| disk.by_bio);
        let mut refused = Vec::new();
        for backend in Backend::ALL {
            if spec.backend.is_some_and(|wanted| wanted != backend) {
                continue;
            }
            match begin(backend, spec, disks, by_bio) {
                Ok((running, live)) => {
                    return Ok((Self { running, backend, by_bio }, live, refused));
                }
                Err(why) => refused.push(Refusal { backend, why }),
            }
        }
        Err(CaptureError::NoBackend { refused })
    }

    /// As [`Running::pump`].
    pub fn pump(&mut self, live: &mut Live) -> Result<(), CaptureError> {
        self.running.pump(live).map_err(|what| self.failed(&what))
    }

    /// As [`Running::stop`].
    pub fn stop(&mut self, live: &mut Live) -> Result<(), CaptureError> {
        self.running.stop(live).map_err(|what| self.failed(&what))
    }

    /// The error of a capture that cannot go on because of `what`.
    pub fn failed(&self, what: &dyn Display) -> CaptureError {
        CaptureError::Failed { backend: self.backend, what: what.to_string() }
    }
}

/// Starts a backend; the error says why that does not work here.
fn begin(
    backend: Backend,
    spec: &CaptureSpec,
    disks: &[Disk],
    by_bio: bool,
) -> Result<(Box<dyn Running>, Live), String> {
    let buffer = spec.buffer.0.clamp(4096, 1 << 30).next_power_of_two() as u32;
    let count_from = if by_bio { CountFrom::Queue } else { CountFrom::Issue };
    Ok(match backend {
        Backend::Bpf => (Box::new(Programs::start(disks, buffer, by_bio)?), Live::bpf(count_from)),
        Backend::Ftrace => {
            let (instance, live) = Instance::start(disks, buffer, count_from)?;
            (Box::new(instance), live)
        }
        Backend::Blk => {
            let (tracer, live) = BlkTracer::start(disks, buffer, count_from)?;
            (Box::new(tracer), live)
        }
    })
}
