//! Futures of several tasks, polled by hand as a runtime does.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use prism_base::Nanos;
use prism_cache::handles::Handle;
use prism_segments::Store;

use crate::common::{Level, NOW, new_cache};

/// Counts how often a task was woken.
#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn poll<F: Future>(future: Pin<&mut F>, woken: &Arc<Woken>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&Waker::from(Arc::clone(woken))))
}

/// Polls a future when it is woken, and takes completions in between.
fn run<S: Store, F: Future>(cache: &Handle<S>, future: F) -> F::Output {
    let (mut future, woken) = (pin!(future), Arc::new(Woken::default()));
    loop {
        let before = woken.0.load(Ordering::Relaxed);
        if let Poll::Ready(output) = poll(future.as_mut(), &woken) {
            return output;
        }
        while woken.0.load(Ordering::Relaxed) == before {
            cache.turn(Nanos(0), NOW);
        }
    }
}

#[test]
fn futures_are_woken_by_completions() {
    for level in Level::ALL {
        let cache = Handle::new(new_cache(level, 5), NOW);
        let value = |number: u32| vec![number as u8; 700];
        run(&cache, async {
            for number in 0..1200_u32 {
                cache.insert(&number.to_le_bytes(), &value(number), 0).await.unwrap();
            }
        });
        let keys: Vec<[u8; 4]> = (0..1200_u32).map(u32::to_le_bytes).collect();
        let found = run(&cache, async {
            let mut found = 0;
            for (key, number) in keys.iter().zip(0..) {
                let got = cache.get(key).await;
                assert!(got.is_none() || got == Some(value(number)), "{level:?}: {number}");
                found += u32::from(got.is_some());
            }
            found
        });
        assert!(found > 200 && cache.cache().counts().hits_flash > 100, "{level:?}: {found}");
        // Two reads in flight, of which one is given up.
        let on_flash = |cache: &Handle<_>| {
            let mut waiting = Vec::new();
            for key in &keys {
                let mut future = Box::pin(cache.get(key));
                let woken = Arc::new(Woken::default());
                if poll(future.as_mut(), &woken).is_pending() {
                    waiting.push((future, woken, *key));
                }
                if waiting.len() == 2 {
                    break;
                }
            }
            let (mut kept, woken, key) = waiting.pop().expect("items on flash");
            let (given_up, woken_too, _) = waiting.pop().expect("items on flash");
            drop(given_up);
            while woken.0.load(Ordering::Relaxed) == 0 {
                cache.turn(Nanos(0), NOW);
            }
            assert_eq!(woken_too.0.load(Ordering::Relaxed), 0, "{level:?}");
            let expected = value(u32::from_le_bytes(key));
            assert_eq!(poll(kept.as_mut(), &woken), Poll::Ready(Some(expected)), "{level:?}");
            key
        };
        let key = on_flash(&cache);
        assert!(cache.remove(&key));
        assert_eq!(run(&cache, cache.get(&key)), None);
    }
}

/// A future that waits for a buffer is woken once, however often it was polled.
#[test]
fn a_waiting_insertion_is_woken_once() {
    let cache = Handle::new(new_cache(Level::Function, 5), NOW);
    for number in 0..5000_u32 {
        let (key, woken) = (number.to_le_bytes(), Arc::new(Woken::default()));
        let mut future = Box::pin(cache.insert(&key, &[7; 3000], 0));
        if poll(future.as_mut(), &woken).is_ready() {
            continue;
        }
        for _ in 0..9 {
            assert!(poll(future.as_mut(), &woken).is_pending());
        }
        while woken.0.load(Ordering::Relaxed) == 0 {
            cache.turn(Nanos(0), NOW);
        }
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        return;
    }
    panic!("there is always a buffer");
}
