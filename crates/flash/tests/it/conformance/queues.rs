//! Queues: replies come to the queue of the request, with its number and its memory; waits end in
//! time; a descriptor is readable when there is something to take.

use std::collections::BTreeMap;
use std::sync::Arc;

use prism_base::Nanos;
use prism_flash::{Buffer, Medium, MediumError, MediumQueue, Op, PageState, Reply, Request};

use super::{Candidate, GEOMETRY, OOB, PAGE, PAGES, assert_holds, content, page, program, read};

type Check = fn(&Candidate);

pub const CHECKS: [(&str, Check); 9] = [
    ("an empty queue has nothing to wait for", empty),
    ("replies have the number and the memory of their request", replies),
    ("programs of a block are executed in order", order),
    ("refused operations are replies too", refused),
    ("replies come to the queue of the request", two_queues),
    ("more operations than the depth are accepted", beyond_the_depth),
    ("a dropped queue waits for its operations", dropped),
    ("a block fails while programs of it are in flight", failing_block),
    ("a descriptor is readable when there is something to take", descriptor),
];

/// An operation that is sure to be complete in time, on a machine that is busy.
const SOON: Nanos = Nanos(60_000_000_000);

fn queue(medium: &Arc<dyn Medium>, depth: usize) -> Box<dyn MediumQueue> {
    Arc::clone(medium).queue(depth).expect("checked before")
}

fn program_op(tag: u64, block: u32, page: u32, data: impl Into<Buffer>) -> Request {
    Request { tag, op: Op::Program { block, page }, data: data.into(), oob: Vec::new() }
}

fn read_op(tag: u64, block: u32, page: u32, offset: u32, data: impl Into<Buffer>) -> Request {
    Request { tag, op: Op::Read { block, page, offset }, data: data.into(), oob: Vec::new() }
}

fn sync_op(tag: u64) -> Request {
    Request { tag, op: Op::Sync, data: Buffer::default(), oob: Vec::new() }
}

/// Waits for `count` replies, by number.
fn take(queue: &mut dyn MediumQueue, count: usize) -> BTreeMap<u64, Reply> {
    let mut replies = BTreeMap::new();
    while replies.len() < count {
        assert!(queue.wait(Some(SOON)), "{} of {count} replies came", replies.len());
        let reply = queue.take().expect("there is one after the wait");
        let again = replies.insert(reply.tag, reply);
        assert!(again.is_none(), "a request has one reply");
    }
    assert!(queue.take().is_none() && !queue.wait(None), "nothing is left");
    replies
}

fn empty(candidate: &Candidate) {
    let medium = (candidate.make)(GEOMETRY);
    let mut queue = queue(&medium, 4);
    assert!(queue.take().is_none());
    for timeout in [None, Some(Nanos(0)), Some(SOON)] {
        assert!(!queue.wait(timeout));
    }
}

fn replies(candidate: &Candidate) {
    let medium = (candidate.make)(GEOMETRY);
    let mut queue = queue(&medium, 4);
    let mut aligned = medium.buffer(2 * PAGE);
    aligned.copy_from_slice(&content(1, 2 * PAGE));
    let oob: Vec<u8> = (0..OOB as u8).collect();
    let request = Request { oob: oob.clone(), ..program_op(u64::MAX, 1, 0, aligned) };
    let address = request.data.as_ptr();
    queue.submit(request);
    queue.submit(program_op(7, 2, 0, page(9)));
    let done = take(&mut *queue, 2);
    assert!(done.values().all(|reply| reply.result == Ok(PageState::Written)));
    let Reply { data, oob: back, .. } = &done[&u64::MAX];
    assert_eq!((data.as_ptr(), back), (address, &oob));
    assert!(*data == content(1, 2 * PAGE));

    // Parts of pages, to memory of the device and to other memory.
    let all = content(1, 2 * PAGE);
    let parts = [(0, 0, 2 * PAGE), (0, 512, 512), (0, 4095, 2), (1, 1, 4095), (1, 0, 4096)];
    for (tag, (page, offset, len)) in (0..).zip(parts) {
        queue.submit(read_op(tag, 1, page, offset, vec![0; len]));
        queue.submit(Request {
            oob: vec![0; OOB],
            ..read_op(100 + tag, 1, page, offset, medium.buffer(len))
        });
    }
    let done = take(&mut *queue, 2 * parts.len());
    for (tag, (page, offset, len)) in (0..).zip(parts) {
        let from = page as usize * PAGE + offset as usize;
        for tag in [tag, 100 + tag] {
            assert_eq!(done[&tag].result, Ok(PageState::Written));
            assert!(done[&tag].data == all[from..from + len], "{len} bytes from {from}");
        }
        let expected = if page == 0 { &oob[..] } else { &[0xFF; OOB] };
        assert_eq!((&done[&tag].oob[..], &done[&(100 + tag)].oob[..]), (&[][..], expected));
    }
    queue.submit(sync_op(3));
    assert_eq!(take(&mut *queue, 1)[&3].result, Ok(PageState::Written));
    assert!(medium.erase_is_durable(1) && read(&*medium, 2, 0, 0, PAGE) == page(9));
}

fn order(candidate: &Candidate) {
    let medium = (candidate.make)(GEOMETRY);
    let mut queue = queue(&medium, 64);
    for round in 0..4 {
        for number in 0..PAGES {
            for block in 0..6 {
                let data = page(10 * block + number + round);
                queue.submit(program_op(u64::from(block * 10 + number), block, number, data));
            }
        }
        queue.submit(sync_op(1000));
        let done = take(&mut *queue, 6 * PAGES as usize + 1);
        assert!(done.values().all(|reply| reply.result == Ok(PageState::Written)), "{done:?}");
        for block in 0..6 {
            assert_holds(&*medium, block, 0..PAGES, 10 * block + round);
            medium.erase(block).expect("a good block");
        }
    }
}

fn refused(candidate: &Candidate) {
    let medium = (candidate.make)(GEOMETRY);
    program(&*medium, 0, 0..PAGES, 0);
    let mut queue = queue(&medium, 8);
    queue.submit(program_op(0, 0, 0, page(9)));
    queue.submit(program_op(1, 1, 2, page(9)));
    queue.submit(read_op(2, 1, 0, 0, vec![1; PAGE]));
    queue.submit(read_op(3, 0, 3, 0, vec![1; PAGE]));
    let done = take(&mut *queue, 4);
    assert_eq!(done[&0].result, Err(MediumError::Full { block: 0 }));
    let out_of_order = MediumError::OutOfOrder { block: 1, page: 2, expected: 0 };
    assert_eq!(done[&1].result, Err(out_of_order));
    assert_eq!(done[&2].result, Ok(PageState::Erased));
    assert!(done[&3].result == Ok(PageState::Written) && done[&3].data == page(3));
    assert!(done[&0].data == page(9) && done[&1].data == page(9), "the memory comes back");
    assert_eq!(done[&2].data.len(), PAGE);
}

fn two_queues(candidate: &Candidate) {
    let medium = (candidate.make)(GEOMETRY);
    let mut both = [queue(&medium, 4), queue(&medium, 4)];
    for number in 0..PAGES {
        for (block, queue) in (0..).zip(&mut both) {
            queue.submit(program_op(number.into(), block, number, page(10 * block + number)));
        }
    }
    both[0].submit(sync_op(50));
    both[1].submit(sync_op(50));
    for (block, queue) in (0..).zip(&mut both) {
        let done = take(&mut **queue, PAGES as usize + 1);
        for number in 0..PAGES {
            assert!(done[&number.into()].data == page(10 * block + number), "of queue {block}");
        }
    }
    // Each reads what the other has programmed, on threads of their own.
    let medium = &medium;
    std::thread::scope(|scope| {
        for (block, mut queue) in (0..).zip(both) {
            scope.spawn(move || {
                for round in 0..20 {
                    for number in 0..PAGES {
                        let tag = (round * PAGES + number).into();
                        queue.submit(read_op(tag, 1 - block, number, 0, medium.buffer(PAGE)));
                    }
                    let done = take(&mut *queue, PAGES as usize);
                    for (number, reply) in (0..).zip(done.values()) {
                        assert!(reply.data == page(10 * (1 - block) + number));
                    }
                }
            });
        }
    });
}

fn beyond_the_depth(candidate: &Candidate) {
    let medium = (candidate.make)(GEOMETRY);
    (0..4).for_each(|block| program(&*medium, block, 0..PAGES, 10 * block));
    for depth in [1, 2, 300] {
        let mut queue = queue(&medium, depth);
        for tag in 0..300u64 {
            let (block, page) = (tag as u32 % 4, tag as u32 / 4 % PAGES);
            queue.submit(read_op(tag, block, page, 0, vec![0; PAGE]));
        }
        for (tag, reply) in take(&mut *queue, 300) {
            let (block, number) = (tag as u32 % 4, tag as u32 / 4 % PAGES);
            assert!(reply.data == page(10 * block + number), "depth {depth}, read {tag}");
        }
    }
}

fn dropped(candidate: &Candidate) {
    let medium = (candidate.make)(GEOMETRY);
    let mut queue = queue(&medium, 2);
    for number in 0..PAGES {
        for block in 0..4 {
            queue.submit(program_op(0, block, number, page(10 * block + number)));
        }
    }
    queue.submit(sync_op(1));
    queue.submit(read_op(2, 0, 0, 0, medium.buffer(PAGE)));
    drop(queue);
    for block in 0..4 {
        assert_eq!(medium.write_pointer(block), PAGES);
        assert_holds(&*medium, block, 0..PAGES, 10 * block);
    }
}

fn descriptor(candidate: &Candidate) {
    let medium = (candidate.make)(GEOMETRY);
    program(&*medium, 0, 0..PAGES, 0);
    medium.sync().expect("a device that works");
    let mut queue = queue(&medium, 8);
    if queue.event_fd().is_none() {
        return;
    }
    let readable = |queue: &dyn MediumQueue, milliseconds| {
        (candidate.readable)(queue.event_fd().expect("it has one"), milliseconds)
    };
    for round in 0..50 {
        // Nothing is in flight, and all replies were taken.
        assert!(!readable(&*queue, 0), "round {round}");
        for tag in 0..=round % 3 {
            queue.submit(read_op(tag, 0, tag as u32, 0, medium.buffer(PAGE)));
        }
        if round % 10 == 9 {
            queue.submit(sync_op(10));
        }
        let mut left = 1 + round % 3 + u64::from(round % 10 == 9);
        // As an event loop does: takes replies until there is none, and then sleeps.
        while left > 0 {
            match queue.take() {
                Some(reply) => {
                    assert_eq!(reply.result, Ok(PageState::Written));
                    left -= 1;
                }
                None => assert!(readable(&*queue, 60_000), "round {round}: {left} left"),
            }
        }
        assert!(queue.take().is_none());
    }
}

/// Programs of another block are in flight too.
fn failing_block(candidate: &Candidate) {
    let Some(wear_out) = candidate.wear_out else { return };
    for begun in 0..PAGES {
        let medium = (candidate.make)(GEOMETRY);
        program(&*medium, 0, 0..begun, 0);
        wear_out(&medium, 0);
        let mut queue = queue(&medium, 8);
        for number in 0..PAGES {
            if number >= begun {
                queue.submit(program_op(number.into(), 0, number, page(number)));
            }
            queue.submit(program_op(u64::from(10 + number), 1, number, page(50 + number)));
        }
        let done = take(&mut *queue, (2 * PAGES - begun) as usize);
        let failed = MediumError::ProgramFailed { block: 0, page: begun };
        assert_eq!(done[&begun.into()].result, Err(failed));
        for number in begun + 1..PAGES {
            assert!(done[&number.into()].result.is_err(), "page {number} of the failed block");
        }
        assert_holds(&*medium, 0, 0..begun, 0);
        assert_holds(&*medium, 1, 0..PAGES, 50);
        assert_eq!(medium.erase(0), Err(MediumError::EraseFailed { block: 0 }));
    }
}
