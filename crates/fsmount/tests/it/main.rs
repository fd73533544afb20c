//! The mount, by the kernel.

mod mounted;
mod nearly_full;
mod options;
