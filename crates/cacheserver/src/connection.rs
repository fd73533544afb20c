//! A client of the server.

use std::os::fd::{AsFd, AsRawFd};

use prism_cache::protocol::{ConnectionReport, Session};

use crate::listen::Stream;

/// A client.
pub struct Connection {
    pub stream: Stream,
    pub session: Session,
    /// Whether the socket is watched for reading and for writing.
    pub watched: (bool, bool),
    /// The client sends no more.
    pub ended: bool,
    /// When it last sent something, in seconds since 1970.
    pub last_use: u32,
    /// Its output is sent when as many changes of the cache are durable.
    pub held: Option<u64>,
}

impl Connection {
    /// A client that is watched for reading.
    pub fn new(id: u32, stream: Stream, now: u32) -> Self {
        let session = Session::new(id);
        Self { stream, session, watched: (true, false), ended: false, last_use: now, held: None }
    }

    /// How `stats conns` lists it.
    pub fn report(&self, now: u32) -> ConnectionReport {
        let (address, listen_address) = self.stream.names();
        ConnectionReport {
            number: self.stream.as_fd().as_raw_fd(),
            address,
            listen_address: Some(listen_address),
            state: self.session.state(),
            idle: now.saturating_sub(self.last_use),
        }
    }
}
