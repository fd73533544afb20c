//! Commands that store, and those that count.

use super::numbers;
use super::session::{Old, Server, Session, Step};
use crate::items::{Meta, NewItem, Refusal};

/// Bytes that an item takes besides its key and value, at most, by memcached's reckoning.
const OVERHEAD: usize = 50;

/// How a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
}

/// A command that stores.
#[derive(Debug)]
pub struct Store<'a> {
    pub key: &'a [u8],
    /// Bytes of the value.
    pub len: usize,
    pub mode: Mode,
    pub client_flags: u32,
    pub expires: u32,
    /// The version that the item must have.
    pub compare: Option<u64>,
    /// The version that it gets.
    pub version: Option<u64>,
    /// Whether an older version than the item's is stored as stale.
    pub stale: bool,
    /// When an item expires that append makes.
    pub vivify: Option<u32>,
    /// Whether the client wants no answer.
    pub noreply: bool,
    /// Whether it is a meta command.
    pub is_meta: bool,
}

/// The result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreResult {
    Done { version: u64, bytes: usize },
    NotStored,
    Exists,
    NotFound,
}

/// The number in `value` after an increment, which wraps, or a decrement, which stops at 0.
pub fn changed(value: &[u8], increments: bool, delta: u64) -> Option<u64> {
    // Numbers that were made shorter may have spaces at their end.
    let end = value.iter().rposition(|&byte| byte != b' ').map_or(0, |at| at + 1);
    let number = numbers::unsigned(&value[..end])?;
    Some(match increments {
        true => number.wrapping_add(delta),
        false => number.saturating_sub(delta),
    })
}

/// The spaces after a number of `len` digits: as in memcached, it does not become shorter than the
/// one that it replaces, up to the length of the largest number.
pub fn padding(len: usize, old_len: usize) -> &'static [u8] {
    &b"                    "[..old_len.min(20).saturating_sub(len)]
}

impl Store<'_> {
    /// Whether it compares versions before it stores, and not only after it has found an item.
    fn is_cas(&self) -> bool {
        self.compare.is_some() && matches!(self.mode, Mode::Set | Mode::Replace)
    }

    /// Whether it stores a value that is stale; 0 is no version.
    fn is_older_than(&self, old: &Old) -> bool {
        let older = |wanted: u64| wanted != 0 && wanted < old.version;
        self.stale && self.is_cas() && self.compare.is_some_and(older)
    }

    /// The two parts of the new value.
    fn parts<'a>(&self, value: &'a [u8], old: Option<&'a Old>) -> [&'a [u8]; 2] {
        match (self.mode, old) {
            (Mode::Append, Some(old)) => [&old.value, value],
            (Mode::Prepend, Some(old)) => [value, &old.value],
            _ => [value, &[]],
        }
    }

    /// Why the value is not stored; `None` if it is.
    fn refused(&self, old: Option<&Old>, server: &mut Server<'_>) -> Option<StoreResult> {
        let differs = |wanted: u64, old: &Old| {
            let ignored = wanted == 0 && !self.is_cas();
            wanted != old.version && !self.is_older_than(old) && !ignored
        };
        match (self.compare, old) {
            (Some(_), None) if self.is_cas() => {
                server.shared.counters.cas_misses += 1;
                return Some(StoreResult::NotFound);
            }
            (Some(wanted), Some(old)) if differs(wanted, old) => {
                server.shared.counters.cas_badval += 1;
                return Some(StoreResult::Exists);
            }
            _ => {}
        }
        let mut exists = || server.items.peek(self.key, server.shared.now).is_some();
        let refused = match self.mode {
            Mode::Set => false,
            Mode::Add => exists(),
            Mode::Replace => old.is_none() && !exists(),
            Mode::Append | Mode::Prepend => old.is_none() && self.vivify.is_none(),
        };
        refused.then_some(StoreResult::NotStored)
    }
}

impl Session {
    /// Refuses a command with a value, which is dropped.
    pub(super) fn refuse_value(
        &mut self,
        noreply: bool,
        error: &str,
        len: usize,
        body: &[u8],
    ) -> Step {
        self.answer(noreply, error);
        let dropped = (len + 2).min(body.len());
        self.swallow = len + 2 - dropped;
        Step::Done(dropped)
    }

    /// Stores the value at the beginning of `body`; an error is what the command does instead.
    pub(super) fn store(
        &mut self,
        store: &Store<'_>,
        body: &[u8],
        server: &mut Server<'_>,
    ) -> Result<StoreResult, Step> {
        let most = server.shared.settings.item_max.min(server.items.longest() + OVERHEAD);
        if store.key.len() + store.len + OVERHEAD > most {
            // The old value must not stay, since the client meant to replace it.
            let replaces = store.mode == Mode::Set && store.compare.is_none() || store.is_meta;
            if replaces {
                server.items.remove(store.key);
            }
            server.shared.counters.store_too_large += 1;
            return Err(self.refuse_value(store.noreply, TOO_LARGE, store.len, body));
        }
        if body.len() < store.len + 2 {
            return Err(Step::Needs(store.len + 2));
        }
        let value = &body[..store.len];
        if &body[store.len..store.len + 2] != b"\r\n" {
            server.shared.counters.cmd_set += 1;
            self.answer(store.noreply, "CLIENT_ERROR bad data chunk");
            return Err(Step::Done(store.len + 2));
        }
        self.put(store, value, server)
    }

    /// Stores a value.
    fn put(
        &mut self,
        store: &Store<'_>,
        value: &[u8],
        server: &mut Server<'_>,
    ) -> Result<StoreResult, Step> {
        let now = server.shared.now;
        let joins = matches!(store.mode, Mode::Append | Mode::Prepend);
        let mut meta = Meta { expires: store.expires, last_access: now, ..Meta::default() };
        let mut client_flags = store.client_flags;
        let mut old = None;
        if joins || store.compare.is_some() && store.mode != Mode::Add {
            old = self.known(store.key, server).ok_or(Step::Waits)?;
        }
        if let Some(refused) = store.refused(old.as_ref(), server) {
            server.shared.counters.cmd_set += 1;
            return Ok(refused);
        }
        if let Some(found) = old.as_ref().filter(|found| store.is_older_than(found)) {
            // Who has won the right to set it anew, and until when, stays.
            let Meta { expires, win, .. } = found.meta;
            meta = Meta { expires, win, stale: true, ..meta };
        }
        let parts = store.parts(value, old.as_ref());
        match &old {
            Some(found) if joins => {
                (client_flags, meta.expires) = (found.flags, found.meta.expires);
            }
            None if joins => meta.expires = store.vivify.unwrap_or(0),
            _ => {}
        }
        let bytes = parts[0].len() + parts[1].len();
        if store.key.len() + bytes + OVERHEAD > server.shared.settings.item_max {
            server.shared.counters.store_too_large += 1;
            self.answer(store.noreply, TOO_LARGE);
            return Err(Step::Done(store.len + 2));
        }
        let version = store.version.unwrap_or_else(|| server.items.next_version());
        let new = NewItem { key: store.key, value: parts, flags: client_flags, version, meta };
        match server.items.insert(new, now) {
            Ok(()) => {
                server.shared.counters.cmd_set += 1;
                server.shared.counters.total_items += 1;
                server.shared.counters.cas_hits += u64::from(store.compare.is_some());
                Ok(StoreResult::Done { version, bytes })
            }
            Err(Refusal::Busy) => {
                self.waits_for_room = true;
                Err(Step::Waits)
            }
            Err(refusal) => {
                server.shared.counters.cmd_set += 1;
                server.shared.counters.store_no_memory += 1;
                let error = match refusal {
                    Refusal::TooLarge => TOO_LARGE,
                    _ => "SERVER_ERROR out of memory storing object",
                };
                self.answer(store.noreply, error);
                Err(Step::Done(store.len + 2))
            }
        }
    }

    /// `incr KEY DELTA` and `decr`.
    pub(super) fn arithmetic(
        &mut self,
        words: &mut dyn Iterator<Item = &[u8]>,
        increments: bool,
        server: &mut Server<'_>,
    ) -> Step {
        let (key, delta) = (words.next().unwrap_or_default(), words.next());
        let noreply = words.last() == Some(b"noreply");
        let Some(delta) = delta.filter(|_| super::session::is_key(key)) else {
            return self.reply(noreply, BAD_LINE);
        };
        let Some(delta) = numbers::unsigned(delta) else {
            return self.reply(noreply, "CLIENT_ERROR invalid numeric delta argument");
        };
        let Some(old) = self.known(key, server) else { return Step::Waits };
        let counters = &mut server.shared.counters;
        let (misses, hits) = match increments {
            true => (&mut counters.incr_misses, &mut counters.incr_hits),
            false => (&mut counters.decr_misses, &mut counters.decr_hits),
        };
        let Some(old) = old else {
            *misses += 1;
            return self.reply(noreply, "NOT_FOUND");
        };
        let Some(number) = changed(&old.value, increments, delta) else {
            return self.reply(noreply, NOT_A_NUMBER);
        };
        let mut digits = Vec::new();
        numbers::push(&mut digits, number);
        *hits += 1;
        let version = server.items.next_version();
        let meta = Meta { last_access: server.shared.now, ..old.meta };
        let value: [&[u8]; 2] = [&digits, padding(digits.len(), old.value.len())];
        let new = NewItem { key, value, flags: old.flags, version, meta };
        if let Err(step) = self.insert(new, "SERVER_ERROR out of memory", server) {
            return step;
        }
        self.reply(noreply, &String::from_utf8_lossy(&digits))
    }
}

pub(super) const NOT_A_NUMBER: &str =
    "CLIENT_ERROR cannot increment or decrement non-numeric value";
const TOO_LARGE: &str = "SERVER_ERROR object too large for cache";
pub(super) const BAD_LINE: &str = "CLIENT_ERROR bad command line format";
