//! A plan cut down to some of its changes.

use super::change::Change;
use super::plan::{Of, Plan};

impl Plan {
    /// The plan without the changes that `keep` refuses, and without the simulations that
    /// only these need.
    #[must_use]
    pub fn only(mut self, keep: impl Fn(&Change) -> bool) -> Self {
        self.what_ifs.retain(|what_if| keep(&what_if.change));
        self.skipped.retain(|skipped| keep(&skipped.change));
        let mut places = vec![None; self.jobs.len()];
        for what_if in &self.what_ifs {
            for of in [what_if.before, what_if.after] {
                if let Of::Job(index) = of {
                    places[index] = Some(0);
                }
            }
        }
        let mut kept = Vec::new();
        for (place, job) in places.iter_mut().zip(std::mem::take(&mut self.jobs)) {
            if place.is_some() {
                *place = Some(kept.len());
                kept.push(job);
            }
        }
        self.jobs = kept;
        for what_if in &mut self.what_ifs {
            for of in [&mut what_if.before, &mut what_if.after] {
                if let Of::Job(index) = of {
                    *index = places[*index].expect("what is compared is kept");
                }
            }
        }
        self
    }
}
