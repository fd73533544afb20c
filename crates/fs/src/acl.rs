//! Access control lists of POSIX 1003.1e draft 17, which Linux keeps in two extended attributes.
//! Permissions are checked by the kernel. Here lists and mode bits are kept in step, and new files
//! inherit the default list of their folder. Source: acl(5).

use prism_segments::Store;

use crate::error::{FsError, Result};
use crate::format::{u16_at, u32_at};
use crate::fs::Fs;
use crate::names::NewFile;
use crate::node::{Attr, S_IFDIR, S_IFLNK, S_IFMT};
use crate::xattr::{Pairs, check};

/// The list that applies to a file.
pub const ACL_ACCESS: &[u8] = b"system.posix_acl_access";
/// The list that new files in a folder inherit.
pub const ACL_DEFAULT: &[u8] = b"system.posix_acl_default";

const VERSION: u32 = 2;
const ENTRY: usize = 8;

const USER_OBJ: u16 = 0x01;
const USER: u16 = 0x02;
const GROUP_OBJ: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AclEntry {
    tag: u16,
    permissions: u16,
    id: u32,
}

/// A list, in the order of tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Acl(Vec<AclEntry>);

impl Acl {
    /// The list in the value of an attribute; `None` for an empty one, which stands for no list.
    fn decode(value: &[u8]) -> Result<Option<Self>> {
        let wrong = FsError::Invalid("an access control list");
        if value.len() < 4
            || !(value.len() - 4).is_multiple_of(ENTRY)
            || u32_at(value, 0) != VERSION
        {
            return Err(wrong);
        }
        let entry = |bytes: &[u8]| AclEntry {
            tag: u16_at(bytes, 0),
            permissions: u16_at(bytes, 2),
            id: u32_at(bytes, 4),
        };
        let entries: Vec<AclEntry> = value[4..].chunks(ENTRY).map(entry).collect();
        if entries.is_empty() {
            return Ok(None);
        }
        let count = |tag: u16| entries.iter().filter(|entry| entry.tag == tag).count();
        let is_known = |entry: &AclEntry| {
            let known = [USER_OBJ, USER, GROUP_OBJ, GROUP, MASK, OTHER].contains(&entry.tag);
            known && entry.permissions <= 7
        };
        let needs_mask = count(USER) + count(GROUP) > 0;
        let is_valid = entries.iter().all(is_known)
            && entries.is_sorted_by_key(|entry| entry.tag)
            && [USER_OBJ, GROUP_OBJ, OTHER].iter().all(|&tag| count(tag) == 1)
            && count(MASK) <= 1
            && (count(MASK) == 1 || !needs_mask);
        if is_valid { Ok(Some(Self(entries))) } else { Err(wrong) }
    }

    fn encode(&self) -> Vec<u8> {
        let mut value = VERSION.to_le_bytes().to_vec();
        for entry in &self.0 {
            value.extend_from_slice(&entry.tag.to_le_bytes());
            value.extend_from_slice(&entry.permissions.to_le_bytes());
            value.extend_from_slice(&entry.id.to_le_bytes());
        }
        value
    }

    /// Whether the mode bits say the same.
    fn is_minimal(&self) -> bool {
        self.0.len() == 3
    }

    /// The permissions of owner, group and others in a mode: the group's are those of the mask.
    fn mode(&self) -> u32 {
        let of = |tag: u16| self.0.iter().find(|entry| entry.tag == tag);
        let bits = |entry: Option<&AclEntry>| entry.map_or(0, |entry| entry.permissions.into());
        let group = of(MASK).or(of(GROUP_OBJ));
        bits(of(USER_OBJ)) << 6 | bits(group) << 3 | bits(of(OTHER))
    }

    /// Changes the entries that a mode stands for.
    fn change(&mut self, with: impl Fn(u32) -> u32) {
        let mode = with(self.mode());
        let group = if self.0.iter().any(|entry| entry.tag == MASK) { MASK } else { GROUP_OBJ };
        for (tag, shift) in [(USER_OBJ, 6), (group, 3), (OTHER, 0)] {
            if let Some(entry) = self.0.iter_mut().find(|entry| entry.tag == tag) {
                entry.permissions = (mode >> shift & 7) as u16;
            }
        }
    }
}

/// Whether the name is that of a list.
pub(crate) fn is_acl(name: &[u8]) -> bool {
    name == ACL_ACCESS || name == ACL_DEFAULT
}

fn put(pairs: &mut Pairs, name: &[u8], value: Option<Vec<u8>>) {
    pairs.retain(|(known, _)| known != name);
    pairs.extend(value.map(|value| (name.to_vec(), value)));
}

fn find(pairs: &Pairs, name: &[u8]) -> Result<Option<Acl>> {
    let found = pairs.iter().find(|(known, _)| known == name);
    found.map_or(Ok(None), |(_, value)| Acl::decode(value))
}

impl<S: Store> Fs<S> {
    /// Sets a list of a file. The mode follows from the list that applies to it; a list that says
    /// no more than the mode is not stored.
    pub(crate) fn set_acl(&mut self, ino: u32, name: &[u8], value: &[u8]) -> Result<()> {
        let acl = Acl::decode(value)?;
        let attr = self.attr(ino)?;
        match attr.kind() {
            S_IFLNK => return Err(FsError::NotSupported),
            S_IFDIR => {}
            _ if name == ACL_DEFAULT && acl.is_some() => {
                return Err(FsError::Invalid("a default list of a file that is no folder"));
            }
            _ => {}
        }
        let mut pairs = self.xattrs(ino)?;
        let is_stored = |acl: &&Acl| name == ACL_DEFAULT || !acl.is_minimal();
        put(&mut pairs, name, acl.as_ref().filter(is_stored).map(Acl::encode));
        self.set_xattrs(ino, &pairs)?;
        if let (ACL_ACCESS, Some(acl)) = (name, acl) {
            let attr = self.attr_mut(ino)?;
            attr.mode = attr.mode & !0o777 | acl.mode();
        }
        Ok(())
    }

    /// The attributes of a file whose mode will change, if its list changes with it.
    pub(crate) fn with_mode(&mut self, ino: u32, mode: u32) -> Result<Pairs> {
        if self.attr(ino)?.xattr_bytes == 0 {
            return Ok(Pairs::new());
        }
        let mut pairs = self.xattrs(ino)?;
        let Some(mut acl) = find(&pairs, ACL_ACCESS)? else { return Ok(Pairs::new()) };
        acl.change(|_| mode & 0o777);
        let value = acl.encode();
        for pair in pairs.iter_mut().filter(|(known, _)| known == ACL_ACCESS) {
            pair.1.clone_from(&value);
        }
        Ok(pairs)
    }

    /// The mode of a new file, and its attributes: without a default list of the folder the umask
    /// applies, with one that list.
    pub(crate) fn inherited(
        &mut self,
        dir: u32,
        parent: &Attr,
        new: NewFile,
    ) -> Result<(u32, Pairs)> {
        let kind = new.mode & S_IFMT;
        let mut pairs = Pairs::new();
        if kind == S_IFLNK {
            return Ok((new.mode, pairs));
        }
        let default = match parent.xattr_bytes {
            0 => None,
            _ => find(&self.xattrs(dir)?, ACL_DEFAULT)?,
        };
        let Some(default) = default else { return Ok((new.mode & !(new.umask & 0o777), pairs)) };
        let mut access = default.clone();
        access.change(|mode| mode & new.mode);
        let mode = new.mode & !0o777 | access.mode();
        put(&mut pairs, ACL_ACCESS, (!access.is_minimal()).then(|| access.encode()));
        put(&mut pairs, ACL_DEFAULT, (kind == S_IFDIR).then(|| default.encode()));
        check(&pairs)?;
        Ok((mode, pairs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let entry = |&(tag, permissions, id): &(u16, u16, u32)| AclEntry { tag, permissions, id };
        Acl(entries.iter().map(entry).collect()).encode()
    }

    #[test]
    fn lists_are_valid_or_refused() {
        let (user, group, other) = ((USER_OBJ, 7, 0), (GROUP_OBJ, 5, 0), (OTHER, 4, 0));
        let valid = |entries: &[_]| Acl::decode(&list(entries)).is_ok();
        assert!(valid(&[]) && valid(&[user, group, other]));
        assert!(valid(&[user, (USER, 6, 9), group, (MASK, 4, 0), other]));
        assert!(!valid(&[user, (USER, 6, 9), group, other]), "named users need a mask");
        assert!(!valid(&[user, other]) && !valid(&[group, user, other]));
        assert!(!valid(&[user, group, (OTHER, 8, 0)]) && !valid(&[user, group, (OTHER + 1, 1, 0)]));
        assert!(Acl::decode(&[2, 0, 0]).is_err() && Acl::decode(&[3, 0, 0, 0]).is_err());
    }

    #[test]
    fn the_group_of_a_mode_is_the_mask() {
        let with_mask =
            [(USER_OBJ, 7, 0), (USER, 6, 9), (GROUP_OBJ, 5, 0), (MASK, 4, 0), (OTHER, 1, 0)];
        let mut acl = Acl::decode(&list(&with_mask)).unwrap().unwrap();
        assert_eq!(acl.mode(), 0o741);
        acl.change(|_| 0o620);
        let permissions: Vec<u16> = acl.0.iter().map(|entry| entry.permissions).collect();
        assert_eq!((permissions, acl.mode()), (vec![6, 6, 5, 2, 0], 0o620));
    }
}
