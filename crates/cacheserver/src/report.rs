//! What the command `stats` needs of the server: CPU time, figures of the cache and of its device,
//! listening sockets.

use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use prism_base::Nanos;
use prism_cache::items::Items;
use prism_cache::protocol::{ConnectionReport, Report};
use prism_segments::Store;

use crate::listen::Listener;
use crate::open::Backend;

const SECONDS_OF_DAY: f64 = 86_400.0;

/// The device of a cache, as far as it is known.
pub struct Wear<'a> {
    /// The device, unless the cache uses it without the library.
    pub device: Option<&'a prism_flash::Device>,
    /// Erases that a block endures, if that is known.
    pub endurance: Option<u32>,
    /// How long the server has run.
    pub time: Duration,
}

/// How `stats conns` lists a listening socket that is `age` seconds old.
pub fn listener(socket: &Listener, age: u32) -> ConnectionReport {
    ConnectionReport {
        number: socket.as_fd().as_raw_fd(),
        address: socket.name(),
        listen_address: None,
        state: "conn_listening",
        idle: age,
    }
}

/// CPU time and figures.
pub fn figures(cache: &Backend, wear: &Wear<'_>) -> Report {
    let [cpu_user, cpu_system] = cpu();
    let mut report = Report { cpu_user, cpu_system, ..Report::default() };
    cache.figures(&mut |name, value| report.add(name, value));
    let (counts, flash) = (cache.counts(), cache.store().counts());
    for (name, value) in [
        ("misses", counts.misses),
        ("items_inserted", counts.inserts),
        ("inserted_bytes", counts.insert_bytes),
        ("written_item_bytes", counts.written_bytes),
        ("commits", counts.commits),
        ("items_recovered", counts.recovered),
        ("items_lost_at_start", counts.lost_items + counts.damaged_items),
        ("slabs_lost_at_start", counts.lost_slabs + counts.damaged_slabs),
        ("slabs_filled", counts.slabs_filled),
        ("slabs_cleaned", counts.slabs_cleaned),
        ("slabs_dropped", counts.slabs_dropped),
        ("index_items_dropped", counts.index_full),
        ("reads_of_other_keys", counts.false_reads),
        ("reads_lost", counts.lost_reads),
        ("flash_pages_read", flash.reads),
        ("flash_page_bytes", cache.store().shape().page_bytes.into()),
    ] {
        report.add(name, &value);
    }
    match cache.write_amplification() {
        Some(amplification) => {
            report.add("write_amplification", &format_args!("{amplification:.3}"));
        }
        None => report.add("write_amplification", &"-"),
    }
    if let Some(device) = wear.device {
        let erases = device.erase_counts();
        let mean = erases.iter().map(|&erases| f64::from(erases)).sum::<f64>();
        let mean = mean / erases.len().max(1) as f64;
        report.add("wear_blocks_max", &erases.iter().max().unwrap_or(&0));
        report.add("wear_blocks_mean", &format_args!("{mean:.3}"));
        if let Some(endurance) = wear.endurance.filter(|_| flash.erases > 0) {
            let of_a_block = flash.erases as f64 / erases.len().max(1) as f64;
            let days = life_days(f64::from(endurance) - mean, of_a_block, wear.time);
            report.add("life_days_at_this_rate", &format_args!("{days:.3}"));
        }
    }
    report
}

/// Days until a block is worn out that endures `left` more erases and had `erases` in `time`.
fn life_days(left: f64, erases: f64, time: Duration) -> f64 {
    left.max(0.0) / erases * time.as_secs_f64() / SECONDS_OF_DAY
}

/// CPU time of the process in user mode and in the kernel; zero where `/proc` is missing.
fn cpu() -> [Nanos; 2] {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    cpu_of(&stat, rustix::param::clock_ticks_per_second()).unwrap_or_default()
}

fn cpu_of(stat: &str, ticks_per_second: u64) -> Option<[Nanos; 2]> {
    // The name, in brackets, may have spaces. User and system time are fields 14 and 15.
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace().skip(11);
    let mut next = || {
        let ticks: u64 = fields.next()?.parse().ok()?;
        Some(Nanos(ticks.checked_mul(1_000_000_000)? / ticks_per_second))
    };
    Some([next()?, next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_those_of_the_rate() {
        let days = |left, erases| life_days(left, erases, Duration::from_secs(86_400));
        assert_eq!((days(3000.0, 1.5), days(0.0, 1.5), days(-4.0, 1.5)), (2000.0, 0.0, 0.0));
    }

    #[test]
    fn cpu_time_is_read() {
        let stat = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 250 25 0 0";
        let expected = [Nanos(2_500_000_000), Nanos(250_000_000)];
        assert_eq!(cpu_of(stat, 100), Some(expected));
        assert_eq!(cpu_of("", 100), None);
    }
}
