//! The way of most I/Os: one completes, and its job issues the next one in its place.
//!
//! At such an exchange nothing changes but the drive and the progress of the job: as many I/Os are
//! in flight as before, so that their integral needs no update, and the statistics may follow
//! later, for many I/Os at once. Everything else is left to [`Runner::take_done`].

use prism_ssd::{BlockDevice, Completion, HostOp, Status};

use super::{AtReadOnly, CHECK_STEP, RunError, Runner, Tag};
use crate::fio::stats::{COUNTED_AT_ONCE, Completed, Dir};

impl<D: BlockDevice + ?Sized> Runner<'_, D> {
    /// Lets the drive work as long as each event completes one I/O whose job certainly issues
    /// another one. The completions of the first other event are in [`Runner::done`] then.
    pub(super) fn exchange(&mut self) -> Result<(), RunError> {
        let suits = self.submits_at_once && self.before.is_some() && self.waiting == 0;
        if !suits || self.at_read_only == AtReadOnly::Stop || !self.done.is_empty() {
            return Ok(());
        }
        let end = self.wakes.next_at();
        loop {
            let until_check = CHECK_STEP - self.completed % CHECK_STEP;
            let at_once = COUNTED_AT_ONCE.min(until_check as usize);
            while self.exchanged.len() < at_once {
                let place = self.exchanged.len();
                let completes = self.device.next_completion_before(end, &mut self.exchanged);
                if !completes || !self.replace(place) {
                    self.done.extend(self.exchanged.drain(place..));
                    return self.count_exchanged();
                }
            }
            self.count_exchanged()?;
        }
    }

    /// Issues the I/O in the place of the one at `place`, the last that has completed. Returns
    /// false, and changes nothing, if it is not the only one of its event, or if the next I/O is
    /// not certain.
    #[inline(always)]
    fn replace(&mut self, place: usize) -> bool {
        let [completion] = &self.exchanged[place..] else { return false };
        let tag = Tag::of(completion);
        let is_plain =
            tag.has_depth && completion.status == Status::Done && completion.op != HostOp::Flush;
        let worker = &mut self.workers[tag.job as usize];
        if !is_plain || !worker.is_full() {
            return false;
        }
        if worker.certain == 0 {
            worker.draw_ahead(|offset| self.device.prefetch(offset));
        }
        let Some(io) = worker.replace_certain(self.device.now()) else { return false };
        let depth = worker.in_flight;
        self.submit(Tag { job: tag.job, slot: depth, has_depth: true }, io, 0);
        true
    }

    /// Adds the I/Os that were exchanged to the statistics of their jobs.
    #[inline(never)]
    fn count_exchanged(&mut self) -> Result<(), RunError> {
        let (mut buffer_hits, mut unmapped) = (0, 0);
        let mut rest = &self.exchanged[..];
        while let [first, ..] = rest {
            // Equal tags: of one job, issued at one depth.
            let (tag, op) = (first.tag, first.op);
            let alike = |other: &&Completion| other.tag == tag && other.op == op;
            let (run, others) = rest.split_at(rest.iter().take_while(alike).count());
            rest = others;
            let tag = Tag::of(first);
            let stats = &mut self.rows[self.row_of[tag.job as usize]].stats;
            stats.count_recent();
            let dir = Dir::of(op).expect("only data is exchanged");
            let ios = run.iter().map(|completion| {
                let (len, at) = (completion.len, completion.completed);
                Completed { len, at, latency: at.since(completion.submitted) }
            });
            stats.count(dir, tag.slot, ios);
            for Completion { cost, .. } in run {
                buffer_hits += u64::from(cost.buffer_hits);
                unmapped += u64::from(cost.unmapped);
            }
        }
        let measured = &mut self.stages[self.stage].measured;
        measured.buffer_hits += buffer_hits;
        measured.unmapped += unmapped;
        // In the place of each another one was issued.
        self.issued += self.exchanged.len() as u64;
        self.completed += self.exchanged.len() as u64;
        let checks = !self.exchanged.is_empty() && self.completed.is_multiple_of(CHECK_STEP);
        self.exchanged.clear();
        if checks {
            self.device.assert_conserved();
            self.report(self.completed)?;
        }
        Ok(())
    }
}
