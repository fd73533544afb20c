//! What a trace is replayed on: a drive, or a drive with a translation of the host's before it.

use prism_base::SimTime;
use prism_nand::DieGroupId;
use prism_ssd::{Completion, Drive, HostCounts, ReadOnly, Request, SubmitError};

use crate::host_ftl::LogCounts;

/// Something that takes requests to any address in any order.
pub trait BlockDevice {
    /// The drive below.
    fn drive(&self) -> &Drive;

    /// Takes a request at `now`; see [`Drive::submit`].
    ///
    /// # Errors
    /// [`SubmitError`]; nothing is changed then.
    fn submit(&mut self, request: Request, now: SimTime) -> Result<(), SubmitError>;

    /// Says that a request at `offset` comes soon; see [`Drive::prefetch`].
    fn prefetch(&self, offset: u64);

    /// Lets the next event happen; see [`Drive::step`].
    fn step(&mut self, out: &mut Vec<Completion>);

    /// Lets events happen until requests complete; see [`Drive::next_completion`].
    ///
    /// # Panics
    /// If no event is left before a request completes.
    fn next_completion(&mut self, out: &mut Vec<Completion>) {
        let before = out.len();
        while out.len() == before {
            self.step(out);
        }
    }

    /// Lets everything happen up to and including `until`; see [`Drive::advance`].
    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>);

    /// Whether another request may be submitted.
    fn can_accept(&self) -> bool;

    /// Requests taken and not done.
    fn in_flight(&self) -> u32;

    /// Sums over requests.
    fn host_counts(&self) -> &HostCounts;

    /// What the host's own translation has done, if there is one.
    fn log_counts(&self) -> Option<&LogCounts>;

    /// Since when nothing can be written any more.
    fn read_only(&self) -> Option<ReadOnly>;

    /// Units beside those with an address.
    fn spare_units(&self) -> u64;

    /// Units that can be written before anything has to be cleaned.
    fn erased_units(&self) -> u64;

    /// Whether `erased`, what was erased at the start, has been used up and cleaning goes on.
    fn is_cleaning(&self, erased: u64) -> bool;

    /// The laws that hold at any instant.
    ///
    /// # Panics
    /// If one is broken.
    fn assert_conserved(&self);

    /// Every law, counted anew.
    ///
    /// # Panics
    /// If one is broken.
    fn assert_consistent(&self);
}

impl BlockDevice for Drive {
    fn drive(&self) -> &Drive {
        self
    }

    fn submit(&mut self, request: Request, now: SimTime) -> Result<(), SubmitError> {
        Drive::submit(self, request, now)
    }

    fn prefetch(&self, offset: u64) {
        Drive::prefetch(self, offset);
    }

    fn step(&mut self, out: &mut Vec<Completion>) {
        Drive::step(self, out);
    }

    fn next_completion(&mut self, out: &mut Vec<Completion>) {
        let completed = Drive::next_completion(self, out);
        assert!(completed, "an event that completes a request");
    }

    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        Drive::advance(self, until, out);
    }

    fn can_accept(&self) -> bool {
        Drive::can_accept(self, 0)
    }

    fn in_flight(&self) -> u32 {
        Drive::in_flight(self)
    }

    fn host_counts(&self) -> &HostCounts {
        Drive::host_counts(self)
    }

    fn log_counts(&self) -> Option<&LogCounts> {
        None
    }

    fn read_only(&self) -> Option<ReadOnly> {
        Drive::read_only(self)
    }

    fn spare_units(&self) -> u64 {
        let device = self.device();
        device.usable_units().saturating_sub(u64::from(device.logical_units()))
    }

    fn erased_units(&self) -> u64 {
        let geometry = self.engine().nand().geometry();
        let free = |die_group| u64::from(self.engine().ftl().free_blocks(DieGroupId(die_group)));
        let blocks: u64 = (0..geometry.die_groups()).map(free).sum();
        blocks * u64::from(geometry.data_units_per_block())
    }

    fn is_cleaning(&self, erased: u64) -> bool {
        let counts = self.flash_counts();
        let geometry = self.engine().nand().geometry();
        // Erases are counted in blocks of one plane.
        let planes = u64::from(geometry.dies()) * u64::from(geometry.planes_ganged);
        counts.units.total() >= erased && counts.erases.total() >= planes
    }

    fn assert_conserved(&self) {
        Drive::assert_conserved(self);
    }

    fn assert_consistent(&self) {
        Drive::assert_consistent(self);
    }
}
