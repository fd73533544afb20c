//! The state of a drive before the first request: explicit, never guessed.

use prism_base::Rng;
use prism_engine::{FlashCounts, Immediate};
use prism_ftl::Layer;
use prism_nand::Nand;

use crate::device::{Device, DeviceError};
use crate::drive::Drive;

/// What the drive holds when the run begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum InitialState {
    /// Nothing: as from the factory. Cleaning has nothing to do until all flash was
    /// written once.
    Empty,
    /// Every logical unit, written once in order.
    Filled,
    /// Filled, then overwritten at random for this many capacities.
    Preconditioned {
        /// Random single-unit writes as a multiple of the capacity.
        overwrites: f64,
    },
}

/// Units written between two calls of the progress callback.
const PROGRESS_STEP: u64 = 1 << 20;

impl Drive {
    /// A drive in the given state. `progress` is told units done and units in all, now
    /// and then, and may return false to give up.
    ///
    /// The state is brought about without simulating time; what it did to the flash is
    /// returned beside the drive and is not part of the drive's own counts.
    ///
    /// # Errors
    /// [`DeviceError`] if the description makes no sense.
    pub fn prepared(
        device: Device,
        state: InitialState,
        seed: u64,
        mut progress: impl FnMut(u64, u64) -> bool,
    ) -> Result<Option<(Self, FlashCounts)>, DeviceError> {
        device.check()?;
        let mut nand = Nand::new(device.geometry());
        let mut ftl = Layer::new(device.geometry(), device.layer_config(), seed)?;
        let logical = u64::from(device.logical_units());
        let random = match state {
            InitialState::Preconditioned { overwrites } => (logical as f64 * overwrites) as u64,
            InitialState::Empty | InitialState::Filled => 0,
        };
        let fill = if state == InitialState::Empty { 0 } else { logical };
        let total = fill + random;
        let mut rng = Rng::stream(seed, "drive.precondition");
        let mut engine = Immediate::new(&mut nand, &mut ftl);
        for done in 0..total {
            if done % PROGRESS_STEP == 0 && !progress(done, total) {
                return Ok(None);
            }
            let lpn = if done < fill { done } else { rng.below(logical) };
            engine.write(lpn as u32, done + 1);
        }
        // A map on flash is there with the data it describes.
        let map_units = device.ftl_config().map_units;
        if fill > 0 {
            for page in 0..map_units {
                engine.write(logical as u32 + page, total + 1);
            }
        }
        engine.flush();
        let counts = *engine.counts();
        Ok(Some((Self::assemble(device, nand, ftl, total + 2), counts)))
    }
}
