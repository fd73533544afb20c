//! The disk below a device has no room: that is told, by every call from then on, what was
//! flushed is there when the device is opened again, and with room it goes on.

mod disk;
mod levels;
mod made;
mod pages;
