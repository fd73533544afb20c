//! Memcached's text and meta protocols, as of version 1.6.45: bytes in, bytes out.
//!
//! A [`Session`] is a connection. The server gives it what it received ([`Session::receive`]), lets
//! it work ([`Session::run`]), passes items that were read from flash ([`Session::read_done`]), and
//! sends its output. Gets are in flight together, and answered in their order; a command that needs
//! the old value of an item waits for it, and is then executed from its beginning.

pub mod exposition;
mod flags;
mod meta;
mod numbers;
mod output;
mod report;
mod session;
mod stats;
mod storage;
mod text;

pub use report::{ConnectionReport, Report, ReportPart};
pub use session::Session;

/// The version that clients see: that of memcached whose commands are executed, since clients infer
/// from it what they may send, and some refuse a 0 at its beginning. Prism's own follows.
pub const VERSION: &str = concat!("1.6.45-prism-", env!("CARGO_PKG_VERSION"));

/// Reads of a session in flight.
pub const READS: usize = 64;

/// Users and their passwords.
pub type Users = Vec<(Vec<u8>, Vec<u8>)>;

/// What the operator has set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The longest item, in bytes.
    pub item_max: usize,
    /// Whether `flush_all` is allowed.
    pub flush_enabled: bool,
    /// Whether `stats cachedump` lists items.
    pub dump_enabled: bool,
    /// Whether `shutdown` is allowed.
    pub shutdown_enabled: bool,
    /// Users and passwords; `None` if clients need not log in.
    pub auth: Option<Users>,
    /// Whether `debugtime` is allowed.
    pub debug: bool,
    /// How much is logged; only reported.
    pub verbosity: u32,
    /// Most connections.
    pub maxconns: u32,
    /// Seconds after which an idle connection is closed; 0 for never.
    pub idle_timeout: u32,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Commands of a connection that are executed before other connections have their turn.
    pub commands_per_turn: u32,
    /// Connections that may wait to be accepted; only reported.
    pub backlog: u32,
    /// What clients may speak, by memcached's name; only reported.
    pub binding_protocol: &'static str,
    /// The TCP port.
    pub port: u16,
    /// The Unix socket.
    pub socket: Option<String>,
    /// The number of the process.
    pub pid: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            item_max: 1 << 20,
            flush_enabled: true,
            dump_enabled: true,
            shutdown_enabled: false,
            auth: None,
            debug: false,
            verbosity: 0,
            maxconns: 1024,
            idle_timeout: 0,
            memory_bytes: 64 << 20,
            commands_per_turn: 100,
            backlog: 1024,
            binding_protocol: "auto-negotiate",
            port: 11211,
            socket: None,
            pid: 0,
        }
    }
}

macro_rules! counters {
    ([$($of_commands:ident),* $(,)?], $($name:ident),* $(,)?) => {
        /// What happened since the server began, by the names of the command `stats`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names are memcached's")]
        pub struct Counters {
            $(pub $of_commands: u64,)*
            $(pub $name: u64,)*
        }

        impl Counters {
            /// What commands did, by name, in memcached's order.
            pub(crate) fn of_commands(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($of_commands), self.$of_commands)),*].into_iter()
            }
        }
    };
}

counters!(
    [
        cmd_get,
        cmd_set,
        cmd_flush,
        cmd_touch,
        cmd_meta,
        get_hits,
        get_misses,
        get_expired,
        get_flushed,
        delete_misses,
        delete_hits,
        incr_misses,
        incr_hits,
        decr_misses,
        decr_hits,
        cas_misses,
        cas_hits,
        cas_badval,
        touch_hits,
        touch_misses,
        store_too_large,
        store_no_memory,
        auth_cmds,
        auth_errors,
    ],
    curr_connections,
    total_connections,
    rejected_connections,
    idle_kicks,
    bytes_read,
    bytes_written,
    conn_yields,
    total_items,
    last_idle_check,
    // Not one of memcached's: keys of `gat` and `gats`, which are counted as gets and as touches.
    gets_with_touch,
);

/// What all sessions of a server share.
#[derive(Clone, Debug)]
pub struct Shared {
    /// What the operator has set.
    pub settings: Settings,
    /// What happened.
    pub counters: Counters,
    /// The time, in seconds since 1970.
    pub now: u32,
    /// When the server began.
    pub started: u32,
    /// A client has shut the server down; whether gracefully.
    pub shutdown: Option<bool>,
    /// The clock stands still, or is ahead, by the command `debugtime`.
    clock: Clock,
    prefixes: Prefixes,
    /// What the server has reported for the command that waits for it.
    report: Option<Report>,
    wants_report: Option<ReportPart>,
    /// Evictions before the last `stats reset`.
    evictions_before: u64,
}

/// Most prefixes that are counted.
const PREFIXES: usize = 10_000;

/// Counts by the part of keys before `:`, while a client has them counted by `stats detail on`.
#[derive(Clone, Debug, Default)]
struct Prefixes {
    on: bool,
    /// Gets, hits, sets, deletes.
    counts: std::collections::BTreeMap<Vec<u8>, [u64; 4]>,
}

impl Prefixes {
    fn count(&mut self, key: &[u8], what: usize) {
        if !self.on {
            return;
        }
        let Some(end) = key.iter().position(|&byte| byte == b':') else { return };
        let is_new = !self.counts.contains_key(&key[..end]);
        if !is_new || self.counts.len() < PREFIXES {
            self.counts.entry(key[..end].to_vec()).or_default()[what] += 1;
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Clock {
    /// Ahead of the given time by this.
    Runs(i64),
    Stands,
}

impl Shared {
    /// A server that begins now.
    #[must_use]
    pub fn new(settings: Settings, now: u32) -> Self {
        let (counters, clock) = (Counters::default(), Clock::Runs(0));
        let prefixes = Prefixes::default();
        Self {
            settings,
            counters,
            now,
            started: now,
            shutdown: None,
            clock,
            prefixes,
            report: None,
            wants_report: None,
            evictions_before: 0,
        }
    }

    /// What the session that ran last waits for: the caller gives it ([`Shared::give_report`]) and
    /// runs the session again at once. Asking this forgets it.
    pub fn wants_report(&mut self) -> Option<ReportPart> {
        self.wants_report.take()
    }

    /// Passes what only the server knows to the session that waits for it.
    pub fn give_report(&mut self, report: Report) {
        self.report = Some(report);
    }

    /// Sets the clock, which goes on with real time unless a test has changed that.
    pub fn set_clock(&mut self, now: u32) {
        if let Clock::Runs(ahead) = self.clock {
            self.now = u32::try_from(i64::from(now) + ahead).unwrap_or(u32::MAX);
        }
    }

    /// `debugtime p`, `r` or a number: the clock stands, goes on, or is ahead by as many seconds.
    fn debug_time(&mut self, word: &[u8]) {
        match word {
            b"p" => self.clock = Clock::Stands,
            b"r" => self.clock = Clock::Runs(0),
            _ => {
                let step = numbers::time(word).unwrap_or(0);
                self.now = u32::try_from(i64::from(self.now) + step).unwrap_or(self.now);
                if let Clock::Runs(ahead) = &mut self.clock {
                    *ahead += step;
                }
            }
        }
    }

    /// The time at which something expires: relative times up to 30 days, later ones as they are,
    /// negative ones at once.
    fn expires(&self, given: i64) -> u32 {
        const MONTH: i64 = 60 * 60 * 24 * 30;
        match given {
            0 => 0,
            // 1 is long ago, and not never.
            ..0 => 1,
            1..=MONTH => u32::try_from(i64::from(self.now) + given).unwrap_or(u32::MAX),
            _ => u32::try_from(given).unwrap_or(u32::MAX),
        }
    }
}
