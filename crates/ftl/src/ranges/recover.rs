//! Recovery of ranges after a loss of power: each range is recovered by itself.

use prism_nand::{BlockId, Geometry, Nand, ProgramUnitId, UnitTag};

use super::{Part, RangeConfig, Ranges, RangesConfig};
use crate::config::ConfigError;
use crate::ftl::Ftl;
use crate::hybrid::BlockStatus;
use crate::plan::TrimRange;
use crate::scan::{FlashScan, Recovered, ScannedUnit};

/// The flash of one range.
struct RangeScan<'a, R> {
    all: &'a mut R,
    geometry: Geometry,
    part: Part,
}

impl<R: FlashScan> FlashScan for RangeScan<'_, R> {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn erases(&self, block: BlockId) -> u32 {
        self.all.erases(self.part.block_out(block))
    }

    fn is_erased(&self, block: BlockId) -> bool {
        self.all.is_erased(self.part.block_out(block))
    }

    fn is_unstable(&self, block: BlockId) -> bool {
        self.all.is_unstable(self.part.block_out(block))
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.all.is_bad(self.part.block_out(block))
    }

    fn program_unit(&mut self, program_unit: ProgramUnitId, found: &mut Vec<ScannedUnit>) -> u64 {
        let sequence = self.all.program_unit(self.part.program_unit_out(program_unit), found);
        for unit in found {
            if let UnitTag::Data(lpn) = &mut unit.tag {
                // A unit of another range is outside the address space of this one.
                *lpn = lpn.wrapping_sub(self.part.first_unit);
            }
        }
        sequence
    }
}

impl Ranges {
    /// Recovers each range as [`Ftl::recover`] does.
    pub(crate) fn recover(
        flash: &mut impl FlashScan,
        config: RangesConfig,
        seed: u64,
        trims: &[TrimRange],
    ) -> Result<(Self, Recovered), ConfigError> {
        let mut ranges = Self::new(flash.geometry().clone(), config, seed)?;
        let mut newest = Recovered::default();
        let mut ftls = Vec::new();
        for (part, range) in ranges.parts.drain(..).zip(&ranges.config.ranges) {
            let (first, units) = (part.first_unit, range.ftl.logical_units());
            let own = trims.iter().filter_map(|trim| {
                let start = trim.start.max(first);
                let end = (trim.start + trim.count).min(first + units);
                let count = end.checked_sub(start).filter(|&count| count > 0)?;
                Some(TrimRange { start: start - first, count, version: trim.version })
            });
            let own: Vec<TrimRange> = own.collect();
            let geometry = part.ftl.geometry().clone();
            let mut flash = RangeScan { all: flash, geometry, part };
            let found = Ftl::recover_one(&mut flash, range.ftl.clone(), seed, &own)?;
            let (ftl, found) = found;
            newest.newest_version = newest.newest_version.max(found.newest_version);
            newest.newest_sequence = newest.newest_sequence.max(found.newest_sequence);
            ftls.push(ftl);
        }
        Ok((Self::of(ranges.geometry, ranges.config, ftls, seed), newest))
    }

    /// The ranges on the flash as it is now, with the map saved by the capacitors.
    ///
    /// # Panics
    /// If the flash holds data that no range has written.
    #[must_use]
    pub fn after_power_loss(self, nand: &Nand) -> Self {
        let Self { geometry, config, parts, seed, .. } = self;
        let restore = |part: Part, range: &RangeConfig| {
            let Ftl::Page(saved) = &part.ftl else {
                let ftl = part.ftl.clone();
                return ftl.resume_with(&|block| BlockStatus::of(nand, part.block_out(block)));
            };
            // The scan finds mapped units, but not which ones are unmapped.
            let unmapped: Vec<u32> =
                (0..range.ftl.logical_units()).filter(|&u| saved.lookup(u).is_none()).collect();
            let geometry = part.ftl.geometry().clone();
            let mut flash = RangeScan { all: &mut { nand }, geometry, part };
            let found = Ftl::recover_one(&mut flash, range.ftl.clone(), seed, &[]);
            let (mut ftl, newest) = found.expect("flash that these ranges have written");
            for lpn in unmapped {
                ftl.trim_now(lpn, lpn + 1, newest.newest_version);
            }
            ftl
        };
        let ftls = parts.into_iter().zip(&config.ranges);
        let ftls = ftls.map(|(part, range)| restore(part, range)).collect();
        Self::of(geometry, config, ftls, seed)
    }
}
