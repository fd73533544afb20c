//! The letters of Linux tracepoints and blkparse for an operation and its flags.
//!
//! The order is fixed: `F` for a preflush, the operation (`R`, `W`, `WZ`, `D`, `DE`, `F`, `Z`
//! and a letter, or `N` for none of these), then `F` for FUA, `A` for read-ahead, `S` for sync,
//! `M` for metadata, `U` for atomic.

use crate::record::{Flags, Op};

/// The meaning of the letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rwbs {
    pub kind: Kind,
    pub flags: Flags,
}

/// The operation letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Data(Op),
    /// `N`: write-zeroes if it has sectors (kernels up to 6.18), a flush if it has none but a
    /// preflush, otherwise a passthrough command.
    Nameless,
    /// Zone management: open, close, finish or reset.
    Zone,
}

impl Rwbs {
    /// Reads the letters; `None` if they are not in the form above.
    #[inline]
    pub fn parse(letters: &[u8]) -> Option<Self> {
        let mut flags = Flags::NONE;
        let mut rest = letters;
        if let [b'F', after @ ..] = rest
            && let [b'R' | b'W' | b'D' | b'F' | b'N' | b'Z', ..] = after
        {
            flags = Flags::PREFLUSH;
            rest = after;
        }
        let (kind, mut rest) = match rest {
            [b'W', b'Z', rest @ ..] => (Kind::Data(Op::WriteZeroes), rest),
            [b'Z', b'A', rest @ ..] | [b'W', rest @ ..] => (Kind::Data(Op::Write), rest),
            [b'Z', b'R', b'A', rest @ ..] | [b'Z', _, rest @ ..] => (Kind::Zone, rest),
            [b'D', b'E', rest @ ..] | [b'D', rest @ ..] => (Kind::Data(Op::Discard), rest),
            [b'R', rest @ ..] => (Kind::Data(Op::Read), rest),
            [b'F', rest @ ..] => (Kind::Data(Op::Flush), rest),
            [b'N', rest @ ..] => (Kind::Nameless, rest),
            _ => return None,
        };
        while let Some((&letter, after)) = rest.split_first() {
            flags = flags.with(match letter {
                b'F' => Flags::FUA,
                b'A' => Flags::READAHEAD,
                b'S' => Flags::SYNC,
                b'M' => Flags::META,
                b'U' | b'B' | b'E' => Flags::NONE,
                _ => return None,
            });
            rest = after;
        }
        Some(Self { kind, flags })
    }

    /// The operation of a request over `sectors`; `None` if the command is not about data (zone
    /// management, passthrough).
    #[inline]
    pub fn op(self, sectors: u64) -> Option<Op> {
        match self.kind {
            Kind::Data(Op::Flush) => Some(Op::Flush),
            Kind::Data(op) if sectors > 0 => Some(op),
            Kind::Nameless if sectors > 0 => Some(Op::WriteZeroes),
            Kind::Zone => None,
            Kind::Data(_) | Kind::Nameless => self.flags.has(Flags::PREFLUSH).then_some(Op::Flush),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters() {
        let names = [
            (Flags::PREFLUSH, "preflush"),
            (Flags::FUA, "fua"),
            (Flags::READAHEAD, "ahead"),
            (Flags::SYNC, "sync"),
            (Flags::META, "meta"),
        ];
        for (letters, sectors, expected) in [
            ("R", 8, "read"),
            ("RA", 8, "read ahead"),
            ("RSM", 8, "read sync meta"),
            ("WS", 8, "write sync"),
            ("FWFSM", 8, "write preflush fua sync meta"),
            ("WFS", 8, "write fua sync"),
            ("FWS", 0, "flush preflush sync"),
            ("FF", 0, "flush preflush"),
            ("F", 0, "flush"),
            ("FN", 0, "flush preflush"),
            ("DS", 8, "discard sync"),
            ("DE", 8, "discard"),
            ("NS", 8, "write_zeroes sync"),
            ("WZS", 8, "write_zeroes sync"),
            ("ZA", 8, "write"),
            ("ZRA", 8, "nothing"),
            ("N", 0, "nothing"),
            ("WS", 0, "nothing sync"),
            ("", 8, "unknown"),
            ("X", 8, "unknown"),
            ("WQ", 8, "unknown"),
        ] {
            let found = Rwbs::parse(letters.as_bytes()).map_or("unknown".to_owned(), |rwbs| {
                let mut words = vec![rwbs.op(sectors).map_or("nothing", Op::name)];
                words.extend(names.iter().filter(|f| rwbs.flags.has(f.0)).map(|f| f.1));
                words.join(" ")
            });
            assert_eq!(found, expected, "{letters}");
        }
    }
}
