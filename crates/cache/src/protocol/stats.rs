//! The command `stats`.

use std::fmt::Display;

use prism_base::Nanos;

use super::{ConnectionReport, Report, ReportPart, Shared, numbers};
use crate::items::Items;

fn line(out: &mut Vec<u8>, name: &str, value: &dyn Display) {
    out.extend_from_slice(format!("STAT {name} {value}\r\n").as_bytes());
}

/// What `stats` with this word needs of the server.
pub fn needs_report(what: Option<&[u8]>) -> Option<ReportPart> {
    match what {
        None | Some(b"flash" | b"reset") => Some(ReportPart::Figures),
        Some(b"conns") => Some(ReportPart::Connections),
        Some(_) => None,
    }
}

/// Answers `stats`, `stats settings` and others.
pub fn answer(
    out: &mut Vec<u8>,
    what: Option<&[u8]>,
    more: &mut dyn Iterator<Item = &[u8]>,
    items: &mut dyn Items,
    shared: &mut Shared,
) {
    let report = shared.report.take().unwrap_or_default();
    match what {
        None => {
            for (name, value) in general(items.len(), shared, &report) {
                line(out, name, &value);
            }
        }
        Some(b"settings") => settings(out, shared),
        Some(b"flash") => report.figures.iter().for_each(|(name, value)| line(out, name, value)),
        Some(b"conns") => report.connections.iter().for_each(|found| connection(out, found)),
        Some(b"reset") => {
            let connections = shared.counters.curr_connections;
            shared.counters = <_>::default();
            shared.counters.curr_connections = connections;
            shared.evictions_before = evictions(&report);
            shared.prefixes.counts.clear();
            out.extend_from_slice(b"RESET\r\n");
            return;
        }
        // There are no classes of slabs.
        Some(b"items" | b"slabs") => {}
        Some(b"cachedump") if !shared.settings.dump_enabled => {
            return out.extend_from_slice(b"CLIENT_ERROR stats cachedump not allowed\r\n");
        }
        Some(b"cachedump") => {
            if let Err(refused) = dump(out, more, items, shared.now) {
                return out.extend_from_slice(format!("CLIENT_ERROR {refused}\r\n").as_bytes());
            }
        }
        Some(b"sizes") => line(out, "sizes_status", &"disabled"),
        Some(b"detail") => match more.next() {
            Some(word @ (b"on" | b"off")) => {
                shared.prefixes.on = word == b"on";
                return out.extend_from_slice(b"OK\r\n");
            }
            Some(b"dump") => {
                for (prefix, [gets, hits, sets, deletes]) in &shared.prefixes.counts {
                    out.extend_from_slice(b"PREFIX ");
                    out.extend_from_slice(prefix);
                    let counts = format!(" get {gets} hit {hits} set {sets} del {deletes}\r\n");
                    out.extend_from_slice(counts.as_bytes());
                }
            }
            _ => {
                return out.extend_from_slice(b"CLIENT_ERROR usage: stats detail on|off|dump\r\n");
            }
        },
        Some(_) => {
            out.extend_from_slice(b"ERROR\r\n");
            return;
        }
    }
    out.extend_from_slice(b"END\r\n");
}

/// Bytes of the longest list of items, as in memcached.
const DUMP_MAX: usize = 2 << 20;
/// Bytes of the longest line of one, without its key.
const DUMPED_LINE: usize = 64;
/// The class of slabs whose list has the items in memory: programs ask for those of all classes.
const DUMPED_CLASS: u64 = 1;
/// The first number that is not of a class in memcached.
const CLASSES: u64 = 64;

/// Lists items in memory: `stats cachedump CLASS LIMIT`, where 0 is no limit.
fn dump(
    out: &mut Vec<u8>,
    words: &mut dyn Iterator<Item = &[u8]>,
    items: &dyn Items,
    now: u32,
) -> Result<(), &'static str> {
    let (Some(class), Some(limit)) = (words.next(), words.next()) else {
        return Err("bad command line");
    };
    let (Some(class), Some(limit)) = (numbers::unsigned(class), numbers::unsigned(limit)) else {
        return Err("bad command line format");
    };
    if class >= CLASSES {
        return Err("Illegal slab id");
    }
    if class != DUMPED_CLASS {
        return Ok(());
    }
    let mut left = if limit == 0 { u64::MAX } else { limit };
    let end = out.len() + DUMP_MAX;
    items.buffered(now, &mut |item| {
        if out.len() + item.key.len() + DUMPED_LINE > end {
            return false;
        }
        // Keys of meta commands may be any bytes, also those that end lines and answers.
        if item.key.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
            return true;
        }
        out.extend_from_slice(b"ITEM ");
        out.extend_from_slice(item.key);
        let rest = format!(" [{} b; {} s]\r\n", item.value.len(), item.meta.expires);
        out.extend_from_slice(rest.as_bytes());
        left -= 1;
        left > 0
    });
    Ok(())
}

fn connection(out: &mut Vec<u8>, found: &ConnectionReport) {
    let number = found.number;
    line(out, &format!("{number}:addr"), &found.address);
    if let Some(address) = &found.listen_address {
        line(out, &format!("{number}:listen_addr"), address);
    }
    line(out, &format!("{number}:state"), &found.state);
    line(out, &format!("{number}:secs_since_last_cmd"), &found.idle);
}

/// Items that went to make space.
fn evictions(report: &Report) -> u64 {
    let dropped = ["cleaning_items_dropped", "index_items_dropped"];
    dropped.iter().filter_map(|name| report.whole(name)).sum()
}

/// The figures of `stats`: the names of memcached 1.6.45 without extstore and without its threads
/// for the LRU, in its order. Names for which there is nothing here are 0, so that programs which
/// read them go on.
pub fn general(len: u64, shared: &Shared, report: &Report) -> Vec<(&'static str, String)> {
    let (counters, settings) = (&shared.counters, &shared.settings);
    let seconds = |time: Nanos| format!("{}.{:06}", time.0 / NANOS, time.0 % NANOS / 1000);
    let mut figures = vec![
        ("pid", settings.pid.to_string()),
        ("uptime", shared.now.saturating_sub(shared.started).to_string()),
        ("time", shared.now.to_string()),
        ("version", super::VERSION.to_owned()),
        ("libevent", "0".to_owned()),
        ("pointer_size", "64".to_owned()),
        ("rusage_user", seconds(report.cpu_user)),
        ("rusage_system", seconds(report.cpu_system)),
    ];
    let idle_kicks = [("idle_kicks", counters.idle_kicks)];
    let whole = |name| report.whole(name).unwrap_or(0);
    let numbers = of_connections(shared)
        .into_iter()
        .chain(counters.of_commands())
        .chain(idle_kicks.into_iter().filter(|_| settings.idle_timeout > 0))
        .chain([
            ("bytes_read", counters.bytes_read),
            ("bytes_written", counters.bytes_written),
            ("limit_maxbytes", settings.memory_bytes),
            ("accepting_conns", 1),
            ("listen_disabled_num", 0),
            ("time_in_listen_disabled_us", 0),
            ("threads", 1),
            ("conn_yields", counters.conn_yields),
            ("hash_power_level", 0),
            ("hash_bytes", whole("index_bytes")),
        ])
        .chain(NOTHING_OF_SLABS.map(|name| (name, 0)))
        .chain([
            ("bytes", whole("bytes")),
            ("curr_items", len),
            ("total_items", counters.total_items),
            ("slab_global_page_pool", 0),
            ("expired_unfetched", 0),
            ("evicted_unfetched", 0),
            ("evictions", evictions(report).saturating_sub(shared.evictions_before)),
        ])
        .chain(NOTHING_OF_LRU.map(|name| (name, 0)));
    figures.extend(numbers.map(|(name, value)| (name, value.to_string())));
    figures
}

const NANOS: u64 = 1_000_000_000;

fn of_connections(shared: &Shared) -> [(&'static str, u64); 13] {
    let counters = &shared.counters;
    [
        ("max_connections", shared.settings.maxconns.into()),
        ("curr_connections", counters.curr_connections),
        ("total_connections", counters.total_connections),
        ("rejected_connections", counters.rejected_connections),
        ("connection_structures", counters.curr_connections),
        ("response_obj_oom", 0),
        ("response_obj_count", 0),
        ("response_obj_bytes", 0),
        ("read_buf_count", 0),
        ("read_buf_bytes", 0),
        ("read_buf_bytes_free", 0),
        ("read_buf_oom", 0),
        ("reserved_fds", 0),
    ]
}

/// Names about memcached's hash table, slabs, log and sockets.
const NOTHING_OF_SLABS: [&str; 18] = [
    "hash_is_expanding",
    "slab_reassign_rescues",
    "slab_reassign_chunk_rescues",
    "slab_reassign_inline_reclaim",
    "slab_reassign_busy_items",
    "slab_reassign_busy_deletes",
    "slab_reassign_busy_nomem",
    "slab_reassign_last_busy_status",
    "slab_reassign_running",
    "slabs_moved",
    "malloc_fails",
    "log_worker_dropped",
    "log_worker_written",
    "log_watcher_skipped",
    "log_watcher_sent",
    "log_watchers",
    "unexpected_napi_ids",
    "round_robin_fallback",
];

/// Names about memcached's LRU.
const NOTHING_OF_LRU: [&str; 4] =
    ["reclaimed", "crawler_reclaimed", "crawler_items_checked", "lrutail_reflocked"];

fn settings(out: &mut Vec<u8>, shared: &Shared) {
    let settings = &shared.settings;
    let yes = |value: bool| if value { "yes" } else { "no" };
    line(out, "maxbytes", &settings.memory_bytes);
    line(out, "maxconns", &settings.maxconns);
    line(out, "tcpport", &settings.port);
    line(out, "udpport", &0);
    line(out, "verbosity", &settings.verbosity);
    line(out, "domain_socket", &settings.socket.as_deref().unwrap_or("NULL"));
    line(out, "item_size_max", &settings.item_max);
    line(out, "num_threads", &1);
    line(out, "reqs_per_event", &settings.commands_per_turn);
    line(out, "tcp_backlog", &settings.backlog);
    line(out, "cas_enabled", &yes(true));
    line(out, "auth_enabled_ascii", &yes(settings.auth.is_some()));
    line(out, "idle_timeout", &settings.idle_timeout);
    line(out, "maxconns_fast", &yes(true));
    line(out, "flush_enabled", &yes(settings.flush_enabled));
    line(out, "shutdown_command", &yes(settings.shutdown_enabled));
    line(out, "binding_protocol", &settings.binding_protocol);
    line(out, "auth_enabled_sasl", &yes(false));
    line(out, "evictions", &"on");
    line(out, "dump_enabled", &yes(settings.dump_enabled));
    line(out, "detail_enabled", &yes(shared.prefixes.on));
    line(out, "stat_key_prefix", &":");
    line(out, "client_flags_size", &4);
}
