//! Calls on devices in files, and on files that are truncated, overwritten, removed, folders,
//! texts, or invalid names.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};

use prism_capi::*;
use tempfile::TempDir;

use crate::ffi_boundary::world::{Kind, Op, World, allocation, zeroed};
use prism_capi::prism_status::{PRISM_EEXISTS, PRISM_EINUSE, PRISM_OK};

const PAGE: usize = 512;

/// A folder with names of all kinds.
pub struct Files {
    folder: TempDir,
    /// Names in the folder that are in use by a device, by the device's handle.
    held: BTreeMap<usize, PathBuf>,
    pub world: World,
}

pub const CALLS: u8 = 9;

/// A folder in memory where there is one: nothing here depends on a disk, and the syncs of many
/// small devices would wait for it.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a folder")
}

impl Files {
    pub fn new() -> Self {
        let folder = folder();
        fs::create_dir(folder.path().join("folder")).expect("a folder");
        fs::write(folder.path().join("text"), "no device").expect("a file");
        Self { folder, held: BTreeMap::new(), world: World::new() }
    }

    fn path(&self, op: &Op) -> PathBuf {
        let names = ["one", "two", "one", "two", "one", "folder", "text", "no/such", "é"];
        self.folder.path().join(names[(op.a % names.len() as u64) as usize])
    }

    fn is_held(&self, path: &Path) -> bool {
        self.held.values().any(|held| held == path)
    }

    /// Makes a call, or changes a file. Returns the result, and whether the handle was valid;
    /// `None` for a change.
    pub fn step(&mut self, op: &Op) -> Option<(c_int, bool)> {
        let path = self.path(op);
        match op.call % CALLS {
            0 | 1 => Some((self.make(op, &path), true)),
            2 | 3 => Some((self.open(op, &path), true)),
            4 => Some(self.in_real_time(op)),
            5 => Some(self.close(op)),
            6 => Some(self.work(op)),
            7 => {
                flip(&path, op.b);
                None
            }
            _ => {
                self.hurt(op, &path);
                None
            }
        }
    }

    fn make(&mut self, op: &Op, path: &Path) -> c_int {
        let (size, oob_size) = (size_of::<prism_geometry>(), 0);
        let mut geometry = prism_geometry {
            size,
            channels: 1,
            luns_per_channel: 2,
            blocks_per_lun: 12,
            pages_per_block: 8,
            page_size: PAGE as u32,
            oob_size,
            ..zeroed()
        };
        match op.odd % 16 {
            0 => geometry.blocks_per_lun = 4,
            1 => geometry.page_size = op.c as u32,
            2 => geometry.channels = op.c as u32,
            _ => {}
        }
        let (was_there, before) = (path.exists(), fs::read(path).ok());
        let was_held = self.is_held(path);
        let mut device = null_mut();
        let result = self.with_path(op, path, |path, options| {
            // SAFETY: the structures have the size in their first field.
            unsafe {
                if op.c.is_multiple_of(2) {
                    return prism_device_create(path, &geometry, options, &mut device);
                }
                let settings = prism_file_settings {
                    read_only: u32::from(op.odd % 16 == 3),
                    ..file_settings(op)
                };
                prism_device_create_with(path, &geometry, &settings, options, &mut device)
            }
        });
        if result == PRISM_OK as i32 {
            assert!(!was_there && !was_held, "{}", path.display());
            self.opened(device, path);
        } else {
            assert!(device.is_null());
            assert!(path.exists() == was_there, "{}: made or lost", path.display());
            assert!(fs::read(path).ok() == before, "{}: changed", path.display());
            let exists = result == PRISM_EEXISTS as i32;
            assert!(was_there || !exists, "{}: it exists not", path.display());
        }
        result
    }

    fn open(&mut self, op: &Op, path: &Path) -> c_int {
        let was_held = self.is_held(path);
        let mut device = null_mut();
        let result = self.with_path(op, path, |path, options| {
            // SAFETY: the structures have the size in their first field.
            unsafe {
                if op.c.is_multiple_of(2) {
                    return prism_device_open(path, options, &mut device);
                }
                prism_device_open_with(path, &file_settings(op), options, &mut device)
            }
        });
        if result == PRISM_OK as i32 {
            assert!(!was_held, "{}: open twice", path.display());
            self.opened(device, path);
        } else {
            assert!(device.is_null());
            assert!(was_held || result != PRISM_EINUSE as i32, "{}", path.display());
        }
        result
    }

    /// Calls with the path as a C string, now and then an invalid one; and with short times, so
    /// that real time does not take long.
    fn with_path(
        &self,
        op: &Op,
        path: &Path,
        call: impl FnOnce(*const c_char, *const prism_options) -> c_int,
    ) -> c_int {
        let timing = prism_timing {
            size: size_of::<prism_timing>(),
            t_read_ns: [1000; PRISM_PAGE_TYPES_MAX],
            t_program_ns: [2000; PRISM_PAGE_TYPES_MAX],
            page_types: 1,
            t_erase_ns: 3000,
            t_command_ns: 0,
            bus_bytes_per_second: 1 << 30,
        };
        let size = size_of::<prism_options>();
        let options = prism_options { size, timing: &raw const timing, wear: null() };
        let options = if op.b.is_multiple_of(3) { null() } else { &raw const options };
        let good = CString::new(path.to_str().expect("UTF-8")).expect("no zeros");
        match op.odd % 32 {
            20 => call(null(), options),
            21 => call(c"".as_ptr(), options),
            22 => call(c"\xff\xfe".as_ptr(), options),
            23 => call(CString::new(vec![b'x'; 5000]).expect("no zeros").as_ptr(), options),
            _ => call(good.as_ptr(), options),
        }
    }

    fn opened(&mut self, device: *mut prism_device, path: &Path) {
        self.world.opened(Kind::Device, device);
        self.held.insert(device.addr(), path.to_owned());
    }

    fn in_real_time(&mut self, op: &Op) -> (c_int, bool) {
        let (device, good) = self.world.pick::<prism_device>(Kind::Device, op);
        (prism_device_in_real_time(device), good)
    }

    fn close(&mut self, op: &Op) -> (c_int, bool) {
        let (device, good) = self.world.pick::<prism_device>(Kind::Device, op);
        let result = prism_device_close(device);
        if good {
            // It is closed even if its file could not be synced.
            self.world.closed(Kind::Device, device, 0);
            self.held.remove(&device.addr());
        }
        (result, good)
    }

    /// A share is made or found, and a page written to it and read.
    fn work(&mut self, op: &Op) -> (c_int, bool) {
        let (device, good) = self.world.pick::<prism_device>(Kind::Device, op);
        let (mut share, mut raw) = (null_mut(), null_mut());
        let wanted = allocation(1, 0);
        let (data, mut found) = ([op.b as u8; PAGE], [0u8; PAGE]);
        // SAFETY: structures and buffers have the sizes passed; handles that were not opened are
        // null, which every call rejects.
        let result = unsafe {
            let mut result = prism_device_attach(device, c"it".as_ptr(), &mut share);
            if result < 0 {
                result = prism_device_allocate(device, c"it".as_ptr(), &wanted, &mut share);
            }
            if result == 0 {
                result = prism_raw_open(share, &mut raw);
            }
            let at = prism_address { channel: 0, lun: 0, block: (op.c % 4) as u32, page: 0 };
            if result == 0 {
                result = prism_raw_erase_block(raw, at);
            }
            if result == 0 {
                result = prism_raw_write_page(raw, at, data.as_ptr().cast(), PAGE);
            }
            if result == 0 {
                result = prism_raw_sync(raw);
            }
            if result == 0 {
                result = prism_raw_read_page(raw, at, found.as_mut_ptr().cast(), PAGE);
                assert!(result != 0 || found == data, "what was written is read, or an error");
            }
            if result == 0 {
                result = read_queued(device, raw, at, &data);
            }
            if !raw.is_null() {
                assert_eq!(prism_raw_close(raw), 0);
            }
            if !share.is_null() {
                assert_eq!(prism_share_close(share), 0);
            }
            result
        };
        (result, good)
    }

    fn hurt(&mut self, op: &Op, path: &Path) {
        match op.b % 4 {
            // The file is removed; a device that has it open stays usable, and its name is free.
            0 if path.is_file() => {
                fs::remove_file(path).expect("it is there");
                self.held.retain(|_, held| held != path);
            }
            1 if path.is_file() => {
                let file = File::options().write(true).open(path).expect("it is there");
                let len = file.metadata().expect("it is open").len();
                file.set_len(op.c % (len + 1)).expect("it gets shorter");
            }
            2 if !path.exists() => {
                // The folder may not be there.
                let _ = fs::write(path, vec![op.c as u8; (op.c % 20_000) as usize]);
            }
            _ => {}
        }
    }
}

/// Settings that are mostly valid. Pages are smaller than io_uring needs.
fn file_settings(op: &Op) -> prism_file_settings {
    let number = |by: u64, most: u64| (op.c / by % most) as u32;
    prism_file_settings {
        size: size_of::<prism_file_settings>(),
        engine: number(2, 4),
        depth: number(8, 3),
        read_only: 0,
        preallocate: number(24, 3),
    }
}

/// Reads a page through a queue into a buffer.
///
/// # Safety
/// The handles are open.
unsafe fn read_queued(
    device: *mut prism_device,
    raw: *mut prism_raw,
    at: prism_address,
    expected: &[u8; PAGE],
) -> c_int {
    let (mut queue, mut buffer) = (null_mut(), null_mut());
    let mut done = prism_completion { size: size_of::<prism_completion>(), ..zeroed() };
    // SAFETY: every pointer is valid, and the buffer has a page.
    unsafe {
        assert_eq!(prism_raw_queue_open(raw, 2, &mut queue), 0);
        assert_eq!(prism_buffer_alloc(device, PAGE, &mut buffer), 0);
        assert_eq!(prism_raw_queue_read_buffer(queue, at, 0, buffer, PAGE, 7), 0);
        assert!(prism_buffer_data(buffer).is_null() && prism_buffer_free(buffer) < 0);
        assert_eq!(prism_raw_queue_wait(queue, PRISM_FOREVER), 1);
        assert_eq!(prism_raw_queue_poll(queue, &mut done, null_mut(), 0), 1);
        assert!(done.tag == 7 && done.buffer == buffer);
        if done.status == 0 {
            let data = std::slice::from_raw_parts(prism_buffer_data(buffer).cast::<u8>(), PAGE);
            assert!(data == expected, "what was written is read, or an error");
        }
        assert_eq!(prism_raw_queue_close(queue), 0);
        assert_eq!(prism_buffer_free(buffer), 0);
    }
    done.status
}

/// Changes a byte.
fn flip(path: &Path, at: u64) {
    if !path.is_file() {
        return;
    }
    let file = File::options().read(true).write(true).open(path).expect("it is there");
    let len = file.metadata().expect("it is open").len();
    // Mostly where the tables are.
    let most = if at.is_multiple_of(2) { len } else { len.min(20_000) };
    let mut byte = [0];
    if most > 0 && file.read_exact_at(&mut byte, at / 2 % most).is_ok() {
        file.write_all_at(&[byte[0] ^ 0x41], at / 2 % most).expect("there is room");
    }
}
