//! Answers that wait until a change survives a loss of power.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use prism_cache::cache::{Durability, Eviction, state_bytes};
use prism_cache::protocol::{Settings, Shared};
use prism_cache::{Cache, Config, Memory};
use prism_cacheserver::open::unix_now;
use prism_cacheserver::{Engine, Listener, OpenOptions, Opened, Server};
use prism_flash::{DeviceGeometry, MemoryDevice, SharedMemory};
use prism_segments::{IdealStore, Store};
use rustix::event::{EventfdFlags, eventfd};

use crate::serve::{Running, options};

/// Memory whose syncs are complete when a test says so.
struct Gated {
    bytes: Vec<u8>,
    begun: u64,
    /// The last sync that is complete; `None` if one has failed.
    done: Arc<Mutex<Option<u64>>>,
}

impl Memory for Gated {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
    fn begin_sync(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }
    fn synced(&self) -> Option<u64> {
        *self.done.lock().unwrap()
    }
    fn wait_sync(&mut self, _number: u64) {}
}

const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 2,
    luns_per_channel: 1,
    blocks_per_lun: 16,
    pages_per_block: 16,
    page_size: 4096,
    oob_size: 64,
    max_open_blocks: None,
};

fn cache(done: &Arc<Mutex<Option<u64>>>) -> Cache<Box<dyn Store>> {
    let medium: SharedMemory =
        MemoryDevice::new(GEOMETRY, prism_flash::Cache::None).unwrap().into();
    let store: Box<dyn Store> = Box::new(IdealStore::new(medium.into(), 1));
    let shape = store.shape();
    let memory =
        |bytes| Box::new(Gated { bytes: vec![0; bytes], begun: 0, done: Arc::clone(done) });
    let config = Config {
        index_bytes: 1 << 16,
        eviction: Eviction::Integrated { most: 20 },
        buffers: 4,
        chunk: 8192,
        seed: 1,
        payload: true,
    };
    let state = memory(state_bytes(&shape) as usize);
    let buffers = memory(4 * shape.segment_bytes as usize);
    let cache = Cache::open(store, state, buffers, config, unix_now()).unwrap();
    cache.with_durability(Durability::PowerLoss)
}

/// Whether nothing was sent to the client yet.
fn is_silent(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let silent = stream.read(&mut [0]).is_err_and(|e| e.kind() == ErrorKind::WouldBlock);
    stream.set_nonblocking(false).unwrap();
    silent
}

fn read(stream: &mut TcpStream, expected: &str) {
    let mut found = vec![0; expected.len()];
    stream.read_exact(&mut found).unwrap();
    assert_eq!(String::from_utf8_lossy(&found), expected);
}

fn wake(synced: &OwnedFd) {
    rustix::io::write(synced, &1_u64.to_ne_bytes()).unwrap();
}

#[test]
fn answers_wait_for_the_sync() {
    let done = Arc::new(Mutex::new(Some(0)));
    let synced = Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap());
    let listener = Listener::tcp("127.0.0.1:0".parse().unwrap(), 16).unwrap();
    let address = listener.address().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let (asked, of_server, gate) = (Arc::clone(&stop), Arc::clone(&synced), Arc::clone(&done));
    let server = thread::spawn(move || {
        let (device, synced) = (None, Some(of_server));
        let (engine, notes) = (Engine::Function, Vec::new());
        let opened = Opened { cache: cache(&gate), engine, device, synced, notes };
        let shared = Shared::new(Settings::default(), unix_now());
        Server::new(opened, shared, vec![listener]).unwrap().run(&|| asked.load(Ordering::Relaxed))
    });
    let mut writer = TcpStream::connect(address).unwrap();
    let mut reader = TcpStream::connect(address).unwrap();
    let mut other = TcpStream::connect(address).unwrap();
    // Two commands at once are one change of the connection, with one sync.
    writer.write_all(b"set a 0 0 1\r\n1\r\nset b 0 0 1\r\n2\r\n").unwrap();
    for _ in 0..100 {
        // Others are answered meanwhile, and see what is set.
        reader.write_all(b"get b\r\n").unwrap();
        let mut byte = [0];
        reader.read_exact(&mut byte).unwrap();
        if byte == *b"V" {
            read(&mut reader, "ALUE b 0 1\r\n2\r\nEND\r\n");
            break;
        }
        read(&mut reader, "ND\r\n");
    }
    assert!(is_silent(&mut writer));
    *done.lock().unwrap() = Some(100);
    wake(&synced);
    read(&mut writer, "STORED\r\nSTORED\r\n");
    // A delete waits as well; what was found missing does not.
    *done.lock().unwrap() = Some(0);
    other.write_all(b"delete c\r\n").unwrap();
    read(&mut other, "NOT_FOUND\r\n");
    // After a sync that failed nothing is acknowledged: connections with changes are closed.
    *done.lock().unwrap() = None;
    writer.write_all(b"delete a\r\n").unwrap();
    assert_eq!(writer.read(&mut [0; 16]).unwrap(), 0, "closed without an answer");
    reader.write_all(b"set d 0 0 1\r\n1\r\n").unwrap();
    read(&mut reader, "SERVER_ERROR out of memory storing object\r\n");
    stop.store(true, Ordering::Relaxed);
    drop((reader, other));
    server.join().unwrap().expect_err("the device has failed");
}

/// With files, the same as without.
#[test]
fn a_strict_server_on_a_file_finds_all_after_it_stops() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    let strict = || OpenOptions {
        durability: Durability::PowerLoss,
        ..options(Some(&path), Engine::Function)
    };
    for round in 0..2 {
        let server = Running::start(strict(), Settings::default());
        let mut clients: Vec<_> = (0..8).map(|_| server.connect()).collect();
        for number in 0..400 {
            let client = &mut clients[number % 8];
            let key = format!("key-{number}");
            let value = vec![number as u8; 700 + number];
            if round == 0 {
                assert_eq!(client.set(&key, &value), "STORED");
            } else {
                let found = client.get(&key);
                assert_eq!(found, (number % 5 != 0).then_some(value), "{key}");
            }
            if round == 0 && number % 5 == 0 {
                assert_eq!(client.ask(&format!("delete {key}")), "DELETED");
            }
        }
        server.stop();
    }
}
