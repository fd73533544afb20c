//! The protocol on a cache without flash: however input is divided and reads are delayed, the
//! answers are the same; and what a client can make a session keep is bounded.

use prism_base::Rng;
use prism_cache::items::Items;
use prism_cache::protocol::{READS, Session, Settings, Shared};
use prism_testkit::{all_seeds, seeds};

use crate::model::{LONGEST, Model};

/// The output of a session to which a client sends `input` in pieces of up to `piece` bytes.
fn output(input: &[u8], piece: usize, rng: &mut Rng, items: &mut Model) -> Vec<u8> {
    // Whether a session yields must not change what it answers.
    let settings = Settings { commands_per_turn: 7, ..Settings::default() };
    let mut shared = Shared::new(settings, 1_000_000_000);
    let mut session = Session::new(7);
    let (mut at, mut out) = (0, Vec::new());
    loop {
        session.run(items, &mut shared);
        out.extend_from_slice(session.output());
        session.sent(session.output().len());
        let late = items.finished(shared.now, &mut |tag, item| {
            session.read_done(tag, item, &mut shared);
        });
        if at < input.len() && session.wants_input() {
            let end = input.len().min(at + 1 + rng.below(piece as u64) as usize);
            session.receive(&input[at..end]);
            at = end;
        } else if !late
            && !session.is_waiting_for_room()
            && !session.waits_for_sending()
            && !session.yields()
        {
            break;
        }
    }
    assert!(session.is_closing() || session.reads() == 0 && session.output().is_empty());
    assert!(at == input.len() || session.is_closing(), "input is left: {at}");
    out
}

/// One of `words`.
fn one<'a>(rng: &mut Rng, words: &[&'a str]) -> &'a str {
    words[rng.below(words.len() as u64) as usize]
}

/// A command of the text protocol, mostly right.
fn text_command(rng: &mut Rng, key: &str) -> String {
    let time = one(rng, &["0", "0", "100", "-1", "3000000000", "x"]);
    let noreply = one(rng, &["", "", "", " noreply"]);
    let value = one(rng, &["", "1", "25", "18446744073709551615", "text", "a\r\nb"]);
    let len = value.len();
    let number = rng.below(6);
    match rng.below(14) {
        0..3 => {
            let name = one(rng, &["set", "set", "add", "replace", "append", "prepend"]);
            format!("{name} {key} {number} {time} {len}{noreply}\r\n{value}\r\n")
        }
        3 => format!("cas {key} 0 {time} {len} {number}{noreply}\r\n{value}\r\n"),
        4..7 => format!("{} {key} {}\r\n", one(rng, &["get", "gets"]), one(rng, &["", "a b c"])),
        7 => format!("{} {time} {key} b\r\n", one(rng, &["gat", "gats"])),
        8 | 9 => format!("{} {key} {number}{noreply}\r\n", one(rng, &["incr", "decr"])),
        10 => format!("delete {key}{noreply}\r\n"),
        11 => format!("touch {key} {time}{noreply}\n"),
        12 => format!("{}\r\n", one(rng, &["mn", "version", "flush_all", "verbosity 1", "get"])),
        _ => {
            let name = one(rng, &["set", "get", "ms", "mg", "x", "", "incr"]);
            format!("{name} {} {key}\r\n", one(rng, &["", "0 0 0", "2"]))
        }
    }
}

/// A meta command, mostly right.
fn meta_command(rng: &mut Rng, key: &str) -> String {
    let all = [
        "v", "c", "f", "h", "k", "l", "s", "t", "q", "u", "Oabc", "T30", "T-1", "N60", "R40", "I",
        "x", "C3", "E9", "F5", "MA", "MI", "MD", "ME", "D2", "J7", "Z",
    ];
    let count = rng.below(5);
    let flags: Vec<&str> = (0..count).map(|_| one(rng, &all)).collect();
    let (flags, name) = (flags.join(" "), one(rng, &["mg", "mg", "mg", "ms", "md", "ma", "me"]));
    match name {
        "ms" => format!("ms {key} 2 {flags}\r\n{}\r\n", one(rng, &["12", "zz"])),
        _ => format!("{name} {key} {flags}\r\n"),
    }
}

/// Commands on few keys.
fn script(rng: &mut Rng, commands: u64) -> Vec<u8> {
    let mut script = String::new();
    for _ in 0..commands {
        let key = one(rng, &["a", "b", "c", "Zm9v"]);
        script += &match rng.below(2) {
            0 => text_command(rng, key),
            _ => meta_command(rng, key),
        };
    }
    script.into_bytes()
}

#[test]
fn random_pieces_and_delays_give_the_same_answers() {
    let mut reads_max = 0;
    for seed in seeds(0..400) {
        let mut rng = Rng::stream(seed, "protocol");
        let input = script(&mut rng, 150);
        let whole = output(&input, input.len(), &mut rng, &mut Model::default());
        for piece in [1, 20, input.len()] {
            let pieces = output(&input, piece, &mut rng, &mut Model::default());
            assert_eq!(text(&pieces), text(&whole), "seed {seed}, pieces of up to {piece}");
            let mut late = Model::late(Rng::stream(seed, "late"));
            let delayed = output(&input, piece, &mut rng, &mut late);
            assert_eq!(text(&delayed), text(&whole), "seed {seed}, pieces of {piece}, late");
            reads_max = reads_max.max(late.reads_max);
        }
    }
    assert!(!all_seeds() || reads_max > 4, "reads are in flight together: {reads_max}");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A request of the binary protocol is answered when its header is there, whose number it returns.
#[test]
fn the_binary_protocol_is_refused_in_any_pieces() {
    let mut input = vec![0; 30];
    (input[0], input[1]) = (0x80, 0x0a);
    input[12..16].copy_from_slice(b"1234");
    for piece in [1, 13, 24, 30] {
        let mut rng = Rng::stream(1, "binary");
        let answer = output(&input, piece, &mut rng, &mut Model::default());
        assert_eq!((&answer[..2], &answer[12..16]), (&[0x81, 0x0a][..], &b"1234"[..]), "{piece}");
    }
    let mut rng = Rng::stream(1, "binary");
    assert_eq!(output(&input[..23], 23, &mut rng, &mut Model::default()), b"");
}

#[test]
fn random_bytes_are_answered_the_same_in_any_pieces() {
    for seed in seeds(0..300) {
        let mut rng = Rng::stream(seed, "bytes");
        let mut input = script(&mut rng, 40);
        for _ in 0..rng.below(20) {
            let at = rng.below(input.len() as u64) as usize;
            input[at] = match rng.below(3) {
                0 => b' ',
                1 => b'\n',
                _ => rng.below(256) as u8,
            };
        }
        let whole = output(&input, input.len(), &mut rng, &mut Model::default());
        let pieces = output(&input, 9, &mut rng, &mut Model::default());
        assert_eq!(text(&pieces), text(&whole), "seed {seed}");
    }
}

#[test]
fn many_gets_are_in_flight_together() {
    let mut items = Model::late(Rng::stream(3, "late"));
    let set = b"set a 0 0 1\r\nx\r\nset b 0 0 1\r\ny\r\n";
    let input = [&set[..], &b"get a\r\nmg b v\r\n".repeat(200)].concat();
    let mut rng = Rng::stream(1, "pieces");
    let out = output(&input, input.len(), &mut rng, &mut items);
    let expected = "STORED\r\n".repeat(2) + &"VALUE a 0 1\r\nx\r\nEND\r\nVA 1\r\ny\r\n".repeat(200);
    assert_eq!(text(&out), expected);
    assert_eq!(items.reads_max, READS);
}

/// Sends `piece` again and again while the session takes input; returns how much it took.
fn send_endlessly(session: &mut Session, piece: &[u8], items: &mut Model) -> usize {
    let mut shared = Shared::new(Settings::default(), 1_000_000_000);
    let mut taken = 0;
    while session.wants_input() {
        session.receive(piece);
        taken += piece.len();
        session.run(items, &mut shared);
        assert!(taken < 64 << 20, "there is no limit");
    }
    taken
}

#[test]
fn lines_without_an_end_close_the_connection() {
    for (piece, limit) in [(&b"x"[..], 2049), (b"set a", 2052), (b"get ", 1 << 20), (b"\0\r", 2050)]
    {
        let mut session = Session::new(0);
        let taken = send_endlessly(&mut session, piece, &mut Model::default());
        assert!(session.is_closing(), "{piece:?}");
        assert!(taken <= limit + piece.len(), "{piece:?}: {taken}");
    }
}

#[test]
fn a_client_that_does_not_read_is_not_read_from() {
    let mut items = Model::default();
    let mut session = Session::new(0);
    let value = vec![b'v'; LONGEST / 2];
    let mut shared = Shared::new(Settings::default(), 1_000_000_000);
    session.receive(format!("set a 0 0 {}\r\n", value.len()).as_bytes());
    session.receive(&[&value[..], b"\r\n"].concat());
    session.run(&mut items, &mut shared);
    assert_eq!(session.output(), b"STORED\r\n");
    let taken = send_endlessly(&mut session, b"get a\r\n", &mut items);
    assert!(!session.is_closing() && session.waits_for_sending());
    let most = 2 * LONGEST;
    assert!(taken < 8192 && session.output().len() < most, "{taken} {}", session.output().len());
    // Once it reads, everything is answered.
    let mut answers = 0;
    while !session.output().is_empty() {
        answers += session.output().windows(5).filter(|bytes| bytes == b"END\r\n").count();
        session.sent(session.output().len());
        session.run(&mut items, &mut shared);
    }
    assert_eq!(answers, taken / b"get a\r\n".len());
}

#[test]
fn values_that_are_too_long_are_dropped_and_the_old_value_with_them() {
    let long = LONGEST + 1;
    for (line, answer, old) in [
        (format!("set a 0 0 {long}"), "SERVER_ERROR object too large for cache\r\n", false),
        (format!("set a 0 0 {long} noreply"), "", false),
        (format!("ms a {long}"), "SERVER_ERROR object too large for cache\r\n", false),
        (format!("append a 0 0 {long}"), "SERVER_ERROR object too large for cache\r\n", true),
        (format!("set a x 0 {long}"), "CLIENT_ERROR bad command line format\r\n", true),
    ] {
        let mut items = Model::default();
        let begin = format!("set a 0 0 1\r\n1\r\n{line}\r\n");
        let input = [begin.as_bytes(), &vec![b'\n'; long], b"\r\nmg a v\r\nmn\r\n"].concat();
        let mut rng = Rng::stream(1, "pieces");
        let out = output(&input, 100_000, &mut rng, &mut items);
        let end = if old { "VA 1\r\n1\r\nMN\r\n" } else { "EN\r\nMN\r\n" };
        assert_eq!(text(&out), format!("STORED\r\n{answer}{end}"), "{line}");
    }
}

#[test]
fn random_changes_of_several_clients_are_not_lost() {
    for seed in seeds(0..50) {
        let mut rng = Rng::stream(seed, "clients");
        let mut items = Model::late(Rng::stream(seed, "late"));
        let mut shared = Shared::new(Settings::default(), 1_000_000_000);
        let mut sessions: Vec<Session> = (0..5).map(Session::new).collect();
        let begin = b"set sum 0 0 1\r\n0\r\nset text 0 0 0\r\n\r\n";
        let change = b"incr sum 1\r\nappend text 0 0 1 noreply\r\nx\r\nma sum q\r\n";
        assert_eq!(output(begin, 100, &mut rng, &mut items), b"STORED\r\nSTORED\r\n");
        sessions.iter_mut().for_each(|session| session.receive(&change.repeat(20)));
        let waits = |session: &Session| session.reads() > 0 || session.is_waiting_for_room();
        loop {
            let any = rng.below(sessions.len() as u64) as usize;
            sessions[any].run(&mut items, &mut shared);
            if rng.below(2) == 0 {
                items.finished(shared.now, &mut |tag, item| {
                    sessions[(tag >> 32) as usize].read_done(tag, item, &mut shared);
                });
            }
            let answered = |session: &Session| {
                session.output().iter().filter(|&&byte| byte == b'\n').count() == 20
            };
            if sessions.iter().all(|session| answered(session) && !waits(session)) {
                sessions.iter_mut().for_each(|session| session.run(&mut items, &mut shared));
                if !sessions.iter().any(waits) {
                    break;
                }
            }
        }
        let out = output(b"get sum\r\nmg text s\r\n", 100, &mut rng, &mut items);
        assert_eq!(text(&out), "VALUE sum 0 3\r\n200\r\nEND\r\nHD s100\r\n", "seed {seed}");
    }
}

/// Answers of more than a session keeps wait behind a read: when it is finished, and they are sent,
/// the commands after them are executed without further input.
#[test]
fn random_reads_before_long_answers_do_not_stop_a_session() {
    let value = vec![b'v'; 300_000];
    let set = [b"set a 0 0 300000\r\n", &value[..], b"\r\nset b 0 0 1\r\nx\r\n"].concat();
    let input = [&set[..], &b"get b a\r\n".repeat(40)].concat();
    for seed in seeds(0..20) {
        let mut rng = Rng::stream(seed, "pieces");
        let whole = output(&input, input.len(), &mut rng, &mut Model::default());
        let mut late = Model::late(Rng::stream(seed, "late"));
        let delayed = output(&input, input.len(), &mut rng, &mut late);
        assert!(delayed == whole, "seed {seed}: {} of {} bytes", delayed.len(), whole.len());
    }
}

/// Two clients add to a counter that expires while they wait for it: the one that goes on second
/// must see what the first one made.
#[test]
fn random_misses_that_are_out_of_date_are_looked_up_again() {
    let mut both_read = false;
    for seed in seeds(0..50) {
        let mut items = Model::default();
        let mut shared = Shared::new(Settings::default(), 1_000_000_000);
        let mut rng = Rng::stream(seed, "pieces");
        assert_eq!(output(b"set n 0 1 2\r\n50\r\n", 100, &mut rng, &mut items), b"STORED\r\n");
        items.chance = Some(Rng::stream(seed, "late"));
        let mut sessions = [Session::new(0), Session::new(1)];
        for session in &mut sessions {
            session.receive(b"ma n N0 J5 D3 v\r\n");
            session.run(&mut items, &mut shared);
        }
        if sessions.iter().any(|session| session.reads() == 0) {
            continue;
        }
        both_read = true;
        shared.set_clock(1_000_000_002);
        while sessions.iter().any(|session| session.output().is_empty()) {
            while items.finished(shared.now, &mut |tag, item| {
                sessions[(tag >> 32) as usize].read_done(tag, item, &mut shared);
            }) {}
            sessions.iter_mut().for_each(|session| session.run(&mut items, &mut shared));
        }
        let mut answers = sessions.map(|session| text(session.output()));
        answers.sort();
        assert_eq!(answers, ["VA 1\r\n5\r\n", "VA 1\r\n8\r\n"], "seed {seed}");
    }
    assert!(both_read || !all_seeds(), "no seed has two delayed lookups");
}
