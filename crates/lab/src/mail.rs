//! The operations of the threads of varmail, as a function of the seed.
//!
//! Source: filebench, workloads/varmail.f, version 3.0: 1000 mails of which 80 % exist at the
//! start, with sizes of a gamma distribution with mean 16 KiB (and filebench's default shape of
//! 1.5); 16 threads; appends of up to 16 KiB. A round is: delete a mail; create one, append, fsync;
//! read a whole mail, append to it, fsync; read a whole mail.
//!
//! Differences: each thread has its own mails, so that its operations depend on the seed and not on
//! the scheduling of threads. Only pattern `mix` runs the whole round; `seq` and `rand` leave out
//! the reads, as the authors of the unwritten contract did for their writes, and `seq` uses the
//! mails in the order of their numbers.

use prism_base::rng::Rng;

use crate::amounts::{APPEND_BYTES_MAX, MAIL_THREADS};
use crate::kinds::Pattern;

/// Mean size of a mail at the start, in bytes.
const MAIL_BYTES_MEAN: f64 = 16384.0;

/// The shape of the gamma distribution of sizes.
const MAIL_SHAPE: f64 = 1.5;

/// Of this many mails, one does not exist at the start.
const ABSENT_ONE_IN: u64 = 5;

/// The operations of one thread in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// The mail that is deleted.
    pub delete: u64,
    /// The mail that is created, and its bytes, which are made durable.
    pub create: (u64, u64),
    /// The mail that is appended to, and the appended bytes, which are made durable.
    pub append: (u64, u64),
    /// The mail that is read at the end; if there is one, the mail that is appended to is read
    /// before the append.
    pub read: Option<u64>,
}

/// One thread of varmail.
#[derive(Clone, Debug)]
pub struct MailThread {
    rng: Rng,
    pattern: Pattern,
    present: Vec<u64>,
    absent: Vec<u64>,
    rounds: u64,
    done: u64,
}

impl MailThread {
    /// Thread number `thread`, with its part of `mails` mails and `rounds` rounds.
    ///
    /// # Panics
    /// If the thread gets no mail to delete or to create.
    #[must_use]
    pub fn new(seed: u64, thread: u64, pattern: Pattern, mails: u64, rounds: u64) -> Self {
        let (mut present, mut absent) = (Vec::new(), Vec::new());
        for (place, mail) in (thread..mails).step_by(MAIL_THREADS as usize).enumerate() {
            let is_absent = place as u64 % ABSENT_ONE_IN == ABSENT_ONE_IN - 1;
            if is_absent { &mut absent } else { &mut present }.push(mail);
        }
        assert!(!present.is_empty() && !absent.is_empty(), "a thread needs mails");
        let rng = Rng::stream(seed, &format!("varmail thread {thread}"));
        let more = u64::from(thread < rounds % MAIL_THREADS);
        let rounds = rounds / MAIL_THREADS + more;
        Self { rng, pattern, present, absent, rounds, done: 0 }
    }

    /// The mails that exist at the start, with their sizes in bytes.
    #[must_use]
    pub fn initial(&self, seed: u64) -> Vec<(u64, u64)> {
        let one = |&mail: &u64| {
            let mut rng = Rng::stream(seed, &format!("varmail size {mail}"));
            (mail, mail_size(&mut rng))
        };
        self.present.iter().map(one).collect()
    }

    /// An index in a list of `len` mails: the first with pattern `seq`, else a random one.
    fn choose(&mut self, len: usize) -> usize {
        match self.pattern {
            Pattern::Seq => 0,
            Pattern::Rand | Pattern::Mix => self.rng.below(len as u64) as usize,
        }
    }

    fn appended(&mut self) -> u64 {
        1 + self.rng.below(APPEND_BYTES_MAX)
    }

    /// An existing mail: the oldest with pattern `seq`.
    fn opened(&mut self) -> u64 {
        let place = self.choose(self.present.len());
        self.present[place]
    }
}

impl Iterator for MailThread {
    type Item = Round;

    fn next(&mut self) -> Option<Round> {
        if self.done == self.rounds {
            return None;
        }
        self.done += 1;
        // With pattern `seq` the lists are queues: the oldest mail is deleted, and the one deleted
        // longest ago is created again.
        let place = self.choose(self.present.len());
        let delete = self.present.remove(place);
        let place = self.choose(self.absent.len());
        let create = self.absent.remove(place);
        self.absent.push(delete);
        self.present.push(create);
        let create = (create, self.appended());
        let append = (self.opened(), self.appended());
        let read = (self.pattern == Pattern::Mix).then(|| self.opened());
        Some(Round { delete, create, append, read })
    }
}

/// A size of the gamma distribution, by the method of Marsaglia and Tsang (2000) with normal
/// numbers by Marsaglia's polar method. At least one byte.
fn mail_size(rng: &mut Rng) -> u64 {
    let d = MAIL_SHAPE - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(rng);
        let v = (1.0 + c * x).powi(3);
        if v <= 0.0 {
            continue;
        }
        // Not 0, whose logarithm is infinite.
        let u = 1.0 - rng.unit();
        if libm::log(u) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            let size = d * v / MAIL_SHAPE * MAIL_BYTES_MEAN;
            return (size as u64).max(1);
        }
    }
}

fn normal(rng: &mut Rng) -> f64 {
    loop {
        let (x, y) = (2.0 * rng.unit() - 1.0, 2.0 * rng.unit() - 1.0);
        let s = x * x + y * y;
        if s > 0.0 && s < 1.0 {
            return x * (-2.0 * libm::log(s) / s).sqrt();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn threads_have_disjoint_mails_and_share_the_rounds() {
        let mut seen = BTreeSet::new();
        let (mut rounds, mut present) = (0, 0);
        for thread in 0..MAIL_THREADS {
            let mails = MailThread::new(1, thread, Pattern::Rand, 1000, 4099);
            present += mails.initial(1).len();
            for mail in mails.present.iter().chain(&mails.absent) {
                assert!(seen.insert(*mail), "{mail} belongs to two threads");
            }
            rounds += mails.count();
        }
        // Threads have 63 or 62 mails, of which 12 are absent.
        assert_eq!((seen.len(), rounds, present), (1000, 4099, 1000 - 16 * 12));
    }

    /// Deletes and opens only existing mails, and creates only missing ones.
    #[test]
    fn rounds_fit_a_naive_set_of_mails() {
        for pattern in [Pattern::Seq, Pattern::Rand, Pattern::Mix] {
            let thread = MailThread::new(3, 5, pattern, 1000, 16_000);
            let initial = thread.initial(3);
            let mut there: BTreeSet<u64> = initial.iter().map(|&(mail, _)| mail).collect();
            let mut bytes = 0;
            for round in thread {
                assert!(there.remove(&round.delete), "{round:?}");
                assert!(there.insert(round.create.0), "{round:?}");
                assert!(there.contains(&round.append.0), "{round:?}");
                assert_eq!(round.read.is_some(), pattern == Pattern::Mix);
                assert!(round.read.is_none_or(|mail| there.contains(&mail)));
                assert!((1..=APPEND_BYTES_MAX).contains(&round.create.1));
                bytes += round.create.1 + round.append.1;
            }
            // 2000 appends of 8 KiB on average; the standard deviation is 1.3 % of the sum.
            let expected = 1000.0 * APPEND_BYTES_MAX as f64;
            assert!((bytes as f64 / expected - 1.0).abs() < 0.05, "{pattern:?}: {bytes}");
        }
    }

    #[test]
    fn sequential_rounds_use_mails_in_the_order_of_their_numbers() {
        let rounds: Vec<_> = MailThread::new(1, 0, Pattern::Seq, 160, 16 * 3).collect();
        // Thread 0 of 160 mails has 0, 16, 32, ..., 144; the fifth and the tenth are absent.
        let moved: Vec<_> = rounds.iter().map(|r| (r.delete, r.create.0, r.append.0)).collect();
        assert_eq!(moved, [(0, 64, 16), (16, 144, 32), (32, 0, 48)]);
    }

    #[test]
    fn sizes_have_the_mean_and_the_spread_of_the_distribution() {
        let mut rng = Rng::stream(1, "sizes");
        let sizes: Vec<f64> = (0..20_000).map(|_| mail_size(&mut rng) as f64).collect();
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        let variance = sizes.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / sizes.len() as f64;
        // The mean of 20,000 sizes has a standard deviation of 0.6 %.
        assert!((mean / MAIL_BYTES_MEAN - 1.0).abs() < 0.025, "{mean}");
        let shape = mean * mean / variance;
        assert!((shape / MAIL_SHAPE - 1.0).abs() < 0.1, "{shape}");
    }

    #[test]
    fn a_thread_follows_its_seed() {
        let all = |seed| MailThread::new(seed, 1, Pattern::Mix, 1000, 160).collect::<Vec<_>>();
        assert_eq!(all(1), all(1));
        assert_ne!(all(1), all(2));
    }
}
