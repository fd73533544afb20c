//! Facts about a trace apart from its records: stored with them in Parquet, printed by every
//! report.

use serde::{Deserialize, Serialize};

use crate::skips::Skip;
use crate::{Capabilities, PhaseSpan, ReadReport};

/// What the reader of a trace found out, for every source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFacts {
    /// The format in which the trace was recorded, also after a conversion to Parquet.
    pub format: String,
    /// Lines (or binary records) of the recording.
    pub lines: u64,
    /// What the source can contain.
    pub capabilities: Capabilities,
    /// Lines that did not become a request.
    pub skipped: Vec<SkipRow>,
    /// Phases, in order.
    pub phases: Vec<PhaseRow>,
    /// Requests whose completion was not found although the source has completions.
    pub unpaired: u64,
    /// Lines that came more than a second after later ones and were sorted in.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reordered: u64,
    /// The event that was counted as the request.
    pub counted_from: CountedFrom,
    /// Where these are NVMe commands, the size of a logical block that was assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvme_block_bytes: Option<u64>,
}

/// Lines that did not become a request, for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkipRow {
    /// Why.
    pub reason: String,
    /// How often.
    pub count: u64,
    /// Line of the first one, from 1.
    pub first_line: u64,
}

/// A phase of the experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseRow {
    /// Its name.
    pub name: String,
    /// Where it starts (ns since trace start).
    pub start_ns: i64,
    /// Where it ends (ns since trace start).
    pub end_ns: i64,
}

/// Which event of the source was counted as the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountedFrom {
    /// The issue to the device.
    Issue,
    /// The entry into the block layer, because there was no issue event.
    Queue,
    /// The command of the NVMe driver, because there was no block event.
    Nvme,
}

/// Files of earlier versions lack counts that are zero, and a digest covers the text.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl TraceFacts {
    /// The facts of a trace read as `format`.
    #[must_use]
    pub fn new(format: &str, report: &ReadReport, counted_from: CountedFrom) -> Self {
        Self {
            format: format.to_owned(),
            lines: report.lines,
            capabilities: report.capabilities,
            skipped: report.skips.rows().iter().map(SkipRow::from).collect(),
            phases: report.phases.iter().map(PhaseRow::from).collect(),
            unpaired: report.unpaired,
            reordered: report.reordered,
            counted_from,
            nvme_block_bytes: None,
        }
    }

    /// The length of every phase called `name` together, in nanoseconds; `None` if there
    /// is no such phase.
    #[must_use]
    pub fn phase_ns(&self, name: &str) -> Option<u64> {
        let mut spans = self.phases.iter().filter(|phase| phase.name == name).peekable();
        spans.peek()?;
        Some(spans.map(|phase| phase.end_ns.saturating_sub(phase.start_ns).max(0) as u64).sum())
    }

    /// The names of the phases, each once, in order.
    #[must_use]
    pub fn phase_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for phase in &self.phases {
            if !names.contains(&phase.name) {
                names.push(phase.name.clone());
            }
        }
        names
    }
}

impl From<&Skip> for SkipRow {
    fn from(skip: &Skip) -> Self {
        Self { reason: skip.reason.0.to_owned(), count: skip.count, first_line: skip.first_line }
    }
}

impl From<&PhaseSpan> for PhaseRow {
    fn from(span: &PhaseSpan) -> Self {
        Self { name: span.name.clone(), start_ns: span.start_ns, end_ns: span.end_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_of_one_name_are_one() {
        let phase = |name: &str, start_ns, end_ns| PhaseRow { name: name.into(), start_ns, end_ns };
        let facts = TraceFacts {
            format: "ftrace".into(),
            lines: 0,
            capabilities: crate::fio::CAPABILITIES,
            skipped: vec![],
            phases: vec![phase("a", -5, 5), phase("b", 5, 6), phase("a", 6, 10)],
            unpaired: 0,
            reordered: 0,
            counted_from: CountedFrom::Issue,
            nvme_block_bytes: None,
        };
        assert_eq!(facts.phase_ns("a"), Some(14));
        assert_eq!(facts.phase_ns("c"), None);
        assert_eq!(facts.phase_names(), ["a", "b"]);
    }
}
