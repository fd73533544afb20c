//! One file a command.

pub mod trace_convert;
pub mod trace_generate;
pub mod trace_info;
