//! The flags of meta commands, and the answers that return them.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Shared, numbers};
use crate::items::{Item, Meta};

/// The longest key.
pub const KEY_MAX: usize = 250;
/// The longest opaque token, with its `O`.
const OPAQUE_MAX: usize = 32;
/// The error of a longer one.
pub const LONG_OPAQUE: &str = "CLIENT_ERROR opaque token too long";
/// The most flags of a command.
const FLAGS_MAX: usize = 20;

/// The flags of a command, in its own order.
#[derive(Debug, Default)]
pub struct Flags<'a> {
    /// The flags as they are.
    pub all: &'a [u8],
    /// The key, decoded.
    pub key: Cow<'a, [u8]>,
    /// The key as it was given.
    pub given: &'a [u8],
    pub is_base64: bool,
    pub quiet: bool,
    pub value: bool,
    pub no_update: bool,
    pub stale: bool,
    pub remove_value: bool,
    pub compare: Option<u64>,
    pub version: Option<u64>,
    pub client_flags: u32,
    pub ttl: Option<u32>,
    pub vivify: Option<u32>,
    pub recache: Option<u32>,
    pub mode: Option<u8>,
    pub initial: u64,
    pub delta: Option<u64>,
}

const BAD_LINE: &str = "CLIENT_ERROR bad command line format";
const BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format";

impl<'a> Flags<'a> {
    /// Parses key and flags; the error is the answer.
    pub fn parse(given: &'a [u8], all: &'a [u8], shared: &Shared) -> Result<Self, &'static str> {
        if !super::session::is_key(given) {
            return Err(BAD_LINE);
        }
        let mut flags = Self { all, given, key: given.into(), ..Self::default() };
        let mut seen = [false; 128];
        let mut failed = None;
        for (number, word) in numbers::words(all).enumerate() {
            if number == FLAGS_MAX {
                return Err("CLIENT_ERROR options flags are too long");
            }
            let place = seen.get_mut(usize::from(word[0])).filter(|seen| !**seen);
            *place.ok_or("CLIENT_ERROR duplicate flag")? = true;
            match flags.flag(word[0], &word[1..], shared) {
                // An unknown flag ends the line; the last of other errors is reported.
                Err(error @ "CLIENT_ERROR invalid flag") => return Err(error),
                Err(error) => failed = Some(error),
                Ok(()) => {}
            }
        }
        failed.map_or(Ok(flags), Err)
    }

    fn flag(&mut self, name: u8, token: &'a [u8], shared: &Shared) -> Result<(), &'static str> {
        let time = || {
            let given = numbers::time(token);
            given.map(|given| shared.expires(given)).ok_or(BAD_TOKEN)
        };
        match name {
            b'b' => {
                let key = STANDARD.decode(self.given).ok().filter(|key| !key.is_empty());
                self.key = key.ok_or("CLIENT_ERROR error decoding key")?.into();
                self.is_base64 = true;
            }
            b'N' => self.vivify = Some(time()?),
            b'T' => self.ttl = Some(time()?),
            b'R' => self.recache = Some(time()?),
            b'O' if token.len() >= OPAQUE_MAX => return Err(LONG_OPAQUE),
            b'O' | b'P' | b'L' | b'k' | b's' | b't' | b'c' | b'f' | b'h' | b'l' => {}
            b'v' => self.value = true,
            b'u' => self.no_update = true,
            b'q' => self.quiet = true,
            b'x' => self.remove_value = true,
            b'F' => self.client_flags = numbers::word(token).ok_or(BAD_LINE)?,
            b'C' => self.compare = Some(numbers::unsigned(token).ok_or(BAD_TOKEN)?),
            b'E' => self.version = Some(numbers::unsigned(token).ok_or(BAD_TOKEN)?),
            b'M' => self.mode = Some(token.first().copied().unwrap_or(0)),
            b'J' => {
                let initial = numbers::unsigned(token);
                self.initial = initial.ok_or("CLIENT_ERROR invalid numeric initial value")?;
            }
            b'D' => {
                let delta = numbers::unsigned(token);
                self.delta = Some(delta.ok_or("CLIENT_ERROR invalid numeric delta value")?);
            }
            b'I' => self.stale = true,
            _ => return Err("CLIENT_ERROR invalid flag"),
        }
        Ok(())
    }

    /// Whether a flag is there.
    pub fn has(&self, name: u8) -> bool {
        numbers::words(self.all).any(|word| word[0] == name)
    }

    /// Appends the flags that every answer returns: opaque, and key.
    pub fn push_names(&self, out: &mut Vec<u8>) {
        push_names(out, self.all, self.given, self.is_base64);
    }

    /// Appends a flag of the command, if it is one of those that every answer returns.
    pub fn push_name(&self, out: &mut Vec<u8>, word: &[u8]) {
        push_names(out, word, self.given, self.is_base64);
    }
}

/// Appends the flags `O` and `k`; `b` follows the key that it concerns.
fn push_names(out: &mut Vec<u8>, all: &[u8], key: &[u8], is_base64: bool) {
    for word in numbers::words(all) {
        match word[0] {
            b'O' => {
                out.push(b' ');
                out.extend_from_slice(word);
            }
            b'k' => {
                out.extend_from_slice(b" k");
                out.extend_from_slice(key);
                if is_base64 {
                    out.extend_from_slice(b" b");
                }
            }
            _ => {}
        }
    }
}

/// Appends a flag with a number.
pub fn push_number(out: &mut Vec<u8>, name: u8, number: u64) {
    out.push(b' ');
    out.push(name);
    numbers::push(out, number);
}

/// Appends the remaining time to live.
pub fn push_ttl(out: &mut Vec<u8>, expires: u32, now: u32) {
    if expires == 0 {
        out.extend_from_slice(b" t-1");
    } else {
        push_number(out, b't', expires.saturating_sub(now).into());
    }
}

/// The answer of `mg`, which is complete when the item is known.
#[derive(Clone, Debug)]
pub struct MetaReply<'a> {
    /// The flags of the command.
    pub all: Cow<'a, [u8]>,
    /// The key as it was given.
    pub given: Cow<'a, [u8]>,
    /// Whether that is base64.
    pub is_base64: bool,
    /// Whether the value is returned.
    pub value: bool,
    /// The version at which it is not.
    pub compare: Option<u64>,
    /// Whether a miss is not answered.
    pub quiet: bool,
    /// What was known before the command, but for the time to live.
    pub meta: Meta,
    /// The flags Z, X and W, in the order of the answer.
    pub marks: [bool; 3],
}

impl MetaReply<'_> {
    /// The same with copies of key and flags, for a reply that waits for a read.
    pub fn into_owned(self) -> MetaReply<'static> {
        let (all, given) = (self.all.into_owned().into(), self.given.into_owned().into());
        MetaReply { all, given, ..self }
    }

    /// Appends the answer for an item.
    pub fn hit(&self, out: &mut Vec<u8>, item: &Item<'_>, now: u32) {
        let value = self.value && self.compare != Some(item.version);
        if value {
            out.extend_from_slice(b"VA ");
            numbers::push(out, item.value.len() as u64);
        } else {
            out.extend_from_slice(b"HD");
        }
        for word in numbers::words(&self.all) {
            match word[0] {
                b'c' => push_number(out, b'c', item.version),
                b'f' => push_number(out, b'f', item.flags.into()),
                b's' => push_number(out, b's', item.value.len() as u64),
                b't' => push_ttl(out, self.meta.expires, now),
                b'l' => {
                    push_number(out, b'l', now.saturating_sub(self.meta.last_access).into());
                }
                b'h' => push_number(out, b'h', self.meta.fetched.into()),
                _ => push_names(out, word, &self.given, self.is_base64),
            }
        }
        for (name, marked) in [b'Z', b'X', b'W'].into_iter().zip(self.marks) {
            if marked {
                out.extend_from_slice(&[b' ', name]);
            }
        }
        out.extend_from_slice(b"\r\n");
        if value {
            out.extend_from_slice(item.value);
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Appends the answer if there is no item.
    pub fn miss(&self, out: &mut Vec<u8>) {
        if !self.quiet {
            out.extend_from_slice(b"EN");
            push_names(out, &self.all, &self.given, self.is_base64);
            out.extend_from_slice(b"\r\n");
        }
    }
}
