//! Out-of-band bytes of the function level: those of calls and of queued writes, with and without
//! time.

use prism_base::{Bytes, Nanos};
use prism_flash::function::{Channel, Function, Unit};
use prism_flash::{Allocation, Cache, Device, DeviceGeometry, FlashError, MemoryDevice, Options};
use prism_nand::{PageTimes, Timing};

const PAGE: usize = 512;

fn timing() -> Timing {
    Timing {
        t_read: PageTimes::uniform(Nanos(50_000)),
        t_program: PageTimes::uniform(Nanos(600_000)),
        t_erase: Nanos(3_000_000),
        t_command: Nanos(1_000),
        bus_bytes_per_second: None,
    }
}

fn function(timing: Option<Timing>) -> Function {
    let geometry = DeviceGeometry {
        channels: 1,
        luns_per_channel: 1,
        blocks_per_lun: 16,
        pages_per_block: 8,
        page_size: PAGE as u32,
        oob_size: 24,
        max_open_blocks: None,
    };
    let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
    if timing.is_none() {
        memory.complete_in_any_order(1);
    }
    let device = Device::format(memory, Options { timing, wear: None }).unwrap();
    Function::open(device.allocate("a", Allocation::new(Bytes(1), 0)).unwrap()).unwrap()
}

fn both() -> [Function; 2] {
    [function(None), function(Some(timing()))]
}

fn oob_of(function: &Function, at: prism_flash::raw::Address) -> [u8; 16] {
    let mut oob = [0; 16];
    function.read_oob(at, &mut oob).unwrap();
    oob
}

#[test]
fn queued_writes_have_those_of_their_first_page() {
    for function in both() {
        let at = function.address_mapper(Channel::Any, Unit::Block).unwrap().at;
        let mut queue = function.queue(4);
        queue.submit_write_with_oob(at, vec![1; 3 * PAGE], [7; 16], 0).unwrap();
        queue.submit_write_with_oob(at.with_page(3), vec![2; PAGE], [8; 5], 1).unwrap();
        queue.submit_write(at.with_page(4), vec![3; PAGE], 2).unwrap();
        queue.submit_write_with_oob(at.with_page(5), vec![4; PAGE], [9; 17], 3).unwrap();
        let mut done: Vec<_> = std::iter::from_fn(|| queue.complete()).collect();
        done.sort_by_key(|done| done.tag);
        assert_eq!(done[3].result, Err(FlashError::TooLong { bytes: 17, most: 16 }));
        assert!(done[..3].iter().all(|done| done.result == Ok(())));
        let none = [0xFF; 16];
        assert_eq!([0, 1].map(|page| oob_of(&function, at.with_page(page))), [[7; 16], none]);
        assert_eq!(oob_of(&function, at.with_page(3))[..6], [8, 8, 8, 8, 8, 0xFF]);
        assert_eq!(oob_of(&function, at.with_page(4)), none);
        assert_eq!(function.write_pointer(at), Ok(5), "the refused write wrote nothing");
    }
}

#[test]
fn a_queued_write_keeps_the_owner_of_its_block() {
    let function = function(None);
    let at = function.allocate_for(Channel::Any, 99).unwrap().at;
    let mut queue = function.queue(1);
    queue.submit_write_with_oob(at, vec![1; PAGE], [5; 3], 0).unwrap();
    assert_eq!(queue.complete().unwrap().result, Ok(()));
    drop(queue);
    assert_eq!(oob_of(&function, at)[..4], [5, 5, 5, 0xFF]);
    let share = function.share();
    drop(function);
    let owned = Function::open(share).unwrap().owned_blocks().unwrap();
    assert_eq!(owned.iter().map(|block| (block.at, block.owner)).collect::<Vec<_>>(), [(at, 99)]);
}

#[test]
fn writes_after_trimmed_pages_have_them_too() {
    for (function, queued) in
        both().into_iter().zip([true, false]).chain([(self::function(None), false)])
    {
        let pages: Vec<_> =
            (0..4).map(|_| function.address_mapper(Channel::Any, Unit::Page).unwrap().at).collect();
        // The first two pages are padded.
        pages[..2].iter().for_each(|&at| function.trim(at, Unit::Page).unwrap());
        if queued {
            let mut queue = function.queue(1);
            queue.submit_write_with_oob(pages[2], vec![6; PAGE], [4; 16], 0).unwrap();
            assert_eq!(queue.complete().unwrap().result, Ok(()));
        } else {
            function.write_with_oob(pages[2], &[6; PAGE], &[4; 16]).unwrap();
        }
        assert_eq!(oob_of(&function, pages[2]), [4; 16]);
    }
}
