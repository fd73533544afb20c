//! Damage of nodes that were written after the last checkpoint, one at a time: a mount refuses it,
//! and a repair cuts off what the node alone leads to.

use std::collections::BTreeMap;

use prism_base::Rng;
use prism_fs::format::{Kind as Payload, Summary};
use prism_fs::{Access, Config, Damage, Fs, FsError, NewFile, ROOT, S_IFREG, SetAttr, SetXattr};
use prism_testkit::seeds;

use crate::damage::{Store, Survey, fill, many, mount, repair};
use crate::memory::{Image, Op};
use crate::model::formatted;

const FILE: NewFile = NewFile { mode: S_IFREG | 0o644, uid: 1, gid: 2, rdev: 0, umask: 0 };

fn find(fs: &mut Fs<Store>, path: &str) -> u32 {
    path.split('/').fold(ROOT, |dir, name| fs.lookup(dir, name.as_bytes()).unwrap())
}

fn write(fs: &mut Fs<Store>, path: &str, block: u64, byte: u8) {
    let file = find(fs, path);
    fs.write(file, block * 4096, &[byte; 5000]).unwrap();
    fs.sync().unwrap();
}

/// Maps of several levels change, some nodes of them several times.
fn change_maps(fs: &mut Fs<Store>) {
    for byte in 1..4 {
        for block in [3, 230, 250] {
            write(fs, "large", block, byte);
        }
        for block in [0, 299, 300_000, 700_000] {
            write(fs, "sparse", block, byte);
        }
    }
    let sparse = find(fs, "sparse");
    let set = SetAttr { size: Some(400_000 * 4096 + 7), ..SetAttr::default() };
    fs.set_attr(sparse, set).unwrap();
    fs.sync().unwrap();
}

/// Names come and go in a folder of several buckets.
fn change_folders(fs: &mut Fs<Store>) {
    let folder = find(fs, "folder/many");
    for number in 0..6 {
        fs.unlink(folder, many(number).as_bytes()).unwrap();
        fs.sync().unwrap();
    }
    for number in 3..6 {
        fs.make(folder, many(number).as_bytes(), FILE).unwrap();
        fs.sync().unwrap();
    }
}

fn change_attributes(fs: &mut Fs<Store>) {
    for (path, len) in [("small", 5000), ("folder", 100), ("folder/many", 20_000), ("small", 90)] {
        let ino = find(fs, path);
        fs.set_xattr(ino, b"user.long", &vec![len as u8; len], SetXattr::Any).unwrap();
        fs.sync().unwrap();
    }
    let small = find(fs, "small");
    fs.remove_xattr(small, b"user.long").unwrap();
    fs.sync().unwrap();
}

/// Files are removed, one of them while it is open, and others take their numbers.
fn remove(fs: &mut Fs<Store>) {
    let large = find(fs, "large");
    fs.hold(large);
    for name in ["sparse", "large", "reserved"] {
        write(fs, name, 240, 9);
        fs.unlink(ROOT, name.as_bytes()).unwrap();
        fs.sync().unwrap();
    }
    fs.write(large, 0, &[8; 10_000]).unwrap();
    fs.sync().unwrap();
    for name in ["sparse", "reserved"] {
        fs.make(ROOT, name.as_bytes(), FILE).unwrap();
        write(fs, name, 2, 7);
    }
}

/// A place on the device, and the node there.
#[derive(Clone, Copy)]
struct NodeBlock {
    segment: usize,
    page: usize,
    id: u32,
    /// Whether no later node has its number.
    is_newest: bool,
}

/// The nodes that were written.
fn nodes_of(ops: &[Op]) -> Vec<NodeBlock> {
    let mut nodes: Vec<NodeBlock> = Vec::new();
    for op in ops {
        let Op::Write { segment, page, data } = op else { continue };
        let (summary, _) = Summary::decode(&data[0]).unwrap().expect("the write of a chunk");
        let mut at = *page;
        for entry in summary.entries {
            at += usize::from(entry.kind.has_payload());
            if matches!(entry.kind, Payload::Node | Payload::Free) {
                let older = nodes.iter_mut().filter(|node| node.id == entry.id);
                older.for_each(|node| node.is_newest = false);
            }
            if entry.kind == Payload::Node {
                let (segment, id) = (*segment as usize, entry.id);
                nodes.push(NodeBlock { segment, page: at, id, is_newest: true });
            }
        }
    }
    nodes
}

/// The paths of each inode.
fn paths(fs: &mut Fs<Store>) -> BTreeMap<u32, Vec<String>> {
    let mut paths = BTreeMap::from([(ROOT, vec![String::new()])]);
    let mut open = vec![(ROOT, String::new())];
    while let Some((dir, path)) = open.pop() {
        let mut from = Some(0);
        while let Some(hash) = from {
            let (entries, next) = fs.list(dir, hash).unwrap();
            for entry in entries {
                let path = format!("{path}/{}", String::from_utf8_lossy(&entry.name));
                if fs.get_attr(entry.ino).unwrap().is_dir() {
                    open.push((entry.ino, path.clone()));
                }
                paths.entry(entry.ino).or_default().push(path);
            }
            from = next;
        }
    }
    paths
}

/// The inode to which a node belongs.
fn owner(image: &Image, node: NodeBlock) -> u32 {
    let block = image[node.segment][node.page].as_ref().expect("it was written");
    u32::from_le_bytes(block[8..12].try_into().unwrap())
}

/// Counts of what the damaged nodes were.
#[derive(Default)]
struct Seen {
    refused: usize,
    inodes: usize,
    of_maps: usize,
    older: usize,
}

fn damage(image: &mut Image, node: NodeBlock, number: usize) {
    let page = image[node.segment][node.page].as_mut().expect("it was written");
    let mut bytes = page.to_vec();
    match number % 2 {
        0 => bytes.fill(0),
        _ => bytes[number * 37 % 4096] ^= 1,
    }
    *page = bytes.into();
}

/// A file system without damage.
struct Whole {
    image: Image,
    survey: Survey,
    /// Of each inode that has one.
    paths: BTreeMap<u32, Vec<String>>,
    files: u64,
}

impl Whole {
    fn of(image: Image) -> Self {
        let mut fs = mount(&image, Access::ReadOnly, Damage::Refuse).unwrap();
        let (survey, paths) = (Survey::of(&mut fs), paths(&mut fs));
        // Files without names are removed by this one.
        let mut fs = mount(&image, Access::ReadWrite, Damage::Refuse).unwrap();
        let report = fs.check().unwrap();
        assert_eq!((survey.failed, report.problems), (0, Vec::new()));
        Self { image, survey, paths, files: report.files }
    }

    /// What is missing here belongs to the node: a part of its file, a file below it, or its name.
    fn misses_only(&self, survey: &Survey, node: NodeBlock) {
        let none = Vec::new();
        let own = self.paths.get(&owner(&self.image, node)).unwrap_or(&none);
        let is_below = |path: &str, own: &str| {
            path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        for (path, part) in self.survey.readable.keys() {
            let name = format!("{path}/{}", part.trim_start_matches("entry "));
            let may_miss = own.iter().any(|own| is_below(path, own) || name == *own);
            let is_there = survey.readable.contains_key(&(path.clone(), part.clone()));
            assert!(is_there || node.is_newest && may_miss, "node {}: {path}, {part}", node.id);
        }
    }

    /// Damages a node, which is noticed, and repairs it.
    fn check(&self, node: NodeBlock, number: usize, seen: &mut Seen) {
        let mut damaged = self.image.clone();
        damage(&mut damaged, node, number);
        let mounted = mount(&damaged, Access::ReadOnly, Damage::Refuse);
        let is_refused = mounted.is_none();
        if let Some(mut fs) = mounted {
            Survey::of(&mut fs).is_within(&self.survey);
            assert_eq!(fs.check().unwrap().problems.is_empty(), !node.is_newest);
        }
        let before = repair(&damaged, &self.survey).expect("a repair accepts the damage");
        self.misses_only(&before, node);
        let mut fs = mount(&damaged, Access::ReadWrite, Damage::Accept).unwrap();
        let is_found = !fs.repair().unwrap().is_empty();
        assert_eq!(is_found, is_refused || node.is_newest, "node {}", node.id);
        let owner = owner(&self.image, node);
        let is_inode = node.id == owner;
        let is_lost =
            is_inode && node.is_newest && owner != ROOT && self.paths.contains_key(&owner);
        let lost_found = fs.lookup(ROOT, b"lost+found").is_ok();
        let files = self.files + u64::from(lost_found) - u64::from(is_lost);
        assert_eq!(fs.check().unwrap().files, files, "node {}", node.id);
        seen.refused += usize::from(is_refused);
        seen.inodes += usize::from(is_inode);
        seen.of_maps += usize::from(!is_inode);
        seen.older += usize::from(!node.is_newest);
    }
}

type Change = fn(&mut Fs<Store>);

/// A file system, the nodes that were written after a checkpoint, and those before it that changed
/// since.
fn prepare(before: &[Change], after: &[Change]) -> (Whole, Vec<NodeBlock>) {
    let mut fs = formatted(24, 64, Config::NORMAL);
    let store = fs.store().clone();
    before.iter().for_each(|change| change(&mut fs));
    fs.checkpoint().unwrap();
    let mut ops = store.take_ops();
    let first = nodes_of(&ops).len();
    after.iter().for_each(|change| change(&mut fs));
    ops.extend(store.take_ops());
    let count = nodes_of(&ops).len();
    // The newest transaction, whose damage is a loss of power, has nothing that matters here.
    let last = find(&mut fs, "device");
    fs.set_attr(last, SetAttr::default()).unwrap();
    fs.sync().unwrap();
    ops.extend(store.take_ops());
    assert!(!ops.iter().any(|op| matches!(op, Op::Free { .. })), "all that was written is there");
    let nodes = nodes_of(&ops).into_iter().enumerate().take(count);
    let nodes = nodes.filter(|(number, node)| *number >= first || !node.is_newest);
    (Whole::of(store.image()), nodes.map(|(_, node)| node).collect())
}

#[test]
fn each_node_after_the_checkpoint_is_damaged_and_repaired() {
    let mut seen = Seen::default();
    let mut check_each = |before: &[Change], after: &[Change]| {
        let (whole, nodes) = prepare(before, after);
        for (number, node) in nodes.into_iter().enumerate() {
            whole.check(node, number, &mut seen);
        }
    };
    for change in [change_maps, change_folders, change_attributes, remove] {
        check_each(&[fill], &[change]);
    }
    check_each(&[], &[fill, change_folders, change_maps, change_attributes, remove]);
    let Seen { refused, inodes, of_maps, older } = seen;
    assert!(
        refused > 200 && inodes > 150 && of_maps > 50 && older > 150,
        "{refused} refused, {inodes} inodes, {of_maps} of maps, {older} older"
    );
}

#[test]
fn random_several_nodes_after_the_checkpoint_are_damaged_and_repaired() {
    let (whole, nodes) =
        prepare(&[fill], &[change_maps, change_folders, change_attributes, remove]);
    for seed in seeds(0..40) {
        let mut rng = Rng::stream(seed, "nodes");
        let mut damaged = whole.image.clone();
        for _ in 0..2 + rng.below(20) {
            let node = nodes[rng.below(nodes.len() as u64) as usize];
            damage(&mut damaged, node, rng.below(4096) as usize);
        }
        if let Some(mut fs) = mount(&damaged, Access::ReadOnly, Damage::Refuse) {
            Survey::of(&mut fs).is_within(&whole.survey);
        }
        repair(&damaged, &whole.survey).expect("a repair accepts the damage");
    }
}

/// Damage of a summary hides one transaction; a repair finds those after it, and says so.
#[test]
fn a_repair_goes_on_after_a_damaged_transaction() {
    let mut fs = formatted(24, 64, Config::NORMAL);
    let store = fs.store().clone();
    fs.checkpoint().unwrap();
    store.take_ops();
    for name in [b"one", b"two"] {
        fs.make(ROOT, name, FILE).unwrap();
        fs.sync().unwrap();
    }
    let ops = store.take_ops();
    let Some(Op::Write { segment, page, .. }) = ops.first() else { panic!("{ops:?}") };
    store.damage(*segment as usize, *page, 20);
    let image = store.image();
    assert!(mount(&image, Access::ReadWrite, Damage::Refuse).is_none());
    let mut fs = mount(&image, Access::ReadWrite, Damage::Accept).unwrap();
    let repaired = fs.repair().unwrap();
    let is_lost = |what: &str| what.starts_with("the log is damaged after chunk ");
    assert!(repaired.iter().any(|problem| is_lost(&problem.what)), "{repaired:?}");
    assert!(fs.lost_changes());
    assert_eq!(fs.lookup(ROOT, b"one"), Err(FsError::NotFound));
    assert!(fs.lookup(ROOT, b"two").is_ok());
    let mut fs = mount(&fs.store().image(), Access::ReadWrite, Damage::Refuse).unwrap();
    assert_eq!(fs.repair().unwrap(), []);
}
