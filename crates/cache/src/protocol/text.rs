//! The commands of the text protocol.

use super::flags::{Flags, LONG_OPAQUE};
use super::meta::flags_after;
use super::session::{Old, Server, Session, Step, is_key};
use super::storage::{BAD_LINE, Mode, Store, StoreResult};
use super::{Shared, VERSION, numbers, output, stats};
use crate::items::Meta;

/// The longest user and password.
const LOGIN_MAX: usize = 8 << 10;
/// The least memory that a client may set, in MiB.
const MEMLIMIT_MIN: u64 = 8;
/// The longest value that a line may announce: memcached adds 2 to it in 32 bits with a sign.
const LENGTH_MAX: u32 = i32::MAX as u32 - 2;

impl Session {
    /// Executes a line; `body` is the input after it.
    pub(super) fn line(&mut self, line: &[u8], body: &[u8], server: &mut Server<'_>) -> Step {
        if server.shared.settings.auth.is_some() && !self.logged_in {
            return self.log_in(line, body, server.shared);
        }
        let mut words = numbers::words(line);
        // No command has a single letter.
        let Some(command) = words.next().filter(|_| line.len() > 1) else {
            return self.reply(false, BAD_LINE);
        };
        let after = flags_after(line, 1);
        match command {
            b"get" => self.gets(after, false, None, server),
            b"gets" => self.gets(after, true, None, server),
            b"gat" => self.gats(after, false, server),
            b"gats" => self.gats(after, true, server),
            b"set" => self.update(Mode::Set, false, after, body, server),
            b"add" => self.update(Mode::Add, false, after, body, server),
            b"replace" => self.update(Mode::Replace, false, after, body, server),
            b"append" => self.update(Mode::Append, false, after, body, server),
            b"prepend" => self.update(Mode::Prepend, false, after, body, server),
            b"cas" => self.update(Mode::Set, true, after, body, server),
            b"mn" => self.reply(false, "MN"),
            b"ms" => self.meta_set(after, body, server),
            b"mg" | b"md" | b"ma" | b"me" => self.meta(command, after, server),
            b"incr" => self.arithmetic(&mut words, true, server),
            b"decr" => self.arithmetic(&mut words, false, server),
            b"delete" => self.delete(&mut words, server),
            b"touch" => self.touch(&mut words, server),
            b"stats" => self.stats(&mut words, server),
            _ => {
                self.administer(command, &mut words, server);
                Step::Done(0)
            }
        }
    }

    /// Answers `stats`, when the server has reported what it needs.
    fn stats(&mut self, words: &mut dyn Iterator<Item = &[u8]>, server: &mut Server<'_>) -> Step {
        let what = words.next();
        let needed = stats::needs_report(what);
        if needed.is_some() && server.shared.report.is_none() {
            server.shared.wants_report = needed;
            self.waits_for_report = true;
            return Step::Waits;
        }
        stats::answer(self.out.text(), what, words, server.items, server.shared);
        Step::Done(0)
    }

    fn meta(&mut self, command: &[u8], after: &[u8], server: &mut Server<'_>) -> Step {
        let key = numbers::words(after).next();
        let Some(key) = key else {
            return self.reply(false, BAD_LINE);
        };
        let flags = match Flags::parse(key, flags_after(after, 1), server.shared) {
            Ok(flags) => flags,
            Err(error) => {
                let error = match command {
                    b"ma" if error != LONG_OPAQUE => "CLIENT_ERROR invalid or duplicate flag",
                    _ => error,
                };
                return self.reply(false, error);
            }
        };
        match command {
            b"mg" => self.meta_get(&flags, server),
            b"md" => self.meta_delete(&flags, server),
            b"ma" => self.meta_arithmetic(&flags, server),
            _ => self.meta_debug(&flags, server),
        }
    }

    /// `get KEYS`, as far as reads and output allow; with `touch`, `gat`.
    fn gets(
        &mut self,
        keys: &[u8],
        version: bool,
        touch: Option<u32>,
        server: &mut Server<'_>,
    ) -> Step {
        // A wrong key is the answer of the whole command.
        let valid = || numbers::words(keys).next().is_some() && numbers::words(keys).all(is_key);
        if self.keys_done == 0 && !valid() {
            return self.reply(false, BAD_LINE);
        }
        for (number, key) in numbers::words(keys).enumerate() {
            if number < self.keys_done {
                continue;
            }
            if self.is_full() {
                return Step::Waits;
            }
            match touch {
                None => self.get(key, version, server),
                Some(expires) => {
                    let before = server.items.len();
                    let Some(old) = self.touch_item(key, expires, server) else {
                        return Step::Waits;
                    };
                    server.shared.counters.cmd_get += 1;
                    server.shared.counters.gets_with_touch += 1;
                    match old {
                        Some(old) => {
                            server.shared.counters.get_hits += 1;
                            output::value(self.out.text(), &old.item(key), version);
                        }
                        None => server.count_miss(before),
                    }
                }
            }
            self.keys_done += 1;
        }
        self.reply(false, "END")
    }

    fn gats(&mut self, after: &[u8], version: bool, server: &mut Server<'_>) -> Step {
        let mut words = numbers::words(after);
        let (Some(time), Some(_)) = (words.next(), words.next()) else {
            return self.reply(false, BAD_LINE);
        };
        let Some(time) = numbers::time(time) else {
            return self.reply(false, "CLIENT_ERROR invalid exptime argument");
        };
        let expires = server.shared.expires(time);
        self.gets(flags_after(after, 1), version, Some(expires), server)
    }

    /// `set` and the others with a value.
    fn update(
        &mut self,
        mode: Mode,
        is_cas: bool,
        after: &[u8],
        body: &[u8],
        server: &mut Server<'_>,
    ) -> Step {
        let mut words = numbers::words(after);
        let mut next = || words.next();
        let (key, flags, time, len) = (next(), next(), next(), next());
        let compare = if is_cas { next() } else { None };
        let len = len.and_then(numbers::word).filter(|len| *len <= LENGTH_MAX);
        let (Some(key), Some(flags), Some(time), Some(len)) = (key, flags, time, len) else {
            return self.reply(false, BAD_LINE);
        };
        let noreply = wants_no_reply(after);
        let len = len as usize;
        let parsed = (|| {
            let flags = numbers::word(flags)?;
            let time = numbers::time(time)?;
            let compare = if is_cas { Some(numbers::unsigned(compare?)?) } else { None };
            is_key(key).then_some((flags, time, compare))
        })();
        let Some((client_flags, time, compare)) = parsed else {
            return self.refuse_value(noreply, BAD_LINE, len, body);
        };
        let expires = server.shared.expires(time);
        let (version, stale, vivify) = (None, false, None);
        let store = Store {
            key,
            len,
            mode,
            client_flags,
            expires,
            compare,
            version,
            stale,
            vivify,
            noreply,
            is_meta: false,
        };
        let stored = self.store(&store, body, server);
        if !matches!(stored, Err(Step::Needs(_) | Step::Waits)) {
            server.shared.prefixes.count(key, 2);
        }
        match stored {
            Ok(stored) => {
                let text = match stored {
                    StoreResult::Done { .. } => "STORED",
                    StoreResult::NotStored => "NOT_STORED",
                    StoreResult::Exists => "EXISTS",
                    StoreResult::NotFound => "NOT_FOUND",
                };
                self.answer(noreply, text);
                Step::Done(len + 2)
            }
            Err(step) => step,
        }
    }

    fn delete(&mut self, words: &mut dyn Iterator<Item = &[u8]>, server: &mut Server<'_>) -> Step {
        let key = words.next().unwrap_or_default();
        let noreply = words.last() == Some(b"noreply");
        if !is_key(key) {
            return self.reply(noreply, BAD_LINE);
        }
        let found = server.delete(key);
        server.shared.prefixes.count(key, 3);
        match found {
            true => server.shared.counters.delete_hits += 1,
            false => server.shared.counters.delete_misses += 1,
        }
        self.reply(noreply, if found { "DELETED" } else { "NOT_FOUND" })
    }

    fn touch(&mut self, words: &mut dyn Iterator<Item = &[u8]>, server: &mut Server<'_>) -> Step {
        let (Some(key), Some(time)) = (words.next(), words.next()) else {
            return self.reply(false, BAD_LINE);
        };
        let noreply = words.last() == Some(b"noreply");
        if !is_key(key) {
            return self.reply(noreply, BAD_LINE);
        }
        let Some(time) = numbers::time(time) else {
            return self.reply(noreply, "CLIENT_ERROR invalid exptime argument");
        };
        let Some(found) = self.touch_item(key, server.shared.expires(time), server) else {
            return Step::Waits;
        };
        self.reply(noreply, if found.is_some() { "TOUCHED" } else { "NOT_FOUND" })
    }

    /// Changes when an item expires, and returns what it was; `None` if it is still being read: its
    /// key has to be compared, so that another item does not outlive its time.
    fn touch_item(
        &mut self,
        key: &[u8],
        expires: u32,
        server: &mut Server<'_>,
    ) -> Option<Option<Old>> {
        let old = self.known(key, server)?;
        server.shared.counters.cmd_touch += 1;
        match &old {
            Some(old) => {
                server.shared.counters.touch_hits += 1;
                server.set_meta(key, old.at, touched(old.meta, expires, server.shared.now));
            }
            None => server.shared.counters.touch_misses += 1,
        }
        Some(old)
    }

    /// Commands that concern no item.
    fn administer(
        &mut self,
        command: &[u8],
        words: &mut dyn Iterator<Item = &[u8]>,
        server: &mut Server<'_>,
    ) {
        let first = words.next();
        let noreply = |first: Option<&[u8]>, second: Option<&[u8]>| {
            first == Some(b"noreply") || second == Some(b"noreply")
        };
        match command {
            b"version" => {
                self.answer(false, &format!("VERSION {VERSION}"));
            }
            b"quit" => self.closing = true,
            b"verbosity" => {
                let level = first.and_then(numbers::word);
                let noreply = noreply(first, words.next());
                match (first, level) {
                    (Some(_), Some(level)) => server.shared.settings.verbosity = level,
                    _ => return self.answer(noreply, BAD_LINE),
                }
                self.answer(noreply, "OK");
            }
            b"flush_all" => self.flush_all(first, words.next(), server),
            b"shutdown" => self.shut_down(first, server.shared),
            b"cache_memlimit" => {
                let noreply = noreply(None, words.next());
                let text = match first.and_then(numbers::unsigned) {
                    None => "ERROR",
                    Some(mib) if mib < MEMLIMIT_MIN => {
                        "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m"
                    }
                    Some(_) => "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust",
                };
                self.answer(noreply, text);
            }
            b"debugtime" if server.shared.settings.debug => {
                server.shared.debug_time(first.unwrap_or_default());
                self.answer(false, "OK");
            }
            b"slabs" => self.slabs(first, words.next()),
            b"lru_crawler" => self.answer(false, "CLIENT_ERROR lru crawler disabled"),
            b"watch" => self.answer(false, "CLIENT_ERROR watch commands not allowed"),
            // A browser was led here, perhaps with commands in what it sends next.
            _ if words.last().or(first).is_some_and(|word| word.starts_with(b"HTTP/")) => {
                self.closing = true;
            }
            _ => self.answer(false, "ERROR"),
        }
    }

    /// Slabs are not moved between classes here, so any setting of that is accepted.
    fn slabs(&mut self, what: Option<&[u8]>, level: Option<&[u8]>) {
        let text = match (what, level) {
            (Some(b"automove"), Some(b"ratio" | b"freeratio" | b"window")) => "OK",
            (Some(b"automove"), Some(level)) => match numbers::word(level) {
                Some(0..=2) => "OK",
                Some(_) => "ERROR",
                None => BAD_LINE,
            },
            (Some(b"reassign"), Some(_)) => "CLIENT_ERROR slab reassignment disabled",
            _ => "ERROR",
        };
        self.answer(false, text);
    }

    fn flush_all(&mut self, first: Option<&[u8]>, second: Option<&[u8]>, server: &mut Server<'_>) {
        let noreply = first == Some(b"noreply") || second == Some(b"noreply");
        server.shared.counters.cmd_flush += 1;
        if !server.shared.settings.flush_enabled {
            return self.answer(noreply, "CLIENT_ERROR flush_all not allowed");
        }
        let delay = match first.filter(|word| *word != b"noreply") {
            None => 0,
            Some(word) => match numbers::time(word) {
                Some(delay) => delay,
                None => return self.answer(noreply, "CLIENT_ERROR invalid exptime argument"),
            },
        };
        let at = if delay <= 0 { server.shared.now } else { server.shared.expires(delay) };
        server.items.flush_all(at, server.shared.now);
        self.answer(noreply, "OK");
    }

    fn shut_down(&mut self, mode: Option<&[u8]>, shared: &mut Shared) {
        if !shared.settings.shutdown_enabled {
            return self.answer(false, "SERVER_ERROR: shutdown not enabled");
        }
        match mode {
            None => shared.shutdown = Some(false),
            Some(b"graceful") => shared.shutdown = Some(true),
            Some(_) => return self.answer(false, "CLIENT_ERROR invalid shutdown mode"),
        }
        self.closing = true;
    }

    /// The first command of a client that has to log in: `set ANY 0 0 LENGTH`, with user and
    /// password as its value.
    fn log_in(&mut self, line: &[u8], body: &[u8], shared: &mut Shared) -> Step {
        let words: Vec<&[u8]> = numbers::words(line).take(6).collect();
        let len = match words[..] {
            [b"set", _, _, _, len] => numbers::word(len),
            _ => None,
        };
        let Some(len) = len.map(|len| len as usize) else {
            return self.reply(false, "CLIENT_ERROR unauthenticated");
        };
        if len > LOGIN_MAX {
            return self.reply(false, "CLIENT_ERROR auth token too long");
        }
        if body.len() < len + 2 {
            return Step::Needs(len + 2);
        }
        let given = &body[..len];
        let users = shared.settings.auth.as_deref().unwrap_or_default();
        let space = given.iter().position(|&byte| byte == b' ');
        let text = match space {
            _ if &body[len..len + 2] != b"\r\n" => "CLIENT_ERROR bad command line termination",
            None => "CLIENT_ERROR bad authentication token format",
            Some(at) => {
                let (user, password) = (&given[..at], &given[at + 1..]);
                let is_it =
                    |(name, secret): &(Vec<u8>, Vec<u8>)| same(name, user) & same(secret, password);
                // Every entry is compared, so that the time says nothing about them.
                let known = users.iter().fold(false, |known, entry| known | is_it(entry));
                shared.counters.auth_cmds += 1;
                shared.counters.auth_errors += u64::from(!known);
                self.logged_in = known;
                if known { "STORED" } else { "CLIENT_ERROR authentication failure" }
            }
        };
        self.answer(false, text);
        Step::Done(len + 2)
    }
}

/// What is kept about an item after a touch, which is an access.
fn touched(meta: Meta, expires: u32, now: u32) -> Meta {
    Meta { expires, fetched: true, last_access: now, ..meta }
}

/// Whether the last word of a line says so.
fn wants_no_reply(line: &[u8]) -> bool {
    line.rsplit(|&byte| byte == b' ').find(|word| !word.is_empty()) == Some(b"noreply")
}

/// Whether two secrets are the same, in a time that depends on their lengths alone.
fn same(secret: &[u8], given: &[u8]) -> bool {
    let differ = secret.iter().zip(given).fold(0, |sum, (a, b)| sum | (a ^ b));
    differ == 0 && secret.len() == given.len()
}
