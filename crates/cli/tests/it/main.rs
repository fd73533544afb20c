//! The integration tests of this crate as one program: a module for each subject.

mod ageing;
mod bad_input;
mod calc;
mod capture;
mod common;
mod completions;
mod contract;
mod device;
mod import;
mod layout;
mod readme;
mod recomputed;
mod report;
mod report_bad_input;
mod report_drives;
mod report_honest;
mod report_hybrid;
mod report_outputs;
mod report_samples;
mod reproduce;
mod sim;
mod stack;
mod states;
mod trace;
mod trace_formats;
mod zns;
