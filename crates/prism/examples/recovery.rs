//! A map of the application's own at the function level, and how it is rebuilt after the process
//! was killed.
//!
//! A log of records is written to segments of one block. Recovery reads no data: the word of a
//! block's owner is the number of its segment, and the out-of-band bytes of a page have the key and
//! version of its record. The program starts itself as a child, kills it with SIGKILL while it
//! writes, opens the file, and checks that no record is missing that the child had synced.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use prism::function::{Channel, Function, Unit};
use prism::raw::Address;
use prism::{Allocation, Bytes, Device, DeviceGeometry, FlashFile, Options};

const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 1,
    luns_per_channel: 2,
    blocks_per_lun: 32,
    pages_per_block: 16,
    page_size: 4096,
    // 16 for a record, 8 for the owner.
    oob_size: 24,
    max_open_blocks: None,
};

/// Keys of records, which are written one after the other again and again.
const KEYS: u64 = 100;
/// Segments with the newest record of every key, and the one that is being written.
const SEGMENTS: usize = KEYS.div_ceil(GEOMETRY.pages_per_block as u64) as usize + 1;
/// Has the path of the file if this process is the child.
const CHILD: &str = "PRISM_EXAMPLE_RECOVERY";

struct Log {
    flash: Function,
    /// By key: the newest version, and its page.
    map: HashMap<u64, (u64, Address)>,
    /// By number: the blocks.
    segments: BTreeMap<u64, Address>,
    /// The version of the next record.
    version: u64,
    /// The next page of the newest segment; `None` before the first.
    end: Option<Address>,
}

impl Log {
    /// Rebuilds the map.
    fn open(flash: Function) -> prism::Result<Self> {
        let (mut map, mut segments, mut version) = (HashMap::new(), BTreeMap::new(), 1);
        for block in flash.owned_blocks()? {
            segments.insert(block.owner, block.at);
            for page in 0..block.written {
                let at = block.at.with_page(page);
                let mut oob = [0; 16];
                flash.read_oob(at, &mut oob)?;
                let word = |from: usize| oob[from..from + 8].try_into().expect("eight bytes");
                let (key, found) = (u64::from_le_bytes(word(0)), u64::from_le_bytes(word(8)));
                let newest = map.entry(key).or_insert((found, at));
                *newest = (*newest).max((found, at));
                version = version.max(found + 1);
            }
        }
        // The segment that was being written stays as it is, and the next record begins a new one.
        Ok(Self { flash, map, segments, version, end: None })
    }

    /// Appends the next version of a key. It is durable after the next sync.
    fn append(&mut self, key: u64) -> prism::Result<()> {
        let at = match self.end.filter(|end| end.page < GEOMETRY.pages_per_block) {
            Some(at) => at,
            None => self.begin_segment()?,
        };
        let oob = [key.to_le_bytes(), self.version.to_le_bytes()].concat();
        self.flash.write_with_oob(at, &page(key, self.version), &oob)?;
        self.map.insert(key, (self.version, at));
        self.version += 1;
        self.end = Some(at.with_page(at.page + 1));
        Ok(())
    }

    /// Allocates a segment, and trims old ones, in which no record is the newest of its key.
    fn begin_segment(&mut self) -> prism::Result<Address> {
        // What replaces the records of an old segment has to be durable before it is trimmed.
        self.flash.sync()?;
        while self.segments.len() > SEGMENTS {
            let (_, at) = self.segments.pop_first().expect("there are some");
            self.flash.trim(at, Unit::Block)?;
        }
        let number = self.segments.last_key_value().map_or(1, |(last, _)| last + 1);
        let at = self.flash.allocate_for(Channel::Any, number)?.at;
        self.segments.insert(number, at);
        Ok(at)
    }
}

/// The content of a record.
fn page(key: u64, version: u64) -> Vec<u8> {
    (key << 32 | version).to_le_bytes().repeat(GEOMETRY.page_size as usize / 8)
}

fn open(path: &Path) -> Result<Log, Box<dyn Error>> {
    let device = Device::open(FlashFile::open(path)?, Options::default())?;
    Ok(Log::open(Function::open(device.attach("log")?)?)?)
}

/// The child: appends records until it is killed, and prints the version of the last one synced.
fn append_forever(path: &Path) -> Result<(), Box<dyn Error>> {
    let mut log = open(path)?;
    loop {
        for _ in 0..3 {
            log.append(log.version % KEYS)?;
        }
        log.flash.sync()?;
        // An error, if the parent has ended.
        writeln!(std::io::stdout(), "\nsynced {}", log.version - 1)?;
    }
}

/// Runs the example.
///
/// # Errors
/// None, unless the library has a bug or the disk fails.
pub fn main() -> Result<(), Box<dyn Error>> {
    if let Some(path) = std::env::var_os(CHILD) {
        return append_forever(path.as_ref());
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("flash");
    let device = Device::format(FlashFile::create(&path, GEOMETRY)?, Options::default())?;
    device.allocate("log", Allocation::new(Bytes(2 * device.lun_capacity().0), 0))?;
    drop(device);

    for kill in 1..=3 {
        // The arguments are for the program that runs all examples as tests.
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--exact", "examples::recovery"])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let mut synced = 0;
        for line in lines {
            if let Some(version) = line?.strip_prefix("synced ") {
                synced = version.parse()?;
                // The child goes on writing; what it prints after the kill is read as well.
                if synced > kill * 500 {
                    child.kill()?;
                }
            }
        }
        child.wait()?;

        let mut log = open(&path)?;
        for key in 0..KEYS {
            // The newest version of the key among those that were synced.
            let least = synced - (synced - key) % KEYS;
            let &(version, at) = log.map.get(&key).expect("every key was synced");
            assert!(version >= least, "key {key} has version {version}, and {least} was synced");
            let mut found = vec![0; GEOMETRY.page_size as usize];
            log.flash.read(at, &mut found)?;
            assert!(found == page(key, version));
        }
        println!("killed when {synced} was synced: records up to {} are there", log.version - 1);
        log.append(log.version % KEYS)?;
    }
    Ok(())
}
