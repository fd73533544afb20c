//! Records the requests of one device through a private instance of ftrace, as text.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::error::StackError;
use super::leftovers::own_name;
use crate::atomic::OutputFile;
use crate::interrupt::Undo;

pub(super) struct Capture {
    instance: PathBuf,
    stop: Arc<AtomicBool>,
    reader: JoinHandle<io::Result<Vec<u8>>>,
    _undo: Undo,
}

impl Capture {
    pub fn start(device: &Path) -> Result<Self, StackError> {
        let instance = Path::new("/sys/kernel/tracing/instances").join(own_name());
        let failed = |e| StackError::at(&instance, "trace the device")(e);
        let number = fs::metadata(device).map_err(failed)?.rdev();
        let number = (rustix::fs::major(number) << 20) | rustix::fs::minor(number);
        let undo = Undo::of(|| {
            fs::create_dir(&instance)?;
            let made = instance.clone();
            Ok(move || drop(fs::remove_dir(&made)))
        });
        let undo = undo.map_err(failed)?;
        let put = |file: &str, text: &str| fs::write(instance.join(file), text).map_err(failed);
        put("trace_clock", "mono")?;
        put("buffer_size_kb", "16384")?;
        for event in ["block_bio_queue", "block_rq_issue", "block_rq_complete"] {
            put(&format!("events/block/{event}/filter"), &format!("dev == {number}"))?;
            put(&format!("events/block/{event}/enable"), "1")?;
        }
        let mut how = OpenOptions::new();
        how.read(true).custom_flags(0o4000);
        let mut pipe: File = how.open(instance.join("trace_pipe")).map_err(failed)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = stop.clone();
        let reader = thread::spawn(move || {
            let (mut all, mut bytes) = (Vec::new(), vec![0; 1 << 16]);
            loop {
                let stopped = stopping.load(Ordering::Relaxed);
                match pipe.read(&mut bytes) {
                    Ok(n) => all.extend_from_slice(&bytes[..n]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        if stopped {
                            return Ok(all);
                        }
                        thread::sleep(Duration::from_millis(20));
                    }
                    Err(error) => return Err(error),
                }
            }
        });
        Ok(Self { instance, stop, reader, _undo: undo })
    }

    pub fn mark(&mut self, phase: &str) {
        let _ = fs::write(self.instance.join("trace_marker"), format!("phase {phase}\n"));
    }

    pub fn stop(self, mut trace: OutputFile) -> Result<(), StackError> {
        let _ = fs::write(self.instance.join("tracing_on"), "0");
        self.stop.store(true, Ordering::Relaxed);
        let read = self.reader.join().expect("it does not panic");
        let text = read.map_err(StackError::at(&self.instance, "read the trace"))?;
        trace.write_all(&text).map_err(|e| trace.failed(e))?;
        Ok(trace.commit()?)
    }
}
