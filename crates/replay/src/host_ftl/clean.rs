//! The cleaner of a log: empties zones a chunk at a time and resets them.

use prism_ssd::{Completion, HostOp, Request, Status};

use super::{EMPTY_LOW, HostFtl, Place, Use, Zone};

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
    /// The reset of the victim is in flight.
    resetting: bool,
    /// The zone that copies go to.
    pub(super) to: Option<u32>,
    /// Of copies on their way: the unit, and where it comes from.
    moves: Vec<(u32, Place)>,
}

impl HostFtl {
    /// Goes on with cleaning, or begins it if too few zones are empty.
    pub(super) fn clean(&mut self) {
        let cleaner = &self.cleaner;
        let busy = cleaner.resetting || cleaner.reads > 0 || cleaner.writes > 0;
        if busy || self.read_only.is_some() {
            return;
        }
        let Some(victim) = cleaner.victim.or_else(|| self.choose()) else { return };
        self.read_chunk(victim);
        let zone = self.zones[victim as usize];
        let cleaner = &mut self.cleaner;
        if cleaner.reads > 0 {
            return;
        }
        if matches!(zone.used, Use::Failed | Use::Gone) {
            // There is nothing more to be had from it.
            cleaner.victim = None;
            self.zones[victim as usize].next = 0;
            return self.clean();
        }
        // A read of the host may still be on its way to what was copied.
        if zone.readers == 0 && zone.writers == 0 {
            assert!(zone.valid == 0, "a victim is emptied before it is reset");
            cleaner.resetting = true;
            let start = self.offset_of(victim * self.zone_units);
            self.send(Request::new(HostOp::ZoneReset, start, 0, COPY));
        }
    }

    /// The full zone with fewest valid units, if it is time to clean.
    fn choose(&mut self) -> Option<u32> {
        if self.empty.len() as u32 >= EMPTY_LOW + self.spare_zones {
            return self.choose_failed();
        }
        let full = (0u32..).zip(&self.zones).filter(|(_, zone)| zone.used == Use::Full);
        let gains = full.filter(|(_, zone)| zone.valid < self.zone_units && zone.writers == 0);
        let victim = gains.min_by_key(|(_, zone)| zone.valid)?.0;
        self.zones[victim as usize].used = Use::Victim;
        (self.cleaner.victim, self.cleaner.cursor) = (Some(victim), 0);
        Some(victim)
    }

    /// A zone that can only be read and holds something, for which there is room now.
    fn choose_failed(&mut self) -> Option<u32> {
        let holds = |zone: &Zone| zone.valid > 0 && zone.next > 0 && zone.writers == 0;
        let failed = |zone: &Zone| zone.used == Use::Failed && holds(zone);
        let found = self.zones.iter().position(failed)? as u32;
        (self.cleaner.victim, self.cleaner.cursor) = (Some(found), 0);
        Some(found)
    }

    /// Reads the next valid units of `victim`.
    fn read_chunk(&mut self, victim: u32) {
        self.cleaner.chunk.clear();
        let first = victim * self.zone_units;
        let written = self.zones[victim as usize].next;
        while self.cleaner.cursor < written && self.cleaner.chunk.len() < CHUNK {
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
        let valid = |&place: &Place| Some((self.valid_at(place)?, place));
        let moves: Vec<(u32, Place)> = chunk.iter().filter_map(valid).collect();
        let victim = self.cleaner.victim.map(|zone| self.zones[zone as usize].used);
        self.log.copied += moves.len() as u64;
        if victim == Some(Use::Failed) {
            self.log.evacuated += moves.len() as u64;
        }
        let units: Vec<u32> = moves.iter().map(|&(lpn, _)| lpn).collect();
        self.cleaner.moves = moves;
        self.write_copies(&units);
        self.cleaner.chunk = chunk;
    }

    /// Writes copies of `units`, which have been read.
    fn write_copies(&mut self, units: &[u32]) {
        let mut left = units;
        while !left.is_empty() {
            let to = self.cleaner.to.or_else(|| self.open_zone(0));
            let Some(to) = to else {
                // Zones have failed faster than others were emptied: what was read stays where
                // it came from.
                assert!(self.spare_zones > 0, "one empty zone is kept for the cleaner");
                self.undo_copies(left);
                self.end_writing();
                return;
            };
            let (place, count) = self.take_places(to, left.len() as u32);
            self.cleaner.to = Some(to).filter(|&zone| self.zones[zone as usize].used == Use::Open);
            for (&lpn, place) in left.iter().zip(place..place + count) {
                self.set_again(lpn, place);
            }
            self.cleaner.writes += 1;
            let len = u64::from(count) * self.unit;
            self.send(Request::new(HostOp::Write, self.offset_of(place), len, COPY));
            left = &left[count as usize..];
        }
    }

    /// `units` cannot be moved: they stand where they did.
    fn undo_copies(&mut self, units: &[u32]) {
        for &lpn in units {
            let from = self.cleaner.moves.iter().find(|&&(moved, _)| moved == lpn);
            if let Some(&(_, from)) = from {
                self.set_again(lpn, from);
            }
        }
        self.failed_units += units.len() as u64;
    }

    /// The zone of a copy has failed before the copy was in it: it is written once more.
    fn copy_failed(&mut self, done: &Completion) {
        let places = self.places_of(done);
        let units: Vec<u32> = places.filter_map(|place| self.valid_at(place)).collect();
        self.failed_units += done.len / self.unit;
        self.log.rewritten += units.len() as u64;
        self.write_copies(&units);
    }

    /// Part of what a copy needs cannot be read: unit by unit it is found out which.
    fn copy_unreadable(&mut self, done: &Completion) {
        for place in self.places_of(done) {
            if done.len > self.unit {
                self.cleaner.reads += 1;
                self.zones[(place / self.zone_units) as usize].readers += 1;
                self.send(Request::new(HostOp::Read, self.offset_of(place), self.unit, COPY));
            } else if let Some(lpn) = self.valid_at(place) {
                self.unset(lpn);
                self.lost.insert(lpn);
                self.log.lost += 1;
            }
        }
    }

    /// A command of the cleaner is done.
    pub(super) fn copy_done(&mut self, done: &Completion) {
        match done.op {
            HostOp::Read => {
                if done.status == Status::Unreadable {
                    self.copy_unreadable(done);
                }
                self.cleaner.reads -= 1;
                if self.cleaner.reads == 0 {
                    self.write_chunk();
                }
            }
            HostOp::Write => {
                self.cleaner.writes -= 1;
                if done.status != Status::Done {
                    self.copy_failed(done);
                }
            }
            _ => {
                self.cleaner.resetting = false;
                let zone = self.cleaner.victim.take().expect("the zone that was reset");
                if self.zones[zone as usize].used != Use::Victim {
                    return;
                }
                let known = &mut self.zones[zone as usize];
                (known.used, known.next) = (Use::Empty, 0);
                let first = zone as usize * self.zone_units as usize;
                self.back[first..first + self.zone_units as usize].fill(0);
                self.empty.push_back(zone);
                self.log.cleaned += 1;
            }
        }
    }
}
