//! What only the server knows, for the command `stats`: its CPU time, its connections, and what the
//! cache and the device count.

use std::fmt::Display;

use prism_base::Nanos;

/// A connection or a listening socket, as `stats conns` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionReport {
    /// The number of its file descriptor.
    pub number: i32,
    /// The client's address, or that on which the server listens: `tcp:127.0.0.1:11211`.
    pub address: String,
    /// The server's address; `None` for a listening socket.
    pub listen_address: Option<String>,
    /// What it does, by memcached's names ([`super::Session::state`]).
    pub state: &'static str,
    /// Seconds since the client last sent something.
    pub idle: u32,
}

/// The part of a [`Report`] that a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportPart {
    /// CPU time and figures.
    Figures,
    /// Connections.
    Connections,
}

/// What only the server knows. A session that needs it waits for it
/// ([`super::Shared::wants_report`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// CPU time in user mode.
    pub cpu_user: Nanos,
    /// CPU time in the kernel.
    pub cpu_system: Nanos,
    /// Connections and listening sockets.
    pub connections: Vec<ConnectionReport>,
    /// The figures of `stats flash`: names and values.
    pub figures: Vec<(String, String)>,
}

impl Report {
    /// Adds a figure of `stats flash`.
    pub fn add(&mut self, name: &str, value: &dyn Display) {
        self.figures.push((name.to_owned(), value.to_string()));
    }

    /// The figure of this name, if it is a whole number and there is one.
    #[must_use]
    pub fn whole(&self, name: &str) -> Option<u64> {
        self.figures.iter().find(|(known, _)| known == name)?.1.parse().ok()
    }
}
