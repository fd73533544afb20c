//! Capture by Prism's own BPF programs (`bpf/capture.bpf.c`): the kernel's tracing settings
//! stay unchanged, and the programs are unloaded however the process ends.

use std::fs;
use std::io::{BufRead, BufReader};

use aya::maps::{MapData, PerCpuArray, RingBuf};
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, EbpfLoader};
use prism_trace::Live;

use super::devices::Disk;
use super::source::Running;

/// The compiled programs; `bpf/build.sh` makes them.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/capture.bpf.o");

/// Each program and its tracepoint.
const PROGRAMS: [(&str, &str); 7] = [
    ("bio_queue", "block_bio_queue"),
    ("rq_issue", "block_rq_issue"),
    ("rq_complete", "block_rq_complete"),
    ("rq_requeue", "block_rq_requeue"),
    ("split", "block_split"),
    ("bio_remap", "block_bio_remap"),
    ("bio_complete", "block_bio_complete"),
];

/// The most devices that can be named; `DEVICES_MAX` of the programs.
pub(super) const DEVICES_MAX: usize = 64;

/// The types of the kernel, to which the programs are relocated.
const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Programs that run in the kernel, and the maps with their events.
pub(super) struct Programs {
    /// Removed when the capture ends; the maps stay readable.
    loaded: Option<Ebpf>,
    events: RingBuf<MapData>,
    lost: PerCpuArray<MapData, u64>,
}

impl Programs {
    /// Loads and starts the programs; returns the reason as text if that does not work here.
    pub fn start(disks: &[Disk], buffer: u32, by_bio: bool) -> Result<Self, String> {
        if !fs::exists(KERNEL_TYPES).unwrap_or(false) {
            return Err(format!("the kernel does not describe its types ({KERNEL_TYPES})"));
        }
        if let Some(lockdown) = lockdown()
            && lockdown == "confidentiality"
        {
            return Err("lockdown=confidentiality keeps programs from the kernel's data".into());
        }
        let btf = Btf::from_sys_fs().map_err(|error| in_words(&error))?;
        let mut numbers = [0_u32; DEVICES_MAX];
        for (place, disk) in numbers.iter_mut().zip(disks) {
            *place = disk.number.0 << 20 | disk.number.1;
        }
        let ends = addresses(["iomap_dio_bio_end_io", "btrfs_simple_end_io", "bio_chain_endio"]);
        let count = disks.len() as u32;
        let by_bio = u8::from(by_bio);
        let mut loaded = EbpfLoader::new()
            .btf(Some(&btf))
            .override_global("devices", &numbers, true)
            .override_global("device_count", &count, true)
            .override_global("by_bio", &by_bio, true)
            .override_global("iomap_end", &ends[0], true)
            .override_global("btrfs_end", &ends[1], true)
            .override_global("chain_end", &ends[2], true)
            .map_max_entries("events", buffer)
            .load(OBJECT)
            .map_err(|error| in_words(&error))?;
        // The maps are opened first, so that no event of the programs is missed.
        let events = map(&mut loaded, "events")?;
        let events = RingBuf::try_from(events).map_err(|error| in_words(&error))?;
        let lost = map(&mut loaded, "lost")?;
        let lost = PerCpuArray::try_from(lost).map_err(|error| in_words(&error))?;
        for (name, tracepoint) in PROGRAMS {
            attach(&mut loaded, name, tracepoint, &btf)?;
        }
        Ok(Self { loaded: Some(loaded), events, lost })
    }
}

impl Running for Programs {
    fn pump(&mut self, live: &mut Live) -> Result<(), String> {
        while let Some(event) = self.events.next() {
            live.take(&event).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn stop(&mut self, live: &mut Live) -> Result<(), String> {
        self.loaded = None;
        self.pump(live)?;
        let lost = self.lost.get(&0, 0).map_err(|error| error.to_string())?;
        live.lost(lost.iter().sum());
        Ok(())
    }
}

fn map(loaded: &mut Ebpf, name: &str) -> Result<aya::maps::Map, String> {
    loaded.take_map(name).ok_or_else(|| format!("the programs have no map {name}"))
}

fn attach(loaded: &mut Ebpf, name: &str, tracepoint: &str, btf: &Btf) -> Result<(), String> {
    let program = loaded.program_mut(name);
    let program = program.ok_or_else(|| format!("there is no program {name}"))?;
    let program: &mut BtfTracePoint = program.try_into().map_err(|error| in_words(&error))?;
    let at = |why: String| format!("{tracepoint}: {why}");
    program.load(tracepoint, btf).map_err(|error| at(in_words(&error)))?;
    program.attach().map_err(|error| at(in_words(&error)))?;
    Ok(())
}

/// The error and its causes in one line; the verifier's log may have thousands of lines.
fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = first_line(&error.to_string());
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = first_line(&error.to_string());
        if !words.contains(&next) {
            words = format!("{words}: {next}");
        }
        cause = error.source();
    }
    if words.contains("Operation not permitted") {
        return "no permission; run as root, or with CAP_BPF and CAP_PERFMON".into();
    }
    words
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}

/// The lockdown mode of the kernel.
pub(super) fn lockdown() -> Option<String> {
    let text = fs::read_to_string("/sys/kernel/security/lockdown").ok()?;
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// The addresses of the functions of these names in the running kernel; 0 for an unknown one.
fn addresses<const N: usize>(names: [&str; N]) -> [u64; N] {
    let mut found = [0; N];
    let Ok(file) = fs::File::open("/proc/kallsyms") else { return found };
    for line in BufReader::new(file).lines().map_while(Result::ok) {
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(_), Some(name)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        if let Some(place) = names.iter().position(|wanted| *wanted == name) {
            found[place] = u64::from_str_radix(address, 16).unwrap_or(0);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::OBJECT;

    #[test]
    fn the_compiled_programs_are_those_of_the_source() {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/capture.bpf.c");
        let sum = Command::new("sha256sum").arg(source).output().expect("sha256sum of coreutils");
        let sum = String::from_utf8(sum.stdout).expect("text");
        let sum = sum.split_whitespace().next().expect("a sum first");
        assert_eq!(sum.len(), 64, "{sum}");
        let holds = OBJECT.windows(sum.len()).any(|window| window == sum.as_bytes());
        assert!(holds, "bpf/capture.bpf.o is not made from capture.bpf.c; run bpf/build.sh");
    }
}
