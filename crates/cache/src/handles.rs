//! A cache with futures in place of tags, for programs with an asynchronous runtime of one thread.
//!
//! There is no runtime here: the program calls [`Handle::turn`] when [`Cache::event_fd`] is
//! readable, and that wakes the futures whose values have come or whose item has space. A future
//! that is dropped gives up its value.
//!
//! ```
//! # use prism_cache::{Cache, handles::Handle};
//! # async fn example<S: prism_segments::Store>(cache: Cache<S>) {
//! let cache = Handle::new(cache, 1_800_000_000);
//! cache.insert(b"key", b"value", 0).await.expect("the device works");
//! assert_eq!(cache.get(b"key").await, Some(b"value".to_vec()));
//! assert!(cache.remove(b"key"));
//! # }
//! ```

use std::cell::{RefCell, RefMut};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use prism_base::Nanos;
use prism_segments::Store;

use crate::cache::Cache;
use crate::items::{Items, Lookup, Meta, NewItem, Refusal};

/// A read in flight.
enum Read {
    Waits(Waker),
    /// The value has come.
    Done(Option<Vec<u8>>),
}

struct Shared<S> {
    cache: Cache<S>,
    now: u32,
    next_tag: u64,
    reads: BTreeMap<u64, Read>,
    /// Insertions that wait for a buffer.
    busy: Vec<Waker>,
}

/// A cache that several tasks of a thread share.
pub struct Handle<S>(Rc<RefCell<Shared<S>>>);

impl<S> Clone for Handle<S> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

/// Gives up a read if its future is dropped.
struct Tag<'a, S> {
    handle: &'a Handle<S>,
    tag: u64,
}

impl<S> Drop for Tag<'_, S> {
    fn drop(&mut self) {
        self.handle.0.borrow_mut().reads.remove(&self.tag);
    }
}

impl<S: Store> Handle<S> {
    /// A handle of a cache. `now` is the time in seconds since 1970.
    #[must_use]
    pub fn new(cache: Cache<S>, now: u32) -> Self {
        let (reads, busy) = (BTreeMap::new(), Vec::new());
        Self(Rc::new(RefCell::new(Shared { cache, now, next_tag: 0, reads, busy })))
    }

    /// The cache, for everything else.
    ///
    /// # Panics
    /// If it is already borrowed.
    #[must_use]
    pub fn cache(&self) -> RefMut<'_, Cache<S>> {
        RefMut::map(self.0.borrow_mut(), |shared| &mut shared.cache)
    }

    /// Takes what flash has completed and wakes those that have waited for it. `clock` does not go
    /// back; `now` is the time in seconds since 1970. Wakers must not call the handle.
    pub fn turn(&self, clock: Nanos, now: u32) {
        let mut shared = self.0.borrow_mut();
        let Shared { cache, reads, busy, .. } = &mut *shared;
        cache.progress(clock);
        let mut take = |tag: u64, value: Option<Vec<u8>>| {
            // A read that was given up is not there.
            let Some(read) = reads.get_mut(&tag) else { return };
            if let Read::Waits(waker) = std::mem::replace(read, Read::Done(value)) {
                waker.wake();
            }
        };
        while cache.finished(now, &mut |tag, item| take(tag, item.map(|item| item.value.to_vec())))
        {
        }
        busy.drain(..).for_each(Waker::wake);
        shared.now = now;
    }

    /// The value of a key, from memory or flash.
    pub async fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let tag = {
            let mut shared = self.0.borrow_mut();
            let (tag, now) = (shared.next_tag, shared.now);
            match shared.cache.lookup(key, tag, now) {
                Lookup::Miss => return None,
                Lookup::Found(item) => return Some(item.value.to_vec()),
                Lookup::Reading(_) => {}
            }
            shared.next_tag += 1;
            shared.reads.insert(tag, Read::Waits(Waker::noop().clone()));
            tag
        };
        let tag = Tag { handle: self, tag };
        poll_fn(|context| self.poll_read(tag.tag, context)).await
    }

    fn poll_read(&self, tag: u64, context: &Context<'_>) -> Poll<Option<Vec<u8>>> {
        let mut shared = self.0.borrow_mut();
        let read = shared.reads.get_mut(&tag).expect("a read until its future is dropped");
        match read {
            Read::Done(value) => Poll::Ready(value.take()),
            Read::Waits(waker) => {
                waker.clone_from(context.waker());
                Poll::Pending
            }
        }
    }

    /// Inserts an item that expires at this time in seconds since 1970, 0 for never. It waits as
    /// long as all buffers wait for flash.
    ///
    /// # Errors
    /// [`Refusal::TooLarge`] and [`Refusal::Failed`].
    pub async fn insert(&self, key: &[u8], value: &[u8], expires: u32) -> Result<(), Refusal> {
        poll_fn(|context| {
            let mut shared = self.0.borrow_mut();
            let (now, version) = (shared.now, shared.cache.next_version());
            let meta = Meta { expires, ..Meta::default() };
            let item = NewItem { key, value: [value, b""], flags: 0, version, meta };
            match shared.cache.insert(item, now) {
                Err(Refusal::Busy) => {
                    // A future may be polled many times before there is a buffer.
                    if !shared.busy.iter().any(|waker| waker.will_wake(context.waker())) {
                        shared.busy.push(context.waker().clone());
                    }
                    Poll::Pending
                }
                result => Poll::Ready(result),
            }
        })
        .await
    }

    /// Removes an item; false if there is none.
    #[must_use]
    pub fn remove(&self, key: &[u8]) -> bool {
        self.0.borrow_mut().cache.remove(key)
    }
}
