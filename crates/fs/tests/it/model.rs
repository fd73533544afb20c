//! A file system as plain maps, and random calls to it and to the real one.

use std::collections::BTreeMap;
use std::rc::Rc;

use prism_base::Rng;
use prism_fs::{
    Access, Allocate, Config, Damage, Fs, FsError, Fsync, NewFile, ROOT, Rename, S_IFDIR, S_IFLNK,
    S_IFREG, SetAttr, SetXattr, Time,
};
use prism_segments::Store;

use crate::memory::{Kind, MemoryStore};

const BLOCK: u64 = 4096;

/// The content of a file: blocks that are not all zeros, and the size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    pub size: u64,
    pub blocks: BTreeMap<u64, Rc<Vec<u8>>>,
}

impl Content {
    fn change(&mut self, offset: u64, bytes: &[u8]) {
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let begin = (at % BLOCK) as usize;
            let (now, later) = rest.split_at(rest.len().min(BLOCK as usize - begin));
            let block = self.blocks.entry(at / BLOCK).or_insert_with(|| Rc::new(vec![0; 4096]));
            Rc::make_mut(block)[begin..begin + now.len()].copy_from_slice(now);
            if block.iter().all(|&byte| byte == 0) {
                self.blocks.remove(&(at / BLOCK));
            }
            at += now.len() as u64;
            rest = later;
        }
    }

    fn zero(&mut self, begin: u64, end: u64) {
        let touched: Vec<u64> =
            self.blocks.range(begin / BLOCK..end.div_ceil(BLOCK)).map(|(at, _)| *at).collect();
        for at in touched {
            let from = begin.saturating_sub(at * BLOCK) as usize;
            let to = (end - at * BLOCK).min(BLOCK) as usize;
            Rc::make_mut(self.blocks.get_mut(&at).expect("there"))[from..to].fill(0);
        }
        self.trim();
    }

    fn trim(&mut self) {
        self.blocks.retain(|_, block| block.iter().any(|&byte| byte != 0));
    }

    pub fn read(&self, offset: u64, len: usize) -> Vec<u8> {
        let end = self.size.min(offset + len as u64);
        let byte = |at: u64| self.blocks.get(&(at / BLOCK)).map_or(0, |b| b[(at % BLOCK) as usize]);
        (offset..end).map(byte).collect()
    }
}

/// A file; its number is its generation, which is never used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub ino: u32,
    pub kind: u32,
    pub content: Rc<Content>,
    pub target: Vec<u8>,
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    pub children: BTreeMap<Vec<u8>, u64>,
}

/// All files by generation; that of the root is 1.
pub type State = BTreeMap<u64, File>;

/// Reads the state of a file system.
pub fn read_state<S: Store>(fs: &mut Fs<S>) -> State {
    let mut state = State::new();
    let mut open = vec![ROOT];
    while let Some(ino) = open.pop() {
        let attr = fs.get_attr(ino).unwrap();
        let mut file = File {
            ino,
            kind: attr.kind(),
            content: Rc::default(),
            target: Vec::new(),
            xattrs: BTreeMap::new(),
            children: BTreeMap::new(),
        };
        for name in fs.list_xattr(ino).unwrap() {
            let value = fs.get_xattr(ino, &name).unwrap();
            file.xattrs.insert(name, value);
        }
        match file.kind {
            S_IFREG => {
                let mut content = Content { size: attr.size, ..Content::default() };
                let mut at = 0;
                while let Ok(data) = fs.seek(ino, at, prism_fs::Seek::Data) {
                    let begin = data / BLOCK * BLOCK;
                    let bytes = fs.read(ino, begin, BLOCK as usize).unwrap();
                    content.change(begin, &bytes);
                    at = begin + BLOCK;
                }
                file.content = Rc::new(content);
            }
            S_IFLNK => file.target = fs.read_link(ino).unwrap(),
            S_IFDIR => {
                let mut from = Some(0);
                while let Some(hash) = from {
                    let (entries, next) = fs.list(ino, hash).unwrap();
                    for entry in entries {
                        let child = fs.get_attr(entry.ino).unwrap();
                        assert_eq!(u32::from(entry.kind), child.mode >> 12);
                        file.children.insert(entry.name, child.generation);
                        if !state.contains_key(&child.generation) {
                            open.push(entry.ino);
                        }
                    }
                    from = next;
                }
                assert_eq!(attr.size, file.children.len() as u64);
            }
            _ => {}
        }
        state.insert(attr.generation, file);
    }
    state
}

/// Without what no name leads to.
fn collect(state: &mut State) {
    let mut reached = std::collections::BTreeSet::from([1]);
    let mut open = vec![1];
    while let Some(id) = open.pop() {
        for &child in state[&id].children.values() {
            if reached.insert(child) {
                open.push(child);
            }
        }
    }
    state.retain(|id, _| reached.contains(id));
}

/// A file system and its model.
pub struct World<S> {
    pub fs: Fs<S>,
    pub state: State,
    pub now: i64,
    last: u8,
    calls: usize,
    /// The files that the last call made durable, and the call after which they had that state.
    pub synced: Option<(usize, Synced)>,
    /// Fsyncs that have begun, in which call, and the file.
    open: Vec<(Fsync, usize, Synced)>,
    /// Writes are longer, so that groups fill segments.
    pub long: bool,
}

/// What a call made durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Synced {
    All,
    /// All metadata, and the data of this file.
    File(u64),
}

pub const TIME: Time = Time { secs: 1_700_000_000, nanos: 5 };

/// A plain file.
pub const FILE: NewFile = NewFile { mode: S_IFREG | 0o644, uid: 0, gid: 0, rdev: 0, umask: 0 };

/// A new file system on flash of this many segments, and blocks of each.
pub fn formatted(segments: u32, blocks: u32, config: Config) -> Fs<MemoryStore> {
    Fs::format(MemoryStore::new(segments, blocks, Kind::Flash), 7, config, TIME).unwrap()
}

/// A new file system as it is used, and its store.
pub fn new() -> (Fs<MemoryStore>, MemoryStore) {
    let mut fs = formatted(64, 64, Config::NORMAL);
    let store = fs.store().clone();
    (fs, store)
}

/// The file system that a mount finds on what is on this flash now.
pub fn remounted(store: &MemoryStore, config: Config) -> Fs<MemoryStore> {
    mount(MemoryStore::of(store.image(), Kind::Flash, 1), config).unwrap()
}

/// Writes a checkpoint; the check of the whole finds nothing.
#[track_caller]
pub fn assert_sound<S: Store>(fs: &mut Fs<S>) {
    fs.checkpoint().unwrap();
    assert_eq!(fs.check().unwrap().problems, []);
}

pub fn mount<S: Store>(store: S, config: Config) -> Result<Fs<S>, FsError> {
    Fs::mount(store, config, TIME, Access::ReadWrite, Damage::Refuse)
}

impl<S: Store> World<S> {
    pub fn new(mut fs: Fs<S>) -> Self {
        let state = read_state(&mut fs);
        Self {
            fs,
            state,
            now: TIME.secs,
            last: 0,
            calls: 0,
            synced: None,
            open: Vec::new(),
            long: false,
        }
    }

    /// Goes on with the same file system, mounted again.
    pub fn remount(&mut self, fs: Fs<S>) {
        self.fs = fs;
        self.open.clear();
    }

    fn pick(&self, rng: &mut Rng, kind: Option<u32>) -> Option<u64> {
        let is = |file: &&u64| kind.is_none_or(|kind| self.state[file].kind == kind);
        let ids: Vec<u64> = self.state.keys().filter(is).copied().collect();
        (!ids.is_empty()).then(|| ids[rng.below(ids.len() as u64) as usize])
    }

    fn folder(&self, rng: &mut Rng) -> u64 {
        self.pick(rng, Some(S_IFDIR)).expect("the root is there")
    }

    fn name(rng: &mut Rng) -> Vec<u8> {
        let long = if rng.below(8) == 0 { 200 } else { 1 };
        let letter = b'a' + rng.below(14) as u8;
        vec![letter; long]
    }

    fn offset(rng: &mut Rng) -> u64 {
        let block = match rng.below(12) {
            0 => 215 + rng.below(20),
            1 => 223 + 250 + rng.below(5),
            2 => 223 + 252 * 1008 + rng.below(3),
            _ => rng.below(12),
        };
        block * BLOCK + if rng.chance(0.5) { 0 } else { rng.below(BLOCK) }
    }

    fn is_below(&self, mut id: u64, ancestor: u64) -> bool {
        loop {
            if id == ancestor {
                return true;
            }
            let parent =
                self.state.iter().find(|(_, file)| file.children.values().any(|&c| c == id));
            match parent {
                Some((&parent, _)) if id != 1 => id = parent,
                _ => return false,
            }
        }
    }

    fn make(&mut self, rng: &mut Rng, kind: u32) {
        let (dir, name) = (self.folder(rng), Self::name(rng));
        let parent = self.state[&dir].ino;
        let new = NewFile { mode: kind | 0o644, uid: 1, gid: 2, rdev: 0, umask: 0 };
        let target = vec![b't'; 1 + rng.below(300) as usize];
        let made = match kind {
            S_IFLNK => self.fs.symlink(parent, &name, &target, new),
            _ => self.fs.make(parent, &name, new),
        };
        if self.state[&dir].children.contains_key(&name) {
            return assert_eq!(made, Err(FsError::Exists));
        }
        let ino = match made {
            Err(FsError::NoSpace) => return,
            made => made.unwrap(),
        };
        let id = self.fs.get_attr(ino).unwrap().generation;
        let file = File {
            ino,
            kind,
            content: Rc::default(),
            target: if kind == S_IFLNK { target } else { Vec::new() },
            xattrs: BTreeMap::new(),
            children: BTreeMap::new(),
        };
        assert!(self.state.insert(id, file).is_none(), "generations are unique");
        self.state.get_mut(&dir).unwrap().children.insert(name, id);
    }

    fn content(&mut self, id: u64) -> &mut Content {
        Rc::make_mut(&mut self.state.get_mut(&id).unwrap().content)
    }

    fn write(&mut self, rng: &mut Rng) {
        let Some(id) = self.pick(rng, Some(S_IFREG)) else { return };
        let blocks = if self.long { 30 } else { 3 };
        let (offset, len) = (Self::offset(rng), 1 + rng.below(blocks * BLOCK) as usize);
        self.last = self.last.wrapping_add(1).max(1);
        let data = vec![self.last; len];
        match self.fs.write(self.state[&id].ino, offset, &data) {
            Err(FsError::NoSpace) => {
                // Nothing is written, since the range is one batch, or its first batch only.
                let size = self.fs.get_attr(self.state[&id].ino).unwrap().size;
                let done = size.min(offset + len as u64).saturating_sub(offset) as usize;
                let ino = self.state[&id].ino;
                let found = self.fs.read(ino, offset, done).unwrap();
                self.content(id).size = size;
                self.content(id).zero(offset, offset + done as u64);
                self.content(id).change(offset, &found);
            }
            result => {
                result.unwrap();
                let content = self.content(id);
                content.size = content.size.max(offset + len as u64);
                content.change(offset, &data);
            }
        }
    }

    fn resize(&mut self, rng: &mut Rng) {
        let Some(id) = self.pick(rng, Some(S_IFREG)) else { return };
        let size = if rng.below(4) == 0 { 0 } else { Self::offset(rng) };
        let set = SetAttr { size: Some(size), ..SetAttr::default() };
        self.fs.set_attr(self.state[&id].ino, set).unwrap();
        let content = self.content(id);
        content.zero(size, u64::MAX / 2);
        content.size = size;
    }

    fn allocate(&mut self, rng: &mut Rng) {
        let Some(id) = self.pick(rng, Some(S_IFREG)) else { return };
        let (offset, len) = (Self::offset(rng), 1 + rng.below(5 * BLOCK));
        let all = [
            Allocate::Extend,
            Allocate::KeepSize,
            Allocate::Punch,
            Allocate::Zero,
            Allocate::ZeroKeepSize,
        ];
        let how = all[rng.below(5) as usize];
        match self.fs.allocate(self.state[&id].ino, offset, len, how) {
            Err(FsError::NoSpace) => return,
            result => result.unwrap(),
        }
        let content = self.content(id);
        if !matches!(how, Allocate::Extend | Allocate::KeepSize) {
            content.zero(offset, offset + len);
        }
        if matches!(how, Allocate::Extend | Allocate::Zero) {
            content.size = content.size.max(offset + len);
        }
    }

    fn remove(&mut self, rng: &mut Rng) {
        let dir = self.folder(rng);
        let Some((name, id)) = self.any_child(rng, dir) else { return };
        let parent = self.state[&dir].ino;
        if self.state[&id].kind == S_IFDIR {
            assert_eq!(self.fs.unlink(parent, &name), Err(FsError::IsDirectory));
            let result = self.fs.rmdir(parent, &name);
            if !self.state[&id].children.is_empty() {
                return assert_eq!(result, Err(FsError::NotEmpty));
            }
            result.unwrap();
        } else {
            assert_eq!(self.fs.rmdir(parent, &name), Err(FsError::NotDirectory));
            self.fs.unlink(parent, &name).unwrap();
        }
        self.state.get_mut(&dir).unwrap().children.remove(&name);
        collect(&mut self.state);
    }

    fn any_child(&self, rng: &mut Rng, dir: u64) -> Option<(Vec<u8>, u64)> {
        let children = &self.state[&dir].children;
        let at = rng.below(children.len().max(1) as u64) as usize;
        children.iter().nth(at).map(|(name, id)| (name.clone(), *id))
    }

    fn link(&mut self, rng: &mut Rng) {
        let (Some(id), dir, name) = (self.pick(rng, None), self.folder(rng), Self::name(rng))
        else {
            return;
        };
        let result = self.fs.link(self.state[&id].ino, self.state[&dir].ino, &name);
        if self.state[&id].kind == S_IFDIR {
            return assert_eq!(result, Err(FsError::IsDirectory));
        }
        match result {
            Err(FsError::Exists) => assert!(self.state[&dir].children.contains_key(&name)),
            Err(FsError::NoSpace) => {}
            result => {
                result.unwrap();
                self.state.get_mut(&dir).unwrap().children.insert(name, id);
            }
        }
    }

    fn rename(&mut self, rng: &mut Rng) {
        let (dir, new_dir) = (self.folder(rng), self.folder(rng));
        let Some((name, id)) = self.any_child(rng, dir) else { return };
        let new_name = match self.any_child(rng, new_dir) {
            Some((name, _)) if rng.chance(0.6) => name,
            _ => Self::name(rng),
        };
        let how = match rng.below(6) {
            0 => Rename::NoReplace,
            1 | 2 => Rename::Exchange,
            _ => Rename::Replace,
        };
        let (from, to) = (self.state[&dir].ino, self.state[&new_dir].ino);
        let result = self.fs.rename((from, &name), (to, &new_name), how);
        let target = self.state[&new_dir].children.get(&new_name).copied();
        let is_dir = |id: u64| self.state[&id].kind == S_IFDIR;
        if matches!(result, Err(FsError::NoSpace)) {
            return;
        }
        let expected = match target {
            _ if is_dir(id) && self.is_below(new_dir, id) => Err("below"),
            None if how == Rename::Exchange => Err("none"),
            Some(other) if how == Rename::Exchange => {
                if is_dir(other) && self.is_below(dir, other) { Err("below") } else { Ok(()) }
            }
            Some(_) if how == Rename::NoReplace => Err("exists"),
            Some(other) if other == id => Ok(()),
            Some(other) if is_dir(id) != is_dir(other) => Err("type"),
            Some(other) if !self.state[&other].children.is_empty() => Err("not empty"),
            _ => Ok(()),
        };
        assert_eq!(result.is_ok(), expected.is_ok(), "{result:?} {expected:?}");
        if result.is_err() || target == Some(id) {
            return;
        }
        let old = self.state.get_mut(&dir).unwrap().children.remove(&name);
        assert_eq!(old, Some(id));
        self.state.get_mut(&new_dir).unwrap().children.insert(new_name, id);
        if let (Rename::Exchange, Some(other)) = (how, target) {
            self.state.get_mut(&dir).unwrap().children.insert(name, other);
        }
        collect(&mut self.state);
    }

    fn xattr(&mut self, rng: &mut Rng) {
        let Some(id) = self.pick(rng, None) else { return };
        let (ino, name) = (self.state[&id].ino, Self::name(rng));
        if rng.below(3) == 0 {
            let result = self.fs.remove_xattr(ino, &name);
            let had = self.state.get_mut(&id).unwrap().xattrs.remove(&name);
            return assert_eq!(result.is_ok(), had.is_some());
        }
        let value = vec![b'v'; rng.below(6000) as usize];
        match self.fs.set_xattr(ino, &name, &value, SetXattr::Any) {
            Err(FsError::NoSpace) => {}
            result => {
                result.unwrap();
                self.state.get_mut(&id).unwrap().xattrs.insert(name, value);
            }
        }
    }

    fn read(&mut self, rng: &mut Rng) {
        let Some(id) = self.pick(rng, Some(S_IFREG)) else { return };
        let (offset, len) = (Self::offset(rng), rng.below(9 * BLOCK) as usize);
        let file = &self.state[&id];
        let found = self.fs.read(file.ino, offset, len).unwrap();
        assert!(found == file.content.read(offset, len), "file {id} at {offset}");
    }

    /// A random call.
    pub fn step(&mut self, rng: &mut Rng) {
        self.synced = None;
        self.calls += 1;
        self.now += 1;
        self.fs.set_now(Time { secs: self.now, nanos: 0 });
        match rng.below(32) {
            0..=3 => self.make(rng, S_IFREG),
            4 => self.make(rng, S_IFDIR),
            5 => self.make(rng, S_IFLNK),
            6..=14 => self.write(rng),
            15 | 16 => self.resize(rng),
            17 | 18 => self.allocate(rng),
            19 | 20 => self.remove(rng),
            21 => self.link(rng),
            22..=24 => self.rename(rng),
            25 => self.xattr(rng),
            26 | 27 => self.read(rng),
            28 | 29 => {
                let id = self.pick(rng, None).expect("the root");
                let ino = self.state[&id].ino;
                if self.open.len() < 3 && rng.chance(0.5) {
                    let fsync = self.fs.begin_fsync(&[ino]).unwrap();
                    self.open.push((fsync, self.calls, Synced::File(id)));
                } else {
                    self.fs.fsync(&[ino]).unwrap();
                    self.synced = Some((self.calls, Synced::File(id)));
                }
            }
            30 => {
                self.fs.sync().unwrap();
                self.synced = Some((self.calls, Synced::All));
            }
            _ if rng.chance(0.5) => {
                self.fs.checkpoint().unwrap();
                self.synced = Some((self.calls, Synced::All));
            }
            _ => self.fs.tick().unwrap(),
        }
        self.end_fsync(rng);
        if self.calls.is_multiple_of(3) {
            self.fs.remove_part().unwrap();
        }
    }

    /// Takes the end of an fsync that began some calls ago.
    fn end_fsync(&mut self, rng: &mut Rng) {
        if self.synced.is_none() && !self.open.is_empty() && rng.chance(0.3) {
            let any = rng.below(self.open.len() as u64) as usize;
            let (fsync, call, synced) = self.open.swap_remove(any);
            self.fs.end_fsync(fsync.wait()).unwrap();
            self.synced = Some((call, synced));
        }
    }
}

/// The first difference between two states.
pub fn difference(found: &State, expected: &State) -> Option<String> {
    let ids = |state: &State| state.keys().copied().collect::<Vec<_>>();
    if ids(found) != ids(expected) {
        return Some(format!("files {:?}, expected {:?}", ids(found), ids(expected)));
    }
    for (id, file) in found {
        let other = &expected[id];
        let rest = |file: &File| (file.kind, file.children.clone(), file.target.len());
        if rest(file) != rest(other) || file.ino != other.ino {
            return Some(format!("file {id}: {:?}, expected {:?}", rest(file), rest(other)));
        }
        if file.xattrs != other.xattrs {
            return Some(format!("file {id}: attributes {:?}", file.xattrs.keys()));
        }
        let (a, b) = (&file.content, &other.content);
        if a.size != b.size {
            return Some(format!("file {id}: {} bytes, expected {}", a.size, b.size));
        }
        let blocks = a.blocks.keys().chain(b.blocks.keys());
        for at in blocks {
            let bytes = |content: &Content| content.blocks.get(at).map(|block| summary(block));
            if a.blocks.get(at) != b.blocks.get(at) {
                return Some(format!("file {id} block {at}: {:?}, not {:?}", bytes(a), bytes(b)));
            }
        }
    }
    None
}

/// Runs of equal bytes.
pub fn summary(block: &[u8]) -> Vec<(usize, u8)> {
    let changes = (0..block.len()).filter(|&at| at == 0 || block[at] != block[at - 1]);
    changes.map(|at| (at, block[at])).collect()
}
