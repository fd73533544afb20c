//! Damage of an image with files of every kind: bytes flipped, blocks zeroed, and blocks in the
//! place of others. Nothing that is read differs from what was written, the check finds what cannot
//! be read, and a repair leaves everything that could be read before.

use std::collections::BTreeMap;

use prism_base::Rng;
use prism_fs::{
    Access, Allocate, Config, Damage, Fs, FsError, NewFile, ROOT, Report, S_IFCHR, S_IFDIR,
    S_IFLNK, S_IFREG, Seek, SetXattr,
};
use prism_testkit::{all_seeds, seeds};

use crate::memory::{Image, Kind, MemoryStore};
use crate::model::{TIME, formatted};

pub type Store = MemoryStore;
/// What of a file can be read, by path and part: the list of a folder, a block, an attribute.
type Readable = BTreeMap<(String, String), Vec<u8>>;

/// What can be read, and how many reads failed.
#[derive(Default)]
pub struct Survey {
    pub readable: Readable,
    pub failed: usize,
}

impl Survey {
    /// Notes the result of a read. It may fail, but not because the device did.
    fn note(&mut self, path: &str, part: String, read: Result<Vec<u8>, FsError>) {
        match read {
            Ok(bytes) => {
                self.readable.insert((path.into(), part), bytes);
            }
            Err(FsError::Damaged { .. } | FsError::Inconsistent(_) | FsError::NotFound) => {
                self.failed += 1;
            }
            Err(error) => panic!("{path}, {part}: {error}"),
        }
    }

    fn content(&mut self, fs: &mut Fs<Store>, ino: u32, path: &str, size: u64) {
        let mut at = 0;
        loop {
            match fs.seek(ino, at, Seek::Data) {
                Ok(data) => {
                    let begin = data / 4096 * 4096;
                    let read = fs.read(ino, begin, 4096);
                    self.note(path, format!("block {begin}"), read);
                    at = begin + 4096;
                }
                Err(FsError::NoData) => return,
                // The blocks below a leaf that cannot be read.
                Err(FsError::Damaged { .. } | FsError::Inconsistent(_)) => {
                    self.failed += 1;
                    at = (at / 4096 + 1) * 4096;
                }
                Err(error) => panic!("{path} at {at} of {size}: {error}"),
            }
        }
    }

    fn file(&mut self, fs: &mut Fs<Store>, ino: u32, path: &str, open: &mut Vec<(u32, String)>) {
        let attr = match fs.get_attr(ino) {
            Ok(attr) => attr,
            Err(error) => return self.note(path, "attributes".into(), Err(error)),
        };
        let facts = format!("{:o} {} {} {:?}", attr.mode, attr.uid, attr.rdev, attr.mtime);
        let size = if attr.kind() == S_IFREG { attr.size } else { 0 };
        self.note(path, "attributes".into(), Ok(format!("{facts} {size}").into()));
        match fs.list_xattr(ino) {
            Ok(names) => {
                for name in names {
                    let value = fs.get_xattr(ino, &name);
                    self.note(path, format!("attribute {name:?}"), value);
                }
            }
            Err(error) => self.note(path, "list of attributes".into(), Err(error)),
        }
        match attr.kind() {
            S_IFREG => self.content(fs, ino, path, attr.size),
            S_IFLNK => {
                let read = fs.read_link(ino);
                self.note(path, "target".into(), read);
            }
            S_IFDIR => self.folder(fs, ino, path, open),
            _ => {}
        }
    }

    /// The names that are known, which can be looked up also if others cannot be listed.
    fn folder(&mut self, fs: &mut Fs<Store>, dir: u32, path: &str, open: &mut Vec<(u32, String)>) {
        for name in NAMES.iter().map(|name| (*name).to_owned()).chain((0..MANY).map(many)) {
            match fs.lookup(dir, name.as_bytes()) {
                Ok(ino) => open.push((ino, format!("{path}/{name}"))),
                Err(FsError::NotFound) => {}
                Err(error) => self.note(path, name, Err(error)),
            }
        }
        let mut from = Some(0);
        while let Some(hash) = from {
            match fs.list(dir, hash) {
                Ok((entries, next)) => {
                    // A repair removes the names of files whose inodes are damaged.
                    for entry in entries.iter().filter(|entry| fs.get_attr(entry.ino).is_ok()) {
                        let name = String::from_utf8_lossy(&entry.name);
                        self.note(path, format!("entry {name}"), Ok(Vec::new()));
                    }
                    from = next;
                }
                Err(error) => return self.note(path, "list".into(), Err(error)),
            }
        }
    }

    pub fn of(fs: &mut Fs<Store>) -> Self {
        let mut survey = Self::default();
        let mut open = vec![(ROOT, String::new())];
        while let Some((ino, path)) = open.pop() {
            survey.file(fs, ino, &path, &mut open);
        }
        survey
    }

    /// Everything here is there as well, with the same bytes.
    pub fn is_within(&self, other: &Self) {
        for (part, bytes) in &self.readable {
            assert!(other.readable.get(part) == Some(bytes), "{part:?} is not the same");
        }
    }
}

const NAMES: [&str; 9] =
    ["large", "sparse", "reserved", "small", "link", "symbolic", "device", "folder", "many"];
const MANY: u32 = 60;

pub fn many(number: u32) -> String {
    format!("{number:060}")
}

/// Makes files of every kind.
pub fn fill(fs: &mut Fs<Store>) {
    let new = |mode| NewFile { mode: mode | 0o755, uid: 3, gid: 4, rdev: 259, umask: 0 };
    let data: Vec<u8> = (0..240 * 4096_u32).map(|at| (at / 11) as u8).collect();
    let large = fs.make(ROOT, b"large", new(S_IFREG)).unwrap();
    fs.write(large, 0, &data).unwrap();
    let sparse = fs.make(ROOT, b"sparse", new(S_IFREG)).unwrap();
    for at in [0, 300 * 4096 + 5, 300_000 * 4096] {
        fs.write(sparse, at, b"a few bytes").unwrap();
    }
    let reserved = fs.make(ROOT, b"reserved", new(S_IFREG)).unwrap();
    fs.allocate(reserved, 0, 100_000, Allocate::Extend).unwrap();
    let small = fs.make(ROOT, b"small", new(S_IFREG)).unwrap();
    fs.write(small, 0, b"small").unwrap();
    fs.set_xattr(small, b"user.long", &data[..9000], SetXattr::Any).unwrap();
    fs.symlink(ROOT, b"symbolic", b"small", new(0)).unwrap();
    fs.make(ROOT, b"device", new(S_IFCHR)).unwrap();
    let folder = fs.make(ROOT, b"folder", new(S_IFDIR)).unwrap();
    fs.link(small, folder, b"link").unwrap();
    let folder = fs.make(folder, b"many", new(S_IFDIR)).unwrap();
    for number in 0..MANY {
        let file = fs.make(folder, many(number).as_bytes(), new(S_IFREG)).unwrap();
        if number % 8 == 0 {
            fs.write(file, 0, &data[number as usize..][..100]).unwrap();
        }
    }
}

/// A file system with files of every kind, that was unmounted.
fn prepare() -> Image {
    let mut fs = formatted(24, 64, Config::NORMAL);
    fill(&mut fs);
    // The newest transaction has nothing that was not there before it: without it the file system
    // is the same.
    fs.checkpoint().unwrap();
    fs.checkpoint().unwrap();
    fs.unmount().unwrap();
    fs.store().image()
}

/// Damages some written pages.
fn damage(image: &mut Image, rng: &mut Rng) {
    let written: Vec<(usize, usize)> = (0..image.len())
        .flat_map(|segment| (0..image[segment].len()).map(move |page| (segment, page)))
        .filter(|&(segment, page)| image[segment][page].is_some())
        .collect();
    let any = |rng: &mut Rng| written[rng.below(written.len() as u64) as usize];
    let count = if rng.chance(0.5) { 1 } else { 2 + rng.below(30) };
    for _ in 0..count {
        let (segment, page) = any(rng);
        let old = image[segment][page].clone().expect("written");
        let new = match rng.below(4) {
            0 => vec![0; 4096].into(),
            1 => {
                let (segment, page) = any(rng);
                image[segment][page].clone().expect("written")
            }
            _ => {
                let mut bytes = old.to_vec();
                bytes[rng.below(4096) as usize] ^= 1 << rng.below(8);
                bytes.into()
            }
        };
        image[segment][page] = Some(new);
    }
}

pub fn mount(image: &Image, access: Access, damage: Damage) -> Option<Fs<Store>> {
    let store = Store::of(image.clone(), Kind::Flash, 1);
    let config = Config { cache_bytes: 64 * 4096, ..Config::NORMAL };
    match Fs::mount(store, config, TIME, access, damage) {
        Ok(fs) => Some(fs),
        Err(
            FsError::Inconsistent(_)
            | FsError::Damaged { .. }
            | FsError::NoCheckpoint
            | FsError::NotFormatted,
        ) => None,
        Err(error) => panic!("{error}"),
    }
}

/// What stays after a repair: blocks that are damaged.
fn assert_rest(report: &Report) {
    let other: Vec<_> = report.problems.iter().filter(|problem| !problem.is_unrepairable).collect();
    assert!(other.is_empty(), "{other:?}");
}

/// Returns what could be read without a repair, if anything.
pub fn repair(image: &Image, whole: &Survey) -> Option<Survey> {
    let mut fs = mount(image, Access::ReadOnly, Damage::Accept)?;
    let before = Survey::of(&mut fs);
    before.is_within(whole);
    let mut fs = mount(image, Access::ReadWrite, Damage::Accept).expect("as for reading");
    fs.repair().unwrap();
    assert_rest(&fs.check().unwrap());
    let after = Survey::of(&mut fs);
    before.is_within(&after);
    let image = fs.store().image();
    let mut fs = mount(&image, Access::ReadWrite, Damage::Refuse).expect("it was repaired");
    assert_rest(&fs.check().unwrap());
    let written = fs.store().writes();
    assert_eq!(fs.repair().unwrap(), []);
    assert_eq!(fs.store().writes(), written, "a second repair changes nothing");
    assert_eq!(Survey::of(&mut fs).readable, after.readable);
    Some(before)
}

#[test]
fn random_damage_is_never_read_and_a_repair_keeps_the_rest() {
    let image = prepare();
    let mut fs = mount(&image, Access::ReadOnly, Damage::Refuse).unwrap();
    let whole = Survey::of(&mut fs);
    assert_eq!((whole.failed, fs.check().unwrap().problems), (0, Vec::new()));
    let (mut refused, mut partly, mut repaired) = (0, 0, 0);
    for seed in seeds(0..100) {
        let mut rng = Rng::stream(seed, "damage");
        let mut image = image.clone();
        damage(&mut image, &mut rng);
        match mount(&image, Access::ReadOnly, Damage::Refuse) {
            Some(mut fs) => {
                let survey = Survey::of(&mut fs);
                survey.is_within(&whole);
                let report = fs.check().unwrap();
                assert!(survey.failed == 0 || !report.problems.is_empty(), "damage is not found");
                assert!(
                    !report.problems.is_empty() || survey.readable == whole.readable,
                    "{:?} are missing, and the check finds nothing",
                    whole
                        .readable
                        .keys()
                        .filter(|part| !survey.readable.contains_key(*part))
                        .collect::<Vec<_>>()
                );
                partly += u64::from(survey.failed > 0);
            }
            None => refused += 1,
        }
        repaired += u64::from(repair(&image, &whole).is_some_and(|survey| survey.failed > 0));
    }
    let counts = format!("refused {refused}, damaged in part {partly}, repaired {repaired}");
    assert!(!all_seeds() || (refused > 2 && partly > 75 && repaired > 75), "{counts}");
}
