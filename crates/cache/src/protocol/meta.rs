//! The meta commands.

use super::flags::{Flags, MetaReply, push_number, push_ttl};
use super::numbers;
use super::output::Answer;
use super::session::{Old, Server, Session, Step};
use super::storage::{Mode, Store, StoreResult};
use crate::items::{Item, ItemAddress, Lookup, Meta, NewItem};

impl Session {
    /// Appends a code, opaque and key.
    fn meta_answer(&mut self, code: &str, flags: &Flags<'_>) {
        let out = self.out.text();
        out.extend_from_slice(code.as_bytes());
        flags.push_names(out);
        out.extend_from_slice(b"\r\n");
    }

    /// `mg KEY FLAGS`.
    pub(super) fn meta_get(&mut self, flags: &Flags<'_>, server: &mut Server<'_>) -> Step {
        server.shared.counters.cmd_meta += 1;
        server.shared.counters.cmd_get += 1;
        let (now, before) = (server.shared.now, server.items.len());
        let mut reply = MetaReply {
            all: flags.all.into(),
            given: flags.given.into(),
            is_base64: flags.is_base64,
            value: flags.value,
            compare: flags.compare,
            quiet: flags.quiet,
            meta: Meta::default(),
            marks: [false; 3],
        };
        let Some(known) = self.known_to_touch(flags, server) else { return Step::Waits };
        let found = match &known {
            Some(old) => Some((old.at, old.meta)),
            None if flags.ttl.is_some() => None,
            None => server.items.peek(&flags.key, now),
        };
        let Some((at, old)) = found else {
            server.count_miss(before);
            return self.vivify(flags, reply, server);
        };
        let (meta, marks) = update(flags, &old, now);
        reply.meta = Meta { expires: meta.expires, ..old };
        reply.marks = marks;
        let looks_inside = flags.value || b"cfs".iter().any(|&name| flags.has(name));
        if let Some(known) = &known {
            server.shared.counters.get_hits += 1;
            reply.hit(self.out.text(), &known.item(flags.given), now);
        } else if !looks_inside {
            server.shared.counters.get_hits += 1;
            reply.hit(self.out.text(), &blank(flags.given, at, old), now);
        } else {
            let tag = self.tag();
            match server.items.lookup(&flags.key, tag, now) {
                Lookup::Miss => {
                    server.shared.counters.get_misses += 1;
                    return self.vivify(flags, reply, server);
                }
                Lookup::Found(item) => {
                    server.shared.counters.get_hits += 1;
                    reply.hit(self.out.text(), &item, now);
                }
                Lookup::Reading(bytes) => {
                    self.out.wait(Answer::Meta(Box::new(reply.into_owned())), bytes);
                }
            }
        }
        server.set_meta(&flags.key, at, meta);
        Step::Done(0)
    }

    /// The item of `mg` with `T`: its key has to be compared, so that another item does not outlive
    /// its time.
    fn known_to_touch(
        &mut self,
        flags: &Flags<'_>,
        server: &mut Server<'_>,
    ) -> Option<Option<Old>> {
        match flags.ttl {
            Some(_) => self.known(&flags.key, server),
            None => Some(None),
        }
    }

    /// The answer of a miss; with `N` an empty item is inserted.
    fn vivify(
        &mut self,
        flags: &Flags<'_>,
        mut reply: MetaReply<'_>,
        server: &mut Server<'_>,
    ) -> Step {
        let Some(expires) = flags.vivify else {
            reply.miss(self.out.text());
            return Step::Done(0);
        };
        let expires = flags.ttl.unwrap_or(expires);
        let version = flags.version.unwrap_or_else(|| server.items.next_version());
        let meta = Meta { expires, last_access: server.shared.now, win: true, ..Meta::default() };
        let new = NewItem { key: &flags.key, value: [&[], &[]], flags: 0, version, meta };
        let error = "SERVER_ERROR out of memory storing object";
        if let Err(step) = self.insert(new, error, server) {
            return step;
        }
        let at = server.items.peek(&flags.key, server.shared.now);
        let at = at.map_or_else(<_>::default, |(at, _)| at);
        reply.meta = meta;
        reply.marks = [false, false, true];
        let item = Item { version, ..blank(flags.given, at, meta) };
        reply.hit(self.out.text(), &item, server.shared.now);
        Step::Done(0)
    }

    /// `ms KEY LENGTH FLAGS`, whose value is at the beginning of `body`.
    pub(super) fn meta_set(&mut self, rest: &[u8], body: &[u8], server: &mut Server<'_>) -> Step {
        let mut words = numbers::words(rest);
        let (key, len) = (words.next().unwrap_or_default(), words.next());
        let len = len.and_then(numbers::word).filter(|len| *len < 1 << 30);
        let Some(len) = len else {
            return self.reply(false, "CLIENT_ERROR bad command line format");
        };
        let len = len as usize;
        let used = flags_after(rest, 2);
        let flags = match Flags::parse(key, used, server.shared) {
            Ok(flags) => flags,
            Err(error) => return self.refuse_value(false, error, len, body),
        };
        let mode = match flags.mode {
            None | Some(b'S') => Mode::Set,
            Some(b'E') => Mode::Add,
            Some(b'A') => Mode::Append,
            Some(b'P') => Mode::Prepend,
            Some(b'R') => Mode::Replace,
            Some(_) => {
                let error = "CLIENT_ERROR invalid mode for ms M token";
                return self.refuse_value(false, error, len, body);
            }
        };
        server.shared.counters.cmd_meta += 1;
        let store = Store {
            key: &flags.key,
            len,
            mode,
            client_flags: flags.client_flags,
            expires: flags.ttl.unwrap_or(0),
            compare: flags.compare,
            version: flags.version,
            stale: flags.stale,
            vivify: flags.vivify,
            noreply: false,
            is_meta: true,
        };
        let stored = match self.store(&store, body, server) {
            Ok(stored) => stored,
            Err(step) => return step,
        };
        self.meta_stored(&flags, stored, len);
        Step::Done(len + 2)
    }

    /// Answers `ms`.
    fn meta_stored(&mut self, flags: &Flags<'_>, stored: StoreResult, len: usize) {
        let (code, version, bytes) = match stored {
            StoreResult::Done { version, bytes } => ("HD", version, bytes),
            StoreResult::NotStored => ("NS", 0, len),
            StoreResult::Exists => ("EX", 0, len),
            StoreResult::NotFound => ("NF", 0, len),
        };
        if flags.quiet && code == "HD" {
            return;
        }
        let out = self.out.text();
        out.extend_from_slice(code.as_bytes());
        for word in numbers::words(flags.all) {
            match word[0] {
                b'c' => push_number(out, b'c', version),
                b's' => push_number(out, b's', bytes as u64),
                _ => flags.push_name(out, word),
            }
        }
        out.extend_from_slice(b"\r\n");
    }

    /// `md KEY FLAGS`.
    pub(super) fn meta_delete(&mut self, flags: &Flags<'_>, server: &mut Server<'_>) -> Step {
        server.shared.counters.cmd_meta += 1;
        let looks_inside = flags.stale || flags.remove_value || flags.compare.is_some();
        let code = if looks_inside {
            match self.delete_known(flags, server) {
                Ok(code) => code,
                Err(step) => return step,
            }
        } else if server.delete(&flags.key) {
            "HD"
        } else {
            "NF"
        };
        match code {
            "HD" => server.shared.counters.delete_hits += 1,
            _ => server.shared.counters.delete_misses += 1,
        }
        if !(flags.quiet && code == "HD") {
            self.meta_answer(code, flags);
        }
        Step::Done(0)
    }

    /// `md` of a version, or one that leaves a stale or empty item.
    fn delete_known(
        &mut self,
        flags: &Flags<'_>,
        server: &mut Server<'_>,
    ) -> Result<&'static str, Step> {
        let known = self.known(&flags.key, server).ok_or(Step::Waits)?;
        let Some(old) = known else { return Ok("NF") };
        if flags.compare.is_some_and(|wanted| wanted != old.version) {
            return Ok("EX");
        }
        if !flags.stale && !flags.remove_value {
            server.items.remove(&flags.key);
            return Ok("HD");
        }
        let version = flags.version.unwrap_or_else(|| server.items.next_version());
        let fetched = old.meta.fetched && !flags.remove_value;
        let expires = flags.ttl.unwrap_or(old.meta.expires);
        let (stale, win, last_access) = (flags.stale, false, server.shared.now);
        let meta = Meta { expires, last_access, fetched, stale, win };
        let (value, client): (&[u8], u32) =
            if flags.remove_value { (&[], flags.client_flags) } else { (&old.value, old.flags) };
        let new = NewItem { key: &flags.key, value: [value, &[]], flags: client, version, meta };
        self.insert(new, "SERVER_ERROR out of memory", server)?;
        Ok("HD")
    }

    /// `ma KEY FLAGS`.
    pub(super) fn meta_arithmetic(&mut self, flags: &Flags<'_>, server: &mut Server<'_>) -> Step {
        server.shared.counters.cmd_meta += 1;
        let increments = match flags.mode {
            None | Some(b'I' | b'+') => true,
            Some(b'D' | b'-') => false,
            Some(_) => {
                return self.reply(false, "CLIENT_ERROR invalid mode for ma M token");
            }
        };
        let Some(old) = self.known(&flags.key, server) else { return Step::Waits };
        let counters = &mut server.shared.counters;
        let (misses, hits) = match increments {
            true => (&mut counters.incr_misses, &mut counters.incr_hits),
            false => (&mut counters.decr_misses, &mut counters.decr_hits),
        };
        *misses += u64::from(old.is_none());
        let (number, old_len, client, mut meta) = match (old, flags.vivify) {
            (None, None) => {
                self.meta_answer("NF", flags);
                return Step::Done(0);
            }
            (None, Some(expires)) => {
                let expires = flags.ttl.unwrap_or(expires);
                (flags.initial, 0, 0, Meta { expires, ..Meta::default() })
            }
            // 0 is no version.
            (Some(old), _) if flags.compare.is_some_and(|of| of != 0 && of != old.version) => {
                self.meta_answer("EX", flags);
                return Step::Done(0);
            }
            (Some(old), _) => {
                let delta = flags.delta.unwrap_or(1);
                let Some(number) = super::storage::changed(&old.value, increments, delta) else {
                    return self.reply(false, super::storage::NOT_A_NUMBER);
                };
                *hits += 1;
                let expires = flags.ttl.unwrap_or(old.meta.expires);
                (number, old.value.len(), old.flags, Meta { expires, ..old.meta })
            }
        };
        meta.last_access = server.shared.now;
        let mut digits = Vec::new();
        numbers::push(&mut digits, number);
        let version = flags.version.unwrap_or_else(|| server.items.next_version());
        let value: [&[u8]; 2] = [&digits, super::storage::padding(digits.len(), old_len)];
        let new = NewItem { key: &flags.key, value, flags: client, version, meta };
        if let Err(step) = self.insert(new, "NS", server) {
            return step;
        }
        if !flags.quiet {
            self.meta_number(flags, &digits, version, meta.expires, server.shared.now);
        }
        Step::Done(0)
    }

    /// Answers `ma`.
    fn meta_number(
        &mut self,
        flags: &Flags<'_>,
        digits: &[u8],
        version: u64,
        expires: u32,
        now: u32,
    ) {
        let out = self.out.text();
        if flags.value {
            out.extend_from_slice(b"VA ");
            numbers::push(out, digits.len() as u64);
        } else {
            out.extend_from_slice(b"HD");
        }
        for word in numbers::words(flags.all) {
            match word[0] {
                b'c' => push_number(out, b'c', version),
                b't' => push_ttl(out, expires, now),
                _ => flags.push_name(out, word),
            }
        }
        out.extend_from_slice(b"\r\n");
        if flags.value {
            out.extend_from_slice(digits);
            out.extend_from_slice(b"\r\n");
        }
    }

    /// `me KEY`.
    pub(super) fn meta_debug(&mut self, flags: &Flags<'_>, server: &mut Server<'_>) -> Step {
        let Some(known) = self.known(&flags.key, server) else { return Step::Waits };
        let Some(old) = known else { return self.reply(false, "EN") };
        let out = self.out.text();
        out.extend_from_slice(b"ME ");
        out.extend_from_slice(flags.given);
        let expires = match old.meta.expires {
            0 => -1,
            expires => i64::from(expires) - i64::from(server.shared.now),
        };
        let size = flags.key.len() + old.value.len() + 24;
        let text = format!(
            " exp={expires} la={} cas={} fetch={} cls=1 size={size}\r\n",
            server.shared.now.saturating_sub(old.meta.last_access),
            old.version,
            if old.meta.fetched { "yes" } else { "no" },
        );
        out.extend_from_slice(text.as_bytes());
        Step::Done(0)
    }
}

/// An item of which nothing is returned but what is kept in memory.
fn blank(key: &[u8], at: ItemAddress, meta: Meta) -> Item<'_> {
    Item { key, value: &[], flags: 0, version: 0, at, meta, from_flash: false }
}

/// What follows the first `count` words.
pub(super) fn flags_after(line: &[u8], count: usize) -> &[u8] {
    let mut rest = line;
    for _ in 0..count {
        let begin = rest.iter().position(|&byte| byte != b' ').unwrap_or(rest.len());
        let end =
            rest[begin..].iter().position(|&byte| byte == b' ').map_or(rest.len(), |at| begin + at);
        rest = &rest[end..];
    }
    rest
}

/// What `mg` changes of an item, and the flags Z, X and W.
fn update(flags: &Flags<'_>, old: &Meta, now: u32) -> (Meta, [bool; 3]) {
    let mut meta = *old;
    if !flags.no_update {
        (meta.fetched, meta.last_access) = (true, now);
    }
    meta.expires = flags.ttl.unwrap_or(old.expires);
    let near = |limit: u32| meta.expires != 0 && meta.expires < limit;
    let mut won = !old.win && flags.recache.is_some_and(near);
    if old.stale && !old.win {
        won = true;
    }
    meta.win |= won;
    (meta, [old.win, old.stale, won])
}
