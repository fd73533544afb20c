//! A loss of power while jobs run: what the drive had acknowledged, and what is left of it.

use prism_report::{Block, Document, Figure, Section, Unit};
use prism_ssd::Drive;
use prism_ssd::scale::Scaled;
use prism_workload::fio::{self, AfterCut, Section as JobSection};
use serde_json::{Value, json};

use crate::drive::charts::Unwatched;
use crate::drive::document::drive as drive_line;
use crate::drive::json::device;
use crate::env::{Env, Step};
use crate::error::PresentError;
use crate::initial_state::State;
use crate::simulation::Plan;

/// A finished simulation of a loss of power.
pub struct PowerCut {
    /// The drive, and how it was scaled.
    pub scaled: Scaled,
    /// Its initial state.
    pub state: State,
    /// Seed of everything random.
    pub seed: u64,
    /// Requests after which power was to fail.
    pub wanted: u64,
    /// What is left.
    pub after: AfterCut,
}

impl Plan {
    /// Runs the jobs until `requests` of their I/Os have completed, cuts the power, recovers the
    /// drive, and compares its content with what it had acknowledged.
    ///
    /// # Errors
    /// [`PresentError`] if the drive or the jobs cannot be made, or the run was interrupted.
    pub fn cut_power(
        &self,
        requests: u64,
        sections: &[JobSection],
        env: &impl Env,
    ) -> Result<PowerCut, PresentError> {
        let (scaled, jobs) = self.check(sections, env)?;
        if scaled.device.is_zoned() {
            let what = "--cut-power-after is for drives without zones; choose another --device";
            return Err(PresentError::refused(what));
        }
        let mut drive = self.drive.prepared_with_content(&scaled.device, self.seed, env)?;
        let (label, things) = ("simulating:", "requests");
        env.show(Step::Begin { label, things, total: Some(requests) });
        let reached = |at: prism_workload::Progress| {
            env.show(Step::Reached(at.submitted));
            true
        };
        let mut observer = Unwatched { reached: &reached };
        let acknowledged = fio::run_until_cut(&mut drive, &jobs, &mut observer, requests);
        env.show(Step::End);
        let refused = |error: &dyn std::fmt::Display| PresentError::Refused(error.to_string());
        let acknowledged = acknowledged.map_err(|error| refused(&error))?;
        let recovered = Drive::recover(drive.power_cut(self.seed), self.seed);
        let recovered = recovered.map_err(|error| refused(&error))?;
        recovered.assert_consistent();
        let after = acknowledged.compare(&recovered).map_err(|error| refused(&error))?;
        let state = self.drive.state.clone();
        Ok(PowerCut { scaled, state, seed: self.seed, wanted: requests, after })
    }
}

impl PowerCut {
    /// Whether the drive has lost something that it had promised to keep, which would be a defect
    /// of its FTL.
    #[must_use]
    pub fn breaks_a_promise(&self) -> bool {
        !self.after.broken.is_empty()
    }

    /// The report.
    #[must_use]
    pub fn document(&self) -> Document {
        let after = &self.after;
        let unit = self.scaled.device.ftl.mapping_unit.0;
        let completed = Unit::Count.format(after.completed as f64);
        let mut lead = format!(
            "Power failed {} after the start, when {completed} requests were complete; the drive \
             was {} at the start. Counts are mapping units of {}.",
            Unit::Nanos.format(after.at.0 as f64),
            self.state.name,
            Unit::Bytes.format(unit as f64)
        );
        if after.completed < self.wanted {
            lead.push_str(" All jobs had ended.");
        }
        let count = |label, count, note: &str| Figure::new(label, Unit::Count, count).note(note);
        let figures = vec![
            count("Acknowledged", after.units, "written or trimmed, and the request complete"),
            count("Promised", after.promised, "of these: flushed, FUA, or a protected cache"),
            count("Kept", after.kept, "with their newest content after recovery"),
            count("Lost", after.lost, "with older content, which no promise forbids"),
            Figure::new("Data lost", Unit::Bytes, after.lost * unit),
            Figure::new("Lost for", Unit::Nanos, after.lost_for.map(|time| time.0))
                .note("longest time between an acknowledgement that was lost and the cut"),
            count("Requests in flight", after.in_flight, "whose content may be old or new"),
            count("Broken promises", after.broken.len() as u64, "0 unless the FTL has a defect"),
        ];
        let advice = if after.lost == 0 {
            "Nothing acknowledged was lost."
        } else {
            "Acknowledged data was lost from the volatile cache of the drive. A flush (fsync=N), \
             FUA (sync=1) or power-loss protection keeps it."
        };
        let section = Section::new("After the loss of power", lead)
            .with(figures)
            .with(Block::Text(advice.into()));
        let title = format!("Loss of power after {completed} requests");
        Document::new(title, drive_line(&self.scaled.device)).with(section)
    }

    /// The result as JSON. The keys are stable.
    #[must_use]
    pub fn json(&self) -> Value {
        let after = &self.after;
        json!({
            "device": device(&self.scaled),
            "initial_state": self.state.name,
            "power_cut": {
                "at_ns": after.at.0,
                "requests_completed": after.completed,
                "requests_in_flight": after.in_flight,
                "unit_bytes": self.scaled.device.ftl.mapping_unit.0,
                "units_acknowledged": after.units,
                "units_promised": after.promised,
                "units_kept": after.kept,
                "units_lost": after.lost,
                "lost_for_ns": after.lost_for.map(|time| time.0),
                "promises_broken": after.broken.len(),
            },
            "seed": self.seed,
        })
    }
}
