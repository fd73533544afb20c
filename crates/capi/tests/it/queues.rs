//! Queues and buffers of the C interface, on a device in memory, on one with virtual time, and on
//! files with each engine.

#![allow(unsafe_code, reason = "it calls as C does")]

use std::ffi::{CString, c_int};
use std::path::Path;
use std::ptr::{null, null_mut};

use prism_capi::prism_status::*;
use prism_capi::*;
use tempfile::TempDir;

use crate::ffi_boundary::alone;
use crate::ffi_boundary::world::{allocation, lun_bytes, message, range_config, zeroed};

const PAGE: usize = 4096;

fn geometry() -> prism_geometry {
    prism_geometry {
        size: size_of::<prism_geometry>(),
        channels: 2,
        luns_per_channel: 1,
        blocks_per_lun: 16,
        pages_per_block: 8,
        page_size: PAGE as u32,
        oob_size: 32,
        ..zeroed()
    }
}

fn timing() -> prism_timing {
    prism_timing {
        size: size_of::<prism_timing>(),
        t_read_ns: [60_000; PRISM_PAGE_TYPES_MAX],
        t_program_ns: [1_400_000; PRISM_PAGE_TYPES_MAX],
        page_types: 1,
        t_erase_ns: 5_000_000,
        ..zeroed()
    }
}

fn ok(result: c_int) -> c_int {
    assert!(result >= 0, "{result}: {}", message());
    result
}

fn refused(result: c_int, status: prism_status) {
    assert_eq!(result, status as c_int);
}

/// A device, and what has to live as long.
struct Setting {
    device: *mut prism_device,
    memory: *mut prism_memory,
    _folder: Option<TempDir>,
}

fn c_path(path: &Path) -> CString {
    CString::new(path.to_str().expect("UTF-8")).expect("no zeros")
}

/// One of each kind of device.
fn settings() -> Vec<Setting> {
    let mut all = Vec::new();
    let timing = timing();
    let timed =
        prism_options { size: size_of::<prism_options>(), timing: &raw const timing, ..zeroed() };
    // SAFETY: every pointer is valid, and structures have their size.
    unsafe {
        for options in [null(), &raw const timed] {
            let (mut memory, mut device) = (null_mut(), null_mut());
            ok(prism_memory_create(&geometry(), 0, &mut memory));
            ok(prism_device_format_memory(memory, options, &mut device));
            all.push(Setting { device, memory, _folder: None });
        }
        for engine in [prism_engine::PRISM_ENGINE_BEST, prism_engine::PRISM_ENGINE_PORTABLE] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = c_path(&folder.path().join("flash"));
            let size = size_of::<prism_file_settings>();
            let settings =
                prism_file_settings { size, engine: engine as u32, depth: 8, ..zeroed() };
            let mut device = null_mut();
            let path = path.as_ptr();
            ok(prism_device_create_with(path, &geometry(), &settings, null(), &mut device));
            all.push(Setting { device, memory: null_mut(), _folder: Some(folder) });
        }
    }
    all
}

impl Setting {
    fn share_of(&self, capacity: u64) -> *mut prism_share {
        let (mut share, wanted) = (null_mut(), allocation(capacity, 0));
        // SAFETY: every pointer is valid.
        unsafe { ok(prism_device_allocate(self.device, c"it".as_ptr(), &wanted, &mut share)) };
        share
    }

    /// A share of two LUNs, and the policy level in it with a range of eight pages.
    fn policy(&self) -> (*mut prism_share, *mut prism_policy) {
        let capacity = lun_bytes(self.device);
        assert!(capacity > 0, "{}", message());
        let (share, mut policy) = (self.share_of(2 * capacity), null_mut());
        // SAFETY: every pointer is valid.
        unsafe {
            ok(prism_policy_open(share, &mut policy));
            ok(prism_policy_configure(policy, 0, 8 * PAGE as u64, &range_config()));
        }
        (share, policy)
    }

    /// A share, and the raw level in it with a queue of this depth.
    fn raw_queue(&self, depth: u32) -> (*mut prism_share, *mut prism_raw, *mut prism_raw_queue) {
        let (share, mut raw, mut queue) = (self.share_of(1), null_mut(), null_mut());
        // SAFETY: every pointer is valid.
        unsafe {
            ok(prism_raw_open(share, &mut raw));
            ok(prism_raw_queue_open(raw, depth, &mut queue));
        }
        (share, raw, queue)
    }

    fn buffer(&self, length: usize) -> *mut prism_buffer {
        let mut buffer = null_mut();
        // SAFETY: the pointer is valid.
        unsafe { ok(prism_buffer_alloc(self.device, length, &mut buffer)) };
        buffer
    }

    fn close(self) {
        ok(prism_device_close(self.device));
        if !self.memory.is_null() {
            ok(prism_memory_close(self.memory));
        }
    }
}

fn completion() -> prism_completion {
    prism_completion { size: size_of::<prism_completion>(), ..zeroed() }
}

/// The bytes of a buffer that no command has.
fn bytes(buffer: *mut prism_buffer, length: usize) -> &'static mut [u8] {
    let data = prism_buffer_data(buffer).cast::<u8>();
    assert!(!data.is_null());
    // SAFETY: the callers pass its length, and use the bytes before it is freed.
    unsafe { std::slice::from_raw_parts_mut(data, length) }
}

#[test]
fn a_command_has_its_buffer_until_its_completion() {
    let _one = alone();
    for setting in settings() {
        let (share, raw, queue) = setting.raw_queue(2);
        let (one, two) = (setting.buffer(PAGE), setting.buffer(PAGE));
        let (at, mut done) = (zeroed::<prism_address>(), completion());
        bytes(one, PAGE).fill(7);
        let address = prism_buffer_data(one);
        // SAFETY: every pointer is valid.
        unsafe {
            let oob = c"owner";
            let oob = (oob.as_ptr().cast(), 5);
            ok(prism_raw_queue_write_buffer(queue, at, one, PAGE, oob.0, oob.1, 1));
            assert!(prism_buffer_data(one).is_null());
            refused(prism_buffer_free(one), PRISM_EBUSY);
            refused(prism_raw_queue_read_buffer(queue, at, 0, one, PAGE, 2), PRISM_EBUSY);
            refused(prism_raw_queue_read_buffer(queue, at, 0, two, PAGE + 1, 2), PRISM_ERANGE);
            let wild = prism_address { page: u32::MAX, ..at };
            refused(prism_raw_queue_read(queue, wild, PAGE, 2), PRISM_ERANGE);
            refused(prism_raw_queue_read_buffer(queue, wild, 0, two, PAGE, 2), PRISM_ERANGE);
            let mut part = [0_u8; 2];
            let past = prism_raw_read_at(raw, at, PAGE as u32 - 1, part.as_mut_ptr().cast(), 2);
            refused(past, PRISM_ERANGE);
            ok(prism_raw_queue_sync(queue, 3));
            refused(prism_raw_queue_read_buffer(queue, at, 0, two, PAGE, 4), PRISM_EFULL);
            assert!(!prism_buffer_data(two).is_null(), "a refused command takes no buffer");
            let mut seen = 0;
            while ok(prism_raw_queue_complete(queue, &mut done, null_mut(), 0)) == 1 {
                assert_eq!((done.status, done.length), (0, 0));
                assert_eq!(done.buffer, if done.tag == 1 { one } else { null_mut() });
                seen += done.tag;
            }
            assert_eq!((seen, prism_buffer_data(one)), (4, address));

            // A part of the page, into the start of the other buffer.
            ok(prism_raw_queue_read_buffer(queue, at, 96, two, 1000, 5));
            assert_eq!(prism_raw_queue_wait(queue, PRISM_FOREVER), 1);
            assert_eq!(ok(prism_raw_queue_poll(queue, &mut done, null_mut(), 0)), 1);
            assert_eq!((done.status, done.length, done.buffer), (0, 1000, two));
            assert!(bytes(two, PAGE)[..1000] == [7; 1000]);
            assert_eq!(ok(prism_raw_queue_poll(queue, &mut done, null_mut(), 0)), 0);
            assert_eq!(prism_raw_queue_wait(queue, 1), 0);
            let mut found = [0u8; 5];
            ok(prism_raw_read_page_oob(raw, at, null_mut(), 0, found.as_mut_ptr().cast(), 5));
            assert_eq!(&found, b"owner");
        }
        for result in [
            prism_buffer_free(one),
            prism_buffer_free(two),
            prism_raw_queue_close(queue),
            prism_raw_close(raw),
            prism_share_close(share),
        ] {
            ok(result);
        }
        refused(prism_buffer_free(one), PRISM_EHANDLE);
        setting.close();
    }
}

#[test]
fn a_closed_queue_gives_back_its_buffers() {
    let _one = alone();
    for setting in settings() {
        let (share, mut function, mut queue) = (setting.share_of(1), null_mut(), null_mut());
        let (one, two) = (setting.buffer(PAGE), setting.buffer(2 * PAGE));
        let size = size_of::<prism_allocated>();
        let mut new = prism_allocated { size, ..zeroed() };
        bytes(two, 2 * PAGE).fill(9);
        // SAFETY: every pointer is valid.
        unsafe {
            ok(prism_function_open(share, &mut function));
            let mut other = null_mut();
            refused(prism_function_open(share, &mut other), PRISM_EINUSE);
            ok(prism_function_queue_open(function, 4, &mut queue));
            ok(prism_function_address_mapper(function, PRISM_CHANNEL_ANY, 0, &mut new));
            let oob = c"owner".as_ptr().cast();
            refused(
                prism_function_queue_write_buffer(queue, new.at, two, 2 * PAGE, oob, 25, 1),
                PRISM_ERANGE,
            );
            ok(prism_function_queue_write_buffer(queue, new.at, two, 2 * PAGE, oob, 5, 1));
            ok(prism_function_queue_read_buffer(queue, new.at, one, PAGE, 2));
            assert!(prism_buffer_data(two).is_null());
            ok(prism_function_queue_close(queue));
            let mut page = [0u8; PAGE];
            let at = prism_address { page: 1, ..new.at };
            ok(prism_function_read(function, at, page.as_mut_ptr().cast(), PAGE));
            let mut found = [0u8; 5];
            ok(prism_function_read_oob(function, new.at, found.as_mut_ptr().cast(), 5));
            assert_eq!(&found, b"owner");
            assert!(page == [9; PAGE] && bytes(two, 2 * PAGE) == [9; 2 * PAGE]);
            assert!(!prism_buffer_data(one).is_null());
        }
        // The buffers outlive the device.
        ok(prism_function_close(function));
        ok(prism_share_close(share));
        setting.close();
        bytes(one, PAGE).fill(1);
        ok(prism_buffer_free(one));
        ok(prism_buffer_free(two));
    }
}

#[test]
fn reads_of_the_policy_level_are_queued() {
    let _one = alone();
    for (place, setting) in settings().into_iter().enumerate() {
        let ((share, policy), mut queue) = (setting.policy(), null_mut());
        let (buffer, mut done) = (setting.buffer(3 * PAGE), completion());
        let data: Vec<u8> = (0..3 * PAGE).map(|at| (at / 100) as u8).collect();
        // SAFETY: every pointer is valid.
        unsafe {
            ok(prism_policy_write(policy, PAGE as u64, data.as_ptr().cast(), data.len()));
            ok(prism_policy_flush(policy));
            ok(prism_policy_queue_open(policy, 2, &mut queue));
            ok(prism_policy_close(policy));
            match place {
                0 | 1 => refused(prism_policy_queue_event_fd(queue), PRISM_EINVALID),
                _ => drop(ok(prism_policy_queue_event_fd(queue))),
            }
            ok(prism_policy_queue_read_buffer(queue, PAGE as u64, buffer, data.len(), 1));
            assert!(prism_buffer_data(buffer).is_null());
            ok(prism_policy_queue_read(queue, PAGE as u64 + 90, 20, 2));
            refused(prism_policy_queue_read(queue, 0, 1, 3), PRISM_EFULL);
            assert_eq!(prism_policy_queue_length(queue), 2);
            let mut small = [0u8; 20];
            let room = small.as_mut_ptr().cast();
            let mut seen = 0;
            while ok(prism_policy_queue_complete(queue, &mut done, room, 20)) == 1 {
                let (length, of) =
                    if done.tag == 1 { (data.len(), buffer) } else { (20, null_mut()) };
                assert_eq!((done.status, done.length, done.buffer), (0, length as u64, of));
                seen += done.tag;
            }
            assert_eq!((seen, &small[..]), (3, &data[90..110]));
            assert!(bytes(buffer, data.len()) == data);
            ok(prism_policy_queue_read(queue, 8 * PAGE as u64, 1, 4));
            assert_eq!(prism_policy_queue_wait(queue, PRISM_FOREVER), 1);
            assert_eq!(ok(prism_policy_queue_poll(queue, &mut done, null_mut(), 0)), 1);
            assert_eq!((done.tag, done.status), (4, PRISM_ERANGE as c_int));
            ok(prism_policy_queue_flush(queue, 5));
            ok(prism_policy_queue_flush(queue, 6));
            refused(prism_policy_queue_flush(queue, 7), PRISM_EFULL);
            let mut tags = Vec::new();
            for _ in 0..2 {
                assert_eq!(ok(prism_policy_queue_complete(queue, &mut done, null_mut(), 0)), 1);
                assert_eq!((done.status, done.length), (0, 0));
                tags.push(done.tag);
            }
            tags.sort_unstable();
            assert_eq!(tags, [5, 6]);
            assert_eq!(prism_policy_queue_wait(queue, 1), 0);
        }
        ok(prism_policy_queue_close(queue));
        ok(prism_share_close(share));
        ok(prism_buffer_free(buffer));
        setting.close();
    }
}

#[test]
fn writes_and_trims_of_the_policy_level_are_queued() {
    let _one = alone();
    for setting in settings() {
        let ((share, policy), mut queue) = (setting.policy(), null_mut());
        let (buffer, mut done) = (setting.buffer(2 * PAGE), completion());
        let page = PAGE as u64;
        let data: Vec<u8> = (0..2 * PAGE).map(|at| (at / 90) as u8).collect();
        let (mut read, to) = (vec![1; 5 * PAGE], 5 * PAGE);
        // SAFETY: every pointer is valid.
        unsafe {
            ok(prism_policy_queue_open(policy, 3, &mut queue));
            prism_buffer_data(buffer).cast::<u8>().copy_from(data.as_ptr(), data.len());
            ok(prism_policy_queue_write_buffer(queue, 0, buffer, data.len(), 0, 1));
            assert!(prism_buffer_data(buffer).is_null());
            ok(prism_policy_queue_write(queue, 3 * page, data.as_ptr().cast(), data.len(), 0, 2));
            ok(prism_policy_queue_trim(queue, page, page, 3));
            refused(prism_policy_queue_trim(queue, 0, page, 4), PRISM_EFULL);
            let bytes = data.as_ptr().cast();
            refused(prism_policy_queue_write(queue, 0, bytes, 1, 0, 4), PRISM_EFULL);
            let mut seen = 0;
            while ok(prism_policy_queue_complete(queue, &mut done, null_mut(), 0)) == 1 {
                assert_eq!((done.status, done.length), (0, 0), "{}", done.tag);
                assert_eq!(done.buffer, if done.tag == 1 { buffer } else { null_mut() });
                seen += done.tag;
            }
            assert_eq!(seen, 6);
            ok(prism_policy_read(policy, 0, read.as_mut_ptr().cast(), to));
            assert!(read[..PAGE] == data[..PAGE], "what was written without a copy");
            assert!(
                read[PAGE..3 * PAGE].iter().all(|byte| *byte == 0),
                "trimmed, or never written"
            );
            assert!(read[3 * PAGE..] == data, "what was written with a copy");
            ok(prism_policy_queue_write(queue, 8 * page, bytes, 1, 0, 7));
            ok(prism_policy_queue_trim(queue, 1, page, 8));
            for (tag, status) in [(7, PRISM_ERANGE), (8, PRISM_EALIGN)] {
                assert_eq!(ok(prism_policy_queue_complete(queue, &mut done, null_mut(), 0)), 1);
                assert_eq!((done.tag, done.status), (tag, status as c_int));
            }
        }
        ok(prism_policy_queue_close(queue));
        ok(prism_policy_close(policy));
        ok(prism_share_close(share));
        ok(prism_buffer_free(buffer));
        setting.close();
    }
}

#[test]
fn a_completion_of_the_first_header_is_filled() {
    let _one = alone();
    let setting = settings().remove(0);
    let (share, raw, queue) = setting.raw_queue(1);
    // The size of the structure before it had the buffer.
    let mut done = prism_completion { size: 40, buffer: null_mut::<prism_buffer>(), ..zeroed() };
    done.buffer = std::ptr::without_provenance_mut(77);
    // SAFETY: every pointer is valid.
    unsafe {
        ok(prism_raw_queue_read(queue, zeroed(), PAGE, 5));
        assert_eq!(ok(prism_raw_queue_complete(queue, &mut done, null_mut(), 0)), 1);
    }
    assert_eq!((done.tag, done.status, done.buffer.addr()), (5, PRISM_EUNWRITTEN as c_int, 77));
    for result in [prism_raw_queue_close(queue), prism_raw_close(raw), prism_share_close(share)] {
        ok(result);
    }
    setting.close();
}

#[test]
fn queues_of_files_have_a_descriptor() {
    let _one = alone();
    for (place, setting) in settings().into_iter().enumerate() {
        let (share, raw, queue) = setting.raw_queue(1);
        match place {
            0 | 1 => refused(prism_raw_queue_event_fd(queue), PRISM_EINVALID),
            _ => drop(ok(prism_raw_queue_event_fd(queue))),
        }
        for result in [prism_raw_queue_close(queue), prism_raw_close(raw), prism_share_close(share)]
        {
            ok(result);
        }
        setting.close();
    }
}

#[test]
fn settings_of_a_file_are_checked() {
    let _one = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let path = c_path(&folder.path().join("flash"));
    let usual = prism_file_settings { size: size_of::<prism_file_settings>(), ..zeroed() };
    let read_only = prism_file_settings { read_only: 1, ..usual };
    let (mut device, mut reader) = (null_mut(), null_mut());
    // SAFETY: every pointer is valid, and structures have their size.
    unsafe {
        let mut make = |settings| {
            prism_device_create_with(path.as_ptr(), &geometry(), &settings, null(), &mut device)
        };
        for wrong in [
            read_only,
            prism_file_settings { size: 0, ..usual },
            prism_file_settings { engine: 3, ..usual },
            prism_file_settings { preallocate: 2, ..usual },
            prism_file_settings { read_only: 2, ..usual },
        ] {
            refused(make(wrong), PRISM_EARGUMENT);
        }
        ok(make(prism_file_settings { preallocate: 1, ..usual }));
        ok(prism_device_close(device));
        ok(prism_device_open_with(path.as_ptr(), &read_only, null(), &mut device));
        ok(prism_device_open_with(path.as_ptr(), &read_only, null(), &mut reader));
        let (mut share, wanted) = (null_mut(), allocation(1, 0));
        let result = prism_device_allocate(device, c"it".as_ptr(), &wanted, &mut share);
        assert!(result < 0, "nothing is written to a device that is read-only");
        ok(prism_device_close(device));
        ok(prism_device_close(reader));
    }
}

#[test]
fn addresses_are_words() {
    let at = prism_address { channel: 1, lun: 2, block: 3, page: 4 };
    let (mut bits, mut back) = (0, zeroed::<prism_address>());
    // SAFETY: every pointer is valid.
    unsafe {
        ok(prism_address_to_bits(at, &mut bits));
        ok(prism_address_from_bits(bits, &mut back));
        refused(
            prism_address_to_bits(prism_address { page: 1 << 16, ..at }, &mut bits),
            PRISM_ERANGE,
        );
        refused(prism_address_from_bits(1 << 56, &mut back), PRISM_ERANGE);
        refused(prism_address_to_bits(at, null_mut()), PRISM_EARGUMENT);
    }
    assert_eq!(bits, 1 << 46 | 2 << 36 | 3 << 16 | 4);
    assert_eq!((back.channel, back.lun, back.block, back.page), (1, 2, 3, 4));
}
