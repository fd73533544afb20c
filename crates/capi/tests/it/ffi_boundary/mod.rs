//! Random calls across the FFI boundary, in any order, with handles that are closed, of another
//! kind or invented, and with invalid sizes and numbers: every call returns, no call panics, and a
//! handle is valid exactly if the model says so.

#![allow(unsafe_code, reason = "it calls as C does")]

mod files;
mod levels;
mod queues;
pub mod world;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

use prism_capi::*;
use prism_testkit::cases;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use files::Files;
use prism_status::{PRISM_EHANDLE, PRISM_ENOSPACE, PRISM_EPANIC, PRISM_ERELEASED, PRISM_OK};
use world::{Op, World};

/// Handles that are open are counted for the whole process, so one test runs at a time.
static ONE: Mutex<()> = Mutex::new(());

/// Keeps other tests from opening handles until it is dropped.
pub fn alone() -> MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn op() -> impl Strategy<Value = Op> {
    let number = || {
        prop_oneof![
            6 => 0..8u64,
            3 => 0..100_000u64,
            1 => prop_oneof![Just(u64::MAX), Just(u64::MAX / 2), Just(1 << 32), any::<u64>()],
        ]
    };
    (any::<u8>(), any::<u8>(), any::<u8>(), number(), number(), number())
        .prop_map(|(call, who, odd, a, b, c)| Op { call, who, odd, a, b, c })
}

/// A runner whose cases are the same in every run.
fn fixed(cases: u32) -> TestRunner {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    TestRunner::new_with_rng(config, rng)
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn random_calls_never_panic(ops in prop::collection::vec(op(), 1..150)) {
        let _one = alone();
        let mut world = World::new();
        for op in &ops {
            let (result, good) = levels::step(&mut world, op);
            prop_assert_ne!(result, PRISM_EPANIC as i32, "{:?}: {}", op, world::message());
            if good {
                prop_assert_ne!(result, PRISM_EHANDLE as i32, "{:?}", op);
            } else {
                prop_assert!(result < 0, "{:?} took a handle that is not good: {}", op, result);
            }
        }
        prop_assert_eq!(world.open_handles(), prism_open_handles());
        prop_assert!(world.close_all().is_empty(), "{}", world::message());
        prop_assert_eq!(prism_open_handles(), 0);
    }

    #[test]
    fn random_calls_on_files_never_panic(ops in prop::collection::vec(op(), 1..60)) {
        let _one = alone();
        let mut files = Files::new();
        for op in &ops {
            let Some((result, good)) = files.step(op) else { continue };
            prop_assert_ne!(result, PRISM_EPANIC as i32, "{:?}: {}", op, world::message());
            prop_assert!(good || result < 0, "{:?} took a handle that is not good", op);
        }
        prop_assert_eq!(files.world.open_handles(), prism_open_handles());
        // Files that are damaged or gone cannot be synced; their devices are closed anyway.
        files.world.close_all();
        prop_assert_eq!(prism_open_handles(), 0);
    }

    #[test]
    fn random_pairs_are_a_map(
        calls in prop::collection::vec((0..5u8, 0..20u8, 0..3000usize), 1..200),
    ) {
        let _one = alone();
        let (mut world, share) = World::with_share();
        let mut kv = null_mut();
        // SAFETY: every pointer is to something of the right length.
        unsafe {
            prop_assert_eq!(prism_kv_open(share, &mut kv), PRISM_OK as i32);
            let mut model = BTreeMap::new();
            for (call, key, length) in calls {
                pair_call(kv, &mut model, call, key, length)?;
            }
            prism_kv_close(kv);
        }
        prop_assert!(world.close_all().is_empty(), "{}", world::message());
        prop_assert_eq!(prism_open_handles(), 0);
    }
}

/// Random calls prove little if they are all refused: each kind of call has to succeed
/// sometimes, from the same seed in every run.
#[test]
fn calls_of_a_fixed_seed_get_far() {
    let _one = alone();
    let mut runner = fixed(600);
    let reached = RefCell::new(BTreeSet::new());
    let run = runner.run(&prop::collection::vec(op(), 150), |ops| {
        let mut world = World::new();
        for op in &ops {
            if levels::step(&mut world, op).0 >= 0 {
                reached.borrow_mut().insert(levels::place(op));
            }
        }
        prop_assert!(world.close_all().is_empty(), "{}", world::message());
        prop_assert_eq!(prism_open_handles(), 0);
        Ok(())
    });
    run.expect("no case fails by itself");
    let reached = reached.into_inner();
    let groups = [0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15];
    let all = groups.into_iter().flat_map(|group| (0..16).map(move |call| (group, call)));
    let missing: Vec<_> = all.filter(|place| !reached.contains(place)).collect();
    assert!(missing.is_empty(), "never done: {missing:?}");
}

/// The same of calls on files: each succeeds sometimes, and is refused for every reason.
#[test]
fn files_of_a_fixed_seed_get_far() {
    let _one = alone();
    let mut runner = fixed(400);
    let (done, refused) = (RefCell::new(BTreeSet::new()), RefCell::new(BTreeSet::new()));
    let run = runner.run(&prop::collection::vec(op(), 60), |ops| {
        let mut files = Files::new();
        for op in &ops {
            match files.step(op) {
                Some((0, _)) => drop(done.borrow_mut().insert(op.call % files::CALLS)),
                Some((result, _)) => drop(refused.borrow_mut().insert(result)),
                None => {}
            }
        }
        files.world.close_all();
        prop_assert_eq!(prism_open_handles(), 0);
        Ok(())
    });
    run.expect("no case fails by itself");
    assert_eq!(done.into_inner(), (0..7).collect());
    let refused = refused.into_inner();
    use prism_status::*;
    for status in [
        PRISM_EARGUMENT,
        PRISM_EHANDLE,
        PRISM_EGEOMETRY,
        PRISM_EWORNOUT,
        PRISM_EEXISTS,
        PRISM_EINUSE,
        PRISM_ENOCLOCK,
        PRISM_ENOTFORMATTED,
        PRISM_EDAMAGED,
        PRISM_EFILE,
    ] {
        assert!(refused.contains(&(status as i32)), "{status:?} never came: {refused:?}");
    }
}

/// A call on a key-value store and on its model.
///
/// # Safety
/// `kv` is open.
unsafe fn pair_call(
    kv: *mut prism_kv,
    model: &mut BTreeMap<u8, Vec<u8>>,
    call: u8,
    key: u8,
    length: usize,
) -> Result<(), TestCaseError> {
    let at = (&raw const key).cast::<c_void>();
    let mut room = vec![0u8; length];
    let mut found = 0;
    // SAFETY: the key has one byte, the buffer has `length`.
    unsafe {
        match call {
            0 | 1 => {
                let value = vec![key ^ length as u8; length];
                let result = prism_kv_set(kv, at, 1, value.as_ptr().cast(), length);
                if result == PRISM_OK as i32 {
                    model.insert(key, value);
                } else {
                    prop_assert_eq!(result, PRISM_ENOSPACE as i32);
                }
            }
            2 => {
                let had = prism_kv_delete(kv, at, 1);
                prop_assert_eq!(had, i32::from(model.remove(&key).is_some()));
            }
            3 => prop_assert_eq!(prism_kv_flush(kv), PRISM_OK as i32),
            _ => {
                let result = prism_kv_get(kv, at, 1, room.as_mut_ptr().cast(), length, &mut found);
                let expected = match model.get(&key) {
                    None => 0,
                    Some(value) if value.len() > length => prism_status::PRISM_ETOOSMALL as i32,
                    Some(value) => {
                        prop_assert_eq!(&room[..value.len()], &value[..]);
                        1
                    }
                };
                prop_assert_eq!(result, expected);
                prop_assert_eq!(found, model.get(&key).map_or(0, Vec::len));
            }
        }
    }
    Ok(())
}

/// Threads that use and close the same handles: each call returns a result of its own.
#[test]
fn threads_may_close_what_others_use() {
    let _one = alone();
    for round in 0..50usize {
        let (mut world, share) = World::with_share();
        let mut policy = null_mut();
        let config = world::range_config();
        // SAFETY: every pointer is to something of the right length.
        unsafe {
            assert_eq!(prism_policy_open(share, &mut policy), 0);
            assert_eq!(prism_policy_configure(policy, 0, 1 << 20, &config), 0);
        }
        let tokens = (share.addr(), policy.addr());
        let allowed = [PRISM_OK, PRISM_EHANDLE, PRISM_ERELEASED].map(|status| status as i32);
        std::thread::scope(|scope| {
            for thread in 0..4usize {
                scope.spawn(move || {
                    let policy = std::ptr::without_provenance_mut::<prism_policy>(tokens.1);
                    let share = std::ptr::without_provenance_mut::<prism_share>(tokens.0);
                    for call in 0..40usize {
                        let data = [call as u8; 4096];
                        // SAFETY: the data has the length passed.
                        let result = unsafe {
                            prism_policy_write(
                                policy,
                                call as u64 * 4096,
                                data.as_ptr().cast(),
                                4096,
                            )
                        };
                        assert!(allowed.contains(&result), "{result}: {}", world::message());
                        if thread == round % 4 && call == round % 40 {
                            assert_eq!(prism_policy_close(policy), 0);
                            assert_eq!(prism_share_release(share), 0);
                        }
                    }
                });
            }
        });
        assert!(world.close_all().is_empty(), "{}", world::message());
        assert_eq!(prism_open_handles(), 0);
    }
}
