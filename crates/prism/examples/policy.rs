//! The policy level: a small database on two ranges, each managed as suits it.
//!
//! Its log is circular and written in order: with block-level mapping, it costs no copies. Its
//! table is written in any order: it has page-level mapping, and two containers for data of two
//! lifetimes. The database has one rule of its own: the log is flushed before the table is written.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::error::Error;

use prism::policy::{Cleaning, Lifetime, Mapping, OverProvisioning, Policy, RangeConfig};
use prism::{
    Allocation, Bytes, Cache, Cause, Device, DeviceGeometry, MemoryDevice, Options, Rng,
    SharedMemory,
};

const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 4,
    luns_per_channel: 1,
    blocks_per_lun: 64,
    pages_per_block: 16,
    page_size: 4096,
    oob_size: 64,
    max_open_blocks: None,
};

const ROW: u64 = 4096;
const LOG: u64 = 1 << 20;
const TABLE: u64 = 6 << 20;
const ROWS: u64 = (4 << 20) / ROW;

/// One transaction: sets row `row` to `value`.
fn record(sequence: u64, row: u64, value: u64) -> Vec<u8> {
    let mut record: Vec<u8> = [sequence, row, value].iter().flat_map(|n| n.to_le_bytes()).collect();
    record.resize(ROW as usize, 0);
    record
}

/// The address of a transaction's record in the log.
fn log_address(sequence: u64) -> u64 {
    sequence * ROW % LOG
}

fn transaction(policy: &Policy, sequence: u64, row: u64, value: u64) -> prism::Result<()> {
    policy.write(log_address(sequence), &record(sequence, row, value))?;
    policy.flush()?;
    policy.container("rows")?.write(row * ROW, &record(sequence, row, value))
}

fn set_up(policy: &Policy) -> prism::Result<()> {
    policy.configure(0, LOG, RangeConfig::new(Mapping::Block, Cleaning::Fifo))?;
    let table = RangeConfig {
        over_provisioning: OverProvisioning::Percent(30),
        handles: Lifetime::ALL.len() as u32,
        ..RangeConfig::new(Mapping::Page, Cleaning::CostBenefit)
    };
    policy.configure(LOG, LOG + TABLE, table)?;
    policy.create_container(LOG, "rows", ROWS * ROW, Lifetime::Long)?;
    policy.create_container(LOG, "sort buffer", 1 << 20, Lifetime::Short)?;
    Ok(())
}

/// Brings the table up to date with the log; returns the number of transactions.
fn recover(policy: &Policy) -> prism::Result<u64> {
    let mut records = Vec::new();
    for place in 0..LOG / ROW {
        let mut read = [0; 24];
        policy.read(place * ROW, &mut read)?;
        let number = |at: usize| u64::from_le_bytes(read[at..at + 8].try_into().expect("8 bytes"));
        records.push([number(0), number(8), number(16)]);
    }
    records.sort_unstable();
    let rows = policy.container("rows")?;
    for &[sequence, row, value] in records.iter().filter(|record| record[0] > 0) {
        rows.write(row * ROW, &record(sequence, row, value))?;
    }
    policy.flush()?;
    Ok(records.last().map_or(0, |record| record[0]))
}

/// Runs the example.
///
/// # Errors
/// None, unless the library has a bug.
pub fn main() -> Result<(), Box<dyn Error>> {
    let memory = SharedMemory::from(MemoryDevice::new(GEOMETRY, Cache::Volatile)?);
    let device = Device::format(memory.clone(), Options::default())?;
    let capacity = Bytes(3 * device.lun_capacity().0);
    let share = device.allocate("database", Allocation::new(capacity, 25))?;
    let policy = Policy::open(share)?;
    set_up(&policy)?;

    // A circular log has no write amplification.
    for round in 0..4 {
        for place in 0..LOG / ROW {
            policy.write(place * ROW, &[round; ROW as usize])?;
        }
    }
    policy.flush()?;
    let counts = policy.share().counts()?;
    assert_eq!(counts.programs[Cause::Host], 4 * LOG / ROW);
    assert_eq!(counts.programs[Cause::Merge], 0);
    policy.trim(0, LOG)?;

    // Transactions until power fails. The committed ones survive.
    let mut rng = Rng::stream(7, "policy");
    let mut table = vec![0; ROWS as usize];
    memory.cut_power_after(5000);
    let mut sequence = 1;
    let in_doubt = loop {
        let (row, value) = (rng.below(ROWS), rng.below(1 << 40));
        if transaction(&policy, sequence, row, value).is_err() {
            break (row, value);
        }
        table[row as usize] = value;
        sequence += 1;
    };
    assert!(sequence > 500, "power went after {sequence} transactions");
    drop((policy, device));
    memory.restart(&mut rng);

    let device = Device::open(memory, Options::default())?;
    let policy = Policy::open(device.attach("database")?)?;
    let last = recover(&policy)?;
    assert!(last == sequence - 1 || last == sequence, "{last} of {sequence} transactions");
    if last == sequence {
        // Power failed during its commit, and it was durable.
        table[in_doubt.0 as usize] = in_doubt.1;
    }
    let rows = policy.container("rows")?;
    for (row, value) in (0..).zip(table) {
        let mut read = [0; 8];
        rows.read(row * ROW + 16, &mut read)?;
        assert_eq!(u64::from_le_bytes(read), value, "row {row}");
    }
    policy.assert_consistent();
    println!("{last} transactions survived; ranges: {:#?}", policy.ranges());
    Ok(())
}
