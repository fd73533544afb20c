//! Nodes: inodes, and the leaves and inner nodes of the trees that map the blocks of large files.
//! Each is one block, and has a number that stays when it moves.

use crate::data::FILE_MAX;
use crate::error::{FsError, Result};
use crate::format::{BLOCK, Block, put, u32_at, u64_at, zeros};

/// Pointers in a leaf.
pub const LEAF: usize = 252;
/// Children of an inner node.
pub const FANOUT: usize = 1008;
/// Levels of the tree of a file at most: those that the largest file needs.
const HEIGHT_MAX: u32 = 4;
/// Pointers in an inode to blocks of extended attributes.
pub const XATTRS: usize = 17;
/// Pointers in an inode to blocks of the file.
pub const DIRECT: usize = 223;

const HEADER: usize = 64;
const POINTERS: usize = 256;
const POINTER: usize = 16;

/// There is no block: it reads as zeros.
pub const HOLE: u32 = 0;
/// There is no block, but space for it is reserved: it reads as zeros.
pub const RESERVED: u32 = u32::MAX;
/// In a folder: the bucket was split.
pub const SPLIT: u32 = u32::MAX - 1;

/// Where a block is, and how often and when it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pointer {
    /// Its address in blocks, or [`HOLE`], [`RESERVED`] or [`SPLIT`].
    pub addr: u32,
    /// Its checksum.
    pub sum: u32,
    /// Times that it was overwritten.
    pub writes: u32,
    /// When it was written last, in units of the clock of writes.
    pub time: u32,
}

impl Pointer {
    /// No block.
    pub const HOLE: Self = Self { addr: HOLE, sum: 0, writes: 0, time: 0 };

    /// Whether there is a block on flash.
    #[must_use]
    pub fn is_block(&self) -> bool {
        !matches!(self.addr, HOLE | RESERVED | SPLIT)
    }

    fn encode(&self) -> [u8; POINTER] {
        let [addr, sum] = [self.addr, self.sum].map(u128::from);
        let [writes, time] = [self.writes, self.time].map(u128::from);
        (addr | sum << 32 | writes << 64 | time << 96).to_le_bytes()
    }

    fn decode(bytes: [u8; POINTER]) -> Self {
        let all = u128::from_le_bytes(bytes);
        let word = |at: u32| (all >> at) as u32;
        Self { addr: word(0), sum: word(32), writes: word(64), time: word(96) }
    }
}

/// Seconds since 1970, and nanoseconds of the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Seconds.
    pub secs: i64,
    /// Nanoseconds, less than a second.
    pub nanos: u32,
}

/// The attributes of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attr {
    /// Type and permissions, as in `st_mode`.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Links.
    pub nlink: u32,
    /// Bytes; entries of a folder.
    pub size: u64,
    /// Bytes as of the last transaction: data after them were not written.
    pub(crate) disk_size: u64,
    /// Device of a special file.
    pub rdev: u32,
    /// A number that distinguishes files that have the same inode number one after the other.
    pub generation: u64,
    /// Last access.
    pub atime: Time,
    /// Last change of the data.
    pub mtime: Time,
    /// Last change.
    pub ctime: Time,
    /// When it was made.
    pub btime: Time,
    /// The folder above a folder.
    pub parent: u32,
    pub(crate) height: u32,
    pub(crate) root: u32,
    /// Bytes of extended attributes.
    pub(crate) xattr_bytes: u32,
    /// Blocks of 4 KiB, reserved ones included.
    pub blocks: u64,
    /// Blocks that were written to the file, and when, in units of the clock of writes.
    pub(crate) writes: u32,
    pub(crate) time: u32,
}

/// Type bits of a mode.
pub const S_IFMT: u32 = 0o170_000;
/// A folder.
pub const S_IFDIR: u32 = 0o040_000;
/// A regular file.
pub const S_IFREG: u32 = 0o100_000;
/// A symbolic link.
pub const S_IFLNK: u32 = 0o120_000;
/// A character device.
pub const S_IFCHR: u32 = 0o020_000;
/// The bit of a mode that gives a program the group of its file, and a new file that of its folder.
pub const S_ISGID: u32 = 0o2000;

impl Attr {
    /// Type bits of the mode.
    #[must_use]
    pub fn kind(&self) -> u32 {
        self.mode & S_IFMT
    }

    /// Whether it is a folder.
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.kind() == S_IFDIR
    }

    /// Whether its blocks belong to every transaction, as those of folders do.
    pub(crate) fn has_metadata_blocks(&self) -> bool {
        self.kind() != S_IFREG
    }
}

/// An inode: attributes and the first pointers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Attributes.
    pub attr: Attr,
    /// Pointers: [`XATTRS`] for attributes, then [`DIRECT`] for the file.
    pub pointers: Box<[Pointer; XATTRS + DIRECT]>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// An inode.
    Inode(Box<Inode>),
    /// Pointers to blocks of the file `owner`.
    Leaf {
        /// The file.
        owner: u32,
        /// The pointers.
        pointers: Box<[Pointer; LEAF]>,
    },
    /// Numbers of nodes below, 0 for none.
    Inner {
        /// The file.
        owner: u32,
        /// The numbers.
        children: Box<[u32; FANOUT]>,
    },
}

const INODE: u32 = 0x444f_4e49;
const LEAF_MAGIC: u32 = 0x4641_454c;
const INNER: u32 = 0x524e_4e49;

/// As many pointers as a node has.
fn holes<const COUNT: usize>() -> Box<[Pointer; COUNT]> {
    vec![Pointer::HOLE; COUNT].try_into().expect("the length is that of the array")
}

fn encode_pointers(pointers: &[Pointer], out: &mut [u8]) {
    for (pointer, bytes) in pointers.iter().zip(out.as_chunks_mut().0) {
        *bytes = pointer.encode();
    }
}

fn decode_pointers<const COUNT: usize>(bytes: &[u8]) -> Box<[Pointer; COUNT]> {
    let mut pointers = holes();
    for (pointer, bytes) in pointers.iter_mut().zip(bytes.as_chunks().0) {
        *pointer = Pointer::decode(*bytes);
    }
    pointers
}

impl Node {
    /// An empty leaf.
    #[must_use]
    pub fn leaf(owner: u32) -> Self {
        Self::Leaf { owner, pointers: holes() }
    }

    /// An inner node without children.
    #[must_use]
    pub fn inner(owner: u32) -> Self {
        Self::Inner { owner, children: Box::new([0; FANOUT]) }
    }

    /// An inode without blocks.
    #[must_use]
    pub fn inode(attr: Attr) -> Self {
        Self::Inode(Box::new(Inode { attr, pointers: holes() }))
    }

    /// Its pointers.
    #[must_use]
    pub fn pointers(&self) -> &[Pointer] {
        match self {
            Self::Inode(inode) => &inode.pointers[..],
            Self::Leaf { pointers, .. } => &pointers[..],
            Self::Inner { .. } => &[],
        }
    }

    /// Its pointers, to change them.
    pub fn pointers_mut(&mut self) -> &mut [Pointer] {
        match self {
            Self::Inode(inode) => &mut inode.pointers[..],
            Self::Leaf { pointers, .. } => &mut pointers[..],
            Self::Inner { .. } => &mut [],
        }
    }

    /// The block that it is on flash.
    #[must_use]
    pub fn encode(&self, id: u32) -> Block {
        let mut block = zeros();
        let out = &mut block[..];
        let (magic, owner) = match self {
            Self::Inode(_) => (INODE, id),
            Self::Leaf { owner, .. } => (LEAF_MAGIC, *owner),
            Self::Inner { owner, .. } => (INNER, *owner),
        };
        put(out, 0, &magic.to_le_bytes());
        put(out, 4, &id.to_le_bytes());
        put(out, 8, &owner.to_le_bytes());
        match self {
            Self::Inode(inode) => {
                encode_attr(&inode.attr, out);
                encode_pointers(&inode.pointers[..], &mut out[POINTERS..]);
            }
            Self::Leaf { pointers, .. } => encode_pointers(&pointers[..], &mut out[HEADER..]),
            Self::Inner { children, .. } => {
                for (child, at) in children.iter().zip((HEADER..).step_by(4)) {
                    put(out, at, &child.to_le_bytes());
                }
            }
        }
        block
    }

    /// The node in a block whose checksum is right.
    ///
    /// # Errors
    /// [`FsError::Inconsistent`] if it is another node.
    pub fn decode(bytes: &[u8; BLOCK], id: u32) -> Result<Self> {
        let (magic, owner) = (u32_at(bytes, 0), u32_at(bytes, 8));
        if u32_at(bytes, 4) != id {
            return Err(FsError::Inconsistent(format!("node {id} is not where it should be")));
        }
        match magic {
            INODE => {
                let (attr, pointers) = (decode_attr(bytes), decode_pointers(&bytes[POINTERS..]));
                check_attr(&attr, id)?;
                Ok(Self::Inode(Box::new(Inode { attr, pointers })))
            }
            LEAF_MAGIC => Ok(Self::Leaf { owner, pointers: decode_pointers(&bytes[HEADER..]) }),
            INNER => {
                let children = Box::new(std::array::from_fn(|at| u32_at(bytes, HEADER + at * 4)));
                Ok(Self::Inner { owner, children })
            }
            _ => Err(FsError::Inconsistent(format!("node {id} has no known type"))),
        }
    }
}

fn encode_attr(attr: &Attr, out: &mut [u8]) {
    let words = [
        (16, attr.mode),
        (20, attr.uid),
        (24, attr.gid),
        (28, attr.nlink),
        (32, attr.rdev),
        (36, attr.parent),
        (40, attr.height),
        (44, attr.root),
        (48, attr.xattr_bytes),
        (52, attr.writes),
        (56, attr.time),
    ];
    for (at, word) in words {
        put(out, at, &word.to_le_bytes());
    }
    for (at, long) in [(64, attr.disk_size), (72, attr.generation), (80, attr.blocks)] {
        put(out, at, &long.to_le_bytes());
    }
    for (at, time) in [(88, attr.atime), (100, attr.mtime), (112, attr.ctime), (124, attr.btime)] {
        put(out, at, &time.secs.to_le_bytes());
        put(out, at + 8, &time.nanos.to_le_bytes());
    }
}

/// Refuses attributes on which a walk over the file would not end.
fn check_attr(attr: &Attr, id: u32) -> Result<()> {
    let wrong = |what| Err(FsError::Inconsistent(format!("node {id} has an impossible {what}")));
    match attr {
        _ if attr.kind() == S_IFREG && attr.size > FILE_MAX => wrong("size"),
        _ if attr.height > HEIGHT_MAX || (attr.height == 0) != (attr.root == 0) => wrong("tree"),
        _ => Ok(()),
    }
}

fn decode_attr(bytes: &[u8]) -> Attr {
    let word = |at| u32_at(bytes, at);
    let time = |at: usize| Time { secs: u64_at(bytes, at) as i64, nanos: word(at + 8) };
    Attr {
        mode: word(16),
        uid: word(20),
        gid: word(24),
        nlink: word(28),
        size: u64_at(bytes, 64),
        disk_size: u64_at(bytes, 64),
        rdev: word(32),
        generation: u64_at(bytes, 72),
        atime: time(88),
        mtime: time(100),
        ctime: time(112),
        btime: time(124),
        parent: word(36),
        height: word(40),
        root: word(44),
        xattr_bytes: word(48),
        blocks: u64_at(bytes, 80),
        writes: word(52),
        time: word(56),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_read_as_they_were_written() {
        let time = |n: u32| Time { secs: -i64::from(n), nanos: n };
        let attr = Attr {
            mode: 1,
            uid: 2,
            gid: 3,
            nlink: 4,
            size: 1 << 43,
            disk_size: 1 << 43,
            rdev: 5,
            generation: 6 << 33,
            atime: time(1),
            mtime: time(2),
            ctime: time(3),
            btime: time(4),
            parent: 7,
            height: 4,
            root: 9,
            xattr_bytes: 10,
            blocks: 11 << 33,
            writes: 12,
            time: 13,
        };
        let mut nodes = [Node::inode(attr), Node::leaf(9), Node::inner(9)];
        for node in &mut nodes {
            for (at, pointer) in (0..).zip(node.pointers_mut()) {
                *pointer = Pointer { addr: at, sum: at + 1, writes: at + 2, time: at + 3 };
            }
            if let Node::Inner { children, .. } = node {
                children.iter_mut().zip(5..).for_each(|(child, id)| *child = id);
            }
            assert_eq!(Node::decode(&node.encode(77), 77), Ok(node.clone()));
            assert!(Node::decode(&node.encode(77), 78).is_err());
        }
    }
}
