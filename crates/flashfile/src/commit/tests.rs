//! A power failure or a full disk at any moment of a sync whose programs are in flight: the device
//! is as before the sync, or as after it.

use prism_base::Rng;
use prism_flash::{DeviceGeometry, Medium, PageState};
use prism_testkit::{all_seeds, seeds};

use super::{Commit, InFlight};
use crate::state::Begun;
use crate::{FlashFile, SimulatedFile};

const BLOCKS: u32 = 6;
const PAGES: u32 = 8;
const PAGE: usize = 512;

/// The number that was programmed into each page, by block.
type Content = Vec<Vec<u64>>;

struct Program {
    block: u32,
    page: u32,
    epoch: u32,
    data: Vec<u8>,
    headers: Vec<u8>,
}

struct World {
    rng: Rng,
    file: SimulatedFile,
    device: FlashFile,
    durable: Content,
    /// As in the entry that is being written.
    coming: Content,
    now: Content,
    stamp: u64,
    /// Syncs with programs in flight.
    in_flight: u32,
}

fn page_of(stamp: u64) -> Vec<u8> {
    stamp.to_le_bytes().repeat(PAGE / 8)
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::stream(seed, "commit");
        let file = SimulatedFile::new();
        file.keep_headers([1, 4096][rng.below(2) as usize]);
        // Checkpoints come after few syncs, and some programs are too many for an entry.
        file.limit_journal([16 << 10, 20 << 10, 1 << 20][rng.below(3) as usize]);
        let geometry = DeviceGeometry {
            channels: 1,
            luns_per_channel: 1,
            blocks_per_lun: BLOCKS,
            pages_per_block: PAGES,
            page_size: PAGE as u32,
            oob_size: [0, 500][rng.below(2) as usize],
            max_open_blocks: None,
        };
        let device = FlashFile::create_simulated(&file, geometry).unwrap();
        let now: Content = vec![Vec::new(); BLOCKS as usize];
        let (durable, coming) = (now.clone(), now.clone());
        Self { rng, file, device, durable, coming, now, stamp: 0, in_flight: 0 }
    }

    /// Begins programs of some blocks, each of the next pages; `None` if one needs a sync first.
    fn begin(&mut self) -> Option<Vec<Program>> {
        let mut programs = Vec::new();
        for _ in 0..1 + self.rng.below(6) {
            let block = self.rng.below(BLOCKS.into()) as u32;
            let page = self.now[block as usize].len() as u32;
            if page == PAGES {
                continue;
            }
            let begun = self.device.core().begin_program(block, page, 1);
            match begun {
                Ok(Begun::Write { epoch }) => {
                    self.stamp += 1;
                    self.now[block as usize].push(self.stamp);
                    let data = page_of(self.stamp);
                    let headers = self.device.headers_of((block, page, epoch), &data, &[]);
                    programs.push(Program { block, page, epoch, data, headers });
                }
                // Those that were begun end as any others.
                Ok(Begun::SyncFirst) | Err(_) => {
                    programs.iter().for_each(|program| _ = self.end(program));
                    return None;
                }
            }
        }
        Some(programs)
    }

    /// Writes the page of a program, and ends it. False without power.
    fn end(&self, program: &Program) -> bool {
        let Program { block, page, epoch, data, headers } = program;
        let at = self.device.layout.page_at(*block, *page);
        let written = self.device.engine.write_page(at, data);
        let ended = written.map(|()| {
            self.device.core().end_program(*block, *page, *epoch, headers.clone()).is_ok()
        });
        ended.unwrap_or_else(|error| {
            self.device.core().fail_program(*block, &error);
            false
        })
    }

    fn shuffle(&mut self, programs: &mut [Program]) {
        for last in (1..programs.len()).rev() {
            programs.swap(last, self.rng.below(last as u64 + 1) as usize);
        }
    }

    /// Programs pages, and syncs while some of them are in flight. False without power.
    fn sync_in_flight(&mut self) -> bool {
        let Some(mut programs) = self.begin() else { return self.sync() };
        self.shuffle(&mut programs);
        // Some are complete before, also after others of their block.
        let complete = self.rng.below(programs.len() as u64 + 1) as usize;
        if !programs.drain(..complete).collect::<Vec<_>>().iter().all(|one| self.end(one)) {
            return false;
        }
        let mut named: Vec<_> = programs
            .iter()
            .map(|p| InFlight { block: p.block, page: p.page, epoch: p.epoch, headers: &p.headers })
            .collect();
        let Some(commit) = self.device.begin_in_flight(&mut named) else {
            return programs.iter().all(|one| self.end(one)) && self.sync();
        };
        self.in_flight += 1;
        self.coming = self.now.clone();
        let first = self.rng.below(programs.len() as u64 + 1) as usize;
        let mut all = programs[..first].iter().all(|one| self.end(one));
        let Commit { at, bytes } = &commit;
        let written = self.device.engine.write_entry(*at, bytes);
        all &= programs[first..].iter().all(|one| self.end(one));
        // The next sync has what others do meanwhile.
        let others = self.rng.chance(0.5);
        if others && all {
            all = self.erase() && self.begin().is_none_or(|more| more.iter().all(|o| self.end(o)));
        }
        let synced = self.device.end_in_flight(commit, written).is_ok();
        assert!(all || !synced, "a page that the entry names was not written");
        if synced {
            self.durable = self.coming.clone();
            assert!(others || self.device.core().is_durable(), "nothing is left to sync");
        }
        synced
    }

    /// A sync after all programs. False without power.
    fn sync(&mut self) -> bool {
        self.coming = self.now.clone();
        let synced = self.device.sync().is_ok();
        if synced {
            self.durable = self.now.clone();
        }
        synced
    }

    fn erase(&mut self) -> bool {
        let block = self.rng.below(BLOCKS.into()) as u32;
        let erased = self.device.erase(block).is_ok();
        if erased {
            self.now[block as usize].clear();
        }
        erased
    }

    /// False without power.
    fn step(&mut self) -> bool {
        match self.rng.below(8) {
            0 => self.erase(),
            1 => self.begin().is_none_or(|all| all.iter().all(|one| self.end(one))),
            _ => self.sync_in_flight(),
        }
    }

    /// Opens the file again after a power failure or a full disk, and compares all pages.
    fn recover(&mut self) {
        self.file.restart(&mut self.rng);
        self.device = FlashFile::open_simulated(&self.file).expect("nothing is damaged");
        let read = |(block, page): (u32, u32)| {
            let mut data = vec![0; PAGE];
            let state = self.device.read(block, page, 0, &mut data, &mut []);
            assert_eq!(state, Ok(PageState::Written), "page {page} of block {block}");
            let stamp = u64::from_le_bytes(data[..8].try_into().unwrap());
            assert!(data == page_of(stamp), "page {page} of block {block}");
            stamp
        };
        let found: Content = (0..BLOCKS)
            .map(|block| {
                let pages = self.device.write_pointer(block);
                (0..pages).map(|page| read((block, page))).collect()
            })
            .collect();
        let possible = [&self.durable, &self.coming, &self.now];
        assert!(possible.contains(&&found), "{found:?} {self:?}");
        (self.durable, self.coming, self.now) = (found.clone(), found.clone(), found);
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "durable {:?}, coming {:?}, now {:?}", self.durable, self.coming, self.now)
    }
}

#[test]
fn random_cuts_of_syncs_with_programs_in_flight() {
    let mut in_flight = 0;
    for seed in seeds(0..150) {
        let mut world = World::new(seed);
        for _ in 0..30 {
            let far = [3, 20, 150][world.rng.below(3) as usize];
            let operations = world.rng.below(far);
            let full = world.rng.chance(0.3);
            if full {
                world.file.fill_up_after(operations);
            } else {
                world.file.cut_power_after(operations);
            }
            // A step that begins nothing is no failure, but the next one is.
            while world.step() || world.device.refusal().is_none() {}
            assert!(full || world.file.lost_power(), "seed {seed}: {world:?}");
            world.recover();
        }
        in_flight += world.in_flight;
    }
    assert!(!all_seeds() || in_flight > 150, "{in_flight}");
}
