//! A small zoned drive, functions to use it, and a naive model of its zones.

use prism_base::{Bytes, Nanos, Rng};
use prism_nand::PageTimes;
use prism_ssd::{Completion, Drive, DriveSpec, HostOp, Request};

pub use super::lab::{UNIT, drain, request, try_serve};

/// Size and capacity of the zones of [`device`], in units.
pub const ZONE_UNITS: u64 = 80;
pub const CAPACITY_UNITS: u64 = 64;
/// Zones of [`device`].
pub const ZONES: u64 = 10;

/// Four dies, zones over `members` of them, program units of 4 units. Two zones may be open and
/// three active.
pub fn device(members: u32) -> DriveSpec {
    let mut device = DriveSpec::preset("zn540").unwrap();
    device.name = "small".into();
    device.flash.channels = 2;
    device.flash.dies_per_channel = 2;
    device.flash.superblock_dies = members;
    device.flash.planes = 2;
    device.flash.page = Bytes(8192);
    device.flash.pages_per_program = 1;
    // Superblocks of 64 units.
    device.flash.pages_per_block = 16 / members;
    device.flash.blocks_per_plane = 12 * members / 4;
    device.flash.t_read = PageTimes::uniform(Nanos(50_000));
    device.flash.channel_bandwidth = Some(400_000_000);
    device.ftl.zone_size = Some(Bytes(ZONE_UNITS * UNIT));
    device.ftl.max_open_zones = Some(2);
    device.ftl.max_active_zones = Some(3);
    device.drive.capacity = Bytes(ZONES * ZONE_UNITS * UNIT);
    device.drive.write_buffer = Bytes(20 * UNIT);
    device.check().unwrap();
    device
}

/// Submits `request` and runs until it completes.
pub fn serve(drive: &mut Drive, request: Request) -> Completion {
    try_serve(drive, request).unwrap_or_else(|error| panic!("{request:?}: {error}"))
}

/// The state of a zone, by letters: Empty, Implicitly, eXplicitly open, Closed, Full.
#[derive(Clone, Copy, Debug)]
struct Zone {
    state: char,
    pointer: u64,
    last: u64,
}

/// A literal model of the standard, one command at a time.
pub struct Model {
    zones: Vec<Zone>,
    turn: u64,
    open_max: usize,
    active_max: usize,
}

/// The name of the expected error.
type Refused = &'static str;

impl Model {
    pub fn new(device: &DriveSpec) -> Self {
        let shape = device.zone_shape().unwrap();
        let zone = Zone { state: 'E', pointer: 0, last: 0 };
        let (open_max, active_max) = (shape.max_open as usize, shape.max_active as usize);
        Self { zones: vec![zone; shape.count as usize], turn: 0, open_max, active_max }
    }

    /// A random command that is usually legal.
    pub fn draw(&self, rng: &mut Rng) -> Request {
        let zone = rng.below(5);
        let start = zone * ZONE_UNITS;
        let pointer = self.zones[zone as usize].pointer;
        let units = 1 + if rng.chance(0.2) { rng.below(70) } else { rng.below(9) };
        let at = start + if rng.chance(0.1) { rng.below(ZONE_UNITS) } else { pointer };
        match rng.below(20) {
            0..8 => request(HostOp::Write, at, units),
            8..13 => request(HostOp::ZoneAppend, start, units),
            13 => request(HostOp::Read, start, units.min(ZONE_UNITS)),
            14 => request(HostOp::ZoneOpen, start, 0),
            15 => request(HostOp::ZoneClose, start, 0),
            16 => request(HostOp::ZoneFinish, start, 0),
            17 => request(HostOp::ZoneReset, if rng.chance(0.1) { at } else { start }, 0),
            18 => request(HostOp::Flush, 0, 0),
            _ => request(HostOp::ZoneReset, start, 0),
        }
    }

    fn open(&self) -> usize {
        self.zones.iter().filter(|zone| "IX".contains(zone.state)).count()
    }

    fn active(&self) -> usize {
        self.zones.iter().filter(|zone| "IXC".contains(zone.state)).count()
    }

    /// Applies a command. Returns the unit that a write begins at, or the error.
    pub fn apply(&mut self, request: &Request) -> Result<Option<u64>, Refused> {
        self.turn += 1;
        let (unit, units) = (request.offset / UNIT, request.len / UNIT);
        let index = (unit / ZONE_UNITS) as usize;
        let start = index as u64 * ZONE_UNITS;
        let Zone { state, pointer, .. } = self.zones[index];
        match request.op {
            HostOp::Flush | HostOp::Read => return Ok(None),
            HostOp::Write | HostOp::ZoneAppend => {
                if state == 'F' {
                    return Err("ZoneFull");
                }
                if request.op == HostOp::Write && unit != start + pointer {
                    return Err("NotAtWritePointer");
                }
                if pointer + units > CAPACITY_UNITS {
                    return Err("ZoneBoundary");
                }
                self.make_open(index, 'I')?;
                let zone = &mut self.zones[index];
                zone.pointer += units;
                zone.last = self.turn;
                if zone.pointer == CAPACITY_UNITS {
                    zone.state = 'F';
                }
                return Ok(Some(start + pointer));
            }
            _ if unit != start => return Err("NotZoneStart"),
            HostOp::ZoneOpen if state == 'F' => return Err("ZoneState"),
            HostOp::ZoneOpen => {
                self.make_open(index, 'X')?;
                self.zones[index].state = 'X';
            }
            HostOp::ZoneClose if "EF".contains(state) => return Err("ZoneState"),
            HostOp::ZoneClose => self.zones[index].state = if pointer == 0 { 'E' } else { 'C' },
            HostOp::ZoneFinish => self.zones[index].state = 'F',
            _ => (self.zones[index].state, self.zones[index].pointer) = ('E', 0),
        }
        Ok(None)
    }

    fn make_open(&mut self, index: usize, kind: char) -> Result<(), Refused> {
        let state = self.zones[index].state;
        if "IX".contains(state) {
            return Ok(());
        }
        if state == 'E' && self.active() == self.active_max {
            return Err("TooManyActive");
        }
        if self.open() == self.open_max {
            let implicit = self.zones.iter_mut().filter(|zone| zone.state == 'I');
            let Some(oldest) = implicit.min_by_key(|zone| zone.last) else {
                return Err("TooManyOpen");
            };
            oldest.state = 'C';
        }
        self.zones[index].state = kind;
        Ok(())
    }

    /// Compares the model with the zone report of the drive.
    pub fn compare(&self, drive: &Drive) {
        let report: Vec<_> = drive.zones().unwrap().report().collect();
        for (zone, info) in self.zones.iter().zip(report) {
            let letter = match info.state.name() {
                "explicitly open" => 'X',
                name => name.to_uppercase().chars().next().unwrap(),
            };
            assert_eq!(letter, zone.state, "{info:?}");
            if zone.state != 'F' {
                assert_eq!((info.write_pointer - info.start) / UNIT, zone.pointer, "{info:?}");
            }
        }
    }
}
