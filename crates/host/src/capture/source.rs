//! One interface to all backends: choose, start, read, stop.

use prism_trace::Live;

use super::blk_tracer::BlkTracer;
use super::bpf::{Programs, count_from};
use super::devices::Disk;
use super::ftrace::Instance;
use super::{Backend, CaptureError, CaptureSpec, Refusal};

/// A running backend.
pub(super) struct Source {
    kind: Kind,
    by_bio: bool,
}

enum Kind {
    Bpf(Box<Programs>),
    Ftrace(Instance),
    Blk(BlkTracer),
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
            match Kind::start(backend, spec, disks, by_bio) {
                Ok((kind, live)) => return Ok((Self { kind, by_bio }, live, refused)),
                Err(why) => refused.push(Refusal { backend, why }),
            }
        }
        Err(CaptureError::NoBackend { refused })
    }

    /// The backend that runs.
    pub fn backend(&self) -> Backend {
        match self.kind {
            Kind::Bpf(_) => Backend::Bpf,
            Kind::Ftrace(_) => Backend::Ftrace,
            Kind::Blk(_) => Backend::Blk,
        }
    }

    /// Whether bios are counted instead of requests.
    pub fn counts_bios(&self) -> bool {
        self.by_bio
    }

    /// Passes the events that the kernel has so far to `live`.
    pub fn pump(&mut self, live: &mut Live) -> Result<(), CaptureError> {
        match &mut self.kind {
            Kind::Bpf(programs) => programs.pump(live),
            Kind::Ftrace(instance) => instance.pump(live),
            Kind::Blk(tracer) => tracer.pump(live),
        }
    }

    /// Stops, and passes the rest to `live`.
    pub fn stop(&mut self, live: &mut Live) -> Result<(), CaptureError> {
        match &mut self.kind {
            Kind::Bpf(programs) => programs.stop(live),
            Kind::Ftrace(instance) => instance.stop(live),
            Kind::Blk(tracer) => tracer.stop(live),
        }
    }

    /// Restores the kernel's tracing settings, if [`Source::stop`] did not.
    pub fn undo(self) {
        match self.kind {
            // The programs are unloaded with their last handle.
            Kind::Bpf(programs) => drop(programs),
            Kind::Ftrace(instance) => drop(instance),
            Kind::Blk(tracer) => drop(tracer),
        }
    }
}

impl Kind {
    fn start(
        backend: Backend,
        spec: &CaptureSpec,
        disks: &[Disk],
        by_bio: bool,
    ) -> Result<(Self, Live), String> {
        let buffer = spec.buffer.0.clamp(4096, 1 << 30).next_power_of_two() as u32;
        match backend {
            Backend::Bpf => {
                let programs = Programs::start(disks, buffer, by_bio)?;
                Ok((Self::Bpf(Box::new(programs)), Live::bpf(count_from(by_bio))))
            }
            Backend::Ftrace => {
                let (instance, live) = Instance::start(disks, buffer, count_from(by_bio))?;
                Ok((Self::Ftrace(instance), live))
            }
            Backend::Blk => {
                let (tracer, live) = BlkTracer::start(disks, buffer, count_from(by_bio))?;
                Ok((Self::Blk(tracer), live))
            }
        }
    }
}
