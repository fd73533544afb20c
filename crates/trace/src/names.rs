//! Commands and devices as symbols, with a cache in front of the table of all names: a trace
//! repeats a few of them in every line.

use crate::symbols::{Symbol, Symbols};

/// Entries of each cache; a trace rarely has more busy commands or devices.
const CACHED: usize = 256;

/// A command has at most 15 bytes in Linux.
const COMM_MAX: usize = 16;

/// The names of a trace of block events.
#[derive(Debug)]
pub(crate) struct Names {
    pub symbols: Symbols,
    comms: Vec<CachedComm>,
    devices: Vec<Option<(u32, u32, Symbol)>>,
}

/// The process behind an event, and what is known of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub pid: i32,
    pub comm: Symbol,
    pub tags: DataTags,
}

impl Origin {
    pub const UNKNOWN: Self = Self { pid: -1, comm: Symbol::NONE, tags: DataTags::NONE };
}

/// What is known of the data of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataTags {
    /// 0 is unknown.
    pub inode: u64,
    pub file: Symbol,
    pub stream: u16,
    pub hint: u8,
}

impl DataTags {
    pub const NONE: Self = Self { inode: 0, file: Symbol::NONE, stream: 0, hint: 0 };
}

#[derive(Clone, Copy, Debug)]
struct CachedComm {
    bytes: [u8; COMM_MAX],
    len: usize,
    symbol: Symbol,
    acts_for_others: bool,
}

impl Names {
    pub fn new() -> Self {
        let unknown = CachedComm {
            bytes: [0; COMM_MAX],
            len: 0,
            symbol: Symbol::NONE,
            acts_for_others: false,
        };
        Self { symbols: Symbols::new(), comms: vec![unknown; CACHED], devices: vec![None; CACHED] }
    }

    /// The process `pid` called `comm`.
    pub fn process(&mut self, pid: i32, comm: &[u8]) -> Origin {
        Origin { pid, comm: self.comm(comm).symbol, tags: DataTags::NONE }
    }

    /// The process for which a request was issued, as far as the issue event shows it: unknown
    /// if the issuer was a worker of the block layer or an interrupt of the idle task, which
    /// issue requests of other processes.
    pub fn issuer(&mut self, pid: i32, comm: &[u8]) -> Origin {
        let cached = self.comm(comm);
        if pid == 0 || cached.acts_for_others {
            Origin::UNKNOWN
        } else {
            Origin { pid, comm: cached.symbol, tags: DataTags::NONE }
        }
    }

    /// The device of these numbers, named `major,minor`.
    #[inline]
    pub fn device(&mut self, (major, minor): (u32, u32)) -> Symbol {
        let place = (major.wrapping_mul(31).wrapping_add(minor)) as usize % CACHED;
        match self.devices[place] {
            Some((a, b, symbol)) if (a, b) == (major, minor) => symbol,
            _ => {
                let symbol = self.symbols.intern(&format!("{major},{minor}"));
                self.devices[place] = Some((major, minor, symbol));
                symbol
            }
        }
    }

    fn comm(&mut self, comm: &[u8]) -> CachedComm {
        let mut bytes = [0; COMM_MAX];
        let len = comm.len();
        if len > COMM_MAX {
            return self.new_comm(comm, bytes);
        }
        bytes[..len].copy_from_slice(comm);
        let mixed =
            u128::from_le_bytes(bytes).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let place = (mixed >> 120) as usize % CACHED;
        let cached = self.comms[place];
        if cached.bytes == bytes && cached.len == len {
            return cached;
        }
        self.comms[place] = self.new_comm(comm, bytes);
        self.comms[place]
    }

    fn new_comm(&mut self, comm: &[u8], bytes: [u8; COMM_MAX]) -> CachedComm {
        CachedComm {
            bytes,
            len: comm.len(),
            symbol: self.symbols.intern(&String::from_utf8_lossy(comm)),
            acts_for_others: acts_for_others(comm),
        }
    }
}

/// Whether a thread of this name issues requests of other processes: the high-priority workers
/// bound to a CPU (`kworker/0:1H`) run the block layer's queues, and soft interrupts restart
/// them.
fn acts_for_others(comm: &[u8]) -> bool {
    let worker = comm.strip_prefix(b"kworker/");
    worker.is_some_and(|rest| rest.ends_with(b"H") && !rest.starts_with(b"u"))
        || comm.starts_with(b"ksoftirqd/")
}
