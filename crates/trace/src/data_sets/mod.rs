//! Formats of published data sets, apart from those that have modules of their own.
//!
//! What each looks like, its units and its doubts: `docs/spec/trace-formats.md`.

pub(crate) mod baleen;
mod cache_request;
mod calendar;
mod columns;
pub(crate) mod disksim;
pub(crate) mod fiu;
pub(crate) mod iotracer;
pub(crate) mod k5cloud;
mod layout;
pub(crate) mod lcs;
pub(crate) mod midas;
pub(crate) mod oracle;
pub(crate) mod records;
pub(crate) mod rows;
pub(crate) mod spc;
pub(crate) mod systor17;
pub(crate) mod thesios;
pub(crate) mod vscsi;
