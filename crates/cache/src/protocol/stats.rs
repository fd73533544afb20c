//! The command `stats`.

use std::fmt::Display;

use super::Shared;
use crate::items::Items;

fn line(out: &mut Vec<u8>, name: &str, value: &dyn Display) {
    out.extend_from_slice(format!("STAT {name} {value}\r\n").as_bytes());
}

/// Answers `stats`, `stats settings` and others.
pub fn answer(
    out: &mut Vec<u8>,
    what: Option<&[u8]>,
    more: Option<&[u8]>,
    items: &mut dyn Items,
    shared: &mut Shared,
) {
    match what {
        None => general(out, items, shared),
        Some(b"settings") => settings(out, shared),
        Some(b"flash") => items.figures(&mut |name, value| line(out, name, value)),
        Some(b"reset") => {
            let connections = shared.counters.curr_connections;
            shared.counters = <_>::default();
            shared.counters.curr_connections = connections;
            shared.prefixes.counts.clear();
            out.extend_from_slice(b"RESET\r\n");
            return;
        }
        // There are no classes of slabs, and connections are not listed.
        Some(b"items" | b"slabs" | b"conns") => {}
        Some(b"sizes") => line(out, "sizes_status", &"disabled"),
        Some(b"detail") => match more {
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

/// Names that memcached reports and for which there is nothing here; they stay 0 so that programs
/// which read them go on.
const NOTHING: [&str; 47] = [
    "response_obj_oom",
    "response_obj_count",
    "response_obj_bytes",
    "read_buf_count",
    "read_buf_bytes",
    "read_buf_bytes_free",
    "read_buf_oom",
    "reserved_fds",
    "unexpected_napi_ids",
    "round_robin_fallback",
    "touch_flushed",
    "time_in_listen_disabled_us",
    "listen_disabled_num",
    "hash_is_expanding",
    "slab_reassign_rescues",
    "slab_reassign_chunk_rescues",
    "slab_reassign_inline_reclaim",
    "slab_reassign_busy_items",
    "slab_reassign_busy_deletes",
    "slab_reassign_running",
    "slabs_moved",
    "lru_crawler_running",
    "lru_crawler_starts",
    "lru_maintainer_juggles",
    "malloc_fails",
    "log_worker_dropped",
    "log_worker_written",
    "libevent",
    "hash_power_level",
    "slab_reassign_busy_nomem",
    "slab_reassign_last_busy_status",
    "log_watcher_skipped",
    "log_watcher_sent",
    "log_watchers",
    "slab_global_page_pool",
    "expired_unfetched",
    "evicted_unfetched",
    "evicted_active",
    "reclaimed",
    "crawler_reclaimed",
    "crawler_items_checked",
    "lrutail_reflocked",
    "moves_to_cold",
    "moves_to_warm",
    "moves_within_lru",
    "direct_reclaims",
    "lru_bumps_dropped",
];

fn general(out: &mut Vec<u8>, items: &mut dyn Items, shared: &Shared) {
    let counters = &shared.counters;
    let mut figures = std::collections::BTreeMap::new();
    items.figures(&mut |name, value| {
        figures.insert(name.to_owned(), value.to_string());
    });
    let figure = |name: &str| figures.get(name).cloned().unwrap_or_else(|| "0".to_owned());
    line(out, "pid", &shared.settings.pid);
    line(out, "uptime", &shared.now.saturating_sub(shared.started));
    line(out, "time", &shared.now);
    line(out, "version", &super::VERSION);
    line(out, "pointer_size", &64);
    let named: [(&str, u64); 33] = [
        ("max_connections", shared.settings.maxconns.into()),
        ("curr_connections", counters.curr_connections),
        ("total_connections", counters.total_connections),
        ("rejected_connections", counters.rejected_connections),
        ("connection_structures", counters.curr_connections),
        ("cmd_get", counters.cmd_get),
        ("cmd_set", counters.cmd_set),
        ("cmd_flush", counters.cmd_flush),
        ("cmd_touch", counters.cmd_touch),
        ("cmd_meta", counters.cmd_meta),
        ("get_hits", counters.get_hits),
        ("get_misses", counters.get_misses),
        ("get_expired", counters.get_expired),
        ("get_flushed", counters.get_flushed),
        ("delete_misses", counters.delete_misses),
        ("delete_hits", counters.delete_hits),
        ("incr_misses", counters.incr_misses),
        ("incr_hits", counters.incr_hits),
        ("decr_misses", counters.decr_misses),
        ("decr_hits", counters.decr_hits),
        ("cas_misses", counters.cas_misses),
        ("cas_hits", counters.cas_hits),
        ("cas_badval", counters.cas_badval),
        ("touch_hits", counters.touch_hits),
        ("touch_misses", counters.touch_misses),
        ("store_too_large", counters.store_too_large),
        ("store_no_memory", counters.store_no_memory),
        ("auth_cmds", counters.auth_cmds),
        ("auth_errors", counters.auth_errors),
        ("idle_kicks", counters.idle_kicks),
        ("bytes_read", counters.bytes_read),
        ("bytes_written", counters.bytes_written),
        ("limit_maxbytes", shared.settings.memory_bytes),
    ];
    for (name, value) in named {
        line(out, name, &value);
    }
    line(out, "accepting_conns", &1);
    line(out, "threads", &1);
    line(out, "conn_yields", &counters.conn_yields);
    line(out, "curr_items", &items.len());
    line(out, "total_items", &counters.total_items);
    for name in NOTHING {
        line(out, name, &0);
    }
    for (name, from) in
        [("bytes", "bytes"), ("evictions", "cleaning_items_dropped"), ("hash_bytes", "index_bytes")]
    {
        line(out, name, &figure(from));
    }
    for (name, value) in figures.iter().filter(|(name, _)| !matches!(name.as_str(), "bytes")) {
        line(out, name, value);
    }
}

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
    line(out, "cas_enabled", &yes(true));
    line(out, "auth_enabled_ascii", &yes(settings.auth.is_some()));
    line(out, "idle_timeout", &settings.idle_timeout);
    line(out, "maxconns_fast", &yes(true));
    line(out, "flush_enabled", &yes(settings.flush_enabled));
    line(out, "shutdown_command", &yes(settings.shutdown_enabled));
    line(out, "binding_protocol", &"ascii");
    line(out, "auth_enabled_sasl", &yes(false));
    line(out, "evictions", &"on");
    line(out, "dump_enabled", &yes(false));
    line(out, "detail_enabled", &yes(shared.prefixes.on));
    line(out, "stat_key_prefix", &":");
    line(out, "client_flags_size", &4);
}
