//! Losses of power in all pairs of calls, in the style of ACE (Mohan et al., OSDI'18): two calls on
//! a small tree of files, after each of them something that makes a part of it durable.
//!
//! Power is lost in each write of the device, after any number of its pages, with the next one torn
//! or not, and once more after each operation with random parts of what was not durable. Pairs that
//! begin alike share the operations of their first call, which are cut once.

use prism_base::Rng;
use prism_fs::{Allocate, Fs, FsError, NewFile, ROOT, Rename, S_IFDIR, S_IFREG, SetAttr, SetXattr};
use prism_testkit::{all_seeds, seeds};

use crate::memory::{Image, Kind, MemoryStore, Replay};
use crate::model::{Synced, TIME, mount, read_state};
use crate::power::{History, check_image, cut_in_mount};
use crate::random::config;

type Path = &'static str;

#[derive(Clone, Copy, Debug)]
enum Call {
    Create(Path),
    Mkdir(Path),
    Symlink(Path),
    Link(Path, Path),
    Unlink(Path),
    Rmdir(Path),
    Rename(Path, Path, Rename),
    /// Offset and length.
    Write(Path, u64, usize),
    Append(Path, usize),
    Truncate(Path, u64),
    Allocate(Path, u64, u64, Allocate),
    SetXattr(Path, usize),
    RemoveXattr(Path),
}

/// The calls, on files that [`prepare`] makes.
const CALLS: [Call; 40] = [
    Call::Create("A/new"),
    Call::Create("B/foo"),
    Call::Mkdir("A/D"),
    Call::Mkdir("D"),
    Call::Symlink("B/s"),
    Call::Link("A/foo", "B/link"),
    Call::Link("A/bar", "A/new"),
    Call::Unlink("A/foo"),
    Call::Unlink("A/bar"),
    Call::Unlink("A/s"),
    Call::Unlink("B/baz"),
    Call::Rmdir("A/C"),
    Call::Rename("A/foo", "A/bar", Rename::Replace),
    Call::Rename("A/bar", "B/baz", Rename::Replace),
    Call::Rename("A/foo", "B/new", Rename::NoReplace),
    Call::Rename("A/C", "B/C", Rename::Replace),
    Call::Rename("A/foo", "A/C/foo", Rename::Replace),
    Call::Rename("A", "B/dir", Rename::Replace),
    Call::Rename("B", "A/C", Rename::Replace),
    Call::Rename("A/foo", "B/baz", Rename::Exchange),
    Call::Rename("A", "B", Rename::Exchange),
    Call::Rename("A/bar", "B/white", Rename::Whiteout),
    Call::Write("A/foo", 0, 8192),
    Call::Write("A/foo", 100, 5000),
    Call::Write("B/baz", 230 * 4096, 4096),
    Call::Write("A/bar", 223 * 4096 - 100, 300),
    Call::Append("A/foo", 5000),
    Call::Append("B/baz", 60_000),
    Call::Append("A/bar", 300),
    Call::Truncate("A/foo", 0),
    Call::Truncate("A/foo", 3000),
    Call::Truncate("A/bar", 20_000),
    Call::Allocate("A/foo", 1000, 6000, Allocate::Punch),
    Call::Allocate("A/bar", 0, 30_000, Allocate::Extend),
    Call::Allocate("A/foo", 8000, 9000, Allocate::KeepSize),
    Call::Allocate("A/foo", 2000, 9000, Allocate::Zero),
    Call::Allocate("B/baz", 0, 4096, Allocate::ZeroKeepSize),
    Call::SetXattr("A/foo", 5000),
    Call::SetXattr("A", 50),
    Call::RemoveXattr("A/bar"),
];

/// What follows the first call.
#[derive(Clone, Copy, Debug)]
enum Then {
    Nothing,
    /// Of a file; fdatasync is the same.
    Fsync(Path),
    /// The fsync of the file begins, and ends after the second call.
    InFlight,
    Tick,
    Sync,
    Checkpoint,
}

const THENS: [Then; 7] = [
    Then::Nothing,
    Then::Fsync("A/foo"),
    Then::Fsync("A"),
    Then::InFlight,
    Then::Tick,
    Then::Sync,
    Then::Checkpoint,
];

/// As few as have space for all pairs.
const SEGMENTS: u32 = 32;

fn look_up(fs: &mut Fs<MemoryStore>, path: Path) -> Result<u32, FsError> {
    path.split('/').try_fold(ROOT, |dir, name| fs.lookup(dir, name.as_bytes()))
}

/// The folder of a path, and the name in it.
fn place(fs: &mut Fs<MemoryStore>, path: Path) -> Result<(u32, &'static [u8]), FsError> {
    match path.rsplit_once('/') {
        Some((dir, name)) => Ok((look_up(fs, dir)?, name.as_bytes())),
        None => Ok((ROOT, path.as_bytes())),
    }
}

impl Call {
    /// The file on which an fsync after the call is made.
    fn path(self) -> Path {
        match self {
            Self::Create(path) | Self::Mkdir(path) | Self::Symlink(path) | Self::Unlink(path) => {
                path
            }
            Self::Rmdir(path) | Self::SetXattr(path, _) | Self::RemoveXattr(path) => path,
            Self::Link(_, path) | Self::Rename(_, path, _) => path,
            Self::Write(path, ..) | Self::Append(path, _) | Self::Truncate(path, _) => path,
            Self::Allocate(path, ..) => path,
        }
    }

    /// Makes the call, whose data are bytes of this kind.
    fn run(self, fs: &mut Fs<MemoryStore>, byte: u8) -> Result<(), FsError> {
        let new = |mode| NewFile { mode: mode | 0o755, uid: 0, gid: 0, rdev: 0, umask: 0 };
        let (dir, name) = place(fs, self.path())?;
        match self {
            Self::Create(_) => fs.make(dir, name, new(S_IFREG)).map(drop),
            Self::Mkdir(_) => fs.make(dir, name, new(S_IFDIR)).map(drop),
            Self::Symlink(_) => fs.symlink(dir, name, b"target", new(0)).map(drop),
            Self::Link(from, _) => {
                let file = look_up(fs, from)?;
                fs.link(file, dir, name)
            }
            Self::Unlink(_) => fs.unlink(dir, name),
            Self::Rmdir(_) => fs.rmdir(dir, name),
            Self::Rename(from, _, how) => {
                let from = place(fs, from)?;
                fs.rename(from, (dir, name), how)
            }
            Self::Write(_, offset, len) => {
                let file = fs.lookup(dir, name)?;
                fs.write(file, offset, &vec![byte; len])
            }
            Self::Append(_, len) => {
                let file = fs.lookup(dir, name)?;
                let end = fs.get_attr(file)?.size;
                fs.write(file, end, &vec![byte; len])
            }
            Self::Truncate(_, size) => {
                let file = fs.lookup(dir, name)?;
                let set = SetAttr { size: Some(size), ..SetAttr::default() };
                fs.set_attr(file, set).map(drop)
            }
            Self::Allocate(_, offset, len, how) => {
                let file = fs.lookup(dir, name)?;
                fs.allocate(file, offset, len, how)
            }
            Self::SetXattr(_, len) => {
                let file = fs.lookup(dir, name)?;
                fs.set_xattr(file, b"user.x", &vec![byte; len], SetXattr::Any)
            }
            Self::RemoveXattr(_) => {
                let file = fs.lookup(dir, name)?;
                fs.remove_xattr(file, b"user.x")
            }
        }
    }
}

/// A device with the files that the calls need, all of it durable.
fn prepare(kind: Kind, seed: u64) -> Image {
    let store = MemoryStore::new(SEGMENTS, 16, kind);
    let mut fs = Fs::format(store, 7, config(seed), TIME).unwrap();
    let calls = [
        Call::Mkdir("A"),
        Call::Mkdir("B"),
        Call::Mkdir("A/C"),
        Call::Create("A/foo"),
        Call::Create("A/bar"),
        Call::Create("B/baz"),
        Call::Symlink("A/s"),
        Call::Write("A/foo", 0, 10_000),
        Call::Write("A/bar", 0, 4096),
        Call::Write("B/baz", 500, 50),
        // Its map has three leaves, which are removed one by one.
        Call::Write("B/baz", 300 * 4096, 50),
        Call::Write("B/baz", 800 * 4096, 50),
        Call::Write("B/baz", 1100 * 4096, 50),
        Call::SetXattr("A/bar", 10),
    ];
    calls.iter().for_each(|call| call.run(&mut fs, 9).unwrap());
    fs.unmount().unwrap();
    fs.store().image()
}

/// The history of a pair, and the device over which it went.
struct Run {
    fs: Fs<MemoryStore>,
    store: MemoryStore,
    history: History,
}

impl Run {
    fn call(&mut self, call: Call, byte: u8) -> bool {
        let done = call.run(&mut self.fs, byte);
        assert_ne!(done, Err(FsError::NoSpace), "{call:?}");
        self.note(None);
        self.fs.remove_part().unwrap();
        done.is_ok()
    }

    /// Adds the state, and what was made durable in it.
    fn note(&mut self, synced: Option<Synced>) {
        let ops = self.store.ops();
        self.history.states.push((read_state(&mut self.fs), ops));
        if let Some(synced) = synced {
            self.history.syncs.push((self.history.states.len() - 1, ops, synced));
        }
    }

    /// The file of a path, or the root if it is gone.
    fn file(&mut self, path: Path) -> (u32, Synced) {
        let ino = look_up(&mut self.fs, path).unwrap_or(ROOT);
        let id = self.fs.get_attr(ino).unwrap().generation;
        (ino, Synced::File(id))
    }

    fn fsync(&mut self, path: Path) {
        let (ino, synced) = self.file(path);
        self.fs.fsync(&[ino]).unwrap();
        self.note(Some(synced));
    }
}

/// The pair of calls; `None` if the second one cannot be made after the first one. Returns the
/// operations of the device before the second one.
fn run(
    image: &Image,
    kind: Kind,
    seed: u64,
    [first, second]: [Call; 2],
    then: Then,
) -> Option<(Run, usize)> {
    let store = MemoryStore::of(image.clone(), kind, 1);
    let fs = mount(store.clone(), config(seed)).unwrap();
    let mut run = Run { fs, store, history: History { states: Vec::new(), syncs: Vec::new() } };
    run.note(None);
    assert!(run.call(first, 1), "{first:?}");
    let mut open = None;
    match then {
        Then::Nothing => {}
        Then::Fsync(path) => run.fsync(path),
        Then::InFlight => {
            let (ino, synced) = run.file(first.path());
            let call = run.history.states.len() - 1;
            open = Some((run.fs.begin_fsync(&[ino]).unwrap(), call, synced));
        }
        Then::Tick => run.fs.tick().unwrap(),
        Then::Sync => {
            run.fs.sync().unwrap();
            run.note(Some(Synced::All));
        }
        Then::Checkpoint => {
            run.fs.checkpoint().unwrap();
            run.note(Some(Synced::All));
        }
    }
    let before = run.store.ops();
    if !run.call(second, 2) {
        return None;
    }
    if let Some((fsync, call, synced)) = open {
        run.fs.end_fsync(fsync.wait()).unwrap();
        run.history.syncs.push((call, run.store.ops(), synced));
    }
    while run.fs.remove_part().unwrap() {
        run.fs.tick().unwrap();
    }
    run.fsync(second.path());
    run.fs.sync().unwrap();
    run.note(Some(Synced::All));
    Some((run, before))
}

/// All pairs with this first call. Returns how often power was lost.
fn pairs(seed: u64) -> u64 {
    let mut rng = Rng::stream(seed, "pairs");
    let first = CALLS[(seed % CALLS.len() as u64) as usize];
    let kind = if seed.is_multiple_of(2) { Kind::Flash } else { Kind::Drive };
    let image = prepare(kind, seed);
    let mut cuts = 0;
    for then in THENS {
        let mut shared = false;
        for second in CALLS {
            let Some((run, before)) = run(&image, kind, seed, [first, second], then) else {
                continue;
            };
            let ops = run.store.take_ops();
            let from = if shared { before + 1 } else { 0 };
            shared = true;
            let mut replay = Replay::new(image.clone(), &ops, kind);
            for at in from..=ops.len() {
                let mut images = replay.cuts_in_write(at, &mut rng);
                images.push(replay.cut(at, &mut rng));
                for image in images {
                    let (found, mounted) = check_image(&image, kind, seed);
                    run.history.check(&found, at);
                    cuts += 1 + cut_in_mount(&image, &mounted, &found, kind, seed, &mut rng);
                }
            }
        }
    }
    cuts
}

/// Runs the pairs of every second of the first `calls` calls with all calls; power is
/// lost at least `least` times.
fn pairs_on(kind: Kind, calls: usize, least: u64) {
    let is_flash = |seed: &u64| seed.is_multiple_of(2);
    let chosen = seeds(0..calls as u64).filter(|seed| is_flash(seed) == (kind == Kind::Flash));
    let cuts: u64 = chosen.map(pairs).sum();
    assert!(!all_seeds() || cuts >= least, "{cuts} losses of power");
}

#[test]
fn random_a_cut_in_every_write_of_pairs_of_calls_on_flash() {
    pairs_on(Kind::Flash, CALLS.len(), 76_000);
}

/// Fewer, because a mount reads the first blocks of all segments.
#[test]
fn random_a_cut_in_every_write_of_pairs_of_calls_on_a_drive() {
    pairs_on(Kind::Drive, 8, 15_800);
}
