//! The atomics that threads share without a lock. In unit tests each access to one is a step of
//! [`explore`], which runs a few threads in every order of their steps with few interruptions.
//!
//! Steps take effect in one order for all threads. Weaker memory is not explored: what one thread
//! publishes and another reads is stored with release and loaded with acquire ordering.

#[cfg(not(test))]
pub(super) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

#[cfg(test)]
pub(super) use stepped::{AtomicBool, AtomicU32, AtomicU64, Ordering, explore};

#[cfg(test)]
mod stepped {
    use std::cell::RefCell;
    use std::sync::atomic;
    pub(in crate::monitor) use std::sync::atomic::Ordering;
    use std::sync::{Arc, Condvar, Mutex};
    use std::thread;

    /// Limit of the interruptions of a thread that could go on, in one order: with each more, the
    /// orders are about ten times as many. Errors of lock-free code need one or two.
    const INTERRUPTIONS_MAX: usize = 3;

    /// What the threads of a run are at.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum At {
        Running,
        /// Before its next step.
        Waiting,
        Over,
    }

    /// The state of the threads, and a signal that it has changed.
    type Threads = Arc<(Mutex<Vec<At>>, Condvar)>;

    thread_local! {
        /// The run of this thread, and its number there.
        static RUN: RefCell<Option<(Threads, usize)>> = const { RefCell::new(None) };
    }

    fn set(threads: &Threads, number: usize, at: At) {
        threads.0.lock().expect("no thread panics with it")[number] = at;
        threads.1.notify_all();
    }

    /// Waits until it is this thread's turn. Counters, which are relaxed, are no steps.
    fn step(ordering: Ordering) {
        let run = RUN.with(|run| run.borrow().clone());
        let Some((threads, number)) = run.filter(|_| ordering != Ordering::Relaxed) else { return };
        set(&threads, number, At::Waiting);
        let all = threads.0.lock().expect("no thread panics with it");
        drop(threads.1.wait_while(all, |all| all[number] == At::Waiting));
    }

    /// Runs one order: at each place the thread of `choices`, the first that can go on after them.
    /// Returns the choices and how many there were at each place.
    fn run(work: Vec<Box<dyn FnOnce() + Send>>, choices: &[usize]) -> Vec<(usize, usize)> {
        let threads: Threads =
            Arc::new((Mutex::new(vec![At::Running; work.len()]), Condvar::new()));
        let (mut made, mut last, mut interruptions) = (Vec::new(), usize::MAX, 0);
        thread::scope(|scope| {
            for (number, work) in work.into_iter().enumerate() {
                let threads = Arc::clone(&threads);
                scope.spawn(move || {
                    RUN.with(|run| *run.borrow_mut() = Some((Arc::clone(&threads), number)));
                    step(Ordering::SeqCst);
                    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
                    set(&threads, number, At::Over);
                    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                });
            }
            loop {
                let all = threads.0.lock().expect("no thread panics with it");
                let still = |all: &mut Vec<At>| all.contains(&At::Running);
                let mut all = threads.1.wait_while(all, still).expect("no thread panics with it");
                let mut waiting: Vec<_> =
                    (0..all.len()).filter(|&n| all[n] == At::Waiting).collect();
                // The thread that ran is the first choice; another one interrupts it.
                waiting.sort_by_key(|&number| number != last);
                let goes_on = waiting.first() == Some(&last);
                if goes_on && interruptions == INTERRUPTIONS_MAX {
                    waiting.truncate(1);
                }
                if waiting.is_empty() {
                    break;
                }
                let choice = choices.get(made.len()).copied().unwrap_or(0);
                interruptions += usize::from(goes_on && choice > 0);
                last = waiting[choice];
                all[last] = At::Running;
                made.push((choice, waiting.len()));
                threads.1.notify_all();
            }
        });
        made
    }

    /// Runs the threads of `make` in every order of their steps that has few interruptions; returns
    /// the number of orders. A thread that panics ends it.
    pub(in crate::monitor) fn explore(make: impl Fn() -> Vec<Box<dyn FnOnce() + Send>>) -> usize {
        let (mut choices, mut orders) = (Vec::new(), 0);
        loop {
            let mut made = run(make(), &choices);
            orders += 1;
            while made.last().is_some_and(|&(choice, of)| choice + 1 == of) {
                made.pop();
            }
            let Some(last) = made.last_mut() else { return orders };
            last.0 += 1;
            choices = made.into_iter().map(|(choice, _)| choice).collect();
        }
    }

    macro_rules! stepped {
        ($name:ident, $value:ty, $($change:ident),*) => {
            #[derive(Debug)]
            pub(in crate::monitor) struct $name(atomic::$name);

            impl $name {
                pub(in crate::monitor) const fn new(value: $value) -> Self {
                    Self(atomic::$name::new(value))
                }

                pub(in crate::monitor) fn load(&self, ordering: Ordering) -> $value {
                    step(ordering);
                    self.0.load(ordering)
                }

                pub(in crate::monitor) fn store(&self, value: $value, ordering: Ordering) {
                    step(ordering);
                    self.0.store(value, ordering);
                }

                $(pub(in crate::monitor) fn $change(
                    &self,
                    value: $value,
                    ordering: Ordering,
                ) -> $value {
                    step(ordering);
                    self.0.$change(value, ordering)
                })*
            }
        };
    }

    stepped!(AtomicBool, bool,);
    stepped!(AtomicU32, u32, fetch_add, fetch_sub);
    stepped!(AtomicU64, u64, fetch_add, fetch_max);
}
