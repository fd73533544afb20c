//! Figures for Prometheus: as much of HTTP as `GET /metrics` needs, in the server's event loop.
//!
//! A client sends one request and its connection is closed after the answer. Its memory, its time
//! and the number of such clients are bounded.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use prism_cache::protocol::exposition::CONTENT_TYPE;
use rustix::event::epoll;

use crate::listen::{Listener, Stream};
use crate::open::ServerError;
use crate::server::{ACCEPT_PAUSE, failed, is_limit};

/// Data of events of clients; the client's number is added.
pub const CLIENTS: u64 = 1 << 60;
/// Data of events of listening sockets; the socket's number is added.
pub const LISTENERS: u64 = 1 << 61;
/// Clients at once. Prometheus has one connection; a second server and a person may have others.
const CLIENTS_MAX: usize = 16;
/// Bytes of a request.
const REQUEST_MAX: usize = 8 << 10;
/// Bytes that are read in a turn of the event loop: a client that sends without end must not keep
/// the loop.
const TURN_BYTES: usize = 16 << 10;
/// Header lines of a request.
const HEADERS_MAX: usize = 64;
/// From the connection to its end. An answer of a few KiB needs no longer in any network.
const TIME_MAX: Duration = Duration::from_secs(5);

/// A client.
struct Client {
    stream: Stream,
    begun: Instant,
    request: Vec<u8>,
    answer: Vec<u8>,
    sent: usize,
    /// The client sends no more.
    ended: bool,
}

/// The listening sockets and their clients.
#[derive(Default)]
pub struct Metrics {
    listeners: Vec<Listener>,
    clients: Vec<Option<Client>>,
    /// Listening sockets that are not watched, since there was no descriptor for a client then.
    paused: Vec<(usize, Instant)>,
}

impl Metrics {
    /// No clients yet.
    pub fn new(listeners: Vec<Listener>) -> Self {
        Self { listeners, ..Self::default() }
    }

    /// Watches the listening sockets.
    ///
    /// # Errors
    /// [`ServerError::Io`].
    pub fn watch(&self, epoll: &OwnedFd) -> Result<(), ServerError> {
        (0..self.listeners.len()).try_for_each(|listener| self.watch_one(epoll, listener))
    }

    fn watch_one(&self, epoll: &OwnedFd, listener: usize) -> Result<(), ServerError> {
        let data = epoll::EventData::new_u64(LISTENERS + listener as u64);
        let socket = self.listeners[listener].as_fd();
        epoll::add(epoll, socket, data, epoll::EventFlags::IN).map_err(failed("epoll"))
    }

    /// Handles the event of a listening socket or of a client; `figures` is the text to be sent.
    pub fn event(&mut self, epoll: &OwnedFd, data: u64, figures: &dyn Fn() -> String) {
        if data >= LISTENERS {
            return self.accept(epoll, (data - LISTENERS) as usize);
        }
        let number = (data - CLIENTS) as usize;
        let Some(Some(client)) = self.clients.get_mut(number) else { return };
        if client.goes_on(figures) {
            let mut flags = epoll::EventFlags::empty();
            flags.set(epoll::EventFlags::IN, !client.ended);
            flags.set(epoll::EventFlags::OUT, !client.is_done());
            let data = epoll::EventData::new_u64(data);
            if epoll::modify(epoll, client.stream.as_fd(), data, flags).is_ok() {
                return;
            }
        }
        self.clients[number] = None;
    }

    fn accept(&mut self, epoll: &OwnedFd, listener: usize) {
        loop {
            let mut stream = match self.listeners[listener].accept() {
                Ok(stream) => stream,
                Err(error) if is_limit(&error) => return self.pause(epoll, listener),
                // What cannot be accepted now is reported again.
                Err(_) => return,
            };
            let mut free = self.clients.iter().position(Option::is_none);
            if free.is_none() && self.clients.len() < CLIENTS_MAX {
                self.clients.push(None);
                free = Some(self.clients.len() - 1);
            }
            let Some(number) = free else {
                // It is closed whether it takes this or not.
                let _ = stream.write(&answer("503 Service Unavailable", "too many clients\n"));
                continue;
            };
            let data = epoll::EventData::new_u64(CLIENTS + number as u64);
            if epoll::add(epoll, stream.as_fd(), data, epoll::EventFlags::IN).is_ok() {
                self.clients[number] = Some(Client::new(stream));
            }
        }
    }

    /// Stops watching a socket, whose clients would be reported without end.
    fn pause(&mut self, epoll: &OwnedFd, listener: usize) {
        if epoll::delete(epoll, self.listeners[listener].as_fd()).is_ok() {
            self.paused.push((listener, Instant::now()));
        }
    }

    /// Closes the connections whose time is over, and watches the sockets whose pause is.
    pub fn expire(&mut self, epoll: &OwnedFd) {
        let ends = |&(_, begun): &(usize, Instant)| begun.elapsed() >= ACCEPT_PAUSE;
        for (listener, _) in self.paused.extract_if(.., |paused| ends(paused)).collect::<Vec<_>>() {
            if self.watch_one(epoll, listener).is_err() {
                self.paused.push((listener, Instant::now()));
            }
        }
        for client in &mut self.clients {
            if client.as_ref().is_some_and(|client| client.begun.elapsed() > TIME_MAX) {
                *client = None;
            }
        }
    }
}

impl Client {
    fn new(stream: Stream) -> Self {
        let (request, answer) = (Vec::new(), Vec::new());
        Self { stream, begun: Instant::now(), request, answer, sent: 0, ended: false }
    }

    /// Reads and writes what is possible; false if the connection is to be closed.
    fn goes_on(&mut self, figures: &dyn Fn() -> String) -> bool {
        let mut buffer = [0; 1024];
        // After its request a client is read until it closes: a socket that is closed with input
        // left drops what it has to send.
        let mut left = TURN_BYTES / buffer.len();
        while !self.ended && left > 0 {
            left -= 1;
            match self.stream.read(&mut buffer) {
                Ok(0) => self.ended = true,
                Ok(bytes) if self.answer.is_empty() => {
                    self.request.extend_from_slice(&buffer[..bytes]);
                    if let Some(answer) = answer_to(&self.request, figures) {
                        self.answer = answer;
                        self.request = Vec::new();
                    }
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        self.sends() && !(self.ended && self.is_done())
    }

    fn is_done(&self) -> bool {
        self.sent == self.answer.len()
    }

    /// Sends what is possible; false if the client is gone.
    fn sends(&mut self) -> bool {
        let was_done = self.is_done();
        while !self.is_done() {
            match self.stream.write(&self.answer[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        was_done || self.stream.end_output().is_ok()
    }
}

/// The answer to a request; `None` if more of it has to come.
fn answer_to(request: &[u8], figures: &dyn Fn() -> String) -> Option<Vec<u8>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let status = parsed.parse(request);
    let (status, body) = match status {
        _ if request.len() > REQUEST_MAX => {
            ("431 Request Header Fields Too Large", "the request is longer than 8 KiB\n".to_owned())
        }
        Ok(httparse::Status::Partial) => return None,
        Err(error) => ("400 Bad Request", format!("{error}\n")),
        Ok(httparse::Status::Complete(_)) => {
            let path = parsed.path.unwrap_or_default();
            let path = path.split('?').next().unwrap_or_default();
            match (parsed.method, path) {
                (Some("GET"), "/metrics") => ("200 OK", figures()),
                (_, "/metrics") => ("405 Method Not Allowed", "only GET\n".to_owned()),
                _ => ("404 Not Found", "there is only /metrics\n".to_owned()),
            }
        }
    };
    Some(answer(status, &body))
}

fn answer(status: &str, body: &str) -> Vec<u8> {
    let allow = if status.starts_with("405") { "Allow: GET\r\n" } else { "" };
    let len = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len}\r\n{allow}\
         Connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_reads_a_bounded_number_of_bytes() {
        let (mut peer, stream) = std::os::unix::net::UnixStream::pair().unwrap();
        peer.set_nonblocking(true).unwrap();
        stream.set_nonblocking(true).unwrap();
        peer.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut sent = 0;
        while let Ok(bytes) = peer.write(&[b'x'; 1024]) {
            sent += bytes;
        }
        assert!(sent > 2 * TURN_BYTES, "{sent}");
        let mut client = Client::new(Stream::Unix(stream));
        assert!(client.goes_on(&|| "figures".to_owned()));
        let mut left = 0;
        while let Ok(bytes) = client.stream.read(&mut [0; 1024]) {
            left += bytes;
        }
        assert!(left >= sent - TURN_BYTES, "{left} of {sent}");
        let mut answer = [0; 12];
        peer.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    }

    #[test]
    fn requests_are_answered() {
        let check = |request: &str, expected: Option<&str>| {
            let found = answer_to(request.as_bytes(), &|| "figures".to_owned());
            let found = found.map(|answer| String::from_utf8(answer).unwrap());
            let status = found.as_deref().map(|answer| &answer[9..12]);
            assert_eq!(status, expected, "{request:?}");
            assert_eq!(
                expected == Some("200"),
                found.is_some_and(|a| a.ends_with("\n\r\nfigures"))
            );
        };
        check("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", Some("200"));
        check("GET /metrics?a=b HTTP/1.0\r\n\r\n", Some("200"));
        check("GET /metrics HTTP/1.1\r\nHost: x\r\n", None);
        check("", None);
        check("POST /metrics HTTP/1.1\r\n\r\n", Some("405"));
        check("GET / HTTP/1.1\r\n\r\n", Some("404"));
        check("get key\r\n", Some("400"));
        check("\0\0\0\0", Some("400"));
        let long = format!("GET /metrics HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(REQUEST_MAX));
        check(&long, Some("431"));
        check(&format!("GET /metrics HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(65)), Some("400"));
    }
}
