//! How much memory this process uses, for benchmarks only: no result depends on it.

use std::fs;

/// Bytes of memory that this process uses now, and its peak since [`forget_peak`]; `None` if
/// the system does not report them.
#[must_use]
pub fn held_and_peak() -> Option<(u64, u64)> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some((field(&status, "VmRSS:")?, field(&status, "VmHWM:")?))
}

/// Resets the peak. Returns whether the system supports that.
#[must_use]
pub fn forget_peak() -> bool {
    // 5 resets the peak, see proc_pid_clear_refs(5).
    fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// Bytes of memory that another process uses now, pages of mapped files included; `None` if it is
/// gone.
#[must_use]
pub fn held_by(process: u32) -> Option<u64> {
    field(&fs::read_to_string(format!("/proc/{process}/status")).ok()?, "VmRSS:")
}

/// Seconds of CPU time that another process has used; `None` if it is gone.
#[must_use]
pub fn cpu_of(process: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in brackets, may have spaces. User and system time are fields 14 and 15.
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// A line such as `VmHWM:     1016 kB`, in bytes.
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_bytes() {
        let status = "Name:\tx\nVmHWM:\t    1016 kB\nVmRSS:\t 3 kB\n";
        assert_eq!(field(status, "VmHWM:"), Some(1016 << 10));
        assert_eq!(field(status, "VmRSS:"), Some(3 << 10));
        assert_eq!(field(status, "VmPeak:"), None);
    }
}
