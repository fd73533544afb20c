//! Filebench's fileserver, webserver and varmail, as operations that threads do in turn. What does
//! them is the caller: a file system in virtual time, or a kernel.
//!
//! Source: Filebench 1.5, workloads/fileserver.f, webserver.f and varmail.f; differs: files are in
//! one level of folders of 20, or, with varmail, in one folder, and a file that one thread uses is
//! chosen by no other.

use prism_base::Rng;

prism_base::named_enum! {
    /// A workload.
    pub enum Personality {
        /// Files are made, written, appended to, read and deleted.
        FileServer = "fileserver",
        /// Files are read; a log is appended to.
        WebServer = "webserver",
        /// Mails are made, appended to and read, with an fsync after each change.
        VarMail = "varmail",
    }
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Makes a file and opens it.
    Create,
    /// Opens a file.
    Open,
    /// Writes the whole file.
    WriteWhole,
    /// Appends to the file.
    Append,
    /// Reads the whole file.
    ReadWhole,
    /// Makes the file durable.
    Fsync,
    /// Closes the file.
    Close,
    /// Deletes a file.
    Delete,
    /// Asks for the attributes of a file.
    Stat,
    /// Appends to the log that all threads share.
    Log,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What it does.
    pub call: Call,
    /// The number of the file; 0 for the log.
    pub file: u32,
    /// Bytes that it writes; 0 if it writes none.
    pub bytes: u32,
}

/// Bytes of an append at most; all lengths are equally likely.
const APPEND_MAX: u64 = 16 << 10;
/// The shape of the gamma distribution of sizes.
const SHAPE: f64 = 1.5;
/// One file in so many does not exist at the start.
const ABSENT: u32 = 5;
/// Files of a folder.
const FOLDER: u32 = 20;

const FILESERVER: [Call; 11] = [
    Call::Create,
    Call::WriteWhole,
    Call::Close,
    Call::Open,
    Call::Append,
    Call::Close,
    Call::Open,
    Call::ReadWhole,
    Call::Close,
    Call::Delete,
    Call::Stat,
];

const WEBSERVER: [Call; 31] = {
    let mut all = [Call::Log; 31];
    let mut at = 0;
    while at < 10 {
        all[3 * at] = Call::Open;
        all[3 * at + 1] = Call::ReadWhole;
        all[3 * at + 2] = Call::Close;
        at += 1;
    }
    all
};

const VARMAIL: [Call; 13] = [
    Call::Delete,
    Call::Create,
    Call::Append,
    Call::Fsync,
    Call::Close,
    Call::Open,
    Call::ReadWhole,
    Call::Append,
    Call::Fsync,
    Call::Close,
    Call::Open,
    Call::ReadWhole,
    Call::Close,
];

impl Personality {
    /// Filebench's number of threads.
    #[must_use]
    pub fn threads(self) -> usize {
        match self {
            Self::FileServer => 50,
            Self::WebServer => 100,
            Self::VarMail => 16,
        }
    }

    /// Filebench's mean size of a file, in bytes.
    #[must_use]
    pub fn mean_size(self) -> u64 {
        match self {
            Self::FileServer => 128 << 10,
            Self::WebServer | Self::VarMail => 16 << 10,
        }
    }

    fn calls(self) -> &'static [Call] {
        match self {
            Self::FileServer => &FILESERVER,
            Self::WebServer => &WEBSERVER,
            Self::VarMail => &VARMAIL,
        }
    }

    /// The folder of a file, if it is in one, and its name.
    #[must_use]
    pub fn path(self, file: u32) -> (Option<String>, String) {
        let folder = match self {
            Self::FileServer | Self::WebServer => Some(format!("d{:05}", file / FOLDER)),
            Self::VarMail => None,
        };
        (folder, format!("f{file:08}"))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    step: usize,
    file: u32,
}

/// A workload with its threads and files.
#[derive(Clone, Debug)]
pub struct Workload {
    personality: Personality,
    threads: Vec<Thread>,
    /// Files that exist and that no thread uses.
    idle: Vec<u32>,
    absent: Vec<u32>,
    sizes: Vec<u32>,
    rng: Rng,
}

impl Workload {
    /// A workload with this many files and threads; sizes and choices follow from the seed.
    ///
    /// # Panics
    /// If there are fewer than ten files for each thread.
    #[must_use]
    pub fn new(personality: Personality, files: u32, threads: usize, seed: u64) -> Self {
        assert!(files as usize >= 10 * threads, "threads need files");
        let mut rng = Rng::stream(seed, "filebench sizes");
        let sizes = (0..files).map(|_| size(personality.mean_size(), &mut rng)).collect();
        let is_absent =
            |file: &u32| personality != Personality::WebServer && file % ABSENT == ABSENT - 1;
        let (absent, idle) = (0..files).partition(is_absent);
        let rng = Rng::stream(seed, "filebench choices");
        let threads = vec![Thread::default(); threads];
        Self { personality, threads, idle, absent, sizes, rng }
    }

    /// The personality.
    #[must_use]
    pub fn personality(&self) -> Personality {
        self.personality
    }

    /// All files, also those that do not exist.
    #[must_use]
    pub fn files(&self) -> u32 {
        self.sizes.len() as u32
    }

    /// The files that exist before the first operation, with their sizes in bytes.
    pub fn initial(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.idle.iter().map(|&file| (file, self.sizes[file as usize]))
    }

    /// What the next operation of a thread does.
    #[must_use]
    pub fn upcoming(&self, thread: usize) -> Call {
        self.personality.calls()[self.threads[thread].step]
    }

    /// The next operation of a thread, whose last one has ended.
    pub fn next(&mut self, thread: usize) -> Operation {
        let call = self.upcoming(thread);
        let state = &mut self.threads[thread];
        state.step = (state.step + 1) % self.personality.calls().len();
        let list = if call == Call::Create { &mut self.absent } else { &mut self.idle };
        let choose = |rng: &mut Rng, list: &[u32]| rng.below(list.len() as u64) as usize;
        match call {
            Call::Create | Call::Open => {
                let at = choose(&mut self.rng, list);
                state.file = list.swap_remove(at);
            }
            Call::Delete => {
                let at = choose(&mut self.rng, list);
                state.file = list.swap_remove(at);
                self.absent.push(state.file);
            }
            Call::Stat => state.file = list[choose(&mut self.rng, list)],
            Call::Close => self.idle.push(state.file),
            Call::Log => state.file = 0,
            Call::WriteWhole | Call::Append | Call::ReadWhole | Call::Fsync => {}
        }
        let bytes = match call {
            Call::WriteWhole => self.sizes[state.file as usize],
            Call::Append | Call::Log => 1 + self.rng.below(APPEND_MAX) as u32,
            _ => 0,
        };
        Operation { call, file: state.file, bytes }
    }
}

/// A size of the gamma distribution of shape 1.5: the sum of an exponential variable and of half
/// the square of a normal one. At least a byte.
fn size(mean: u64, rng: &mut Rng) -> u32 {
    let mut log = || -libm::log(1.0 - rng.unit());
    let (exponential, radius) = (log(), log());
    let cos = libm::cos(std::f64::consts::TAU * rng.unit());
    let gamma = exponential + radius * cos * cos;
    ((gamma / SHAPE * mean as f64) as u32).max(1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn sizes_have_the_mean_and_the_deviation_of_the_distribution() {
        let mut rng = Rng::stream(1, "test");
        let sizes: Vec<f64> = (0..40_000).map(|_| f64::from(size(16_384, &mut rng))).collect();
        let mean = sizes.iter().sum::<f64>() / 40_000.0;
        let square = sizes.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / 40_000.0;
        // The deviation of shape k is the mean over the root of k.
        assert!((mean / 16_384.0 - 1.0).abs() < 0.02, "{mean}");
        assert!((square.sqrt() / (16_384.0 / SHAPE.sqrt()) - 1.0).abs() < 0.03, "{square}");
    }

    #[test]
    fn threads_use_files_that_exist_and_that_no_other_thread_uses() {
        for personality in Personality::ALL {
            let mut workload = Workload::new(personality, 400, 8, 3);
            let mut exist: BTreeSet<u32> = workload.initial().map(|(file, _)| file).collect();
            let mut open = BTreeSet::new();
            let mut sums = [0_u64; 2];
            for number in 0..20_000 {
                let Operation { call, file, bytes } = workload.next(number % 8);
                match call {
                    Call::Create => assert!(exist.insert(file) && open.insert(file)),
                    Call::Open => assert!(exist.contains(&file) && open.insert(file)),
                    Call::Close => assert!(open.remove(&file)),
                    Call::Delete => assert!(!open.contains(&file) && exist.remove(&file)),
                    Call::Stat => assert!(exist.contains(&file) && !open.contains(&file)),
                    Call::Log => assert_eq!(file, 0),
                    _ => assert!(open.contains(&file)),
                }
                if matches!(call, Call::Append | Call::Log) {
                    sums = [sums[0] + u64::from(bytes), sums[1] + 1];
                }
            }
            let mean = sums[0] as f64 / sums[1] as f64;
            assert!((mean / 8192.0 - 1.0).abs() < 0.06, "{personality:?}: {mean}");
        }
    }
}
