//! The cleaner of a log: empties zones a chunk at a time and resets them.

use prism_ssd::{Completion, HostOp, Request};

use super::{EMPTY_LOW, HostLog, Place, Use};

/// Tags of the cleaner's commands have this bit.
pub(super) const COPY: u64 = 1 << 63;
/// Units that are read before they are written: what a host keeps in memory for it.
const CHUNK: usize = 256;

/// Where the cleaner stands.
#[derive(Debug, Default)]
pub(super) struct Cleaner {
    /// The zone that is being emptied.
    victim: Option<u32>,
    /// Next unit of it to look at.
    cursor: u32,
    /// What is being read, to be written when all of it is there.
    chunk: Vec<Place>,
    reads: u32,
    writes: u32,
    /// The reset of the victim is under way.
    resetting: bool,
    /// The zone that copies go to.
    to: Option<u32>,
}

impl HostLog {
    /// Goes on with cleaning, or begins it if too few zones are empty.
    pub(super) fn clean(&mut self) {
        let cleaner = &self.cleaner;
        if cleaner.resetting || cleaner.reads > 0 || cleaner.writes > 0 {
            return;
        }
        let Some(victim) = cleaner.victim.or_else(|| self.choose()) else { return };
        self.read_chunk(victim);
        let zone = self.zones[victim as usize];
        let cleaner = &mut self.cleaner;
        // A read of the host may still be on its way to what was copied.
        if cleaner.reads == 0 && zone.readers == 0 && zone.writers == 0 {
            assert!(zone.valid == 0, "a victim is emptied before it is reset");
            cleaner.resetting = true;
            let start = self.offset_of(victim * self.zone_units);
            self.send(Request::new(HostOp::ZoneReset, start, 0, COPY));
        }
    }

    /// The full zone with fewest valid units, if it is time to clean.
    fn choose(&mut self) -> Option<u32> {
        if self.empty.len() as u32 >= EMPTY_LOW {
            return None;
        }
        let full = (0u32..).zip(&self.zones).filter(|(_, zone)| zone.used == Use::Full);
        let gains = full.filter(|(_, zone)| zone.valid < self.zone_units && zone.writers == 0);
        let victim = gains.min_by_key(|(_, zone)| zone.valid)?.0;
        self.zones[victim as usize].used = Use::Victim;
        (self.cleaner.victim, self.cleaner.cursor) = (Some(victim), 0);
        Some(victim)
    }

    /// Reads the next valid units of `victim`.
    fn read_chunk(&mut self, victim: u32) {
        self.cleaner.chunk.clear();
        let first = victim * self.zone_units;
        while self.cleaner.cursor < self.zone_units && self.cleaner.chunk.len() < CHUNK {
            let place = first + self.cleaner.cursor;
            self.cleaner.cursor += 1;
            if self.valid_at(place).is_some() {
                self.cleaner.chunk.push(place);
            }
        }
        let chunk = std::mem::take(&mut self.cleaner.chunk);
        for run in chunk.chunk_by(|a, b| a + 1 == *b) {
            self.cleaner.reads += 1;
            self.zones[victim as usize].readers += 1;
            let at = self.offset_of(run[0]);
            self.send(Request::new(HostOp::Read, at, run.len() as u64 * self.unit, COPY));
        }
        self.cleaner.chunk = chunk;
    }

    /// Writes what has been read, as far as it is still valid.
    fn write_chunk(&mut self) {
        let chunk = std::mem::take(&mut self.cleaner.chunk);
        let units: Vec<u32> = chunk.iter().filter_map(|&place| self.valid_at(place)).collect();
        let mut left = &units[..];
        while !left.is_empty() {
            let to = self.cleaner.to.or_else(|| self.open_zone(0));
            let to = to.expect("one empty zone is kept for the cleaner");
            let (place, count) = self.take_places(to, left.len() as u32);
            self.cleaner.to = Some(to).filter(|&zone| self.zones[zone as usize].used == Use::Open);
            for (&lpn, place) in left.iter().zip(place..place + count) {
                self.set(lpn, place);
            }
            self.log.copied += u64::from(count);
            self.cleaner.writes += 1;
            let len = u64::from(count) * self.unit;
            self.send(Request::new(HostOp::Write, self.offset_of(place), len, COPY));
            left = &left[count as usize..];
        }
        self.cleaner.chunk = chunk;
    }

    /// A command of the cleaner is done.
    pub(super) fn copy_done(&mut self, done: &Completion) {
        match done.op {
            HostOp::Read => {
                self.cleaner.reads -= 1;
                if self.cleaner.reads == 0 {
                    self.write_chunk();
                }
            }
            HostOp::Write => self.cleaner.writes -= 1,
            _ => {
                let zone = self.cleaner.victim.take().expect("the zone that was reset");
                let known = &mut self.zones[zone as usize];
                (known.used, known.next) = (Use::Empty, 0);
                let first = zone as usize * self.zone_units as usize;
                self.back[first..first + self.zone_units as usize].fill(0);
                self.empty.push_back(zone);
                self.log.cleaned += 1;
                self.cleaner.resetting = false;
            }
        }
    }
}
