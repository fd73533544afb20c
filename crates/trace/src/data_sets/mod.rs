//! Parsers of published data sets. Others are read through maps.
//!
//! What each looks like, its units and its doubts: `docs/spec/trace-formats.md`.

pub(crate) mod baleen;
mod cache_request;
mod calendar;
mod columns;
pub(crate) mod disksim;
pub(crate) mod fiu;
pub(crate) mod iotracer;
mod layout;
pub(crate) mod lcs;
pub(crate) mod midas;
pub(crate) mod oracle;
pub(crate) mod records;
pub(crate) mod rows;
pub(crate) mod thesios;
pub(crate) mod vscsi;
