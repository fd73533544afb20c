//! Writes are batched, and no wait blocks for ever, on a real ring.

use prism_testkit::skipped;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::Arc;

use rustix::fs::OFlags;

use super::{Behind, WRITES_AT_ONCE, Writer, at_once};

const PAGE: usize = 4096;
const PAGES: u64 = 200;

/// A file of zeros, and the same with io_uring if available.
#[allow(clippy::print_stdout, reason = "reports skipped tests")]
fn ring(depth: usize) -> Option<(File, Writer)> {
    let named = tempfile::NamedTempFile::new().unwrap();
    named.as_file().set_len(PAGES * PAGE as u64).unwrap();
    let flags = OFlags::DIRECT.bits() as i32;
    let direct = OpenOptions::new().read(true).write(true).custom_flags(flags).open(named.path());
    let file = named.into_file();
    let writer = direct.and_then(|direct| {
        Writer::new(file.try_clone()?, direct, PAGE, depth, (0, Arc::new(Behind::default())))
    });
    writer
        .inspect_err(|error| skipped(&format!("io_uring: {error}"), ""))
        .ok()
        .map(|writer| (file, writer))
}

fn at(number: u64) -> u64 {
    number * PAGE as u64
}

fn write(writer: &mut Writer, number: u64) {
    writer.write(at(number), &[number as u8 + 1; PAGE]).unwrap();
}

fn check_file(file: &File, written: u64, context: &str) {
    let mut page = [0; PAGE];
    for number in 0..PAGES {
        file.read_exact_at(&mut page, at(number)).unwrap();
        let expected = if number < written { number as u8 + 1 } else { 0 };
        assert!(page == [expected; PAGE], "{context}: page {number} of {written}");
    }
}

#[test]
fn writes_are_batched_and_readable_meanwhile() {
    let Some((file, mut writer)) = ring(32) else { return };
    for number in 0..3 {
        write(&mut writer, number);
        assert_eq!(writer.ready.len() as u64, number + 1);
    }
    for number in 0..3 {
        let mut page = [0; PAGE];
        assert!(writer.read(at(number), 0, &mut page).unwrap(), "it is in memory");
        assert_eq!(page, [number as u8 + 1; PAGE]);
    }
    assert_eq!(writer.ready.len(), 3, "they were read from their buffers");
    (3..WRITES_AT_ONCE as u64).for_each(|number| write(&mut writer, number));
    assert_eq!(writer.ready.len(), 0, "a batch is complete");
    write(&mut writer, WRITES_AT_ONCE as u64);
    writer.drain().unwrap();
    assert_eq!((writer.ready.len(), writer.in_flight), (0, 0));
    check_file(&file, WRITES_AT_ONCE as u64 + 1, "drained");
}

#[test]
fn the_kernel_has_no_more_than_the_depth_and_the_next_ones_are_ready() {
    for depth in [1, 2, 3, 8, 20] {
        let Some((_, mut writer)) = ring(depth) else { return };
        for number in 0..PAGES {
            write(&mut writer, number);
            let (ready, given) = (writer.ready.len(), writer.in_flight);
            assert!(given <= depth && ready <= at_once(depth), "depth {depth}: {given}, {ready}");
            assert_eq!(given + ready, writer.writing.len(), "depth {depth}");
            // While fewer than `depth` are in flight, only an incomplete batch is held back.
            let room = writer.writing.len() <= depth;
            assert!(!room || ready < at_once(depth), "depth {depth}: {given}, {ready}");
        }
    }
}

/// Every wait ends, with any number of writes queued before.
#[test]
fn no_wait_is_for_an_unsubmitted_write() {
    for depth in [1, 2, 3, 7, 16, 17, 64] {
        for writes in (0..20).chain([31, 32, 33, 64, 65, 130]) {
            let context = format!("depth {depth}, {writes} writes");
            let Some((file, mut writer)) = ring(depth) else { return };
            (0..writes).for_each(|number| write(&mut writer, number));
            match writes % 4 {
                0 => writer.drain().unwrap(),
                1 => assert!(!writer.read(at(PAGES - 1), 0, &mut [0]).unwrap(), "{context}"),
                _ => {}
            }
            drop(writer);
            check_file(&file, writes, &context);
        }
    }
}

#[test]
fn threads_share_a_writer() {
    let Some((file, mut writer)) = ring(8) else { return };
    assert!(writer.alone.is_some());
    (0..20).for_each(|number| write(&mut writer, number));
    std::thread::scope(|scope| {
        let other = || {
            (20..40).for_each(|number| write(&mut writer, number));
            assert_eq!(writer.alone, None, "the ring is for several now");
        };
        scope.spawn(other).join().unwrap();
    });
    (40..60).for_each(|number| write(&mut writer, number));
    writer.drain().unwrap();
    check_file(&file, 60, "written by two");
}

/// Entries of the journal of any length, with pages before them that are ready, in flight or both.
#[test]
fn entries_are_written_together_with_pages() {
    for depth in [1, 2, 7, 64] {
        let Some((file, mut writer)) = ring(depth) else { return };
        let mut written = 0;
        for (pages, len) in [(0, 1), (1, 1), (5, 3), (20, 2), (3, 40), (90, 1)] {
            (written..written + pages).for_each(|number| write(&mut writer, number));
            written += pages;
            let (first, byte) = (PAGES - len, 100 + len as u8);
            writer.write_entry(at(first), &vec![byte; len as usize * PAGE]).unwrap();
            assert!(writer.is_writing_entry());
            if pages > 0 {
                let mut last = [written as u8; PAGE];
                writer.read(at(written - 1), 0, &mut last).unwrap();
                assert!(last == [written as u8; PAGE], "depth {depth}");
            }
            writer.drain().unwrap();
            assert_eq!((writer.in_flight, writer.is_writing_entry()), (0, false));
            for number in first..PAGES {
                let mut found = [0; PAGE];
                file.read_exact_at(&mut found, at(number)).unwrap();
                assert!(found == [byte; PAGE], "depth {depth}: page {number}");
                file.write_all_at(&[0; PAGE], at(number)).unwrap();
            }
            check_file(&file, written, &format!("depth {depth}"));
        }
        assert_eq!(writer.free.len(), writer.buffers.count());
    }
}

/// An entry that could not be written fails the drain, and every later one.
#[test]
fn a_failed_entry_is_reported() {
    let named = tempfile::NamedTempFile::new().unwrap();
    named.as_file().set_len(PAGES * PAGE as u64).unwrap();
    // Reads only: writes fail.
    let flags = OFlags::DIRECT.bits() as i32;
    let open = || OpenOptions::new().read(true).custom_flags(flags).open(named.path());
    let Some((_, mut writer)) = ring(4) else { return };
    writer.direct = open().unwrap();
    writer.write_entry(at(0), &[1; PAGE]).unwrap();
    for _ in 0..2 {
        assert!(writer.drain().is_err());
    }
    assert!(writer.write_entry(at(0), &[1; PAGE]).is_err());
}

#[test]
fn waiting_without_a_time_limit_of_the_kernel_ends() {
    if ring(4).is_none() {
        return;
    }
    let mut ring = super::ring::new(4, true).unwrap();
    let limit = prism_base::Nanos(200_000);
    super::ring::wait_by_looking(&mut ring, limit).unwrap();
    assert!(ring.completion().is_empty());
    // SAFETY: the operation has no memory.
    #[allow(unsafe_code, reason = "the ring takes any operation")]
    unsafe {
        ring.submission().push(&io_uring::opcode::Nop::new().build()).unwrap();
    }
    super::ring::wait_by_looking(&mut ring, prism_base::Nanos(u64::MAX / 2)).unwrap();
    assert_eq!(ring.completion().count(), 1);
}
