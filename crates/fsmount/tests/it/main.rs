//! The mount, by the kernel.

mod mounted;
