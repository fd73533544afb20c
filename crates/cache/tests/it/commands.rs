//! Commands and their answers, as a server of memcached 1.6.45 gave them (`commands.txt`).
//!
//! A line is a command and, after `=>`, its answer; `;` ends a line of the command and `|` one of
//! the answer; KEY is a key of the greatest length. Each paragraph begins with the two items of
//! [`BEGIN`].

use prism_base::{Nanos, Rng};
use prism_cache::Cache;
use prism_cache::items::Items;
use prism_cache::protocol::{Report, Session, Settings, Shared};
use prism_segments::Store;

use crate::common::{Level, NOW, new_cache};
use crate::model::Model;

const BEGIN: &str = "set n 0 0 2\r\n10\r\nset t 5 0 4\r\ntext\r\n";

/// What a test does until an item is read, or there is space again.
pub trait Progress: Items {
    fn go_on(&mut self);
}

impl Progress for Model {
    fn go_on(&mut self) {}
}

impl<S: Store> Progress for Cache<S> {
    fn go_on(&mut self) {
        self.progress(Nanos(0));
    }
}

/// Paragraphs of commands with their answers.
fn paragraphs() -> Vec<Vec<(String, String)>> {
    let text = include_str!("commands.txt").replace("KEY", &"k".repeat(250));
    let lines = |text: &str, end: char| text.split(end).map(|line| format!("{line}\r\n")).collect();
    let command = |line: &str| {
        let (command, answer) = line.split_once(" =>").expect("an answer");
        let answer = answer.strip_prefix(' ');
        let answer = answer.map_or(String::new(), |answer| lines(answer, '|'));
        (lines(command, ';'), answer)
    };
    let paragraph = |text: &str| {
        text.lines().filter(|line| !line.starts_with('#')).map(command).collect::<Vec<_>>()
    };
    text.split("\n\n").map(paragraph).collect()
}

/// Sends `input` in pieces, and returns the answer.
pub fn ask(
    session: &mut Session,
    input: &str,
    piece: usize,
    items: &mut dyn Progress,
    shared: &mut Shared,
) -> String {
    let mut out = Vec::new();
    for piece in input.as_bytes().chunks(piece) {
        session.receive(piece);
        loop {
            session.run(items, shared);
            out.extend_from_slice(session.output());
            session.sent(session.output().len());
            if !session.has_work() {
                break;
            }
            if shared.wants_report().is_some() {
                shared.give_report(Report::default());
            }
            items.go_on();
            items.finished(shared.now, &mut |tag, item| session.read_done(tag, item, shared));
        }
    }
    String::from_utf8(out).unwrap()
}

/// Checks all paragraphs, each with new items.
fn check(piece: usize, mut items: impl FnMut(u64) -> Box<dyn Progress>) {
    for (number, paragraph) in paragraphs().into_iter().enumerate() {
        let mut items = items(number as u64);
        let mut shared = Shared::new(Settings::default(), NOW);
        let mut session = Session::new(3);
        let begin = ask(&mut session, BEGIN, piece, &mut *items, &mut shared);
        assert_eq!(begin, "STORED\r\nSTORED\r\n");
        for (command, answer) in paragraph {
            let given = ask(&mut session, &command, piece, &mut *items, &mut shared);
            assert_eq!(given, answer, "{command:?} in paragraph {number}");
        }
    }
}

#[test]
fn commands_are_answered_as_by_memcached() {
    check(usize::MAX, |_| Box::new(Model::default()));
    check(1, |_| Box::new(Model::default()));
}

#[test]
fn random_delays_do_not_change_the_answers_to_commands() {
    for seed in prism_testkit::seeds(0..10) {
        check(7, |number| Box::new(Model::late(Rng::stream(seed + number * 1000, "late"))));
    }
}

#[test]
fn commands_are_answered_the_same_by_a_cache_on_flash() {
    check(usize::MAX, |_| Box::new(new_cache(Level::Function, 4)));
}

/// An expired item is not there to be deleted, wherever it is.
#[test]
fn an_expired_item_is_not_deleted() {
    for command in ["delete", "md"] {
        let mut cache = new_cache(Level::Function, 4);
        let mut shared = Shared::new(Settings::default(), NOW);
        let mut session = Session::new(3);
        let set = |key: &str, time: u32| format!("set {key} 0 {time} 4 noreply\r\ntext\r\n");
        ask(&mut session, &set("flash", 10), usize::MAX, &mut cache, &mut shared);
        for number in 0..30_000 {
            let other = set(&number.to_string(), 0);
            ask(&mut session, &other, usize::MAX, &mut cache, &mut shared);
        }
        ask(&mut session, &set("memory", 10), usize::MAX, &mut cache, &mut shared);
        shared.set_clock(NOW + 10);
        let found = cache.counts();
        assert!(found.slabs_filled > 8 && found.slabs_cleaned == 0, "{found:?}");
        let absent = if command == "md" { "NF\r\n" } else { "NOT_FOUND\r\n" };
        for key in ["flash", "memory"] {
            let line = format!("{command} {key}\r\n");
            let answer = ask(&mut session, &line, usize::MAX, &mut cache, &mut shared);
            assert_eq!(answer, absent, "{line}");
        }
    }
}
