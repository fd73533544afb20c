//! The output of a session, in the order of its commands, while some wait for flash.

use std::collections::VecDeque;

use super::flags::MetaReply;
use super::numbers;
use crate::items::Item;

/// How a read is answered.
#[derive(Debug)]
pub enum Answer {
    /// `VALUE`, with the version for `gets`.
    Value {
        /// Whether the version is added.
        version: bool,
    },
    /// The answer of `mg`.
    Meta(Box<MetaReply<'static>>),
}

#[derive(Debug)]
enum Part {
    Text(Vec<u8>),
    /// And bytes that the answer will have at most.
    Waiting(Answer, usize),
}

/// What is to be sent.
#[derive(Debug, Default)]
pub struct Output {
    /// Complete bytes, of which the first `sent` are sent.
    bytes: Vec<u8>,
    sent: usize,
    /// What follows the first answer that is waited for.
    parts: VecDeque<Part>,
    /// The number of the first part.
    first: u32,
    waiting: usize,
}

/// Appends an item as the text protocol returns it.
pub fn value(out: &mut Vec<u8>, item: &Item<'_>, version: bool) {
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(item.key);
    out.push(b' ');
    numbers::push(out, item.flags.into());
    out.push(b' ');
    numbers::push(out, item.value.len() as u64);
    if version {
        out.push(b' ');
        numbers::push(out, item.version);
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(item.value);
    out.extend_from_slice(b"\r\n");
}

/// The first byte of a request of memcached's binary protocol, with which no command begins.
pub const BINARY: u8 = 0x80;
/// Bytes with which every request of that protocol begins.
pub const BINARY_HEADER: usize = 24;

/// Answers a request of the binary protocol in that protocol: what it asks for is not supported.
pub fn refuse_binary(out: &mut Vec<u8>, header: &[u8; BINARY_HEADER]) {
    const RESPONSE: u8 = 0x81;
    const NOT_SUPPORTED: u16 = 0x83;
    let text = b"there is no binary protocol; use the text protocol";
    out.extend([RESPONSE, header[1], 0, 0, 0, 0]);
    out.extend(NOT_SUPPORTED.to_be_bytes());
    out.extend((text.len() as u32).to_be_bytes());
    out.extend(&header[12..16]);
    out.extend([0; 8]);
    out.extend(text);
}

impl Output {
    /// Where the next answer goes.
    pub fn text(&mut self) -> &mut Vec<u8> {
        if self.parts.is_empty() {
            return &mut self.bytes;
        }
        if !matches!(self.parts.back(), Some(Part::Text(_))) {
            self.parts.push_back(Part::Text(Vec::new()));
        }
        match self.parts.back_mut() {
            Some(Part::Text(text)) => text,
            _ => unreachable!("just added"),
        }
    }

    /// The number of the answer that is added next by [`Output::wait`].
    pub fn next(&self) -> u32 {
        self.first.wrapping_add(self.parts.len() as u32) & !super::session::CHANGE
    }

    /// An answer that waits for flash, of `bytes` bytes at most.
    pub fn wait(&mut self, answer: Answer, bytes: usize) {
        self.waiting += 1;
        self.parts.push_back(Part::Waiting(answer, bytes));
    }

    /// Answers that wait for flash.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// The item of a waiting answer was read. Returns the answer and where it goes.
    pub fn done(&mut self, number: u32) -> Option<(Answer, &mut Vec<u8>)> {
        let at = (number.wrapping_sub(self.first) & !super::session::CHANGE) as usize;
        let &Part::Waiting(_, bytes) = self.parts.get(at)? else { return None };
        self.waiting -= 1;
        // What is sent next needs no memory of its own, and no copy.
        let text = if at == 0 { Vec::new() } else { Vec::with_capacity(bytes) };
        let part = std::mem::replace(&mut self.parts[at], Part::Text(text));
        let Part::Waiting(answer, _) = part else { unreachable!("as just seen") };
        if at == 0 {
            self.settle_first();
            return Some((answer, &mut self.bytes));
        }
        match &mut self.parts[at] {
            Part::Text(text) => Some((answer, text)),
            Part::Waiting(..) => unreachable!("just replaced"),
        }
    }

    /// Moves the first part, if it is complete, to the bytes to be sent.
    fn settle_first(&mut self) -> bool {
        let Some(Part::Text(text)) = self.parts.front() else { return false };
        self.bytes.extend_from_slice(text);
        self.parts.pop_front();
        self.first = self.first.wrapping_add(1) & !super::session::CHANGE;
        true
    }

    /// Moves what is complete to the bytes to be sent.
    pub fn settle(&mut self) {
        while self.settle_first() {}
    }

    /// Bytes to be sent.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// `bytes` of them were sent.
    pub fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent == self.bytes.len() {
            self.sent = 0;
            self.bytes.clear();
            // A long answer does not keep its memory.
            self.bytes.shrink_to(1 << 16);
        }
    }

    /// Bytes that are held, or will be.
    pub fn len(&self) -> usize {
        let part = |part: &Part| match part {
            Part::Text(text) => text.len(),
            Part::Waiting(_, bytes) => *bytes,
        };
        self.bytes.len() - self.sent + self.parts.iter().map(part).sum::<usize>()
    }
}
