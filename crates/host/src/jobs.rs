//! Independent computations on all cores, with results in the order of the jobs.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;

/// Runs `jobs` on `threads` threads, at least one. The result does not depend on the number of
/// threads or on which job finishes first. `finished` is called with the number of jobs that
/// are done.
///
/// # Panics
/// With the payload of a job that panics; jobs that have not begun are then not run.
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
    let work = || {
        loop {
            let next = queue.lock().expect("no job panics in the lock").next();
            let Some((place, job)) = next else { return };
            let result = catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|payload| {
                queue.lock().expect("no job panics in the lock").by_ref().for_each(drop);
                resume_unwind(payload)
            });
            results.lock().expect("no job panics in the lock")[place] = Some(result);
            finished(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    // Jobs begin when all threads have started: a thread that starts while a job takes the last
    // memory could not report that, and the process would be aborted.
    let gate = Mutex::new(());
    thread::scope(|scope| {
        let closed = gate.lock();
        let (starting, started) = mpsc::channel::<()>();
        let another = |_| {
            let starting = starting.clone();
            let begin = || {
                drop(starting);
                drop(gate.lock());
                work();
            };
            // Where the system gives no more threads, those that there are do the work.
            thread::Builder::new().spawn_scoped(scope, begin).ok()
        };
        let workers: Vec<_> = (1..threads).filter_map(another).collect();
        drop(starting);
        // Ends when every thread has dropped its sender.
        started.iter().for_each(drop);
        drop(closed);
        work();
        for worker in workers {
            // A scope would replace the payload, by which the caller knows the reason.
            worker.join().unwrap_or_else(|payload| resume_unwind(payload));
        }
    });
    let results = results.into_inner().expect("no job panics in the lock");
    results.into_iter().map(|result| result.expect("every job was run")).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn results_keep_the_order_of_the_jobs() {
        let jobs = || (0..100).map(|i| move || i * i).collect::<Vec<_>>();
        let expected: Vec<_> = (0..100).map(|i| i * i).collect();
        for threads in [0, 1, 2, 7, 1000] {
            assert_eq!(run_on(threads, jobs(), |_| {}), expected);
        }
        assert!(run_on(2, Vec::<fn() -> u32>::new(), |_| {}).is_empty());
    }

    /// Threads of this process that have the name of this one, which those that it starts inherit.
    fn named_alike() -> usize {
        let name = |task: &str| fs::read(format!("/proc/self/task/{task}/comm")).ok();
        let own = fs::read("/proc/thread-self/comm").unwrap();
        let tasks = fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.map(|task| task.unwrap().file_name().into_string().unwrap());
        names.filter(|task| name(task).as_ref() == Some(&own)).count()
    }

    /// A thread that starts while a job takes the last memory could not report that.
    #[test]
    fn jobs_begin_when_all_threads_have_started() {
        for _ in 0..20 {
            let counted = AtomicUsize::new(0);
            let job = |place: usize| {
                let counted = &counted;
                move || match place {
                    0 => counted.store(named_alike(), Ordering::SeqCst),
                    // No thread ends before they are counted.
                    _ => {
                        while counted.load(Ordering::SeqCst) == 0 {
                            thread::yield_now();
                        }
                    }
                }
            };
            run_on(32, (0..32).map(job).collect(), |_| {});
            assert_eq!(counted.into_inner(), 32);
        }
    }
}
