//! Independent computations on all cores, with results in the order of the jobs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Runs `jobs` on as many threads as there are cores, as [`run_on`] does.
///
/// # Panics
/// If a job panics.
pub fn run_all<T: Send>(
    jobs: Vec<impl FnOnce() -> T + Send>,
    finished: impl Fn(usize) + Sync,
) -> Vec<T> {
    run_on(thread::available_parallelism().map_or(1, usize::from), jobs, finished)
}

/// Runs `jobs` on `threads` threads, at least one. The result does not depend on the number of
/// threads or on which job finishes first. `finished` is called with the number of jobs that
/// are done.
///
/// # Panics
/// If a job panics.
pub fn run_on<T: Send>(
    threads: usize,
    jobs: Vec<impl FnOnce() -> T + Send>,
    finished: impl Fn(usize) + Sync,
) -> Vec<T> {
    let count = jobs.len();
    let threads = threads.clamp(1, count.max(1));
    let queue = Mutex::new(jobs.into_iter().enumerate());
    let results: Mutex<Vec<Option<T>>> = Mutex::new((0..count).map(|_| None).collect());
    let done = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("no job panics in the lock").next();
                    let Some((place, job)) = next else { return };
                    let result = job();
                    results.lock().expect("no job panics in the lock")[place] = Some(result);
                    finished(done.fetch_add(1, Ordering::Relaxed) + 1);
                }
            });
        }
    });
    let results = results.into_inner().expect("no job panics in the lock");
    results.into_iter().map(|result| result.expect("every job was run")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_jobs() {
        let jobs = || (0..100).map(|i| move || i * i).collect::<Vec<_>>();
        let expected: Vec<_> = (0..100).map(|i| i * i).collect();
        assert_eq!(run_all(jobs(), |_| {}), expected);
        for threads in [0, 1, 2, 7, 1000] {
            assert_eq!(run_on(threads, jobs(), |_| {}), expected);
        }
        assert!(run_all(Vec::<fn() -> u32>::new(), |_| {}).is_empty());
    }
}
