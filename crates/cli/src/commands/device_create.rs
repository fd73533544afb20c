//! `prism device create`: a file with an empty device.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use prism_base::{Bytes, Rng};
use prism_flash::{DeviceGeometry, Options};
use prism_flashfile::{FlashFile, file_len};
use serde::Serialize;

use super::device::GeometryObject;
use crate::failure::Failure;
use crate::output::JsonArg;
use crate::process_env::ProcessEnv;
use crate::quantities;

/// Arguments of `prism device create`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  prism device create flash.prism --capacity 64GiB
  prism device create flash.prism --capacity 4GiB --geometry channels=2,luns=1,page=4KiB
  prism device create flash.prism --capacity 1TiB --device memblaze
  prism device create flash.prism --capacity 64GiB --factory-bad 0.2% --seed 7")]
pub struct Args {
    /// The file to make; it is sparse and grows on disk as pages are written
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Bytes of flash, such as 64GiB: all blocks, including spare blocks and tables
    #[arg(long, value_name = "SIZE", value_parser = quantities::bytes)]
    capacity: Option<Bytes>,
    /// The geometry, such as channels=4,luns=2,blocks=512,pages=256,page=16KiB,oob=80,open=14:
    /// LUNs per channel, blocks per LUN, pages per block, page size, out-of-band bytes per page,
    /// blocks that may be partly written. Defaults are the values of this example, without a
    /// limit on open blocks; the number of blocks follows from the capacity
    #[arg(long, value_name = "LIST", conflicts_with = "device")]
    geometry: Option<String>,
    /// Take channels, LUNs, pages and page size from a preset or a device file
    #[arg(long, value_name = "PRESET|FILE.toml")]
    device: Option<String>,
    /// Factory bad blocks, as real flash has them: a share of all blocks, chosen at random, such
    /// as 0.2%, or block numbers, such as 3,17
    #[arg(long, value_name = "SHARE%|LIST", value_parser = FactoryBad::parse)]
    factory_bad: Option<FactoryBad>,
    /// Seed of the random choice of bad blocks
    #[arg(long, value_name = "N", default_value_t = 1, requires = "factory_bad")]
    seed: u64,
    #[command(flatten)]
    json: JsonArg,
}

/// The factory bad blocks.
#[derive(Clone, Debug, PartialEq)]
enum FactoryBad {
    /// A share of all blocks, below 1.
    Share(f64),
    /// By number, LUN by LUN.
    Blocks(Vec<u32>),
}

impl FactoryBad {
    fn parse(text: &str) -> Result<Self, String> {
        if let Some(number) = text.strip_suffix('%') {
            let percent = number.parse::<f64>().ok().filter(|share| (0.0..100.0).contains(share));
            let wrong = || format!("{text:?} is not a share from 0% to below 100%");
            return percent.map(|percent| Self::Share(percent / 100.0)).ok_or_else(wrong);
        }
        let number = |part: &str| {
            let wrong =
                |_| format!("{part:?} is not a block; give numbers as 3,17 or a share as 0.2%");
            part.trim().parse::<u32>().map_err(wrong)
        };
        text.split(',').map(number).collect::<Result<_, _>>().map(Self::Blocks)
    }

    /// The bad blocks of a device of `of` blocks; a share is rounded to whole blocks.
    fn blocks(&self, of: u32, seed: u64) -> Vec<u32> {
        match self {
            Self::Blocks(blocks) => blocks.clone(),
            Self::Share(share) => {
                let count = (f64::from(of) * share).round() as usize;
                let mut rng = Rng::stream(seed, "device.factory_bad");
                let mut drawn = BTreeSet::new();
                while drawn.len() < count {
                    drawn.insert(rng.below(of.into()) as u32);
                }
                drawn.into_iter().collect()
            }
        }
    }
}

/// The usual out-of-band bytes of a page: enough for the headers of the policy level in units of
/// 4 KiB, and no more than the header of a page in the file has room for anyway.
pub const OOB: u32 = 80;

/// A geometry whose number of blocks may be unset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    channels: u32,
    luns: u32,
    blocks: Option<u32>,
    pages: u32,
    page: u32,
    oob: u32,
    open: Option<u32>,
}

impl Shape {
    /// Eight LUNs and blocks of 4 MiB, small enough for a share of a small device to have many.
    const USUAL: Self = Self {
        channels: 4,
        luns: 2,
        blocks: None,
        pages: 256,
        page: 16 << 10,
        oob: OOB,
        open: None,
    };

    /// Parses `name=number,name=number`; the page size has a unit.
    fn parse(text: &str) -> Result<Self, String> {
        let mut shape = Self::USUAL;
        for part in text.split(',') {
            let Some((name, value)) = part.split_once('=') else {
                return Err(format!("{part:?} is not name=value, as in channels=4"));
            };
            let number = || {
                let wrong = |_| format!("{part:?}: {value:?} is not a whole number");
                value.parse::<u32>().map_err(wrong)
            };
            match name {
                "channels" => shape.channels = number()?,
                "luns" => shape.luns = number()?,
                "blocks" => shape.blocks = Some(number()?),
                "pages" => shape.pages = number()?,
                "page" => {
                    let bytes = quantities::bytes(value)?.0;
                    shape.page =
                        u32::try_from(bytes).map_err(|_| format!("{part:?} is too large"))?;
                }
                "oob" => shape.oob = number()?,
                "open" => shape.open = Some(number()?),
                _ => {
                    let known = "channels, luns, blocks, pages, page, oob, open";
                    return Err(format!("{name:?} is none of {known}"));
                }
            }
        }
        Ok(shape)
    }

    /// The geometry of a preset or device file: dies are LUNs, and ganged pages are one page.
    fn of_drive(name: &str) -> Result<Self, Failure> {
        let drive = prism_present::drive_choice::described(name, &[], &ProcessEnv::new())?;
        let flash = &drive.flash;
        let ganged = if flash.multi_plane { flash.planes } else { 1 };
        Ok(Self {
            channels: flash.channels,
            luns: flash.dies_per_channel,
            blocks: Some(flash.blocks_per_plane * flash.planes / ganged),
            pages: flash.pages_per_block,
            page: (flash.page.0 * u64::from(ganged)) as u32,
            ..Self::USUAL
        })
    }

    fn geometry(self, capacity: Option<Bytes>) -> Result<DeviceGeometry, String> {
        let block_bytes = u64::from(self.pages) * u64::from(self.page);
        let stripe = block_bytes * u64::from(self.channels) * u64::from(self.luns);
        let blocks = match (capacity, self.blocks) {
            (Some(capacity), _) => {
                u32::try_from(capacity.0.div_ceil(stripe.max(1))).map_err(|_| {
                    format!("{capacity} is too much for blocks of {}", Bytes(block_bytes))
                })?
            }
            (None, Some(blocks)) => blocks,
            (None, None) => return Err("give the size: --capacity 64GiB".into()),
        };
        let geometry = DeviceGeometry {
            channels: self.channels,
            luns_per_channel: self.luns,
            blocks_per_lun: blocks,
            pages_per_block: self.pages,
            page_size: self.page,
            oob_size: self.oob,
            max_open_blocks: self.open,
        };
        geometry.check().map_err(|error| {
            format!("{error}; one block of every LUN together is {}", Bytes(stripe))
        })?;
        Ok(geometry)
    }
}

#[derive(Serialize)]
struct Created {
    file: String,
    file_bytes: u64,
    geometry: GeometryObject,
    luns: u32,
    lun_bytes: u64,
    factory_bad_blocks: Vec<u32>,
}

/// Makes the file.
///
/// # Errors
/// [`Failure`] if the geometry is invalid, or the file cannot be made.
pub fn run(args: &Args) -> Result<(), Failure> {
    let shape = match (&args.geometry, &args.device) {
        (Some(text), _) => {
            let wrong = |error| Failure::Usage(format!("--geometry {text}: {error}"));
            let shape = Shape::parse(text).map_err(wrong)?;
            if shape.blocks.is_some() && args.capacity.is_some() {
                let what = "--capacity and blocks of --geometry exclude each other: give one";
                return Err(Failure::Usage(what.into()));
            }
            shape
        }
        (None, Some(name)) => Shape::of_drive(name)?,
        (None, None) => Shape::USUAL,
    };
    let geometry = shape.geometry(args.capacity).map_err(Failure::Usage)?;
    let name = args.file.display().to_string();
    let bad = args.factory_bad.as_ref().map(|bad| bad.blocks(geometry.blocks(), args.seed));
    let bad = bad.unwrap_or_default();
    let device = FlashFile::format(&args.file, geometry, &bad, Options::default())?;
    let lun = device.lun_capacity();
    let created = Created {
        file: name.clone(),
        file_bytes: file_len(geometry).0,
        geometry: geometry.into(),
        luns: geometry.luns(),
        lun_bytes: lun.0,
        factory_bad_blocks: device.bad_blocks(),
    };
    let marked = match bad.len() {
        0 => String::new(),
        _ => format!(", bad blocks: {} of {}", device.bad_blocks().len(), geometry.blocks()),
    };
    let text = format!(
        "{name}: {} of flash, {} LUNs of {} for shares{marked}\n",
        geometry.raw(),
        geometry.luns(),
        lun
    );
    args.json.write(&created, &text)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read() {
        let shape = Shape::parse("channels=2,page=4KiB,blocks=9").unwrap();
        assert_eq!(shape, Shape { channels: 2, page: 4096, blocks: Some(9), ..Shape::USUAL });
        for (text, part) in [
            ("channels", "is not name=value"),
            ("channels=x", "not a whole number"),
            ("page=4", "unit"),
            ("wheels=4", "is none of"),
        ] {
            let error = Shape::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn bad_blocks_are_listed_or_random() {
        assert_eq!(FactoryBad::parse("3, 17"), Ok(FactoryBad::Blocks(vec![3, 17])));
        for wrong in ["", "x", "3,", "-1", "100%", "-1%", "NaN%", "%"] {
            let error = FactoryBad::parse(wrong).unwrap_err();
            assert!(error.contains("is not a "), "{wrong}: {error}");
        }
        let draw = |text, seed| FactoryBad::parse(text).unwrap().blocks(1000, seed);
        assert_eq!(draw("0.2%", 1).len(), 2);
        assert_eq!(draw("99.9%", 1).len(), 999);
        assert_eq!(draw("0%", 1), [0; 0]);
        assert_eq!(draw("5%", 4), draw("5%", 4));
        assert_ne!(draw("5%", 4), draw("5%", 5));
        assert!(draw("5%", 4).is_sorted() && draw("5%", 4).iter().all(|&block| block < 1000));
    }

    /// 64 GiB of 8 LUNs and 4 MiB blocks: 2048 blocks per LUN; fractions are rounded up.
    #[test]
    fn blocks_follow_from_the_capacity() {
        let blocks = |capacity| {
            Shape::USUAL.geometry(Some(Bytes(capacity))).map(|geometry| geometry.blocks_per_lun)
        };
        assert_eq!(blocks(64 << 30), Ok(2048));
        assert_eq!(blocks((64 << 30) + 1), Ok(2049));
        assert!(blocks(1 << 20).unwrap_err().contains("blocks_per_lun is 1"));
        assert!(Shape::USUAL.geometry(None).unwrap_err().contains("--capacity"));
    }
}
