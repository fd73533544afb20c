//! The names that programs which watch memcached read.

use std::collections::BTreeMap;

use prism_base::Rng;
use prism_cache::items::Items;
use prism_cache::protocol::{Session, Settings, Shared};

use crate::model::Model;

/// The names of `stats` in memcached 1.6.45 without extstore and background threads, but for those
/// of CPU time.
const NAMES: &str = "\
    pid uptime time version libevent pointer_size max_connections curr_connections \
    total_connections rejected_connections connection_structures response_obj_oom \
    response_obj_count response_obj_bytes read_buf_count read_buf_bytes read_buf_bytes_free \
    read_buf_oom reserved_fds cmd_get cmd_set cmd_flush cmd_touch cmd_meta get_hits get_misses \
    get_expired get_flushed delete_misses delete_hits incr_misses incr_hits decr_misses \
    decr_hits cas_misses cas_hits cas_badval touch_hits touch_misses store_too_large \
    store_no_memory auth_cmds auth_errors bytes_read bytes_written limit_maxbytes \
    accepting_conns listen_disabled_num time_in_listen_disabled_us threads conn_yields \
    hash_power_level hash_bytes hash_is_expanding slab_reassign_rescues \
    slab_reassign_chunk_rescues slab_reassign_inline_reclaim slab_reassign_busy_items \
    slab_reassign_busy_deletes slab_reassign_busy_nomem slab_reassign_last_busy_status \
    slab_reassign_running slabs_moved malloc_fails log_worker_dropped log_worker_written \
    log_watcher_skipped log_watcher_sent log_watchers unexpected_napi_ids round_robin_fallback \
    bytes curr_items total_items slab_global_page_pool expired_unfetched evicted_unfetched \
    evictions reclaimed crawler_reclaimed crawler_items_checked lrutail_reflocked";

/// What `stats` answers after `commands`: names and values, each of them once.
fn stats(commands: &str, mut items: Model) -> BTreeMap<String, String> {
    let mut shared = Shared::new(Settings::default(), 1_000_000_000);
    let mut session = Session::new(0);
    for byte in format!("{commands}stats\r\n").as_bytes().chunks(1) {
        session.receive(byte);
        session.run(&mut items, &mut shared);
        while session.has_work() {
            items.finished(shared.now, &mut |tag, item| session.read_done(tag, item, &mut shared));
            session.run(&mut items, &mut shared);
        }
    }
    let text = String::from_utf8(session.output().to_vec()).unwrap();
    let lines = text.strip_suffix("END\r\n").expect("an end").lines();
    let mut stats = BTreeMap::new();
    for line in lines.filter_map(|line| line.strip_prefix("STAT ")) {
        let (name, value) = line.split_once(' ').expect("a value");
        assert_eq!(stats.insert(name.to_owned(), value.to_owned()), None, "{name} is there twice");
    }
    stats
}

#[test]
fn the_names_of_memcached_are_reported() {
    let stats = stats("", Model::default());
    let missing = |name: &&str| !stats.contains_key(*name);
    let missing: Vec<&str> = NAMES.split_whitespace().filter(missing).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Each command is counted once, although some wait for a read or for space and are repeated.
#[test]
fn random_delays_do_not_change_what_is_counted() {
    commands_are_counted(Model::default());
    for seed in prism_testkit::seeds(0..50) {
        commands_are_counted(Model::late(Rng::stream(seed, "late")));
    }
}

fn commands_are_counted(items: Model) {
    let stats = stats(
        "set a 0 0 1\r\n1\r\nget a b\r\ngat 0 a\r\nincr a 1\r\n\
         incr b 1\r\ndecr a 1\r\ndecr b 1\r\ncas a 0 0 1 999\r\n1\r\ncas b 0 0 1 1\r\n1\r\n\
         touch a 0\r\ntouch b 0\r\ndelete a\r\ndelete a\r\n\
         mg a N0 v\r\nma b N0\r\nms c 1\r\n1\r\nflush_all\r\n",
        items,
    );
    for (name, value) in [
        ("cmd_set", 4),
        ("cmd_get", 4),
        ("get_hits", 2),
        ("get_misses", 2),
        ("cmd_touch", 3),
        ("touch_hits", 2),
        ("touch_misses", 1),
        ("incr_hits", 1),
        ("incr_misses", 2),
        ("decr_hits", 1),
        ("decr_misses", 1),
        ("cas_badval", 1),
        ("cas_misses", 1),
        ("delete_hits", 1),
        ("delete_misses", 1),
        ("cmd_meta", 3),
        ("cmd_flush", 1),
        ("curr_items", 0),
    ] {
        assert_eq!(stats[name], value.to_string(), "{name}");
    }
}
