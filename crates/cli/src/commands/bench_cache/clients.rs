//! Clients of a cache server: some connections in one thread, each with some commands in flight.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use prism_base::{Nanos, Rng};
use prism_host::clock;
use rustix::event::{PollFd, PollFlags, poll};

use crate::failure::Failure;

/// What clients do.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Sets among a hundred commands; the others are gets.
    pub sets: u32,
    /// Commands in flight on each connection.
    pub depth: u32,
    /// Keys.
    pub items: u64,
    /// Bytes of a value.
    pub value: usize,
    /// The seed of the keys.
    pub seed: u64,
}

/// The result of a run.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub operations: u64,
    pub seconds: f64,
    pub p50_ns: f64,
    pub p99_ns: f64,
    /// CPU time of the server for an operation.
    pub cpu_ns: f64,
}

/// Sets in flight on each connection while a server is filled.
const FILL_DEPTH: usize = 32;

struct Connection {
    lines: BufReader<TcpStream>,
    /// When its commands were sent, and which of them are sets.
    sent: f64,
    sets: Vec<bool>,
}

/// Connections to a server.
pub struct Clients {
    connections: Vec<Connection>,
    line: Vec<u8>,
    value: Vec<u8>,
}

fn failed(error: std::io::Error) -> Failure {
    Failure::Usage(format!("the server does not answer: {error}"))
}

impl Clients {
    /// Connects to a port of this machine.
    ///
    /// # Errors
    /// Those of the system.
    pub fn connect(port: u16, count: u32) -> std::io::Result<Self> {
        let mut connections = Vec::new();
        for _ in 0..count {
            let stream = TcpStream::connect(("127.0.0.1", port))?;
            stream.set_nodelay(true)?;
            let lines = BufReader::with_capacity(1 << 16, stream);
            connections.push(Connection { lines, sent: 0.0, sets: Vec::new() });
        }
        Ok(Self { connections, line: Vec::new(), value: Vec::new() })
    }

    /// Sets every key once, many commands at a time; `progress` gets the number of keys.
    pub fn fill(
        &mut self,
        items: u64,
        value: usize,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Failure> {
        let content = vec![b'v'; value];
        let mut keys = 0..items;
        let mut in_flight = vec![0; self.connections.len()];
        let mut text = Vec::new();
        let mut answered = 0;
        while answered < items {
            for (number, in_flight) in in_flight.iter_mut().enumerate() {
                for _ in 0..std::mem::take(in_flight) {
                    self.answer(number, true)?;
                    answered += 1;
                }
                text.clear();
                for key in keys.by_ref().take(FILL_DEPTH) {
                    push_set(&mut text, key, &content);
                    *in_flight += 1;
                }
                self.connections[number].lines.get_mut().write_all(&text).map_err(failed)?;
            }
            progress(answered);
        }
        Ok(())
    }

    /// How many of these keys the server has.
    pub fn found(&mut self, keys: impl Iterator<Item = u64>) -> Result<u64, Failure> {
        let mut found = 0;
        for key in keys {
            let text = format!("get key-{key:012}\r\n");
            self.connections[0].lines.get_mut().write_all(text.as_bytes()).map_err(failed)?;
            found += u64::from(self.answer(0, false)?);
        }
        Ok(found)
    }

    /// Reads an answer; false if there is no such item.
    fn answer(&mut self, number: usize, is_set: bool) -> Result<bool, Failure> {
        let lines = &mut self.connections[number].lines;
        self.line.clear();
        lines.read_until(b'\n', &mut self.line).map_err(failed)?;
        if !self.line.ends_with(b"\n") {
            return Err(failed(std::io::ErrorKind::UnexpectedEof.into()));
        }
        if is_set {
            return match self.line.starts_with(b"STORED") {
                true => Ok(true),
                false => Err(Failure::Usage(format!(
                    "the server refuses a set: {}",
                    String::from_utf8_lossy(&self.line).trim()
                ))),
            };
        }
        let found = self.line.starts_with(b"VALUE ");
        if !found && self.line != b"END\r\n" {
            return Err(Failure::Usage(format!(
                "the server refuses a get: {}",
                String::from_utf8_lossy(&self.line).trim()
            )));
        }
        if found {
            let len = self.line.trim_ascii_end().rsplit(|&byte| byte == b' ').next();
            let len = len.and_then(|len| std::str::from_utf8(len).ok()?.parse::<usize>().ok());
            self.value.resize(len.unwrap_or(0) + 2 + 5, 0);
            lines.read_exact(&mut self.value).map_err(failed)?;
        }
        Ok(found)
    }

    fn send(
        &mut self,
        number: usize,
        command: &Command,
        rng: &mut Rng,
        content: &[u8],
    ) -> Result<(), Failure> {
        let mut text = Vec::new();
        let connection = &mut self.connections[number];
        connection.sets.clear();
        for _ in 0..command.depth {
            let key = rng.below(command.items);
            let is_set = rng.below(100) < u64::from(command.sets);
            connection.sets.push(is_set);
            match is_set {
                true => push_set(&mut text, key, content),
                false => text.extend_from_slice(format!("get key-{key:012}\r\n").as_bytes()),
            }
        }
        connection.sent = clock::seconds();
        connection.lines.get_mut().write_all(&text).map_err(failed)
    }

    /// Keeps commands in flight for this time. With several kinds of commands connections take
    /// them in turn; the result has one element for each kind.
    pub fn run(&mut self, commands: &[Command], time: Nanos) -> Result<Vec<Measured>, Failure> {
        let mut rng = Rng::stream(commands[0].seed, "bench.cache");
        let contents: Vec<_> = commands.iter().map(|command| vec![b'w'; command.value]).collect();
        let mut latencies = vec![Vec::new(); commands.len()];
        let mut operations = vec![0; commands.len()];
        let begin = clock::seconds();
        for number in 0..self.connections.len() {
            let kind = number % commands.len();
            self.send(number, &commands[kind], &mut rng, &contents[kind])?;
        }
        let end = begin + time.0 as f64 / 1e9;
        loop {
            let ready = self.ready()?;
            if ready.is_empty() {
                break;
            }
            for number in ready {
                let kind = number % commands.len();
                let sets = std::mem::take(&mut self.connections[number].sets);
                for &is_set in &sets {
                    self.answer(number, is_set)?;
                }
                let now = clock::seconds();
                operations[kind] += sets.len() as u64;
                latencies[kind].push(now - self.connections[number].sent);
                if now < end {
                    self.send(number, &commands[kind], &mut rng, &contents[kind])?;
                }
            }
        }
        let seconds = clock::seconds() - begin;
        let of_kind = |(mut latencies, operations): (Vec<f64>, u64)| {
            latencies.sort_by(f64::total_cmp);
            let at = |share: f64| latencies[(latencies.len() as f64 * share) as usize] * 1e9;
            let (p50_ns, p99_ns) = (at(0.5), at(0.99));
            Measured { operations, seconds, p50_ns, p99_ns, cpu_ns: 0.0 }
        };
        Ok(latencies.into_iter().zip(operations).map(of_kind).collect())
    }

    /// Waits for an answer; the connections that have one. Empty if no command is in flight.
    fn ready(&self) -> Result<Vec<usize>, Failure> {
        let waiting = |(number, connection): (usize, &Connection)| {
            (!connection.sets.is_empty()).then_some(number)
        };
        let waiting: Vec<usize> = self.connections.iter().enumerate().filter_map(waiting).collect();
        if waiting.is_empty() {
            return Ok(waiting);
        }
        let stream = |&number: &usize| self.connections[number].lines.get_ref();
        let mut polled: Vec<PollFd> =
            waiting.iter().map(|number| PollFd::new(stream(number), PollFlags::IN)).collect();
        poll(&mut polled, None).map_err(|error| failed(error.into()))?;
        let ready = waiting.iter().zip(&polled).filter(|(_, polled)| !polled.revents().is_empty());
        Ok(ready.map(|(&number, _)| number).collect())
    }
}

fn push_set(text: &mut Vec<u8>, key: u64, content: &[u8]) {
    text.extend_from_slice(format!("set key-{key:012} 0 0 {}\r\n", content.len()).as_bytes());
    text.extend_from_slice(content);
    text.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A server that goes away, or refuses, has no misses.
    #[test]
    fn only_an_answer_is_a_miss() {
        let check = |answer: &'static [u8], expected: Result<u64, &str>| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let served = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = [0; 22];
                stream.read_exact(&mut asked).unwrap();
                stream.write_all(answer).unwrap();
            });
            let found = Clients::connect(port, 1).unwrap().found(0..1);
            served.join().unwrap();
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(Failure::Usage(what)), Err(part)) => assert!(what.contains(part), "{what}"),
                (found, _) => panic!("{found:?} after {answer:?}"),
            }
        };
        check(b"END\r\n", Ok(0));
        check(b"VALUE key-000000000000 0 3\r\nabc\r\nEND\r\n", Ok(1));
        check(b"", Err("does not answer"));
        check(b"EN", Err("does not answer"));
        check(b"SERVER_ERROR out of memory\r\n", Err("refuses a get: SERVER_ERROR"));
        check(b"\r\n", Err("refuses a get"));
    }
}
