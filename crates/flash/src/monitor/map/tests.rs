//! A reader without the lock against what the monitor does under it, in the orders of their
//! steps: no read returns what belongs to another virtual block, to another share, or to a time
//! after the data has moved.

use std::any::Any;
use std::sync::Arc;

use prism_base::SimTime;

use super::*;
use crate::medium::DeviceGeometry;
use crate::monitor::Urgency;
use crate::monitor::steps::explore;

/// Blocks of one page that holds one byte; 0 is erased.
#[derive(Debug)]
struct Bytes {
    geometry: DeviceGeometry,
    bytes: Vec<AtomicU32>,
}

impl Medium for Bytes {
    fn geometry(&self) -> &DeviceGeometry {
        &self.geometry
    }

    fn write_pointer(&self, block: u32) -> u32 {
        u32::from(self.bytes[block as usize].load(Ordering::SeqCst) != 0)
    }

    fn is_open(&self, _block: u32) -> bool {
        false
    }

    fn is_factory_bad(&self, _block: u32) -> bool {
        false
    }

    fn has_volatile_cache(&self) -> bool {
        false
    }

    fn read(
        &self,
        block: u32,
        _page: u32,
        _offset: u32,
        data: &mut [u8],
        _oob: &mut [u8],
    ) -> Result<PageState, MediumError> {
        data[0] = self.bytes[block as usize].load(Ordering::SeqCst) as u8;
        Ok(if data[0] == 0 { PageState::Erased } else { PageState::Written })
    }

    fn program(&self, block: u32, _page: u32, data: &[u8], _oob: &[u8]) -> Result<(), MediumError> {
        self.bytes[block as usize].store(data[0].into(), Ordering::SeqCst);
        Ok(())
    }

    fn erase(&self, block: u32) -> Result<(), MediumError> {
        self.bytes[block as usize].store(0, Ordering::SeqCst);
        Ok(())
    }

    fn finish(&self, _block: u32) -> Result<(), MediumError> {
        Ok(())
    }

    fn sync(&self) -> Result<(), MediumError> {
        Ok(())
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// Four LUNs of one block each; virtual blocks 0 and 1 begin on blocks 0 and 1, with bytes 10 and
/// 11. The share has LUN 0.
fn path(luns: &[u32]) -> Arc<DirectPath> {
    let geometry = DeviceGeometry {
        channels: 4,
        luns_per_channel: 1,
        blocks_per_lun: 4,
        pages_per_block: 2,
        page_size: 512,
        oob_size: 0,
        max_open_blocks: None,
    };
    let bytes = [10, 11, 0, 0].map(AtomicU32::new).into();
    Arc::new(DirectPath {
        medium: Arc::new(Bytes { geometry, bytes }),
        map: Arc::new(BlockMap::new(&[0, 1, 2, 3])),
        share: Arc::new(ShareMap::new(4, luns)),
        usable: 1,
        by_usable: Divisor::new(1),
        pages: 2,
        page_size: 512,
        channels: 4,
    })
}

/// The byte of a block of the share; 0 if it is erased.
fn read(path: &DirectPath, block: u32) -> Result<u8> {
    let (cause, ready, urgency) = (Cause::Host, SimTime::ZERO, Urgency::Normal);
    let mut byte = [0];
    path.read(Access { block, page: 0, cause, ready, urgency }, 0, &mut byte, &mut [])?;
    Ok(byte[0])
}

/// What the monitor does to erase a virtual block.
fn erase(path: &DirectPath, virtual_block: u32) {
    path.map.note_erase(virtual_block);
    path.medium.erase(path.map.block(virtual_block)).expect("a good block");
    path.map.note_erase(virtual_block);
}

fn program(path: &DirectPath, virtual_block: u32, byte: u8) {
    path.medium.program(path.map.block(virtual_block), 0, &[byte], &[]).expect("a good block");
}

/// Runs a reader of a path and a writer in all orders with few interruptions.
fn check(
    luns: &[u32],
    reader: impl Fn(&DirectPath) + Send + Sync + Copy + 'static,
    writer: impl Fn(&DirectPath) + Send + Sync + Copy + 'static,
) {
    let orders = explore(|| {
        let path = path(luns);
        let other = Arc::clone(&path);
        vec![Box::new(move || reader(&path)), Box::new(move || writer(&other))]
    });
    assert!(orders > 100, "{orders} orders are too few");
}

#[test]
fn a_block_that_is_replaced_is_read_where_it_is() {
    let reader = |path: &DirectPath| assert_eq!(read(path, 0), Ok(10));
    check(&[0], reader, |path| {
        // To block 2; block 0 is erased, and another virtual block goes there.
        path.medium.program(2, 0, &[10], &[]).expect("a good block");
        path.map.set(0, 2);
        path.medium.erase(0).expect("a good block");
        path.map.set(1, 0);
        program(path, 1, 99);
    });
}

#[test]
fn an_erase_changes_the_entry_before_and_after() {
    // As the levels that look up data under a lock of their own: 10 was there when the entry was
    // read, so it is there or the entry has changed.
    check(
        &[0],
        |path| {
            let entry = path.map.entry(0);
            let before = entry >> 32 == 0;
            let found = read(path, 0);
            if path.map.entry(0) == entry && before {
                assert_eq!(found, Ok(10));
            } else {
                assert!([Ok(10), Ok(0), Ok(99)].contains(&found), "{found:?}");
            }
        },
        |path| {
            erase(path, 0);
            program(path, 0, 99);
        },
    );
}

#[test]
fn a_released_share_reads_nothing_of_the_next_one() {
    let released = || Err(FlashError::Released);
    let reader = move |path: &DirectPath| {
        let found = read(path, 0);
        assert!(found == Ok(10) || found == Ok(0) || found == released(), "{found:?}");
    };
    check(&[0], reader, |path| {
        path.share.set(&[]);
        erase(path, 0);
        // The next share.
        program(path, 0, 99);
    });
}

#[test]
fn a_lun_that_was_given_back_is_not_read_for_its_successor() {
    // The share has LUNs 0 and 1, gives back the second, and gets LUN 2 in its place.
    let reader = |path: &DirectPath| match read(path, 1) {
        Ok(byte) => assert!([11, 0, 12].contains(&byte), "{byte}"),
        Err(error) => assert!(matches!(error, FlashError::OutOfRange { .. }), "{error}"),
    };
    check(&[0, 1], reader, |path| {
        path.share.set(&[0]);
        erase(path, 1);
        program(path, 1, 99);
        program(path, 2, 12);
        path.share.set(&[0, 2]);
    });
}

#[test]
fn a_ticket_is_synced_by_later_syncs_only() {
    let orders = explore(|| {
        let map = Arc::new(BlockMap::new(&[0]));
        // Bits of what was written, and of what a sync has found.
        let shared = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
        let sync = |map: Arc<BlockMap>, shared: Arc<(AtomicU32, AtomicU32)>| {
            move || {
                let number = map.begin_sync();
                let found = shared.0.load(Ordering::SeqCst);
                shared.1.fetch_add(found, Ordering::SeqCst);
                map.end_sync(number);
            }
        };
        let (of_one, of_two) = (Arc::clone(&map), Arc::clone(&map));
        let (by_one, by_two) = (Arc::clone(&shared), Arc::clone(&shared));
        vec![
            Box::new(move || {
                shared.0.store(1, Ordering::SeqCst);
                let ticket = map.ticket();
                if map.is_synced(ticket) {
                    assert!(shared.1.load(Ordering::SeqCst) > 0, "a sync has found the write");
                }
            }),
            Box::new(sync(of_one, by_one)),
            Box::new(sync(of_two, by_two)),
        ]
    });
    assert!(orders > 1000, "{orders} orders are too few");
}
