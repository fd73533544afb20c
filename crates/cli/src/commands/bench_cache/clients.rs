//! Clients of a cache server: some connections in one thread, each with some commands in flight.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use prism_base::{Nanos, Rng};
use prism_host::clock;

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
    /// Connects to a port, for which a server may need a moment.
    pub fn connect(port: u16, count: u32) -> Result<Self, Failure> {
        let mut connections = Vec::new();
        for _ in 0..count {
            let mut tries = 0;
            let stream = loop {
                match TcpStream::connect(("127.0.0.1", port)) {
                    Ok(stream) => break stream,
                    Err(_) if tries < 500 => {
                        tries += 1;
                        std::thread::sleep(std::time::Duration::from_millis(10));
                    }
                    Err(error) => return Err(failed(error)),
                }
            };
            stream.set_nodelay(true).map_err(failed)?;
            let lines = BufReader::with_capacity(1 << 16, stream);
            connections.push(Connection { lines, sent: 0.0, sets: Vec::new() });
        }
        Ok(Self { connections, line: Vec::new(), value: Vec::new() })
    }

    /// Sets every key once.
    pub fn fill(&mut self, items: u64, value: usize) -> Result<(), Failure> {
        let content = vec![b'v'; value];
        for begin in (0..items).step_by(32) {
            let number = (begin / 32) as usize % self.connections.len();
            let mut text = Vec::new();
            let keys = begin..(begin + 32).min(items);
            for key in keys.clone() {
                push_set(&mut text, key, &content);
            }
            let connection = &mut self.connections[number];
            connection.lines.get_mut().write_all(&text).map_err(failed)?;
            for _ in keys {
                self.answer(number, true)?;
            }
        }
        Ok(())
    }

    /// Reads an answer.
    fn answer(&mut self, number: usize, is_set: bool) -> Result<(), Failure> {
        let lines = &mut self.connections[number].lines;
        self.line.clear();
        lines.read_until(b'\n', &mut self.line).map_err(failed)?;
        if is_set {
            return match self.line.starts_with(b"STORED") {
                true => Ok(()),
                false => Err(Failure::Usage(format!(
                    "the server refuses a set: {}",
                    String::from_utf8_lossy(&self.line).trim()
                ))),
            };
        }
        if self.line.starts_with(b"VALUE") {
            let len = self.line.trim_ascii_end().rsplit(|&byte| byte == b' ').next();
            let len = len.and_then(|len| std::str::from_utf8(len).ok()?.parse::<usize>().ok());
            self.value.resize(len.unwrap_or(0) + 2 + 5, 0);
            lines.read_exact(&mut self.value).map_err(failed)?;
        }
        Ok(())
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

    /// Keeps commands in flight for this time.
    pub fn run(&mut self, command: &Command, time: Nanos) -> Result<Measured, Failure> {
        let content = vec![b'w'; command.value];
        let mut rng = Rng::stream(command.seed, "bench.cache");
        let mut latencies = Vec::new();
        let begin = clock::seconds();
        for number in 0..self.connections.len() {
            self.send(number, command, &mut rng, &content)?;
        }
        let end = begin + time.0 as f64 / 1e9;
        let mut in_flight = self.connections.len();
        let mut operations = 0;
        while in_flight > 0 {
            for number in 0..self.connections.len() {
                let sets = std::mem::take(&mut self.connections[number].sets);
                if sets.is_empty() {
                    continue;
                }
                for &is_set in &sets {
                    self.answer(number, is_set)?;
                }
                let now = clock::seconds();
                operations += sets.len() as u64;
                latencies.push(now - self.connections[number].sent);
                if now < end {
                    self.send(number, command, &mut rng, &content)?;
                } else {
                    in_flight -= 1;
                }
            }
        }
        let seconds = clock::seconds() - begin;
        latencies.sort_by(f64::total_cmp);
        let at = |share: f64| latencies[(latencies.len() as f64 * share) as usize] * 1e9;
        let (p50_ns, p99_ns) = (at(0.5), at(0.99));
        Ok(Measured { operations, seconds, p50_ns, p99_ns, cpu_ns: 0.0 })
    }
}

fn push_set(text: &mut Vec<u8>, key: u64, content: &[u8]) {
    text.extend_from_slice(format!("set key-{key:012} 0 0 {}\r\n", content.len()).as_bytes());
    text.extend_from_slice(content);
    text.extend_from_slice(b"\r\n");
}
