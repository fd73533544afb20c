//! The raw level in an event loop: one thread serves a socket and the flash, and sleeps until
//! either has something.
//!
//! A client writes and reads pages, with many requests in flight. A write is answered when it is
//! durable; reads go on while the disk syncs.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;

use prism::raw::{Address, Command, Queue, Raw};
use prism::{Allocation, Bytes, Device, DeviceGeometry, FlashFile, Options};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;

const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 2,
    luns_per_channel: 1,
    blocks_per_lun: 16,
    pages_per_block: 64,
    page_size: 4096,
    oob_size: 0,
    max_open_blocks: None,
};

/// Commands in flight.
const DEPTH: usize = 32;
/// The request to write the next page; any other is the number of a page to be read. The answer to
/// a read is the number and the first byte of the page, to a write this and the number.
const WRITE: u8 = 255;
/// The tags of writes and syncs; that of a read is the number of its page.
const WRITES: u64 = 1 << 8;
const SYNC: u64 = 1 << 9;

/// Writes to be answered: those that no sync was submitted for yet, and those of the sync in
/// flight.
#[derive(Default)]
struct Writes {
    next: u8,
    waiting: Vec<u8>,
    syncing: Vec<u8>,
}

/// Submits the command of a request.
fn submit(queue: &mut Queue<&Raw>, request: u8, writes: &mut Writes) {
    let place = |page: u8| Address { page: page.into(), ..Address::default() };
    let mut data = queue.raw().device().buffer(GEOMETRY.page_size as usize);
    let (command, tag) = if request == WRITE {
        let page = writes.next;
        writes.next += 1;
        writes.waiting.push(page);
        data.fill(page);
        (Command::write(place(page), data), WRITES)
    } else {
        (Command::read(place(request), data), request.into())
    };
    queue.submit(command, tag).expect("the loop takes a request only if the queue has space");
}

/// Serves the requests of `socket` until it is closed. Returns how often the thread has slept.
fn serve(raw: &Raw, mut socket: UnixStream) -> Result<u64, Box<dyn Error>> {
    let mut queue = raw.queue(DEPTH);
    let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let unused = epoll::EventData::new_u64(0);
    // Edge-triggered: requests that the queue has no space for do not wake the thread.
    let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
    epoll::add(&events, &socket, unused, edge)?;
    socket.set_nonblocking(true)?;
    // On a device in memory there is no descriptor, as commands are complete when submitted.
    if let Some(descriptor) = queue.event_fd() {
        epoll::add(&events, descriptor, unused, epoll::EventFlags::IN)?;
    }
    let (mut writes, mut sleeps, mut open) = (Writes::default(), 0, true);
    loop {
        let mut request = [0];
        // One place is for a sync.
        while open && queue.len() + 1 < DEPTH {
            match socket.read(&mut request) {
                Ok(0) => open = false,
                Ok(_) => submit(&mut queue, request[0], &mut writes),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        // Group commit: one sync at a time. It is for the writes that were submitted to its queue
        // before, complete or not; those that come meanwhile share the next one.
        if writes.syncing.is_empty() && !writes.waiting.is_empty() {
            queue.submit(Command::Sync, SYNC).expect("one place is for a sync");
            writes.syncing = std::mem::take(&mut writes.waiting);
        }
        // Before each sleep the queue is polled until it has nothing left, readable or not: that
        // also submits the last commands, and takes completions for which no disk was needed.
        let mut idle = true;
        while let Some(done) = queue.poll() {
            done.result?;
            idle = false;
            match done.tag {
                WRITES => {}
                SYNC => {
                    for page in writes.syncing.drain(..) {
                        socket.write_all(&[WRITE, page])?;
                    }
                }
                page => socket.write_all(&[page as u8, done.data[0]])?,
            }
        }
        if !open && queue.is_empty() {
            return Ok(sleeps);
        }
        if idle {
            sleeps += 1;
            match epoll::wait(&events, spare_capacity(&mut Vec::with_capacity(2)), None) {
                // A completion of io_uring may interrupt the wait, as a signal does.
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Writes 32 pages; then reads them while it writes 32 more.
fn client(mut socket: UnixStream) -> std::io::Result<()> {
    let mut answers = socket.try_clone()?;
    let mut expect = |count: usize| -> std::io::Result<()> {
        let mut answer = [0; 2];
        for _ in 0..count {
            answers.read_exact(&mut answer)?;
            let [first, second] = answer;
            assert!(first == WRITE || first == second, "page {first} begins with {second}");
        }
        Ok(())
    };
    socket.write_all(&[WRITE; 32])?;
    expect(32)?;
    let requests: Vec<u8> = (0..32).flat_map(|page| [page, WRITE, 31 - page]).collect();
    socket.write_all(&requests)?;
    expect(requests.len())
}

/// Runs the example.
///
/// # Errors
/// None, unless the library has a bug or the disk fails.
pub fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = FlashFile::create(&folder.path().join("flash"), GEOMETRY)?;
    let device = Device::format(file, Options::default())?;
    let raw = Raw::open(device.allocate("pages", Allocation::new(Bytes(1 << 20), 0))?)?;
    let (socket, other) = UnixStream::pair()?;
    let client = thread::spawn(move || client(other));
    let sleeps = serve(&raw, socket)?;
    client.join().expect("the answers are right")?;
    println!("64 writes and 64 reads; the thread slept {sleeps} times");
    Ok(())
}
