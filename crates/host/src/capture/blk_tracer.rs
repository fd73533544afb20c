//! Capture by the `blk` tracer: for kernels where neither BPF nor the events of ftrace can be
//! used. The kernel has only one such tracer, so one capture at a time is possible, and a
//! tracer that is already in use is not disturbed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use prism_trace::{CountFrom, Live};

use super::devices::Disk;
use super::restore::Restorer;
use super::source::Running;
use super::tracefs::{self, HOME, PAGE_MAX, read, write};

/// The running tracer.
pub(super) struct BlkTracer {
    pipe: File,
    piece: Vec<u8>,
    /// Events lost before the capture.
    lost_before: u64,
    /// Last, so that the pipe is closed before.
    _restorer: Restorer,
}

impl BlkTracer {
    /// Starts to trace; returns the reason as text if that does not work here.
    pub fn start(
        disks: &[Disk],
        buffer: u32,
        count_from: CountFrom,
    ) -> Result<(Self, Live), String> {
        let mounted = tracefs::is_mounted()?;
        if !mounted {
            tracefs::mount()?;
        }
        let changes = refuse_in_use().and_then(|()| Changes::now(disks, buffer));
        let changes = match changes {
            Ok(changes) => changes,
            Err(why) => {
                // Only the mount has to be undone.
                let steps: Vec<String> = tracefs::unmount(mounted).into_iter().collect();
                drop(Restorer::new(&steps));
                return Err(why);
            }
        };
        let mut steps = changes.undo();
        steps.extend(tracefs::unmount(mounted));
        let restorer = Restorer::new(&steps).map_err(|error| error.to_string())?;
        changes.settings.iter().try_for_each(|setting| write(&setting.path, &setting.now))?;
        let home = Path::new(HOME);
        let lost_before = tracefs::lost(home)?;
        let pipe = tracefs::open(&home.join("trace_pipe"))?;
        for switch in &changes.switches {
            write(switch, "1")?;
        }
        let tracer = Self { pipe, piece: vec![0; PAGE_MAX], lost_before, _restorer: restorer };
        Ok((tracer, Live::blk_tracer(count_from)))
    }
}

impl Running for BlkTracer {
    fn pump(&mut self, live: &mut Live) -> Result<(), String> {
        tracefs::empty(&mut self.pipe, &mut self.piece, live)
    }

    fn stop(&mut self, live: &mut Live) -> Result<(), String> {
        write(&Path::new(HOME).join("tracing_on"), "0")?;
        self.pump(live)?;
        live.lost(tracefs::lost(Path::new(HOME))?.saturating_sub(self.lost_before));
        Ok(())
    }
}

/// Fails if the tracer is in use: the kernel has only one tracer and one buffer.
fn refuse_in_use() -> Result<(), String> {
    let home = Path::new(HOME);
    let tracers = read(&home.join("available_tracers"))?;
    if !tracers.split_whitespace().any(|tracer| tracer == "blk") {
        return Err("this kernel is built without it (CONFIG_BLK_DEV_IO_TRACE)".into());
    }
    let tracer = read(&home.join("current_tracer"))?;
    if tracer.trim() != "nop" {
        return Err(format!("another program traces with {}; end that first", tracer.trim()));
    }
    let events = read(&home.join("set_event"))?;
    if !events.trim().is_empty() {
        return Err("another program records events in the same buffer; end that first".into());
    }
    Ok(())
}

/// The settings that are changed, with their values before.
struct Changes {
    settings: Vec<Setting>,
    /// The files that switch the tracing of each disk.
    switches: Vec<PathBuf>,
}

struct Setting {
    path: PathBuf,
    before: String,
    now: String,
}

impl Changes {
    fn now(disks: &[Disk], buffer: u32) -> Result<Self, String> {
        let home = Path::new(HOME);
        let mut settings = Vec::new();
        // In this order they are written and restored; the tracer is last, because its option
        // depends on it.
        for (file, now) in [
            ("tracing_on", "1".to_owned()),
            ("trace_clock", "mono".to_owned()),
            ("buffer_size_kb", (buffer / 1024).max(4).to_string()),
            ("options/blk_classic", "1".to_owned()),
            ("current_tracer", "blk".to_owned()),
        ] {
            let path = home.join(file);
            // Some kernels hide the option until the tracer is active.
            if file.starts_with("options/") && !path.exists() {
                continue;
            }
            let before = value_of(&read(&path)?);
            settings.push(Setting { path, before, now });
        }
        let names: Vec<String> = match disks {
            [] => all_disks()?,
            disks => disks.iter().map(|disk| disk.name.clone()).collect(),
        };
        let mut switches: Vec<PathBuf> = Vec::new();
        for name in names {
            let switch = PathBuf::from(format!("/sys/block/{name}/trace/enable"));
            if switches.contains(&switch) {
                continue;
            }
            if read(&switch)?.trim() != "0" {
                return Err(format!(
                    "another program traces {name} already (blktrace); end that first"
                ));
            }
            switches.push(switch);
        }
        Ok(Self { settings, switches })
    }

    fn undo(&self) -> Vec<String> {
        // The tracer is busy until its pipe is closed, which the end of a killed process may do
        // after it has closed what the shell waits for.
        let write = |value: &str, path: &Path| {
            format!(
                "i=0; until echo '{value}' >{} || [ $i -ge 50 ]; do i=$((i + 1)); sleep 0.1; done",
                path.display()
            )
        };
        let switches = self.switches.iter().map(|path| write("0", path));
        let settings = self.settings.iter().map(|setting| write(&setting.before, &setting.path));
        switches.chain(settings).collect()
    }
}

/// The current value: of a list the one in brackets, of a size the one after expansion.
fn value_of(text: &str) -> String {
    let text = text.trim();
    if let Some((_, rest)) = text.split_once('[')
        && let Some((value, _)) = rest.split_once(']')
    {
        return value.to_owned();
    }
    if let Some((_, rest)) = text.split_once("(expanded: ") {
        return rest.trim_end_matches(')').to_owned();
    }
    text.to_owned()
}

/// The disks that have requests of their own.
fn all_disks() -> Result<Vec<String>, String> {
    let entries = fs::read_dir("/sys/block").map_err(|error| format!("/sys/block: {error}"))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join("mq").exists())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_value_is_found() {
        assert_eq!(value_of("[local] global mono\n"), "local");
        assert_eq!(value_of("local global [mono]"), "mono");
        assert_eq!(value_of("7 (expanded: 1408)\n"), "1408");
        assert_eq!(value_of("4096\n"), "4096");
        assert_eq!(value_of("nop\n"), "nop");
    }

    #[test]
    fn a_setting_that_is_refused_at_first_is_restored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("later").join("current_tracer");
        let setting = Setting { path: path.clone(), before: "nop".into(), now: "blk".into() };
        let changes = Changes { settings: vec![setting], switches: Vec::new() };
        let restorer = Restorer::new(&changes.undo()).unwrap();
        let ended = std::thread::spawn(|| drop(restorer));
        // The first attempts fail.
        std::thread::sleep(std::time::Duration::from_millis(300));
        fs::create_dir(path.parent().unwrap()).unwrap();
        ended.join().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "nop\n");
    }
}
