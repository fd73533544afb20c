//! Judges a block trace by the unwritten contract of SSDs.
//!
//! The crate computes which rules of the contract the trace keeps on a drive, which
//! processes, files and address ranges break the others, what that costs, and what a fix
//! would gain. The rules are measured on the trace alone ([`rules`]). Costs and gains are
//! simulated: the trace is replayed with one thing changed ([`what_if`]). This crate prints
//! nothing, starts no threads, and knows no application by name. Design:
//! docs/design/contract.md.
//!
//! Sources: He et al., "The unwritten contract of solid state drives", EuroSys'17 (rules);
//! Rajimwale et al., "Block management in solid-state devices", ATC'09 (terms); "Designing
//! SSD-friendly applications", 2016 (design rules).

pub mod advice;
pub mod blocks;
pub mod rules;
pub mod terms;
pub mod what_if;
