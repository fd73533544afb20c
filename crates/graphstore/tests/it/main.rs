//! Stores of graphs in files.

mod resume;
mod temporary;
