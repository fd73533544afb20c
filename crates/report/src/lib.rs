//! The parts of a report, and how they are rendered.
//!
//! A caller fills a [`Document`] with verdicts, figures, tables and charts, and a renderer turns
//! it into text: [`terminal`] for a screen, [`html`] for one self-contained file. [`json`] writes
//! tables and charts for programs, [`markdown`] writes tables into pages.
//! [`accumulate`] holds the counters that a simulation updates
//! while it runs: their memory is bounded, however long the run is.
//!
//! Nothing here knows what a flash page is, and nothing here reads or writes files.
//!
//! ```
//! use prism_report::{Block, Document, Figure, Section, Style, Unit, terminal};
//!
//! let mut section = Section::new("Wear", "The drive wears 1.8 times faster than it is written.");
//! section.push(Block::KeyFigures(vec![Figure::new("Write amplification", Unit::Ratio, 1.83)]));
//! let document = Document::new("Report", "vm-boot.trace").with(section);
//! let text = terminal::render(&document, 80, Style::PLAIN);
//! assert!(text.contains("Write amplification"));
//! ```

pub mod accumulate;
mod chart;
mod curves;
pub mod html;
pub mod json;
mod listing;
pub mod markdown;
mod model;
mod shades;
pub mod terminal;
mod ticks;
mod unit;
mod verdict;

pub use chart::{
    Axis, Band, BarLayout, Bars, Chart, Heatmap, Layer, Lines, Scale, Segment, Series, Stacked,
};
pub use curves::{Curve, CurveShape, Curves, Mark};
pub use listing::Listing;
pub use model::{Block, Column, Document, Figure, Section, Table, Value};
pub use terminal::Style;
pub use unit::Unit;
pub use verdict::{Grade, Verdict};
