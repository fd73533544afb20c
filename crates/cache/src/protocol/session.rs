//! A connection: its input, the commands that wait, its output.

use super::output::{self, Answer, Output};
use super::{READS, Shared, flags};
use crate::items::{Item, ItemAddress, Items, Lookup, Meta, NewItem, Refusal};

/// The bit of the tag of a read for a command that changes an item.
pub(super) const CHANGE: u32 = 1 << 31;
/// Bytes of output at which no more commands are executed.
const OUTPUT_MAX: usize = 1 << 20;
/// Bytes of a line at which only a get of many keys goes on.
const LINE_MAX: usize = 2048;
/// Bytes of a line of many keys.
const KEYS_MAX: usize = 1 << 20;

/// The old version of an item that a command changes.
#[derive(Debug)]
pub(super) struct Old {
    pub(super) value: Vec<u8>,
    pub(super) flags: u32,
    pub(super) version: u64,
    pub(super) at: ItemAddress,
    pub(super) meta: Meta,
}

impl Old {
    fn new(item: &Item<'_>) -> Self {
        let Item { value, flags, version, at, meta, .. } = *item;
        Self { value: value.to_vec(), flags, version, at, meta }
    }

    pub(super) fn item<'a>(&'a self, key: &'a [u8]) -> Item<'a> {
        let Self { value, flags, version, at, meta } = self;
        let (flags, version, at, meta) = (*flags, *version, *at, *meta);
        Item { key, value, flags, version, at, meta, from_flash: false }
    }
}

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is complete; the next one begins after this many bytes.
    Done(usize),
    /// It needs this many bytes of input.
    Needs(usize),
    /// It waits for flash, for space in the cache or for its output to be sent.
    Waits,
}

/// What a command works on: the items, and what all connections share.
pub(super) struct Server<'a> {
    pub(super) items: &'a mut dyn Items,
    pub(super) shared: &'a mut Shared,
}

impl Server<'_> {
    /// Changes what is kept about an item. One that expires at once is removed instead: reads of it
    /// that are in flight still return it, as gets before this command should.
    pub(super) fn set_meta(&mut self, key: &[u8], at: ItemAddress, meta: Meta) {
        let expired = meta.expires != 0 && meta.expires <= self.shared.now;
        if expired {
            self.items.remove(key);
        } else {
            self.items.set_meta(key, at, meta);
        }
    }

    /// Removes an item; false if there is none, or it is expired.
    pub(super) fn delete(&mut self, key: &[u8]) -> bool {
        self.items.peek(key, self.shared.now).is_some() && self.items.remove(key)
    }

    /// Counts a miss of a get before which there were `before` items: an item that has expired is
    /// removed when it is looked up.
    pub(super) fn count_miss(&mut self, before: u64) {
        self.shared.counters.get_misses += 1;
        self.shared.counters.get_expired += u64::from(self.items.len() < before);
    }
}

/// A connection.
#[derive(Debug, Default)]
pub struct Session {
    id: u32,
    input: Vec<u8>,
    at: usize,
    /// Bytes of input that the next command needs.
    needs: usize,
    /// Bytes of the next command in which no line ends.
    scanned: usize,
    /// Bytes of a value to be dropped.
    pub(super) swallow: usize,
    pub(super) out: Output,
    /// The item of the command that waits, once it was read.
    fetched: Option<Option<Old>>,
    reading: bool,
    /// Where that item was when its read began.
    read_at: Option<ItemAddress>,
    pub(super) waits_for_room: bool,
    pub(super) waits_for_report: bool,
    /// Commands executed since input came or it yielded.
    executed: u32,
    /// It has executed as many commands as one turn allows, and has input for more.
    yields: bool,
    waits_for_sending: bool,
    pub(super) closing: bool,
    pub(super) logged_in: bool,
    /// Keys of a get that were answered before it had to wait.
    pub(super) keys_done: usize,
}

impl Session {
    /// A connection with this number, which is the upper half of the tags of its reads.
    #[must_use]
    pub fn new(id: u32) -> Self {
        Self { id, ..Self::default() }
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Adds bytes of the client to its input.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        self.executed = 0;
    }

    /// Whether it takes more input now.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        let held = self.input.len() - self.at;
        !self.closing && self.out.len() < OUTPUT_MAX && held < self.needs.max(LINE_MAX)
    }

    /// Bytes to be sent.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.out.bytes()
    }

    /// `bytes` of the output were sent.
    pub fn sent(&mut self, bytes: usize) {
        self.out.sent(bytes);
    }

    /// Whether the connection is to be closed when its output is sent.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.closing && self.out.waiting() == 0
    }

    /// Reads in flight, whose tags are those of this session.
    #[must_use]
    pub fn reads(&self) -> u32 {
        self.out.waiting() as u32 + u32::from(self.reading)
    }

    /// Whether it goes on as soon as its output is sent.
    #[must_use]
    pub fn waits_for_sending(&self) -> bool {
        self.waits_for_sending
    }

    /// Whether reads are in flight, a command waits for space or a report of the server, or it has
    /// yielded.
    #[must_use]
    pub fn has_work(&self) -> bool {
        let waits = self.waits_for_room || self.waits_for_report;
        self.reading || waits || self.yields || self.out.waiting() > 0
    }

    /// Whether it has input left that it executes in its next run, after other connections had
    /// their turn.
    #[must_use]
    pub fn yields(&self) -> bool {
        self.yields
    }

    /// What the connection does, by the names that memcached has for it.
    #[must_use]
    pub fn state(&self) -> &'static str {
        let held = self.input.len() - self.at;
        if self.reading || self.out.waiting() > 0 {
            "conn_io_pending"
        } else if self.swallow > 0 {
            "conn_swallow"
        } else if self.waits_for_report || self.yields {
            "conn_parse_cmd"
        } else if !self.out.bytes().is_empty() {
            "conn_mwrite"
        } else if self.waits_for_room || held > 0 && self.scanned == 0 {
            // The line is there, its value is not, or has no space yet.
            "conn_nread"
        } else if held > 0 {
            "conn_waiting"
        } else {
            "conn_read"
        }
    }

    /// Whether a command waits for space in the cache.
    #[must_use]
    pub fn is_waiting_for_room(&self) -> bool {
        self.waits_for_room
    }

    /// Whether there is output enough for now.
    pub(super) fn is_full(&self) -> bool {
        self.out.waiting() >= READS || self.out.len() >= OUTPUT_MAX
    }

    /// Executes what was received, as far as possible.
    pub fn run(&mut self, items: &mut dyn Items, shared: &mut Shared) {
        let server = &mut Server { items, shared };
        self.waits_for_room = false;
        self.waits_for_report = false;
        self.yields = false;
        let input = std::mem::take(&mut self.input);
        while !self.closing && !self.reading && !self.is_full() {
            let rest = &input[self.at..];
            if self.swallow > 0 {
                let dropped = self.swallow.min(rest.len());
                self.swallow -= dropped;
                self.at += dropped;
                if self.swallow > 0 {
                    break;
                }
                continue;
            }
            if rest.is_empty() || rest.len() < self.needs {
                break;
            }
            // Also after a report or the sending of output, with which the caller goes on at once.
            if self.executed >= server.shared.settings.commands_per_turn {
                server.shared.counters.conn_yields += 1;
                self.executed = 0;
                self.yields = true;
                break;
            }
            let counters = server.shared.counters;
            let step = self.command(rest, server);
            // What is executed again from its beginning is counted then.
            if !matches!(step, Step::Done(_)) && self.keys_done == 0 {
                server.shared.counters = counters;
            }
            match step {
                Step::Done(bytes) => {
                    self.at += bytes;
                    self.executed += 1;
                    self.needs = 0;
                    self.keys_done = 0;
                    self.fetched = None;
                }
                Step::Needs(bytes) => {
                    self.needs = bytes;
                    break;
                }
                Step::Waits => break,
            }
        }
        self.input = input;
        self.forget_input();
        self.out.settle();
        // Only what can be sent now makes place: the rest waits for flash.
        let full = self.out.len() >= OUTPUT_MAX && !self.out.bytes().is_empty();
        self.waits_for_sending = !self.closing && full;
    }

    fn forget_input(&mut self) {
        if self.at == self.input.len() || self.closing {
            self.input.clear();
            self.input.shrink_to(1 << 16);
            self.at = 0;
        } else if self.at > 1 << 16 {
            self.input.drain(..self.at);
            self.at = 0;
        }
    }

    /// Executes the command at the beginning of `input`.
    fn command(&mut self, input: &[u8], server: &mut Server<'_>) -> Step {
        if input.first() == Some(&output::BINARY) {
            // Its client would wait for an answer that it understands.
            let Some(header) = input.first_chunk() else {
                return Step::Needs(output::BINARY_HEADER);
            };
            output::refuse_binary(self.out.text(), header);
            self.closing = true;
            return Step::Done(input.len());
        }
        // A line that comes in many pieces is searched once.
        let scanned = std::mem::take(&mut self.scanned);
        let Some(end) = input[scanned..].iter().position(|&byte| byte == b'\n') else {
            return self.no_line(input);
        };
        let end = scanned + end;
        let line = &input[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if end > LINE_MAX && !is_long_get(line) {
            // A line of this length that came at once is as wrong as one that came in parts.
            self.closing = true;
            return Step::Done(end + 1);
        }
        let body = &input[end + 1..];
        match self.line(line, body, server) {
            Step::Done(bytes) => Step::Done(end + 1 + bytes),
            Step::Needs(bytes) => Step::Needs(end + 1 + bytes),
            Step::Waits => Step::Waits,
        }
    }

    fn no_line(&mut self, input: &[u8]) -> Step {
        let is_get = is_long_get(input);
        if input.len() > if is_get { KEYS_MAX } else { LINE_MAX } {
            self.closing = true;
            return Step::Done(input.len());
        }
        self.scanned = input.len();
        Step::Needs(input.len() + 1)
    }

    /// The tag of a read of the next answer.
    pub(super) fn tag(&self) -> u64 {
        u64::from(self.id) << 32 | u64::from(self.out.next())
    }

    /// The old version of an item, if there is one; `None` while it is being read: the command then
    /// waits, and calls this again.
    pub(super) fn known(&mut self, key: &[u8], server: &mut Server<'_>) -> Option<Option<Old>> {
        let kept = server.items.peek(key, server.shared.now);
        match self.fetched.take() {
            Some(Some(old)) if server.items.is_current(key, old.at) => return Some(Some(old)),
            // An entry that is still where another key's was found, or none at all. Otherwise
            // another client has set the item meanwhile.
            Some(None) if kept.is_none_or(|(at, _)| self.read_at == Some(at)) => {
                return Some(None);
            }
            _ => {}
        }
        let tag = u64::from(self.id) << 32 | u64::from(CHANGE);
        let known = match server.items.lookup(key, tag, server.shared.now) {
            Lookup::Miss => Some(None),
            Lookup::Found(item) => Some(Some(Old::new(&item))),
            Lookup::Reading(_) => {
                self.reading = true;
                self.read_at = kept.map(|(at, _)| at);
                None
            }
        };
        // To the client this is no access.
        if let Some((at, meta)) = kept {
            server.items.set_meta(key, at, meta);
        }
        known
    }

    /// An item that was looked up with this tag was read; `None` if it is not there. The caller
    /// lets the session run next.
    pub fn read_done(&mut self, tag: u64, item: Option<Item<'_>>, shared: &mut Shared) {
        let number = tag as u32;
        if number & CHANGE != 0 {
            self.reading = false;
            self.fetched = Some(item.as_ref().map(Old::new));
            return;
        }
        let Some((answer, out)) = self.out.done(number) else { return };
        let counter = match item {
            Some(_) => &mut shared.counters.get_hits,
            None => &mut shared.counters.get_misses,
        };
        *counter += 1;
        match (answer, item) {
            (Answer::Value { version }, Some(item)) => output::value(out, &item, version),
            (Answer::Value { .. }, None) => {}
            (Answer::Meta(reply), Some(item)) => reply.hit(out, &item, shared.now),
            (Answer::Meta(reply), None) => reply.miss(out),
        }
    }

    /// Inserts an item. An error is what the command does instead: it waits for space, or is
    /// refused with `error`.
    pub(super) fn insert(
        &mut self,
        new: NewItem<'_>,
        error: &str,
        server: &mut Server<'_>,
    ) -> Result<(), Step> {
        match server.items.insert(new, server.shared.now) {
            Ok(()) => Ok(()),
            Err(Refusal::Busy) => {
                self.waits_for_room = true;
                Err(Step::Waits)
            }
            Err(_) => {
                self.answer(false, error);
                Err(Step::Done(0))
            }
        }
    }

    /// Ends a command with an answer, unless the client wants none.
    pub(super) fn reply(&mut self, noreply: bool, text: &str) -> Step {
        self.answer(noreply, text);
        Step::Done(0)
    }

    /// Answers a line, unless the client wants no answer.
    pub(super) fn answer(&mut self, noreply: bool, text: &str) {
        if !noreply {
            let out = self.out.text();
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Looks up a key for a get and answers.
    pub(super) fn get(&mut self, key: &[u8], version: bool, server: &mut Server<'_>) {
        server.shared.counters.cmd_get += 1;
        server.shared.prefixes.count(key, 0);
        let before = server.items.len();
        match server.items.lookup(key, self.tag(), server.shared.now) {
            Lookup::Miss => return server.count_miss(before),
            Lookup::Found(item) => {
                server.shared.counters.get_hits += 1;
                output::value(self.out.text(), &item, version);
            }
            Lookup::Reading(bytes) => self.out.wait(Answer::Value { version }, bytes),
        }
        server.shared.prefixes.count(key, 1);
    }
}

/// Whether a line may be longer than others: a get of many keys.
fn is_long_get(line: &[u8]) -> bool {
    let begin = line.iter().position(|&byte| byte != b' ').unwrap_or(0);
    begin <= 100 && (line[begin..].starts_with(b"get ") || line[begin..].starts_with(b"gets "))
}

/// Whether a key is one: not empty, at most 250 bytes.
pub(super) fn is_key(key: &[u8]) -> bool {
    (1..=flags::KEY_MAX).contains(&key.len())
}
