//! A flash device in a file that outlives the process.
//!
//! [`FlashFile`] is a [`prism_flash::Medium`] over a sparse file: synced data survives the end of
//! the process and a power failure, flipped bytes are detected, and one process at a time has it
//! open. It is a crate of its own, so that a program which embeds the library gets no other system
//! dependencies.
//!
//! * `layout` has the positions in the file, `format` the encodings;
//! * `engine` moves bytes: `uring` by io_uring and direct I/O from and to its `buffers`, or
//!   portably, or in a `simulated` file that loses power;
//! * `device` is the medium; `commit` makes its changes durable with entries of the `journal`;
//! * `block_device` is what differs if the file is a block device;
//! * `create` makes it, `open` and `lock` open it, `recover` replays its journal, `check` reads it
//!   all;
//! * `clock` is for devices whose operations also take real time.
//!
//! Format: docs/spec/flash-file.md. Design: docs/design/file-device.md.
//!
//! ```
//! use prism_flash::{Allocation, Device, DeviceGeometry, Options, raw::{Address, Raw}};
//! use prism_flashfile::FlashFile;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("flash");
//! let geometry = DeviceGeometry {
//!     channels: 2,
//!     luns_per_channel: 2,
//!     blocks_per_lun: 64,
//!     pages_per_block: 16,
//!     page_size: 4096,
//!     oob_size: 64,
//!     max_open_blocks: None,
//! };
//! let file = FlashFile::create(&path, geometry)?;
//! let device = Device::format(file, Options::default())?;
//! let raw = Raw::open(device.allocate("a", Allocation::new(prism_base::Bytes(4 << 20), 0))?)?;
//! let at = Address { channel: 1, lun: 0, block: 3, page: 0 };
//! raw.write_page(at, &[7; 4096])?;
//! raw.sync()?;
//! drop((raw, device));
//!
//! let device = Device::open(FlashFile::open(&path)?, Options::default())?;
//! let mut page = [0; 4096];
//! Raw::open(device.attach("a")?)?.read_page(at, &mut page)?;
//! assert_eq!(page, [7; 4096]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod block_device;
mod buffers;
mod check;
mod clock;
mod commit;
mod create;
mod device;
mod engine;
mod error;
mod format;
mod group;
mod headers;
mod journal;
mod layout;
mod lock;
mod open;
mod recover;
mod simulated;
mod state;
mod uring;
mod workers;

pub use block_device::block_device_len;
pub use check::{CheckReport, file_len};
pub use clock::{REAL, RealClock};
pub use device::FlashFile;
pub use error::{FlashFileError, erase_command};
pub use format::VERSION;
pub use lock::{Lock, lock_soon};
pub use open::{Access, EngineChoice, Settings};
pub use simulated::SimulatedFile;
