//! Writes are batched, and no wait blocks for ever, on a real ring.

use prism_testkit::skipped;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use rustix::fs::OFlags;

use super::{Uring, WRITES_AT_ONCE, at_once};

const PAGE: usize = 4096;
const PAGES: u64 = 200;

/// A file of zeros, and the same with io_uring if available.
#[allow(clippy::print_stdout, reason = "reports skipped tests")]
fn ring(depth: usize) -> Option<(File, Uring)> {
    let named = tempfile::NamedTempFile::new().unwrap();
    named.as_file().set_len(PAGES * PAGE as u64).unwrap();
    let flags = OFlags::DIRECT.bits() as i32;
    let direct = OpenOptions::new().read(true).write(true).custom_flags(flags).open(named.path());
    let file = named.into_file();
    let uring = direct.and_then(|direct| Uring::new(file.try_clone()?, direct, PAGE, depth));
    uring
        .inspect_err(|error| skipped(&format!("io_uring: {error}"), ""))
        .ok()
        .map(|uring| (file, uring))
}

fn at(number: u64) -> u64 {
    number * PAGE as u64
}

fn write(uring: &mut Uring, number: u64) {
    uring.write(at(number), &[number as u8 + 1; PAGE]).unwrap();
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
    let Some((file, mut uring)) = ring(32) else { return };
    for number in 0..3 {
        write(&mut uring, number);
        assert_eq!(uring.ready.len() as u64, number + 1);
    }
    for number in 0..3 {
        assert!(uring.read(at(number), 0, PAGE).unwrap() == [number as u8 + 1; PAGE]);
    }
    assert_eq!(uring.ready.len(), 3, "they were read from their buffers");
    (3..WRITES_AT_ONCE as u64).for_each(|number| write(&mut uring, number));
    assert_eq!(uring.ready.len(), 0, "a batch is complete");
    write(&mut uring, WRITES_AT_ONCE as u64);
    uring.drain().unwrap();
    assert_eq!((uring.ready.len(), uring.in_flight), (0, 0));
    check_file(&file, WRITES_AT_ONCE as u64 + 1, "drained");
}

#[test]
fn the_kernel_has_no_more_than_the_depth_and_the_next_ones_are_ready() {
    for depth in [1, 2, 3, 8, 20] {
        let Some((_, mut uring)) = ring(depth) else { return };
        for number in 0..PAGES {
            write(&mut uring, number);
            let (ready, given) = (uring.ready.len(), uring.in_flight);
            assert!(given <= depth && ready <= at_once(depth), "depth {depth}: {given}, {ready}");
            assert_eq!(given + ready, uring.writing.len(), "depth {depth}");
            // While fewer than `depth` are in flight, only an incomplete batch is held back.
            let room = uring.writing.len() <= depth;
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
            let Some((file, mut uring)) = ring(depth) else { return };
            (0..writes).for_each(|number| write(&mut uring, number));
            match writes % 4 {
                0 => uring.drain().unwrap(),
                1 => assert!(uring.read(at(PAGES - 1), 0, PAGE).unwrap() == [0; PAGE], "{context}"),
                2 => {
                    assert!(uring.prefetch(at(PAGES - 1), 0, PAGE), "{context}");
                    assert_eq!(uring.arrivals(0), 1, "{context}");
                }
                _ => {}
            }
            drop(uring);
            check_file(&file, writes, &context);
        }
    }
}

#[test]
fn threads_share_prefetches_and_writes() {
    let Some((file, mut uring)) = ring(8) else { return };
    assert!(uring.alone.is_some());
    for number in 0..20 {
        write(&mut uring, number);
    }
    assert!(uring.prefetch(at(3), 0, PAGE), "there is room");
    std::thread::scope(|scope| {
        let other = || {
            assert!(uring.read(at(3), 0, PAGE).unwrap() == [4; PAGE]);
            (20..40).for_each(|number| write(&mut uring, number));
            assert_eq!(uring.alone, None, "the ring is for several now");
        };
        scope.spawn(other).join().unwrap();
    });
    (40..60).for_each(|number| write(&mut uring, number));
    for number in (0..60).step_by(7) {
        assert!(uring.read(at(number), 0, PAGE).unwrap() == [number as u8 + 1; PAGE]);
    }
    uring.drain().unwrap();
    check_file(&file, 60, "written by two");
}

/// Entries of the journal of any length, with pages before them that are ready, in flight or both.
#[test]
fn entries_are_written_together_with_pages() {
    for depth in [1, 2, 7, 64] {
        let Some((file, mut uring)) = ring(depth) else { return };
        let mut written = 0;
        for (pages, len) in [(0, 1), (1, 1), (5, 3), (20, 2), (3, 40), (90, 1)] {
            (written..written + pages).for_each(|number| write(&mut uring, number));
            written += pages;
            let (first, byte) = (PAGES - len, 100 + len as u8);
            uring.write_entry(at(first), &vec![byte; len as usize * PAGE]).unwrap();
            assert!(uring.is_writing_entry());
            if pages > 0 {
                let last = uring.read(at(written - 1), 0, PAGE).unwrap();
                assert!(last == [written as u8; PAGE], "depth {depth}");
            }
            uring.drain().unwrap();
            assert_eq!((uring.in_flight, uring.is_writing_entry()), (0, false));
            for number in first..PAGES {
                let mut found = [0; PAGE];
                file.read_exact_at(&mut found, at(number)).unwrap();
                assert!(found == [byte; PAGE], "depth {depth}: page {number}");
                file.write_all_at(&[0; PAGE], at(number)).unwrap();
            }
            check_file(&file, written, &format!("depth {depth}"));
        }
        assert_eq!(uring.free.len(), uring.buffers.count() - usize::from(uring.held.is_some()));
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
    let Some((_, mut uring)) = ring(4) else { return };
    uring.direct = open().unwrap();
    uring.write_entry(at(0), &[1; PAGE]).unwrap();
    for _ in 0..2 {
        assert!(uring.drain().is_err());
    }
    assert!(uring.write_entry(at(0), &[1; PAGE]).is_err());
}
