//! fio's job options: their meaning here, and which are refused and why.
//!
//! The parser accepts an option if and only if it is in this table, and a test compares
//! docs/spec/fio-options.md with it. Source: fio's HOWTO, version 3.33; data placement and later
//! options: 3.41.

/// Treatment of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It affects the simulation or its report as in fio.
    Simulated,
    /// It is about the machine that fio runs on, which is not simulated.
    Harmless,
    /// Only these values are accepted, which describe what is simulated anyway; others are refused
    /// with [`JobOption::differs`] as the reason.
    Only(&'static [&'static str]),
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
    /// Its meaning.
    pub meaning: &'static str,
    /// Differences from fio; empty if there are none.
    pub differs: &'static str,
}

const fn simulated(
    name: &'static str,
    aliases: &'static [&'static str],
    takes: Takes,
    meaning: &'static str,
    differs: &'static str,
) -> JobOption {
    JobOption { name, aliases, takes, role: Role::Simulated, meaning, differs }
}

const fn harmless(name: &'static str, takes: Takes, meaning: &'static str) -> JobOption {
    JobOption { name, aliases: &[], takes, role: Role::Harmless, meaning, differs: "no effect" }
}

const fn only(
    name: &'static str,
    aliases: &'static [&'static str],
    values: &'static [&'static str],
    meaning: &'static str,
    differs: &'static str,
) -> JobOption {
    JobOption { name, aliases, takes: Takes::Value, role: Role::Only(values), meaning, differs }
}

use Takes::{Flag, Value};

/// All options that are accepted, in the order of the document.
pub const OPTIONS: &[JobOption] = &[
    simulated(
        "name",
        &[],
        Value,
        "begins a job of this name; `global` begins defaults for later jobs",
        "",
    ),
    simulated("description", &[], Value, "text for the report", ""),
    simulated(
        "rw",
        &["readwrite"],
        Value,
        "read, write, trim, rw or readwrite, randread, randwrite, randtrim, randrw, trimwrite, \
         randtrimwrite",
        "a `:count` suffix is refused",
    ),
    simulated(
        "rwmixread",
        &[],
        Value,
        "percentage of reads in a mix",
        "chosen independently for each I/O",
    ),
    simulated(
        "rwmixwrite",
        &[],
        Value,
        "percentage of writes in a mix",
        "chosen independently for each I/O",
    ),
    simulated(
        "bs",
        &["blocksize"],
        Value,
        "size of an I/O, or of reads, writes and trims: 8k,32k,4k",
        "whole sectors of 512 bytes",
    ),
    simulated(
        "bsrange",
        &["blocksize_range"],
        Value,
        "smallest and largest size, such as 4k-16k",
        "all multiples of the smallest are equally likely; in fio the largest is likelier",
    ),
    simulated("bssplit", &[], Value, "sizes with percentages, such as 4k/60:64k/40", ""),
    simulated(
        "ba",
        &["blockalign"],
        Value,
        "random I/Os start at multiples of this; switches the random map off",
        "",
    ),
    simulated(
        "size",
        &[],
        Value,
        "the region of the drive that a job uses, in bytes or percent, and how much it transfers",
        "a region beyond the end of the drive is an error",
    ),
    simulated("io_size", &["io_limit"], Value, "how much a job transfers in all", ""),
    simulated(
        "filesize",
        &[],
        Value,
        "the region of the drive that a job uses; `size` is then only how much it transfers",
        "ranges are refused",
    ),
    simulated(
        "offset",
        &["fileoffset"],
        Value,
        "where the region begins, in bytes or percent of the drive",
        "",
    ),
    simulated(
        "offset_increment",
        &[],
        Value,
        "added to the offset for each further clone made by numjobs",
        "",
    ),
    simulated(
        "iodepth",
        &[],
        Value,
        "I/Os in flight",
        "without ioengine it applies as with libaio (fio's default engine ignores it)",
    ),
    simulated(
        "ioengine",
        &[],
        Value,
        "libaio, io_uring, io_uring_cmd, posixaio; sync, psync, vsync, pvsync, pvsync2 (one I/O at \
         a time)",
        "host time is not simulated, so engines of one kind are equal; others are refused",
    ),
    simulated("numjobs", &[], Value, "clones of the job", ""),
    simulated("number_ios", &[], Value, "the job ends after this many I/Os at the latest", ""),
    simulated(
        "loops",
        &[],
        Value,
        "how often the job is repeated",
        "a new random order each time; no pause in between",
    ),
    simulated(
        "random_distribution",
        &[],
        Value,
        "random, zipf:theta[:center], pareto:h[:center], normal:percent[:center], \
         zoned:percent of I/O/percent of space:..., zoned_abs:percent/size:...",
        "a permutation scatters hot blocks, while with fio's hash some collide; normal is a \
         normal distribution with that deviation, not scattered; one set of zones for reads, \
         writes and trims",
    ),
    simulated("norandommap", &[], Flag, "random I/O without a map of the blocks already used", ""),
    simulated(
        "random_generator",
        &[],
        Value,
        "tausworthe, tausworthe64, lfsr (with lfsr every block comes once, even with norandommap)",
        "the random numbers are Prism's own; lfsr needs a single block size",
    ),
    simulated(
        "randseed",
        &[],
        Value,
        "seed of the job's random choices",
        "without it the choices follow from --seed",
    ),
    simulated(
        "rate",
        &[],
        Value,
        "limit of bytes per second, or one limit each for reads, writes and trims",
        "issue times are exact to the nanosecond",
    ),
    simulated(
        "rate_iops",
        &[],
        Value,
        "limit of I/Os per second (of the smallest size), or one each for reads, writes and trims",
        "issue times are exact to the nanosecond",
    ),
    simulated("rate_process", &[], Value, "linear or poisson", ""),
    simulated(
        "thinktime",
        &[],
        Value,
        "pause after I/Os; microseconds without a unit",
        "I/Os in flight complete first, then the whole pause follows",
    ),
    simulated("thinktime_blocks", &[], Value, "number of I/Os between two pauses", ""),
    simulated(
        "runtime",
        &["timeout"],
        Value,
        "limit of simulated time; seconds without a unit",
        "",
    ),
    simulated("time_based", &[], Flag, "the job is repeated until the runtime is over", ""),
    simulated(
        "ramp_time",
        &[],
        Value,
        "simulated time before the measurement",
        "limits of size and number count from its end; until then the job is repeated",
    ),
    simulated(
        "startdelay",
        &["start_delay"],
        Value,
        "the job starts this long after the run",
        "ranges are refused",
    ),
    simulated(
        "stonewall",
        &["wait_for_previous"],
        Flag,
        "the job starts when all earlier jobs have ended; begins a new reporting group",
        "",
    ),
    simulated("wait_for", &[], Value, "the job starts when the job of this name has ended", ""),
    simulated(
        "prioclass",
        &[],
        Value,
        "1 (real time): I/Os are urgent for a drive whose scheduler knows urgency; 0, 2, 3: not",
        "idle counts as best effort",
    ),
    simulated("new_group", &[], Flag, "begins a new reporting group", ""),
    simulated("group_reporting", &[], Flag, "one row for the jobs of a group", ""),
    simulated(
        "fsync",
        &[],
        Value,
        "a FLUSH after this many writes",
        "the job issues no other I/O until the FLUSH is done, as with libaio",
    ),
    simulated("fdatasync", &[], Value, "same as fsync: a drive has one kind of FLUSH", "as fsync"),
    simulated("sync", &[], Value, "sync, dsync or 1: writes with FUA; none or 0: without", ""),
    simulated("dsync", &[], Flag, "writes with FUA", "fio spells it sync=dsync"),
    simulated("writefua", &[], Flag, "writes with FUA", "with any engine"),
    simulated(
        "fdp",
        &[],
        Flag,
        "writes carry a placement handle of the drive (flexible data placement)",
        "with any engine",
    ),
    simulated(
        "dataplacement",
        &[],
        Value,
        "fdp: same as fdp=1; none: no handles",
        "streams is refused; with any engine",
    ),
    simulated(
        "plids",
        &["fdp_pli"],
        Value,
        "the handles that the job uses, such as 0,2-4; without it all of them",
        "",
    ),
    simulated(
        "plid_select",
        &["fdp_pli_select"],
        Value,
        "roundrobin: each write uses the next handle; random: a random one",
        "scheme is refused",
    ),
    simulated(
        "zonemode",
        &[],
        Value,
        "zbd: writes go to the write pointers of the zones of a zoned drive, random ones to \
         those of random zones; none: zones are ignored, so a zoned drive refuses the job's \
         writes",
        "strided is refused; the offset is rounded up and the end down to whole zones; if all \
         open zones are in other regions, the job finishes one of them, while fio ends the job",
    ),
    simulated("zonesize", &[], Value, "must be that of the drive", ""),
    simulated(
        "max_open_zones",
        &[],
        Value,
        "limit of zones written at once; 0 for as many as the drive allows",
        "",
    ),
    simulated(
        "zone_reset_threshold",
        &[],
        Value,
        "resets begin when this share of the region, from 0 to 1, is written",
        "",
    ),
    simulated(
        "zone_reset_frequency",
        &[],
        Value,
        "share, from 0 to 1, of the writes beyond the threshold that reset their zone first; \
         0 for none",
        "",
    ),
    simulated("end_fsync", &[], Flag, "a FLUSH after all writes of the job", ""),
    simulated(
        "kb_base",
        &[],
        Value,
        "1024: k is 1024 and ki is 1000; 1000: k is 1000 and ki is 1024",
        "the report does not change",
    ),
    simulated("percentile_list", &[], Value, "percentiles in fio's JSON, such as 50:99:99.9", ""),
    simulated("clat_percentiles", &[], Value, "percentiles in clat_ns (1)", ""),
    simulated("lat_percentiles", &[], Value, "percentiles in lat_ns (0)", ""),
    simulated(
        "filename",
        &[],
        Value,
        "a name for the drive",
        "all jobs share the one drive, whatever the name; a list is refused",
    ),
    only("direct", &[], &["1"], "unbuffered I/O", "no page cache is simulated: use direct=1"),
    only("buffered", &[], &["0"], "no page cache", "no page cache is simulated: use buffered=0"),
    only(
        "randrepeat",
        &[],
        &["1"],
        "the same random choices in each run",
        "a run is a function of its options: change --seed or randseed instead",
    ),
    only("allrandrepeat", &[], &["0", "1"], "the same random choices in each run", "always so"),
    only("nrfiles", &["nr_files"], &["1"], "one file", "a drive is one file"),
    only("verify", &[], &["0"], "no verification", "a simulated drive holds no data to verify"),
    only("thinktime_spin", &[], &["0"], "no spinning", "host CPUs are not simulated"),
    only("rw_sequencer", &[], &["sequential"], "plain offsets", "identical is not simulated"),
    only("percentage_random", &[], &["100"], "all of it", "partly random I/O is not simulated"),
    only(
        "unified_rw_reporting",
        &[],
        &["none", "0"],
        "reads and writes are reported apart",
        "always so",
    ),
    only(
        "iodepth_batch",
        &["iodepth_batch_submit"],
        &["1"],
        "one at a time",
        "batches are not simulated",
    ),
    only(
        "iodepth_batch_complete_min",
        &["iodepth_batch_complete"],
        &["0", "1"],
        "one at a time",
        "batches are not simulated",
    ),
    only("cmd_type", &[], &["nvme"], "NVMe commands", "fio has no other"),
    harmless("thread", Flag, "threads or processes"),
    harmless("invalidate", Value, "page cache"),
    harmless("softrandommap", Value, "behaviour without memory for the map"),
    harmless("refill_buffers", Flag, "content of writes"),
    harmless("zero_buffers", Flag, "content of writes"),
    harmless("scramble_buffers", Value, "content of writes"),
    harmless("overwrite", Value, "file layout"),
    harmless("fallocate", Value, "file layout"),
    harmless("allow_mounted_write", Value, "safety of real devices"),
    harmless("mem", Value, "host memory"),
    harmless("iomem", Value, "host memory"),
    harmless("mem_align", Value, "host memory"),
    harmless("iomem_align", Value, "host memory"),
    harmless("lockmem", Value, "host memory"),
    harmless("cpus_allowed", Value, "host CPUs"),
    harmless("cpus_allowed_policy", Value, "host CPUs"),
    harmless("numa_cpu_nodes", Value, "host CPUs"),
    harmless("numa_mem_policy", Value, "host memory"),
    harmless("nice", Value, "host CPUs"),
    harmless("clocksource", Value, "host clock"),
    harmless("disk_util", Value, "host statistics"),
    harmless("unit_base", Value, "units in fio's text output"),
    harmless("hipri", Flag, "polling by the host"),
    harmless("fixedbufs", Flag, "host memory"),
    harmless("registerfiles", Flag, "host system calls"),
    harmless("sqthread_poll", Flag, "host system calls"),
    harmless("sqthread_poll_cpu", Value, "host CPUs"),
    harmless("force_async", Value, "host system calls"),
    harmless("userspace_reap", Flag, "host system calls"),
    harmless("eta", Value, "progress display"),
    harmless("eta-newline", Value, "progress display"),
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
