//! Changes of the list of ranges: which blocks a range gets, and when one may be made or removed.

use super::config::{Mapping, RangeConfig, RangeRecord, Tables};
use super::division::{self, Division};
use super::inner::Inner;
use super::range::Range;
use crate::error::{FlashError, Result};
use crate::monitor::ShareGeometry;

impl Inner {
    /// The blocks of the ranges and journals of `tables`.
    fn used(&self, tables: &Tables) -> Vec<bool> {
        let mut used = vec![false; self.geometry.blocks() as usize];
        let ranges = tables.ranges.iter().flat_map(|range| &range.blocks);
        let journals = tables.journal.iter().chain(&tables.above);
        for &block in journals.chain(ranges) {
            used[block as usize] = true;
        }
        used
    }

    /// The blocks that a new range of `bytes` bytes would get alongside those of `tables`, and its
    /// open blocks.
    pub(crate) fn plan(
        &self,
        tables: &Tables,
        bytes: u64,
        config: RangeConfig,
    ) -> Result<(RangeConfig, Division)> {
        let left = self.open_left(tables);
        let open = match config.open_blocks {
            Some(open) if open <= left => open,
            Some(open) => {
                let what = format!("{open} open blocks were asked for and {left} are left");
                return Err(FlashError::NoSpace { what });
            }
            None if left == u32::MAX => left,
            None => left.div_ceil(2),
        };
        let config = RangeConfig { open_blocks: Some(open).filter(|&o| o < u32::MAX), ..config };
        let used = self.used(tables);
        let share = &self.geometry;
        let most = if self.share.luns_work_in_parallel() { share.luns } else { 1 };
        let division = division::divide(&config, share, &self.format, bytes, &used, open, most)?;
        Ok((config, division))
    }

    pub(crate) fn configure(&mut self, begin: u64, end: u64, config: RangeConfig) -> Result<()> {
        self.check_range(begin, end, &config)?;
        let same = |range: &RangeRecord| (range.begin, range.end) == (begin, end);
        // An empty range of the same addresses is replaced at once, or not at all.
        let old = self.tables.ranges.iter().position(same);
        let mut others = self.tables.clone();
        old.map(|place| others.ranges.remove(place));
        let (config, division) = self.plan(&others, end - begin, config)?;
        let open = open_of(&self.geometry, &config);
        let record = RangeRecord {
            id: self.tables.next_id,
            begin,
            end,
            config,
            die_groups: division.die_groups,
            blocks: division.blocks,
            containers: Vec::new(),
        };
        let range = Range::open(&self.share, record.clone(), self.format, open, None)?;
        if let Some(place) = old {
            self.ranges[place].settle()?;
            self.ranges[place].finish_open()?;
        }
        // Blocks of a removed range may still hold its data.
        range.erase_all()?;
        others.next_id += 1;
        let place = others.ranges.partition_point(|range| range.begin < begin);
        others.ranges.insert(place, record);
        self.save(others)?;
        old.map(|place| self.ranges.remove(place));
        self.ranges.insert(place, range);
        Ok(())
    }

    pub(super) fn check_range(&self, begin: u64, end: u64, config: &RangeConfig) -> Result<()> {
        let unit = u64::from(self.format.unit);
        for (what, value) in [("the begin of a range", begin), ("the end of a range", end)] {
            if value % unit != 0 {
                return Err(FlashError::Unaligned { what, value, unit });
            }
        }
        if end <= begin || (end - begin) / unit > u64::from(u32::MAX / 4) {
            let what =
                format!("the range {begin}..{end} is empty or too large; choose another end");
            return Err(FlashError::Invalid { what });
        }
        if config.handles > 1 && config.mapping != Mapping::Page {
            let what = "placement handles need page-level mapping; use Mapping::Page, or 1 handle";
            return Err(FlashError::Invalid { what: what.into() });
        }
        if config.handles > self.geometry.blocks() {
            let (handles, blocks) = (config.handles, self.geometry.blocks());
            let what = format!("{handles} handles on {blocks} blocks; each needs one, take fewer");
            return Err(FlashError::Invalid { what });
        }
        for range in &self.ranges {
            let (b, e) = (range.record.begin, range.record.end);
            let same = (b, e) == (begin, end);
            if begin < e && b < end && (!same || !range.is_empty()) {
                let what = if same {
                    format!("the range {b}..{e} holds data; trim it before it is configured again")
                } else {
                    format!("{begin}..{end} overlaps the range {b}..{e}; choose other addresses")
                };
                return Err(FlashError::Busy { what });
            }
        }
        Ok(())
    }

    /// Open blocks left for further ranges: all but those of the ranges of `tables` and of the
    /// journal, which needs a second one for each checkpoint.
    pub(super) fn open_left(&self, tables: &Tables) -> u32 {
        let max = self.geometry.max_open_blocks;
        if max == u32::MAX {
            return max;
        }
        let ranges = tables.ranges.iter().filter_map(|range| range.config.open_blocks);
        max.saturating_sub(1 + ranges.sum::<u32>())
    }

    pub(super) fn remove(&mut self, begin: u64) -> Result<()> {
        let place = self.ranges.iter().position(|range| range.record.begin == begin);
        let Some(place) = place else {
            let what = format!("no range begins at {begin}; list the ranges");
            return Err(FlashError::Invalid { what });
        };
        self.remove_at(place)
    }

    pub(super) fn remove_at(&mut self, place: usize) -> Result<()> {
        let range = &self.ranges[place];
        if !range.is_empty() {
            let (b, e) = (range.record.begin, range.record.end);
            let what = format!("the range {b}..{e} holds data; trim it and flush first");
            return Err(FlashError::Busy { what });
        }
        // Its blocks hold no valid data, and must not count as partly written.
        self.ranges[place].settle()?;
        self.ranges[place].finish_open()?;
        let mut tables = self.tables.clone();
        tables.ranges.remove(place);
        self.save(tables)?;
        self.ranges.remove(place);
        Ok(())
    }
}

/// Blocks that a range may have partly written.
pub(super) fn open_of(geometry: &ShareGeometry, config: &RangeConfig) -> u32 {
    config.open_blocks.unwrap_or(geometry.max_open_blocks)
}
