//! The disk below a device is full: every later call reports it, flushed data is there when the
//! device is opened again, and with free space it works again.

mod disk;
mod levels;
mod made;
mod pages;
