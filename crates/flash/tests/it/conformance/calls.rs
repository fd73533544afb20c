//! Calls that wait: parts of pages, out-of-band bytes, the order of programs, erases and syncs.

use prism_base::Rng;
use prism_flash::{DeviceGeometry, MediumError, PageState};

use super::{
    Candidate, GEOMETRY, OOB, PAGE, PAGES, assert_holds, content, page, program, read, state,
};

type Check = fn(&Candidate);

pub const CHECKS: [(&str, Check); 9] = [
    ("a fresh medium is erased", fresh),
    ("parts of pages are read", parts),
    ("out-of-band bytes are those of the first page", out_of_band),
    ("pages are programmed in order", order),
    ("an erased block can be programmed again", erase),
    ("a finished block is closed", finish),
    ("partly written blocks are limited", open_blocks),
    ("a sync makes all durable", sync),
    ("random calls follow a model", model),
];

fn fresh(candidate: &Candidate) {
    let medium = (candidate.make)(GEOMETRY);
    assert_eq!(*medium.geometry(), GEOMETRY);
    for block in 0..GEOMETRY.blocks() {
        assert_eq!((medium.write_pointer(block), medium.is_open(block)), (0, false));
        assert_eq!(state(&*medium, block, 0), PageState::Erased);
        assert!(!medium.is_factory_bad(block));
    }
    let mut buffer = medium.buffer(2 * PAGE);
    buffer.fill(3);
    assert_eq!(buffer, vec![3; 2 * PAGE]);
}

fn parts(candidate: &Candidate) {
    let medium = (candidate.make)(GEOMETRY);
    let all = content(1, PAGES as usize * PAGE);
    medium.program(3, 0, &all[..3 * PAGE], &[]).expect("three pages at once");
    medium.program(3, 3, &all[3 * PAGE..], &[]).expect("the last page");
    let offsets = [0, 1, 511, 512, 513, 2048, 4095];
    for (offset, page) in offsets.into_iter().flat_map(|o| (0..PAGES).map(move |p| (o, p))) {
        let from = page as usize * PAGE + offset as usize;
        for len in [1, 2, 511, 512, 4096, 5000, 3 * PAGE] {
            let Some(expected) = all.get(from..from + len) else { continue };
            let found = read(&*medium, 3, page, offset, len);
            assert!(found == expected, "{len} bytes from {offset} of page {page}");
        }
    }
    // A read that begins on a written page and ends on an erased one.
    program(&*medium, 4, 0..2, 0);
    let mut data = vec![0; 2 * PAGE];
    let beyond = medium.read(4, 1, 0, &mut data, &mut []);
    assert_eq!(beyond, Ok(PageState::Erased));
    assert_eq!(medium.read(4, 1, 100, &mut data[..PAGE], &mut []), Ok(PageState::Erased));
}

fn out_of_band(candidate: &Candidate) {
    let medium = (candidate.make)(GEOMETRY);
    let full: Vec<u8> = (0..OOB as u8).collect();
    medium.program(0, 0, &content(0, 2 * PAGE), &full).expect("two pages");
    medium.program(0, 2, &page(2), &full[..5]).expect("the third");
    medium.program(0, 3, &page(3), &[]).expect("the fourth");
    let mut short = [full[..5].to_vec(), vec![0xFF; OOB - 5]].concat();
    let expected = [full.clone(), vec![0xFF; OOB], std::mem::take(&mut short), vec![0xFF; OOB]];
    for (page, expected) in (0..).zip(&expected) {
        for len in [0, 1, 5, 6, OOB] {
            let mut oob = vec![1; len];
            let found = medium.read(0, page, 0, &mut [], &mut oob);
            assert_eq!((found, &oob[..]), (Ok(PageState::Written), &expected[..len]));
        }
        let (mut data, mut oob) = (vec![0; 100], [0; OOB]);
        let found = medium.read(0, page, 50, &mut data, &mut oob);
        assert_eq!((found, &oob[..]), (Ok(PageState::Written), &expected[..]), "with data");
    }
}

fn order(candidate: &Candidate) {
    let medium = (candidate.make)(GEOMETRY);
    let refused = |number, expected| {
        let result = medium.program(2, number, &page(9), &[]);
        assert_eq!(result, Err(MediumError::OutOfOrder { block: 2, page: number, expected }));
    };
    refused(1, 0);
    program(&*medium, 2, 0..2, 5);
    refused(0, 2);
    refused(1, 2);
    refused(3, 2);
    assert_eq!((medium.write_pointer(2), medium.is_open(2)), (2, true));
    assert_holds(&*medium, 2, 0..2, 5);
    let too_many = medium.program(2, 2, &content(9, 3 * PAGE), &[]);
    assert_eq!(too_many, Err(MediumError::Full { block: 2 }));
    assert_eq!(medium.write_pointer(2), 2, "none of the pages was programmed");
    program(&*medium, 2, 2..4, 5);
    assert_eq!((medium.write_pointer(2), medium.is_open(2)), (PAGES, false));
    assert_eq!(medium.program(2, 0, &page(9), &[]), Err(MediumError::Full { block: 2 }));
    assert_holds(&*medium, 2, 0..PAGES, 5);
    assert_eq!(medium.write_pointer(1), 0, "another block has an order of its own");
}

fn erase(candidate: &Candidate) {
    let medium = (candidate.make)(GEOMETRY);
    let before = medium.erase_count(1);
    program(&*medium, 1, 0..3, 0);
    program(&*medium, 7, 0..PAGES, 50);
    for round in 1..4 {
        medium.erase(1).expect("a good block");
        assert_eq!((medium.write_pointer(1), medium.is_open(1)), (0, false));
        assert_eq!(state(&*medium, 1, 0), PageState::Erased);
        assert_eq!(medium.erase_count(1), before.map(|before| before + round));
        program(&*medium, 1, 0..1 + round, 10 * round);
        assert_holds(&*medium, 1, 0..1 + round, 10 * round);
    }
    assert_holds(&*medium, 7, 0..PAGES, 50);
}

fn finish(candidate: &Candidate) {
    let medium = (candidate.make)(GEOMETRY);
    program(&*medium, 5, 0..2, 0);
    for block in [5, 6] {
        medium.finish(block).expect("a good block");
        medium.finish(block).expect("a second time");
        let pointer = medium.write_pointer(block);
        assert!(!medium.is_open(block));
        assert_eq!(medium.program(block, pointer, &page(9), &[]), Err(MediumError::Full { block }));
        assert_eq!(medium.write_pointer(block), pointer);
    }
    assert_holds(&*medium, 5, 0..2, 0);
    for block in [5, 6] {
        medium.erase(block).expect("a good block");
        program(&*medium, block, 0..1, 0);
        assert!(medium.is_open(block));
    }
}

fn open_blocks(candidate: &Candidate) {
    let medium = (candidate.make)(DeviceGeometry { max_open_blocks: Some(4), ..GEOMETRY });
    (0..4).for_each(|block| program(&*medium, block, 0..1, block));
    let fifth = || medium.program(4, 0, &page(9), &[]);
    assert_eq!(fifth(), Err(MediumError::TooManyOpen { max: 4 }));
    assert_eq!(medium.write_pointer(4), 0);
    program(&*medium, 0, 1..PAGES, 0);
    assert_eq!(fifth(), Ok(()), "one is full");
    medium.finish(1).expect("a good block");
    program(&*medium, 5, 0..1, 0);
    medium.erase(2).expect("a good block");
    program(&*medium, 6, 0..1, 0);
    assert_eq!(medium.program(7, 0, &page(9), &[]), Err(MediumError::TooManyOpen { max: 4 }));
}

fn sync(candidate: &Candidate) {
    let medium = (candidate.make)(GEOMETRY);
    for round in 0..3 {
        program(&*medium, 0, round..round + 1, 0);
        medium.erase(1).expect("a good block");
        medium.sync().expect("a device that works");
        assert!((0..GEOMETRY.blocks()).all(|block| medium.erase_is_durable(block)));
        // A program of a block whose erase is not durable waits for that by itself.
        medium.erase(2).expect("a good block");
        program(&*medium, 2, 0..1, 7);
    }
    assert_holds(&*medium, 0, 0..3, 0);
}

/// A block of the model.
#[derive(Clone, Default)]
struct Block {
    pages: Vec<u32>,
    finished: bool,
}

fn model(candidate: &Candidate) {
    let medium = (candidate.make)(GEOMETRY);
    let rng = &mut Rng::stream(1, "conformance");
    let mut model = vec![Block::default(); GEOMETRY.blocks() as usize];
    for step in 0..1500 {
        let number = rng.below(GEOMETRY.blocks().into()) as u32;
        let block = &mut model[number as usize];
        let written = block.pages.len() as u32;
        match rng.below(16) {
            0..6 => {
                let (first, count) = (rng.below(5) as u32, 1 + rng.below(2) as u32);
                let first = if rng.chance(0.7) { written } else { first };
                let data: Vec<u8> = (0..count).flat_map(|page_at| page(step + page_at)).collect();
                let result = medium.program(number, first, &data, &step.to_le_bytes());
                let fits = written + count <= PAGES && !block.finished;
                match (fits, first == written) {
                    (true, true) => {
                        assert_eq!(result, Ok(()), "step {step}");
                        block.pages.extend(step..step + count);
                    }
                    (true, false) => {
                        let (block, page, expected) = (number, first, written);
                        let refused = MediumError::OutOfOrder { block, page, expected };
                        assert_eq!(result, Err(refused), "step {step}");
                    }
                    // Which rule is named first is not said.
                    (false, _) => assert!(result.is_err(), "step {step}"),
                }
            }
            6..14 => {
                let first = rng.below(PAGES.into()) as u32;
                let offset = rng.below(PAGE as u64) as usize;
                let room = (PAGES - first) as usize * PAGE - offset;
                let len = 1 + rng.below(room as u64) as usize;
                let mut data = vec![0; len];
                let found = medium.read(number, first, offset as u32, &mut data, &mut []);
                let all: Vec<u8> = block.pages.iter().flat_map(|&stamp| page(stamp)).collect();
                match all.get(first as usize * PAGE + offset..).and_then(|rest| rest.get(..len)) {
                    Some(expected) => {
                        assert_eq!(found, Ok(PageState::Written), "step {step}");
                        assert!(data == expected, "step {step}: {len} bytes from {offset}");
                    }
                    None => assert_eq!(found, Ok(PageState::Erased), "step {step}"),
                }
            }
            14 if rng.chance(0.2) => medium.sync().expect("a device that works"),
            14 => {
                medium.finish(number).expect("a good block");
                block.finished = true;
            }
            _ => {
                medium.erase(number).expect("a good block");
                *block = Block::default();
            }
        }
        let block = &model[number as usize];
        assert_eq!(medium.write_pointer(number), block.pages.len() as u32, "step {step}");
        let is_open = !block.finished && (1..PAGES as usize).contains(&block.pages.len());
        assert_eq!(medium.is_open(number), is_open, "step {step}");
    }
}
