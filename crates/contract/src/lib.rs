//! The unwritten contract of SSDs: which of its rules a trace keeps on a drive, who breaks
//! them, what that costs, and what a fix would bring.
//!
//! The rules are measured over the trace alone ([`rules`]); what they cost is simulated, by
//! replaying the trace with one thing changed ([`what_if`]). Nothing here prints, runs
//! threads, or knows applications by name. Design: docs/design/contract.md.
//!
//! Sources: He et al., "The unwritten contract of solid state drives", EuroSys'17 (rules);
//! Rajimwale et al., "Block management in solid-state devices", ATC'09 (terms); "Designing
//! SSD-friendly applications", 2016 (design rules).

pub mod advice;
pub mod blocks;
pub mod rules;
pub mod terms;
pub mod what_if;
