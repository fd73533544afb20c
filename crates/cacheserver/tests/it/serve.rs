//! Commands over sockets; many clients; reads of flash between other commands.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use prism_base::{Bytes, Rng};
use prism_cache::cache::Durability;
use prism_cache::protocol::{Settings, Shared};
use prism_cacheserver::{Engine, Listener, OpenOptions, Server, ServerError};

/// A server in a thread.
pub struct Running {
    pub address: SocketAddr,
    /// Where it answers Prometheus.
    pub metrics: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), ServerError>>>,
}

pub fn options(device: Option<&Path>, engine: Engine) -> OpenOptions {
    OpenOptions {
        device: device.map(Path::to_owned),
        state: None,
        size: Some(Bytes(96 << 20)),
        engine: Some(engine),
        memory: Bytes(16 << 20),
        index: None,
        item_max: 1 << 19,
        durability: Durability::Crash,
        writes: None,
        hash_seed: Some(1),
    }
}

impl Running {
    pub fn start(options: OpenOptions, settings: Settings) -> Self {
        let listen = || Listener::tcp("127.0.0.1:0".parse().unwrap(), 1024).unwrap();
        let (listener, for_metrics) = (listen(), listen());
        let [address, metrics] = [&listener, &for_metrics].map(|at| at.address().unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let shared = Shared::new(settings, prism_cacheserver::open::unix_now());
            let server = Server::new(options.open()?, shared, vec![listener])?;
            let mut server = server.with_metrics(vec![for_metrics]).with_endurance(Some(1000));
            server.run(&|| asked.load(Ordering::Relaxed))
        });
        Self { address, metrics, stop, thread: Some(thread) }
    }

    pub fn connect(&self) -> Client {
        Client::new(TcpStream::connect(self.address).unwrap())
    }

    pub fn stop(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

/// A client that waits for its answers.
pub struct Client {
    stream: TcpStream,
    lines: BufReader<TcpStream>,
}

impl Client {
    fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap());
        Self { stream, lines }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub fn ask(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes());
        self.line()
    }

    pub fn set(&mut self, key: &str, value: &[u8]) -> String {
        let mut command = format!("set {key} 9 0 {}\r\n", value.len()).into_bytes();
        command.extend_from_slice(value);
        command.extend_from_slice(b"\r\n");
        self.send(&command);
        self.line()
    }

    /// The answer of a get that was sent.
    pub fn value(&mut self, key: &str) -> Option<Vec<u8>> {
        let line = self.line();
        if line == "END" {
            return None;
        }
        let len = line.strip_prefix(&format!("VALUE {key} 9 ")).expect("a value of the key");
        let mut value = vec![0; len.parse::<usize>().unwrap() + 2];
        self.lines.read_exact(&mut value).unwrap();
        assert_eq!(self.line(), "END");
        value.truncate(value.len() - 2);
        Some(value)
    }

    /// The answer of `command`: names and values.
    pub fn stats(&mut self, command: &str) -> BTreeMap<String, String> {
        self.send(format!("{command}\r\n").as_bytes());
        let mut stats = BTreeMap::new();
        loop {
            let line = self.line();
            if line == "END" {
                return stats;
            }
            let figure = line.strip_prefix("STAT ").and_then(|line| line.split_once(' '));
            let (name, value) = figure.expect("a name and a value");
            stats.insert(name.to_owned(), value.to_owned());
        }
    }

    pub fn get(&mut self, key: &str) -> Option<Vec<u8>> {
        self.send(format!("get {key}\r\n").as_bytes());
        self.value(key)
    }
}

/// The value of a version of a key.
fn value(key: u64, version: u64) -> Vec<u8> {
    let mut value = format!("{key}:{version}:").into_bytes();
    value.resize(500 + (key * 37 % 4000) as usize, version as u8);
    value
}

/// Clients set and get keys of their own, more than memory holds; every value is the last one set.
fn many_clients(engine: Engine) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    let server = Running::start(options(Some(&path), engine), Settings::default());
    let address = server.address;
    let client = |number: u64| {
        move || {
            let mut client = Client::new(TcpStream::connect(address).unwrap());
            let mut rng = Rng::stream(number, "clients");
            let mut versions = vec![0; 1500];
            let mut hits = 0;
            for step in 1..5000 {
                let key = rng.below(1500);
                let name = format!("c{number}-{key}");
                if rng.below(3) == 0 {
                    assert_eq!(client.set(&name, &value(key, step)), "STORED");
                    versions[key as usize] = step;
                } else if let Some(found) = client.get(&name) {
                    assert_eq!(found, value(key, versions[key as usize]), "{engine:?} {name}");
                    hits += 1;
                }
            }
            hits
        }
    };
    let threads: Vec<_> = (0..4).map(|number| thread::spawn(client(number))).collect();
    let hits: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert!(hits > 4000, "{engine:?}: {hits}");
    let mut client = server.connect();
    let flash: u64 = client.stats("stats flash")["hits_flash"].parse().unwrap();
    assert!(flash > 100, "{engine:?}: {flash} hits on flash");
    server.stop();
}

#[test]
fn many_clients_find_what_they_set() {
    Engine::ALL.into_iter().for_each(many_clients);
}

/// Pipelined commands are answered in their order, also if some of them read flash.
#[test]
fn answers_come_in_order() {
    let server = Running::start(options(None, Engine::Function), Settings::default());
    let mut client = server.connect();
    for key in 0..6000 {
        assert_eq!(client.set(&format!("k{key}"), &value(key, 1)), "STORED");
    }
    let keys: Vec<u64> = (0..300).map(|n| n * 19 % 6000).collect();
    let mut commands = Vec::new();
    for key in &keys {
        commands.extend_from_slice(format!("get k{key}\r\nset n 9 0 1\r\n1\r\n").as_bytes());
        commands
            .extend_from_slice(format!("append k{key} 0 0 1\r\nx\r\nget k{key}\r\n").as_bytes());
    }
    let mut writer = client.stream.try_clone().unwrap();
    let sender = thread::spawn(move || writer.write_all(&commands).unwrap());
    let mut found = 0;
    for key in keys {
        let name = format!("k{key}");
        let before = client.value(&name);
        assert_eq!(client.line(), "STORED");
        let appended = client.line();
        let after = client.value(&name);
        let Some(mut before) = before else { continue };
        assert_eq!(before, value(key, 1));
        if appended == "STORED" {
            before.push(b'x');
            assert_eq!(after, Some(before));
            found += 1;
        }
    }
    sender.join().unwrap();
    assert!(found > 100, "{found}");
    server.stop();
}

/// A server that was stopped, and one whose process is gone, leave their items to the next one.
#[test]
fn the_next_server_has_the_items() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    for round in 0..3 {
        let options = options(Some(&path), Engine::Function);
        let server = Running::start(options, Settings::default());
        let mut client = server.connect();
        for key in 0..round * 500 {
            assert_eq!(client.get(&format!("k{key}")), Some(value(key, 3)), "round {round}");
        }
        for key in round * 500..(round + 1) * 500 {
            assert_eq!(client.set(&format!("k{key}"), &value(key, 3)), "STORED");
        }
        server.stop();
    }
}
