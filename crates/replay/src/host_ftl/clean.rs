//! The cleaner: copies the valid units of victims in chunks and resets their zones.

use prism_ssd::{Completion, HostOp, Request, Status};

use super::{EMPTY_LOW, HostFtl, Pun, Zone, ZoneUse};

/// Tags of the cleaner's commands have this bit.
pub(super) const COPY: u64 = 1 << 63;
/// Units per chunk, which the host buffers in memory.
const CHUNK: usize = 256;

/// State of the cleaner.
#[derive(Debug, Default)]
pub(super) struct Cleaner {
    /// The zone that is being cleaned.
    victim: Option<u32>,
    /// The next unit of the victim to check.
    cursor: u32,
    /// Units being read; they are written when all reads have completed.
    chunk: Vec<Pun>,
    reads: u32,
    writes: u32,
    /// The reset of the victim is in flight.
    resetting: bool,
    /// The open zone of the cleaner.
    pub(super) to: Option<u32>,
    /// Copies in flight: logical unit and source.
    moves: Vec<(u32, Pun)>,
}

impl HostFtl {
    /// Continues cleaning, or begins it if too few zones are empty.
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
        if matches!(zone.used, ZoneUse::Failed | ZoneUse::Gone) {
            // No valid unit that can be read is left in it.
            cleaner.victim = None;
            self.zones[victim as usize].next = 0;
            return self.clean();
        }
        // Reads of the host from the victim may still be in flight.
        if zone.readers == 0 && zone.writers == 0 {
            assert!(zone.valid == 0, "all valid units are copied before the reset");
            cleaner.resetting = true;
            let start = self.offset_of(victim * self.zone_units);
            self.send(Request::new(HostOp::ZoneReset, start, 0, COPY));
        }
    }

    /// The next victim, if one is needed: the full zone with the fewest valid units.
    fn choose(&mut self) -> Option<u32> {
        if self.empty.len() as u32 >= EMPTY_LOW + self.spare_zones {
            return self.choose_failed();
        }
        let full = (0u32..).zip(&self.zones).filter(|(_, zone)| zone.used == ZoneUse::Full);
        let gains = full.filter(|(_, zone)| zone.valid < self.zone_units && zone.writers == 0);
        let victim = gains.min_by_key(|(_, zone)| zone.valid)?.0;
        self.zones[victim as usize].used = ZoneUse::Victim;
        (self.cleaner.victim, self.cleaner.cursor) = (Some(victim), 0);
        Some(victim)
    }

    /// A read-only zone with valid units, which can be moved since enough zones are empty.
    fn choose_failed(&mut self) -> Option<u32> {
        let holds = |zone: &Zone| zone.valid > 0 && zone.next > 0 && zone.writers == 0;
        let failed = |zone: &Zone| zone.used == ZoneUse::Failed && holds(zone);
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
            let pun = first + self.cleaner.cursor;
            self.cleaner.cursor += 1;
            if self.valid_at(pun).is_some() {
                self.cleaner.chunk.push(pun);
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

    /// Writes the units of the chunk that are still valid.
    fn write_chunk(&mut self) {
        let chunk = std::mem::take(&mut self.cleaner.chunk);
        let valid = |&pun: &Pun| Some((self.valid_at(pun)?, pun));
        let moves: Vec<(u32, Pun)> = chunk.iter().filter_map(valid).collect();
        let victim = self.cleaner.victim.map(|zone| self.zones[zone as usize].used);
        self.ftl_counts.copied += moves.len() as u64;
        if victim == Some(ZoneUse::Failed) {
            self.ftl_counts.evacuated += moves.len() as u64;
        }
        let units: Vec<u32> = moves.iter().map(|&(lpn, _)| lpn).collect();
        self.cleaner.moves = moves;
        self.write_copies(&units);
        self.cleaner.chunk = chunk;
    }

    /// Writes copies of `units`, which are in memory.
    fn write_copies(&mut self, units: &[u32]) {
        let mut left = units;
        while !left.is_empty() {
            let to = self.cleaner.to.or_else(|| self.open_zone(0));
            let Some(to) = to else {
                // Zones have failed faster than others were cleaned: the units stay in their
                // source.
                assert!(self.spare_zones > 0, "one empty zone is kept for the cleaner");
                self.undo_copies(left);
                self.end_writing();
                return;
            };
            let (pun, count) = self.allocate(to, left.len() as u32);
            self.cleaner.to =
                Some(to).filter(|&zone| self.zones[zone as usize].used == ZoneUse::Open);
            for (&lpn, pun) in left.iter().zip(pun..pun + count) {
                self.remap(lpn, pun);
            }
            self.cleaner.writes += 1;
            let len = u64::from(count) * self.unit;
            self.send(Request::new(HostOp::Write, self.offset_of(pun), len, COPY));
            left = &left[count as usize..];
        }
    }

    /// Maps `units`, which cannot be moved, to their source again.
    fn undo_copies(&mut self, units: &[u32]) {
        for &lpn in units {
            let from = self.cleaner.moves.iter().find(|&&(moved, _)| moved == lpn);
            if let Some(&(_, from)) = from {
                self.remap(lpn, from);
            }
        }
        self.failed_units += units.len() as u64;
    }

    /// Writes a copy again whose zone has failed.
    fn copy_failed(&mut self, done: &Completion) {
        let puns = self.puns_of(done);
        let units: Vec<u32> = puns.filter_map(|pun| self.valid_at(pun)).collect();
        self.failed_units += done.len / self.unit;
        self.ftl_counts.rewritten += units.len() as u64;
        self.write_copies(&units);
    }

    /// Part of a chunk cannot be read: reads its units one by one to find out which.
    fn copy_unreadable(&mut self, done: &Completion) {
        for pun in self.puns_of(done) {
            if done.len > self.unit {
                self.cleaner.reads += 1;
                self.zones[(pun / self.zone_units) as usize].readers += 1;
                self.send(Request::new(HostOp::Read, self.offset_of(pun), self.unit, COPY));
            } else if let Some(lpn) = self.valid_at(pun) {
                self.unset(lpn);
                self.lost.insert(lpn);
                self.ftl_counts.lost += 1;
            }
        }
    }

    /// A command of the cleaner has completed.
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
                if self.zones[zone as usize].used != ZoneUse::Victim {
                    return;
                }
                let known = &mut self.zones[zone as usize];
                (known.used, known.next) = (ZoneUse::Empty, 0);
                let first = zone as usize * self.zone_units as usize;
                self.back[first..first + self.zone_units as usize].fill(0);
                self.empty.push_back(zone);
                self.ftl_counts.cleaned += 1;
            }
        }
    }
}
