//! The commands of the text protocol.

use super::flags::{Flags, LONG_OPAQUE};
use super::meta::flags_after;
use super::session::{Known, Old, Session, Step, is_key, set_meta};
use super::storage::{BAD_LINE, Mode, Store, StoreResult};
use super::{Shared, VERSION, numbers, output, stats};
use crate::items::{Items, Meta};

/// The longest user and password.
const LOGIN_MAX: usize = 8 << 10;
/// The least memory that a client may set, in MiB.
const MEMLIMIT_MIN: u64 = 8;
/// The longest value that a line may announce: memcached adds 2 to it in 32 bits with a sign.
const LENGTH_MAX: u32 = i32::MAX as u32 - 2;

impl Session {
    /// Executes a line; `body` is the input after it.
    pub(super) fn line(
        &mut self,
        line: &[u8],
        body: &[u8],
        items: &mut dyn Items,
        shared: &mut Shared,
    ) -> Step {
        if shared.settings.auth.is_some() && !self.logged_in {
            return self.log_in(line, body, shared);
        }
        let mut words = numbers::words(line);
        // No command has a single letter.
        let Some(command) = words.next().filter(|_| line.len() > 1) else {
            self.answer(false, BAD_LINE);
            return Step::Done(0);
        };
        let after = flags_after(line, 1);
        match command {
            b"get" => self.gets(after, false, None, items, shared),
            b"gets" => self.gets(after, true, None, items, shared),
            b"gat" => self.gats(after, false, items, shared),
            b"gats" => self.gats(after, true, items, shared),
            b"set" => self.update(Mode::Set, false, after, body, items, shared),
            b"add" => self.update(Mode::Add, false, after, body, items, shared),
            b"replace" => self.update(Mode::Replace, false, after, body, items, shared),
            b"append" => self.update(Mode::Append, false, after, body, items, shared),
            b"prepend" => self.update(Mode::Prepend, false, after, body, items, shared),
            b"cas" => self.update(Mode::Set, true, after, body, items, shared),
            b"mn" => {
                self.answer(false, "MN");
                Step::Done(0)
            }
            b"ms" => self.meta_set(after, body, items, shared),
            b"mg" | b"md" | b"ma" | b"me" => self.meta(command, after, items, shared),
            b"incr" => self.arithmetic(&mut words, true, items, shared),
            b"decr" => self.arithmetic(&mut words, false, items, shared),
            b"delete" => self.delete(&mut words, items, shared),
            b"touch" => self.touch(&mut words, items, shared),
            b"stats" => self.stats(&mut words, items, shared),
            _ => {
                self.administer(command, &mut words, items, shared);
                Step::Done(0)
            }
        }
    }

    /// Answers `stats`, when the server has reported what it needs.
    fn stats(
        &mut self,
        words: &mut dyn Iterator<Item = &[u8]>,
        items: &mut dyn Items,
        shared: &mut Shared,
    ) -> Step {
        let what = words.next();
        let needed = stats::needs_report(what);
        if needed.is_some() && shared.report.is_none() {
            shared.wants_report = needed;
            self.waits_for_report = true;
            return Step::Waits;
        }
        stats::answer(self.out.text(), what, words.next(), items, shared);
        Step::Done(0)
    }

    fn meta(
        &mut self,
        command: &[u8],
        after: &[u8],
        items: &mut dyn Items,
        shared: &mut Shared,
    ) -> Step {
        let key = numbers::words(after).next();
        let Some(key) = key else {
            self.answer(false, BAD_LINE);
            return Step::Done(0);
        };
        let flags = match Flags::parse(key, flags_after(after, 1), shared) {
            Ok(flags) => flags,
            Err(error) => {
                let error = match command {
                    b"ma" if error != LONG_OPAQUE => "CLIENT_ERROR invalid or duplicate flag",
                    _ => error,
                };
                self.answer(false, error);
                return Step::Done(0);
            }
        };
        match command {
            b"mg" => self.meta_get(&flags, items, shared),
            b"md" => self.meta_delete(&flags, items, shared),
            b"ma" => self.meta_arithmetic(&flags, items, shared),
            _ => self.meta_debug(&flags, items, shared),
        }
    }

    /// `get KEYS`, as far as reads and output allow; with `touch`, `gat`.
    fn gets(
        &mut self,
        keys: &[u8],
        version: bool,
        touch: Option<u32>,
        items: &mut dyn Items,
        shared: &mut Shared,
    ) -> Step {
        // A wrong key is the answer of the whole command.
        let valid = || numbers::words(keys).next().is_some() && numbers::words(keys).all(is_key);
        if self.keys_done == 0 && !valid() {
            self.answer(false, BAD_LINE);
            return Step::Done(0);
        }
        for (number, key) in numbers::words(keys).enumerate() {
            if number < self.keys_done {
                continue;
            }
            if self.is_full() {
                return Step::Waits;
            }
            match touch {
                None => self.get(key, version, items, shared),
                Some(expires) => {
                    let before = items.len();
                    let Some(old) = self.touch_item(key, expires, items, shared) else {
                        return Step::Waits;
                    };
                    shared.counters.cmd_get += 1;
                    shared.counters.gets_with_touch += 1;
                    match old {
                        Some(old) => {
                            shared.counters.get_hits += 1;
                            output::value(self.out.text(), &old.item(key), version);
                        }
                        None => shared.count_miss(before, items),
                    }
                }
            }
            self.keys_done += 1;
        }
        self.answer(false, "END");
        Step::Done(0)
    }

    fn gats(
        &mut self,
        after: &[u8],
        version: bool,
        items: &mut dyn Items,
        shared: &mut Shared,
    ) -> Step {
        let mut words = numbers::words(after);
        let (Some(time), Some(_)) = (words.next(), words.next()) else {
            self.answer(false, BAD_LINE);
            return Step::Done(0);
        };
        let Some(time) = numbers::signed(time).filter(|time| i32::try_from(*time).is_ok()) else {
            self.answer(false, "CLIENT_ERROR invalid exptime argument");
            return Step::Done(0);
        };
        let expires = shared.expires(time);
        self.gets(flags_after(after, 1), version, Some(expires), items, shared)
    }

    /// `set` and the others with a value.
    fn update(
        &mut self,
        mode: Mode,
        is_cas: bool,
        after: &[u8],
        body: &[u8],
        items: &mut dyn Items,
        shared: &mut Shared,
    ) -> Step {
        let mut words = numbers::words(after);
        let mut next = || words.next();
        let (key, flags, time, len) = (next(), next(), next(), next());
        let compare = if is_cas { next() } else { None };
        let len = len.and_then(numbers::word).filter(|len| *len <= LENGTH_MAX);
        let (Some(key), Some(flags), Some(time), Some(len)) = (key, flags, time, len) else {
            self.answer(false, BAD_LINE);
            return Step::Done(0);
        };
        let noreply = wants_no_reply(after);
        let len = len as usize;
        let parsed = (|| {
            let flags = numbers::word(flags)?;
            let time = numbers::signed(time).filter(|time| i32::try_from(*time).is_ok())?;
            let compare = if is_cas { Some(numbers::unsigned(compare?)?) } else { None };
            is_key(key).then_some((flags, time, compare))
        })();
        let Some((client_flags, time, compare)) = parsed else {
            return self.refuse_value(noreply, BAD_LINE, len, body);
        };
        let expires = shared.expires(time);
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
        let stored = self.store(&store, body, items, shared);
        if !matches!(stored, Err(Step::Needs(_) | Step::Waits)) {
            shared.prefixes.count(key, 2);
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

    fn delete(
        &mut self,
        words: &mut dyn Iterator<Item = &[u8]>,
        items: &mut dyn Items,
        shared: &mut Shared,
    ) -> Step {
        let key = words.next().unwrap_or_default();
        let noreply = words.last() == Some(b"noreply");
        if !is_key(key) {
            self.answer(noreply, BAD_LINE);
            return Step::Done(0);
        }
        let found = items.remove(key);
        shared.prefixes.count(key, 3);
        match found {
            true => shared.counters.delete_hits += 1,
            false => shared.counters.delete_misses += 1,
        }
        self.answer(noreply, if found { "DELETED" } else { "NOT_FOUND" });
        Step::Done(0)
    }

    fn touch(
        &mut self,
        words: &mut dyn Iterator<Item = &[u8]>,
        items: &mut dyn Items,
        shared: &mut Shared,
    ) -> Step {
        let (Some(key), Some(time)) = (words.next(), words.next()) else {
            self.answer(false, BAD_LINE);
            return Step::Done(0);
        };
        let noreply = words.last() == Some(b"noreply");
        if !is_key(key) {
            self.answer(noreply, BAD_LINE);
            return Step::Done(0);
        }
        let Some(time) = numbers::signed(time).filter(|time| i32::try_from(*time).is_ok()) else {
            self.answer(noreply, "CLIENT_ERROR invalid exptime argument");
            return Step::Done(0);
        };
        let Some(found) = self.touch_item(key, shared.expires(time), items, shared) else {
            return Step::Waits;
        };
        self.answer(noreply, if found.is_some() { "TOUCHED" } else { "NOT_FOUND" });
        Step::Done(0)
    }

    /// Changes when an item expires, and returns what it was; `None` if it is still being read: its
    /// key has to be compared, so that another item does not outlive its time.
    fn touch_item(
        &mut self,
        key: &[u8],
        expires: u32,
        items: &mut dyn Items,
        shared: &mut Shared,
    ) -> Option<Option<Old>> {
        let old = match self.known(key, items, shared) {
            Known::Reading => return None,
            Known::Miss => None,
            Known::Old(old) => Some(old),
        };
        shared.counters.cmd_touch += 1;
        match &old {
            Some(old) => {
                shared.counters.touch_hits += 1;
                set_meta(items, key, old.at, touched(old.meta, expires, shared), shared);
            }
            None => shared.counters.touch_misses += 1,
        }
        Some(old)
    }

    /// Commands that concern no item.
    fn administer(
        &mut self,
        command: &[u8],
        words: &mut dyn Iterator<Item = &[u8]>,
        items: &mut dyn Items,
        shared: &mut Shared,
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
                    (Some(_), Some(level)) => shared.settings.verbosity = level,
                    _ => return self.answer(noreply, BAD_LINE),
                }
                self.answer(noreply, "OK");
            }
            b"flush_all" => self.flush_all(first, words.next(), items, shared),
            b"shutdown" => self.shut_down(first, shared),
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
            b"debugtime" if shared.settings.debug => {
                shared.debug_time(first.unwrap_or_default());
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

    fn flush_all(
        &mut self,
        first: Option<&[u8]>,
        second: Option<&[u8]>,
        items: &mut dyn Items,
        shared: &mut Shared,
    ) {
        let noreply = first == Some(b"noreply") || second == Some(b"noreply");
        shared.counters.cmd_flush += 1;
        if !shared.settings.flush_enabled {
            return self.answer(noreply, "CLIENT_ERROR flush_all not allowed");
        }
        let delay = match first.filter(|word| *word != b"noreply") {
            None => 0,
            Some(word) => match numbers::signed(word).filter(|time| i32::try_from(*time).is_ok()) {
                Some(delay) => delay,
                None => return self.answer(noreply, "CLIENT_ERROR invalid exptime argument"),
            },
        };
        let at = if delay <= 0 { shared.now } else { shared.expires(delay) };
        items.flush_all(at, shared.now);
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
            self.answer(false, "CLIENT_ERROR unauthenticated");
            return Step::Done(0);
        };
        if len > LOGIN_MAX {
            self.answer(false, "CLIENT_ERROR auth token too long");
            return Step::Done(0);
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
fn touched(meta: Meta, expires: u32, shared: &Shared) -> Meta {
    Meta { expires, fetched: true, last_access: shared.now, ..meta }
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
