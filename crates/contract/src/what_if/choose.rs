//! Restricts a plan to some of its changes.

use super::change::Change;
use super::plan::{FigureSource, Plan, WhatIf};

impl Plan {
    /// Removes the changes for which `keep` returns false, and the simulations that only
    /// those changes need.
    #[must_use]
    pub fn only(mut self, keep: impl Fn(&Change) -> bool) -> Self {
        self.what_ifs.retain(|what_if| keep(&what_if.change));
        self.skipped.retain(|skipped| keep(&skipped.change));
        // The new index of each job; `None` for a job that is removed.
        let mut new_index = vec![None; self.jobs.len()];
        for what_if in &self.what_ifs {
            let WhatIf { before, after, .. } = what_if;
            for source in [before.wear, before.speed, after.wear, after.speed] {
                if let FigureSource::Job(index) = source {
                    new_index[index] = Some(0);
                }
            }
        }
        let mut kept = Vec::new();
        for (index, job) in new_index.iter_mut().zip(std::mem::take(&mut self.jobs)) {
            if index.is_some() {
                *index = Some(kept.len());
                kept.push(job);
            }
        }
        self.jobs = kept;
        let renumber = |source: &mut FigureSource| {
            if let FigureSource::Job(index) = source {
                *index = new_index[*index].expect("the job of a kept change is kept");
            }
        };
        for WhatIf { before, after, .. } in &mut self.what_ifs {
            [&mut before.wear, &mut before.speed, &mut after.wear, &mut after.speed]
                .into_iter()
                .for_each(renumber);
        }
        self.jobs.iter_mut().filter_map(|job| job.cleaning_of.as_mut()).for_each(renumber);
        self
    }
}
