//! The function level in a file, used by four threads.
//!
//! Each thread has a queue of its own, so that no thread waits for another while the disk works.
//! Buffers come from the device and go to the kernel as they are. The threads commit together: a
//! commit is a ticket, and one sync of the disk is enough for the tickets of several threads.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::error::Error;
use std::thread;

use prism::function::{Channel, Function, Queue, Unit};
use prism::raw::{Address, Completion};
use prism::{Allocation, Buffer, Bytes, Device, DeviceGeometry, FlashFile, Options, Rng};

const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 4,
    luns_per_channel: 1,
    blocks_per_lun: 32,
    pages_per_block: 16,
    page_size: 4096,
    oob_size: 64,
    max_open_blocks: None,
};

const THREADS: u32 = 4;
const BLOCKS: u8 = 8;
/// Commands of a thread in flight.
const DEPTH: usize = 32;

/// A thread's part of the work: a queue, and buffers that no command uses.
struct Worker<'a> {
    flash: &'a Function,
    queue: Queue<&'a Function>,
    spare: Vec<Buffer>,
}

impl<'a> Worker<'a> {
    fn new(device: &Device, flash: &'a Function) -> Self {
        let buffer = |_| device.buffer(GEOMETRY.page_size as usize);
        Self { flash, queue: flash.queue(DEPTH), spare: (0..DEPTH).map(buffer).collect() }
    }

    /// A buffer for the next command. Waits for a completion if commands have all of them.
    fn buffer(&mut self, check: impl Fn(&Completion)) -> prism::Result<Buffer> {
        if self.spare.is_empty() {
            self.complete(check)?;
        }
        Ok(self.spare.pop().expect("a completion returns its buffer"))
    }

    /// Waits for a completion; returns whether a command was in flight.
    fn complete(&mut self, check: impl Fn(&Completion)) -> prism::Result<bool> {
        let Some(done) = self.queue.complete() else { return Ok(false) };
        done.result.clone()?;
        check(&done);
        self.spare.push(done.data);
        Ok(true)
    }

    /// Writes a block, and returns when it is durable.
    fn write_block(&mut self, channel: u32, byte: u8) -> prism::Result<Address> {
        let at = self.flash.address_mapper(Channel::Number(channel), Unit::Block)?.at;
        // Pages of a block are programmed in the order of their submission; none waits here.
        for page in 0..GEOMETRY.pages_per_block {
            let mut data = self.buffer(|_| {})?;
            data.fill(byte);
            let submitted = self.queue.submit_write(at.with_page(page), data, page.into());
            submitted.expect("there are no more buffers than places in the queue");
        }
        while self.complete(|_| {})? {}
        // Group commit: the ticket stands for everything that is complete now. Tickets that are
        // drawn while a sync is in progress wait for the next one, which serves all of them.
        self.flash.sync_to(self.flash.ticket())?;
        Ok(at)
    }

    /// Reads pages at random, with as many reads in flight as there are buffers.
    fn read(&mut self, blocks: &[Address], seed: u64) -> prism::Result<()> {
        // Block `b` was written with bytes `b`, and is the tag of its reads.
        let check = |done: &Completion| assert!(*done.data == [done.tag as u8; 4096]);
        let mut rng = Rng::stream(seed, "reads");
        for _ in 0..500 {
            let block = rng.below(blocks.len() as u64) as usize;
            let page = rng.below(GEOMETRY.pages_per_block.into()) as u32;
            let data = self.buffer(check)?;
            let submitted =
                self.queue.submit_read(blocks[block].with_page(page), data, block as u64);
            submitted.expect("there are no more buffers than places in the queue");
        }
        while self.complete(check)? {}
        Ok(())
    }
}

/// Writes and reads on a channel.
fn work(device: &Device, flash: &Function, channel: u32) -> prism::Result<()> {
    let mut worker = Worker::new(device, flash);
    let mut blocks = Vec::new();
    for byte in 0..BLOCKS {
        blocks.push(worker.write_block(channel, byte)?);
    }
    worker.read(&blocks, channel.into())
}

/// Runs the example.
///
/// # Errors
/// None, unless the library has a bug or the disk fails.
pub fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("flash");
    let device = Device::format(FlashFile::create(&path, GEOMETRY)?, Options::default())?;
    let capacity = Bytes(u64::from(THREADS) * device.lun_capacity().0);
    let flash = Function::open(device.allocate("threads", Allocation::new(capacity, 0))?)?;

    let file = device.medium().into_any();
    let file = file.downcast_ref::<FlashFile>().expect("the medium is a file");
    let before = file.syncs();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|channel| (&device, &flash, channel))
            .map(|(device, flash, channel)| scope.spawn(move || work(device, flash, channel)))
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })?;
    let (commits, syncs) = (u64::from(THREADS) * u64::from(BLOCKS), file.syncs() - before);
    assert!(syncs <= commits, "a commit needs at most one sync of the disk");
    println!("{commits} commits took {syncs} syncs of the disk ({})", file.engine_name());
    Ok(())
}
