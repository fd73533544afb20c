//! Extended attributes: a list of names and values in up to 17 blocks of their own.

use prism_segments::Store;

use crate::acl::is_acl;
use crate::error::{FsError, Result};
use crate::format::{BLOCK, u32_at};
use crate::fs::{Fs, XATTR};
use crate::node::XATTRS;

/// Bytes of a value at most.
pub const VALUE_MAX: usize = 65_536;

/// How an attribute is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetXattr {
    /// It may exist or not.
    Any,
    /// It must not exist.
    Create,
    /// It must exist.
    Replace,
}

/// Names and values.
pub(crate) type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn decode(mut bytes: &[u8]) -> Option<Pairs> {
    let mut pairs = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_at_checked(5)?;
        let (name, rest) = rest.split_at_checked(head[0].into())?;
        let (value, rest) = rest.split_at_checked(u32_at(head, 1) as usize)?;
        pairs.push((name.to_vec(), value.to_vec()));
        bytes = rest;
    }
    Some(pairs)
}

fn encode(pairs: &Pairs) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in pairs {
        bytes.push(name.len() as u8);
        bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(value);
    }
    bytes
}

/// Whether encoded attributes fit into the blocks that a file has for them.
fn check_len(bytes: &[u8]) -> Result<()> {
    if bytes.len() > XATTRS * BLOCK { Err(FsError::NoSpace) } else { Ok(()) }
}

/// Refuses attributes that [`Fs::put_xattrs`] could not store.
pub(crate) fn check(pairs: &Pairs) -> Result<()> {
    check_len(&encode(pairs))
}

impl<S: Store> Fs<S> {
    pub(crate) fn xattrs(&mut self, ino: u32) -> Result<Pairs> {
        let len = self.attr(ino)?.xattr_bytes as usize;
        let wrong = || FsError::Inconsistent(format!("file {ino} has impossible attributes"));
        let mut bytes = Vec::with_capacity(len);
        for at in 0..len.div_ceil(BLOCK).min(XATTRS) as u64 {
            let block = self.block((ino, XATTR + at))?.ok_or_else(wrong)?;
            bytes.extend_from_slice(&block[..]);
        }
        decode(bytes.get(..len).ok_or_else(wrong)?).ok_or_else(wrong)
    }

    pub(crate) fn set_xattrs(&mut self, ino: u32, pairs: &Pairs) -> Result<()> {
        let bytes = encode(pairs);
        check_len(&bytes)?;
        let count = bytes.len().div_ceil(BLOCK);
        let had = (self.attr(ino)?.xattr_bytes as usize).div_ceil(BLOCK);
        self.begin(count.saturating_sub(had) as u64)?;
        self.store_xattrs(ino, &bytes)
    }

    /// Stores encoded attributes, for which there is space.
    fn store_xattrs(&mut self, ino: u32, bytes: &[u8]) -> Result<()> {
        let count = bytes.len().div_ceil(BLOCK);
        for (chunk, at) in bytes.chunks(BLOCK).zip(0..) {
            let block = self.block_mut((ino, XATTR + at), false)?;
            block[..chunk.len()].copy_from_slice(chunk);
            block[chunk.len()..].fill(0);
        }
        self.remove_xattr_blocks(ino, count)?;
        let now = self.now;
        let attr = self.attr_mut(ino)?;
        (attr.xattr_bytes, attr.ctime) = (bytes.len() as u32, now);
        Ok(())
    }

    /// Stores attributes for which there is space, as a part of another call.
    pub(crate) fn put_xattrs(&mut self, ino: u32, pairs: &Pairs) -> Result<()> {
        if pairs.is_empty() { Ok(()) } else { self.store_xattrs(ino, &encode(pairs)) }
    }

    /// The value of an attribute.
    ///
    /// # Errors
    /// [`FsError::NoAttribute`], and those of reads.
    pub fn get_xattr(&mut self, ino: u32, name: &[u8]) -> Result<Vec<u8>> {
        let found = self.xattrs(ino)?.into_iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value).ok_or(FsError::NoAttribute)
    }

    /// The names of all attributes.
    ///
    /// # Errors
    /// Those of reads.
    pub fn list_xattr(&mut self, ino: u32) -> Result<Vec<Vec<u8>>> {
        Ok(self.xattrs(ino)?.into_iter().map(|(name, _)| name).collect())
    }

    /// Sets an attribute.
    ///
    /// # Errors
    /// [`FsError::Exists`] and [`FsError::NoAttribute`] by `how`; [`FsError::NoSpace`] if all
    /// attributes of the file would take more than 68 KiB; [`FsError::Invalid`] for an access
    /// control list that is none.
    pub fn set_xattr(&mut self, ino: u32, name: &[u8], value: &[u8], how: SetXattr) -> Result<()> {
        if name.is_empty() || name.len() > 255 || value.len() > VALUE_MAX {
            return Err(FsError::Invalid("the length of an attribute"));
        }
        let mut pairs = self.xattrs(ino)?;
        let at = pairs.iter().position(|(known, _)| known == name);
        match (at, how) {
            (Some(_), SetXattr::Create) => return Err(FsError::Exists),
            (None, SetXattr::Replace) => return Err(FsError::NoAttribute),
            _ if is_acl(name) => return self.set_acl(ino, name, value),
            (Some(at), _) => pairs[at].1 = value.to_vec(),
            (None, _) => pairs.push((name.to_vec(), value.to_vec())),
        }
        self.set_xattrs(ino, &pairs)
    }

    /// Removes an attribute.
    ///
    /// # Errors
    /// [`FsError::NoAttribute`], and those of reads.
    pub fn remove_xattr(&mut self, ino: u32, name: &[u8]) -> Result<()> {
        let mut pairs = self.xattrs(ino)?;
        let before = pairs.len();
        pairs.retain(|(known, _)| known != name);
        if pairs.len() == before {
            return Err(FsError::NoAttribute);
        }
        self.set_xattrs(ino, &pairs)
    }
}
