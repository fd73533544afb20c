//! The commands, one file each.

pub mod bench;
pub mod bench_contract;
pub mod bench_device;
pub mod bench_flash;
pub mod cache_serve;
pub mod cache_simulate;
pub mod calc_cleaning;
pub mod calc_lifetime;
pub mod capture;
pub mod capture_mark;
pub mod capture_stack;
pub mod completions;
pub mod device;
pub mod device_create;
pub mod device_export;
pub mod device_import;
pub mod device_info;
pub mod report;
pub mod reproduce;
pub mod sim;
pub mod stack_worker;
pub mod trace_convert;
pub mod trace_generate;
pub mod trace_info;
pub mod trace_layout;
pub mod validate;
