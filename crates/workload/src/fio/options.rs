//! fio's job options: which are accepted, and which are refused and why.
//!
//! The parser accepts an option if and only if it is in this table. docs/spec/fio-options.md says
//! what each means, and a test compares its names, values and reasons with those here. Source:
//! fio's HOWTO, version 3.33; data placement and later options: 3.41.

/// Treatment of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It affects the simulation or its report as in fio.
    Simulated,
    /// It is about the machine that fio runs on, which is not simulated.
    Harmless,
    /// Only these values are accepted, which describe what is simulated anyway; others are refused
    /// for this reason.
    Only(&'static [&'static str], &'static str),
}

/// Whether an option needs a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// No value, or 0 or 1.
    Flag,
    /// A value is required.
    Value,
}

/// An option that is accepted.
#[derive(Clone, Copy, Debug)]
pub struct JobOption {
    /// Its name.
    pub name: &'static str,
    /// Its other names.
    pub aliases: &'static [&'static str],
    /// Whether it needs a value.
    pub takes: Takes,
    /// Its treatment.
    pub role: Role,
}

type Names = &'static [&'static str];

const fn simulated(name: &'static str, aliases: Names, takes: Takes) -> JobOption {
    JobOption { name, aliases, takes, role: Role::Simulated }
}

const fn harmless(name: &'static str, takes: Takes) -> JobOption {
    JobOption { name, aliases: &[], takes, role: Role::Harmless }
}

const fn only(name: &'static str, aliases: Names, values: Names, why: &'static str) -> JobOption {
    JobOption { name, aliases, takes: Takes::Value, role: Role::Only(values, why) }
}

use Takes::{Flag, Value};

/// All options that are accepted, in the order of the document.
pub const OPTIONS: &[JobOption] = &[
    simulated("name", &[], Value),
    simulated("description", &[], Value),
    simulated("rw", &["readwrite"], Value),
    simulated("rwmixread", &[], Value),
    simulated("rwmixwrite", &[], Value),
    simulated("bs", &["blocksize"], Value),
    simulated("bsrange", &["blocksize_range"], Value),
    simulated("bssplit", &[], Value),
    simulated("ba", &["blockalign"], Value),
    simulated("size", &[], Value),
    simulated("io_size", &["io_limit"], Value),
    simulated("filesize", &[], Value),
    simulated("offset", &["fileoffset"], Value),
    simulated("offset_increment", &[], Value),
    simulated("iodepth", &[], Value),
    simulated("ioengine", &[], Value),
    simulated("numjobs", &[], Value),
    simulated("number_ios", &[], Value),
    simulated("loops", &[], Value),
    simulated("random_distribution", &[], Value),
    simulated("norandommap", &[], Flag),
    simulated("random_generator", &[], Value),
    simulated("randseed", &[], Value),
    simulated("rate", &[], Value),
    simulated("rate_iops", &[], Value),
    simulated("rate_process", &[], Value),
    simulated("thinktime", &[], Value),
    simulated("thinktime_blocks", &[], Value),
    simulated("runtime", &["timeout"], Value),
    simulated("time_based", &[], Flag),
    simulated("ramp_time", &[], Value),
    simulated("startdelay", &["start_delay"], Value),
    simulated("stonewall", &["wait_for_previous"], Flag),
    simulated("wait_for", &[], Value),
    simulated("prioclass", &[], Value),
    simulated("new_group", &[], Flag),
    simulated("group_reporting", &[], Flag),
    simulated("fsync", &[], Value),
    simulated("fdatasync", &[], Value),
    simulated("sync", &[], Value),
    simulated("dsync", &[], Flag),
    simulated("writefua", &[], Flag),
    simulated("fdp", &[], Flag),
    simulated("dataplacement", &[], Value),
    simulated("plids", &["fdp_pli"], Value),
    simulated("plid_select", &["fdp_pli_select"], Value),
    simulated("zonemode", &[], Value),
    simulated("zonesize", &[], Value),
    simulated("max_open_zones", &[], Value),
    simulated("zone_reset_threshold", &[], Value),
    simulated("zone_reset_frequency", &[], Value),
    simulated("end_fsync", &[], Flag),
    simulated("kb_base", &[], Value),
    simulated("percentile_list", &[], Value),
    simulated("clat_percentiles", &[], Value),
    simulated("lat_percentiles", &[], Value),
    simulated("filename", &[], Value),
    only("direct", &[], &["1"], "no page cache is simulated: use direct=1"),
    only("buffered", &[], &["0"], "no page cache is simulated: use buffered=0"),
    only(
        "randrepeat",
        &[],
        &["1"],
        "a run is a function of its options: change --seed or randseed instead",
    ),
    only("allrandrepeat", &[], &["0", "1"], "always so"),
    only("nrfiles", &["nr_files"], &["1"], "a drive is one file"),
    only("verify", &[], &["0"], "a simulated drive holds no data to verify"),
    only("thinktime_spin", &[], &["0"], "host CPUs are not simulated"),
    only("rw_sequencer", &[], &["sequential"], "identical is not simulated"),
    only("percentage_random", &[], &["100"], "partly random I/O is not simulated"),
    only("unified_rw_reporting", &[], &["none", "0"], "always so"),
    only("iodepth_batch", &["iodepth_batch_submit"], &["1"], "batches are not simulated"),
    only(
        "iodepth_batch_complete_min",
        &["iodepth_batch_complete"],
        &["0", "1"],
        "batches are not simulated",
    ),
    only("cmd_type", &[], &["nvme"], "fio has no other"),
    harmless("thread", Flag),
    harmless("invalidate", Value),
    harmless("softrandommap", Value),
    harmless("refill_buffers", Flag),
    harmless("zero_buffers", Flag),
    harmless("scramble_buffers", Value),
    harmless("overwrite", Value),
    harmless("fallocate", Value),
    harmless("allow_mounted_write", Value),
    harmless("mem", Value),
    harmless("iomem", Value),
    harmless("mem_align", Value),
    harmless("iomem_align", Value),
    harmless("lockmem", Value),
    harmless("cpus_allowed", Value),
    harmless("cpus_allowed_policy", Value),
    harmless("numa_cpu_nodes", Value),
    harmless("numa_mem_policy", Value),
    harmless("nice", Value),
    harmless("clocksource", Value),
    harmless("disk_util", Value),
    harmless("unit_base", Value),
    harmless("hipri", Flag),
    harmless("fixedbufs", Flag),
    harmless("registerfiles", Flag),
    harmless("sqthread_poll", Flag),
    harmless("sqthread_poll_cpu", Value),
    harmless("force_async", Value),
    harmless("userspace_reap", Flag),
    harmless("eta", Value),
    harmless("eta-newline", Value),
];

/// Options of fio that would change results and are not simulated.
pub const NOT_SIMULATED: &str = "\
    lockfile opendir directory filename_format unique_filename bs_unaligned blocksize_unaligned \
    bs_is_seq_rand ignore_error iodepth_batch_complete_max iodepth_low serialize_overlap \
    io_submit_mode fill_device fill_fs file_append offset_align file_service_type openfiles \
    fadvise_hint write_barrier sync_file_range atomic verify_only do_verify verify_interval \
    verify_offset verify_pattern verify_fatal verify_dump verify_async verify_backlog \
    verify_backlog_batch experimental_verify verify_state_load verify_state_save trim_percentage \
    trim_verify_zero trim_backlog trim_backlog_batch write_iolog read_iolog read_iolog_chunked \
    replay_no_stall replay_redirect replay_scale replay_align replay_time_scale replay_skip \
    merge_blktrace_file merge_blktrace_scalars merge_blktrace_iters exec_prerun exec_postrun \
    ioscheduler zonecapacity zonerange zoneskip read_beyond_wp job_max_open_zones \
    ignore_zone_limits prio cmdprio_percentage thinktime_blocks_type thinktime_iotime rate_min \
    rate_cycle rate_ignore_thinktime rate_iops_min max_latency latency_target latency_window \
    latency_percentile latency_run write_hint create_serialize create_fsync create_on_open \
    create_only allow_file_create pre_read cpumask fsync_on_close unlink unlink_each_loop exitall \
    exit_what exitall_on_error per_job_logs write_bw_log bwavgtime write_lat_log write_iops_log \
    iopsavgtime log_entries log_avg_msec log_hist_msec log_hist_coarseness write_hist_log \
    log_max_value log_offset log_prio log_compression log_compression_cpus log_store_compressed \
    log_unix_epoch log_alternate_epoch block_error_percentiles stats buffer_pattern \
    buffer_compress_percentage buffer_compress_chunk dedupe_percentage dedupe_mode \
    dedupe_working_set_percentage dedupe_global slat_percentiles significant_figures gtod_reduce \
    disable_lat disable_clat disable_slat disable_bw_measurement gtod_cpu continue_on_error \
    error_dump profile cgroup cgroup_nodelete cgroup_weight uid gid hugepage-size flow_id flow \
    flow_sleep steadystate steadystate_duration steadystate_ramp_time nonvectored minimal section \
    showcmd readonly status-interval client server parse-only debug cmdprio cmdprio_bssplit \
    cmdprio_class cmdprio_hint priohint nowait uncached readfua stream_id sg_write_mode \
    write_mode verify_mode num_range md_per_io_size pi_act pi_chk apptag apptag_mask dp_scheme \
    thinkcycles sprandom spr_op spr_num_regions recover_zbd_write_error verify_async_cpus \
    verify_header_seed verify_pattern_interval verify_write_sequence log_issue_time \
    log_window_value log_alternate_epoch_clock_id job_start_clock_id steadystate_check_interval \
    ss ss_dur ss_ramp ss_interval disable_bw filetype hipri_percentage xnvme_admin xnvme_async \
    xnvme_dev_nsid xnvme_dev_subnqn xnvme_mem xnvme_sync";

/// The option called `name`, by any of its names.
#[must_use]
pub fn find(name: &str) -> Option<&'static JobOption> {
    OPTIONS.iter().find(|option| option.name == name || option.aliases.contains(&name))
}

/// Whether fio knows an option that is not simulated.
#[must_use]
pub fn fio_has(name: &str) -> bool {
    NOT_SIMULATED.split_whitespace().any(|option| option == name)
}

/// Names close to `name`, the closest first, as ` (did you mean a, b?)`; empty if none is
/// close.
#[must_use]
pub fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let limit = 1 + name.len() / 4;
    let mut close: Vec<(usize, &str)> =
        known.map(|other| (distance(name, other), other)).filter(|&(d, _)| d <= limit).collect();
    close.sort_unstable();
    let names: Vec<_> = close.into_iter().take(3).map(|(_, name)| name).collect();
    if names.is_empty() { String::new() } else { format!(" (did you mean {}?)", names.join(", ")) }
}

/// All names that are accepted.
pub fn names() -> impl Iterator<Item = &'static str> {
    OPTIONS
        .iter()
        .flat_map(|option| std::iter::once(option.name).chain(option.aliases.iter().copied()))
}

/// Edit distance: insertions, deletions, replacements, and swaps of two neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replace.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_listed_once() {
        let mut all: Vec<_> = names().chain(NOT_SIMULATED.split_whitespace()).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn near_names_are_found() {
        assert_eq!(near("iodpeth", names()), " (did you mean iodepth?)");
        assert_eq!(near("rwmixraed", names()), " (did you mean rwmixread?)");
        assert_eq!(near("completely_else", names()), "");
    }
}
