//! The names that programs which watch memcached read.

use std::collections::BTreeMap;

use prism_base::{Nanos, Rng};
use prism_cache::items::Items;
use prism_cache::protocol::{ConnectionReport, Report, Session, Settings, Shared};

use crate::model::Model;

/// The names of `stats` in memcached 1.6.45 without extstore and background threads.
const NAMES: &str = "\
    pid uptime time version libevent pointer_size rusage_user rusage_system max_connections \
    curr_connections \
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

/// What a server with one connection reports.
fn report() -> Report {
    let mut report = Report {
        cpu_user: Nanos(1_234_567_890),
        cpu_system: Nanos(5_000),
        connections: vec![ConnectionReport {
            number: 7,
            address: "tcp:127.0.0.1:5".to_owned(),
            listen_address: Some("tcp:127.0.0.1:11211".to_owned()),
            state: "conn_read",
            idle: 3,
        }],
        ..Report::default()
    };
    report.add("bytes", &4096);
    report.add("cleaning_items_dropped", &5);
    report.add("index_items_dropped", &2);
    report.add("write_amplification", &1.25);
    report
}

/// What is answered to `commands`.
fn answer(commands: &str, mut items: Model, settings: Settings) -> String {
    let mut shared = Shared::new(settings, 1_000_000_000);
    let mut session = Session::new(0);
    for byte in commands.as_bytes().chunks(1) {
        session.receive(byte);
        session.run(&mut items, &mut shared);
        while session.has_work() {
            if shared.wants_report().is_some() {
                assert_eq!(session.state(), "conn_parse_cmd");
                shared.give_report(report());
            }
            items.finished(shared.now, &mut |tag, item| session.read_done(tag, item, &mut shared));
            session.run(&mut items, &mut shared);
        }
    }
    String::from_utf8(session.output().to_vec()).unwrap()
}

/// What `stats` answers after `commands`: names and values, each of them once.
fn stats(commands: &str, items: Model, settings: Settings) -> BTreeMap<String, String> {
    let text = answer(&format!("{commands}stats\r\n"), items, settings);
    let lines = text.strip_suffix("END\r\n").expect("an end").lines();
    let mut stats = BTreeMap::new();
    for line in lines.filter_map(|line| line.strip_prefix("STAT ")) {
        let (name, value) = line.split_once(' ').expect("a value");
        assert_eq!(stats.insert(name.to_owned(), value.to_owned()), None, "{name} is there twice");
    }
    stats
}

#[test]
fn the_names_of_memcached_are_reported_and_no_others() {
    let given = stats("", Model::default(), Settings::default());
    let mut names: Vec<&str> = NAMES.split_whitespace().collect();
    assert_eq!(names.len(), 84);
    names.sort_unstable();
    assert!(given.keys().eq(names.iter()), "{given:?}");
    for (name, value) in [
        ("rusage_user", "1.234567"),
        ("rusage_system", "0.000005"),
        ("bytes", "4096"),
        ("evictions", "7"),
    ] {
        assert_eq!(given[name], value, "{name}");
    }
    // As memcached reports it.
    let settings = Settings { idle_timeout: 10, ..Settings::default() };
    assert_eq!(stats("", Model::default(), settings)["idle_kicks"], "0");
}

#[test]
fn evictions_are_counted_from_the_last_reset() {
    assert_eq!(stats("stats reset\r\n", Model::default(), Settings::default())["evictions"], "0");
}

#[test]
fn connections_and_figures_of_flash_are_those_of_the_server() {
    let given = |command| answer(command, Model::default(), Settings::default());
    assert_eq!(
        given("stats conns\r\n"),
        "STAT 7:addr tcp:127.0.0.1:5\r\nSTAT 7:listen_addr tcp:127.0.0.1:11211\r\n\
         STAT 7:state conn_read\r\nSTAT 7:secs_since_last_cmd 3\r\nEND\r\n"
    );
    assert_eq!(
        given("stats flash\r\n"),
        "STAT bytes 4096\r\nSTAT cleaning_items_dropped 5\r\nSTAT index_items_dropped 2\r\n\
         STAT write_amplification 1.25\r\nEND\r\n"
    );
}

#[test]
fn items_in_memory_are_listed_up_to_a_limit() {
    let items = "set n 0 0 2\r\n10\r\nset t 5 1000000100 4\r\ntext\r\n";
    let given = |command: &str, settings: Settings| {
        let text = answer(&format!("{items}{command}\r\n"), Model::default(), settings);
        text.strip_prefix("STORED\r\nSTORED\r\n").expect("both are stored").to_owned()
    };
    let (n, t) = ("ITEM n [2 b; 0 s]\r\n", "ITEM t [4 b; 1000000100 s]\r\n");
    let listed = |command| given(command, Settings::default());
    assert_eq!(listed("stats cachedump 1 0"), format!("{n}{t}END\r\n"));
    assert_eq!(listed("stats cachedump 1 1"), format!("{n}END\r\n"));
    let settings = Settings { dump_enabled: false, ..Settings::default() };
    let refused = given("stats cachedump 1 0", settings);
    assert_eq!(refused, "CLIENT_ERROR stats cachedump not allowed\r\n");
}

#[test]
fn a_list_of_items_has_a_most_length() {
    let commands = (0..20_000).map(|key| format!("set {key:0>240} 0 0 1 noreply\r\n1\r\n"));
    let commands = commands.collect::<String>() + "stats cachedump 1 0\r\n";
    let text = answer(&commands, Model::default(), Settings::default());
    assert!(text.ends_with("END\r\n") && (2_090_000..=2 << 20).contains(&text.len()));
}

/// A session executes so many commands, and goes on in its next run.
#[test]
fn sessions_yield() {
    let settings = Settings { commands_per_turn: 2, ..Settings::default() };
    let mut shared = Shared::new(settings, 1_000_000_000);
    let (mut items, mut session) = (Model::default(), Session::new(0));
    session.receive(&b"mn\r\n".repeat(5));
    for (answers, yields) in [(2, 1), (4, 2), (5, 2)] {
        session.run(&mut items, &mut shared);
        assert_eq!(session.output(), b"MN\r\n".repeat(answers));
        assert_eq!((session.yields(), shared.counters.conn_yields), (answers < 5, yields));
    }
}

/// A server goes on at once with a session that waited for a report, or whose output it has sent:
/// that is the same turn.
#[test]
fn sessions_yield_between_reports_and_long_answers() {
    for (command, count) in [("stats flash\r\n", 5), ("get k\r\n", 5)] {
        let settings = Settings { commands_per_turn: 2, ..Settings::default() };
        let mut shared = Shared::new(settings, 1_000_000_000);
        let (mut items, mut session) = (Model::default(), Session::new(0));
        let value = "x".repeat(1_000_000);
        session.receive(format!("set k 0 0 {}\r\n{value}\r\n", value.len()).as_bytes());
        session.run(&mut items, &mut shared);
        session.receive(command.repeat(count).as_bytes());
        let mut answers = String::new();
        for (expected, yields) in [(2, 1), (4, 2), (5, 2)] {
            loop {
                session.run(&mut items, &mut shared);
                if shared.wants_report().is_some() {
                    shared.give_report(Report::default());
                    continue;
                }
                answers += std::str::from_utf8(session.output()).unwrap();
                let (sends, bytes) = (session.waits_for_sending(), session.output().len());
                session.sent(bytes);
                if !sends {
                    break;
                }
            }
            let found = answers.matches("END\r\n").count();
            assert_eq!((found, shared.counters.conn_yields), (expected, yields), "{command:?}");
        }
    }
}

#[test]
fn a_session_has_a_state() {
    let check = |input: &[u8], expected| {
        let mut shared = Shared::new(Settings::default(), 1_000_000_000);
        let (mut items, mut session) = (Model::default(), Session::new(0));
        session.receive(input);
        session.run(&mut items, &mut shared);
        assert_eq!(session.state(), expected, "{}", String::from_utf8_lossy(input));
    };
    check(b"", "conn_read");
    check(b"ge", "conn_waiting");
    check(b"set foo 0 0 6\r\n", "conn_nread");
    check(b"set foo 0 0 6\r\nfoo", "conn_nread");
    check(b"mn\r\n", "conn_mwrite");
    check(b"set foo 0 0 2000000\r\nxyz", "conn_swallow");
    check(b"stats\r\n", "conn_parse_cmd");
}

/// An expired item is a miss, and counted as such an item once.
#[test]
fn gets_of_expired_items_are_counted() {
    for get in ["get k\r\nget k\r\n", "gat 0 k\r\ngat 0 k\r\n", "mg k v\r\nmg k v\r\n"] {
        // More than 30 days are a time since 1970, which is over.
        let commands = format!("set other 0 0 1\r\n1\r\nset k 0 2678400 1\r\n1\r\n{get}");
        let stats = stats(&commands, Model::default(), Settings::default());
        let counts = ["get_expired", "get_misses", "get_hits"].map(|name| stats[name].as_str());
        assert_eq!(counts, ["1", "2", "0"], "{get}");
    }
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
        Settings::default(),
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
