//! Access control lists: kept in step with the mode, inherited, and there after a loss of power.

use prism_fs::{
    ACL_ACCESS, ACL_DEFAULT, Config, Fs, FsError, NewFile, ROOT, S_IFDIR, S_IFREG, SetAttr,
    SetXattr,
};

use crate::memory::MemoryStore;
use crate::model::{assert_sound, new, remounted};

const FILE: NewFile = NewFile { mode: S_IFREG | 0o666, uid: 0, gid: 0, rdev: 0, umask: 0o022 };
const DIR: NewFile = NewFile { mode: S_IFDIR | 0o777, ..FILE };

/// A list of the owner, the user 9, the group, the mask and others, each with these permissions.
fn list(permissions: [u8; 5]) -> Vec<u8> {
    let entry = |(tag, permissions): (u8, u8)| {
        let id = if tag == 2 { [9, 0, 0, 0] } else { [255; 4] };
        [&[tag, 0, permissions, 0][..], &id].concat()
    };
    let entries: Vec<u8> = [1, 2, 4, 16, 32].into_iter().zip(permissions).flat_map(entry).collect();
    [vec![2, 0, 0, 0], entries].concat()
}

fn minimal(permissions: [u8; 3]) -> Vec<u8> {
    let [user, group, other] = permissions;
    let whole = list([user, 0, group, 0, other]);
    [&whole[..12], &whole[20..28], &whole[36..]].concat()
}

fn permissions(fs: &mut Fs<MemoryStore>, ino: u32) -> u32 {
    fs.get_attr(ino).unwrap().mode & 0o7777
}

#[test]
fn a_list_and_the_mode_stay_in_step() {
    let (mut fs, store) = new();
    let file = fs.make(ROOT, b"file", FILE).unwrap();
    assert_eq!(permissions(&mut fs, file), 0o644, "the umask applies");
    fs.set_xattr(file, ACL_ACCESS, &list([6, 7, 4, 5, 1]), SetXattr::Any).unwrap();
    assert_eq!(permissions(&mut fs, file), 0o651, "the group bits are the mask");
    let set = SetAttr { mode: Some(0o4724), ..SetAttr::default() };
    fs.set_attr(file, set).unwrap();
    assert_eq!(fs.get_xattr(file, ACL_ACCESS), Ok(list([7, 7, 4, 2, 4])));
    fs.fsync(&[file]).unwrap();
    drop(fs);
    let mut fs = remounted(&store, Config::NORMAL);
    assert_eq!(fs.get_xattr(file, ACL_ACCESS), Ok(list([7, 7, 4, 2, 4])));
    assert_eq!(permissions(&mut fs, file), 0o4724);
    // A list that says no more than the mode is not stored.
    fs.set_xattr(file, ACL_ACCESS, &minimal([6, 4, 0]), SetXattr::Any).unwrap();
    assert_eq!(fs.get_xattr(file, ACL_ACCESS), Err(FsError::NoAttribute));
    assert_eq!(permissions(&mut fs, file), 0o4640);
    assert_sound(&mut fs);
}

#[test]
fn new_files_inherit_the_default_list() {
    let (mut fs, _) = new();
    let dir = fs.make(ROOT, b"dir", DIR).unwrap();
    let default = list([7, 6, 5, 7, 0]);
    fs.set_xattr(dir, ACL_DEFAULT, &default, SetXattr::Any).unwrap();
    assert_eq!(permissions(&mut fs, dir), 0o755, "the default list does not apply to the folder");
    let file = fs.make(dir, b"file", FILE).unwrap();
    assert_eq!(permissions(&mut fs, file), 0o660, "the mode asked for limits the list, no umask");
    assert_eq!(fs.get_xattr(file, ACL_ACCESS), Ok(list([6, 6, 5, 6, 0])));
    assert_eq!(fs.get_xattr(file, ACL_DEFAULT), Err(FsError::NoAttribute));
    let below = fs.make(dir, b"below", DIR).unwrap();
    assert_eq!(fs.get_xattr(below, ACL_DEFAULT), Ok(default));
    assert_eq!(fs.get_xattr(below, ACL_ACCESS), Ok(list([7, 6, 5, 7, 0])));
    let link = fs.symlink(dir, b"link", b"file", FILE).unwrap();
    assert_eq!(fs.list_xattr(link), Ok(vec![]));
    // A minimal default list replaces the umask, and is not stored in files.
    fs.set_xattr(dir, ACL_DEFAULT, &minimal([7, 7, 4]), SetXattr::Any).unwrap();
    let file = fs.make(dir, b"other", FILE).unwrap();
    assert_eq!((permissions(&mut fs, file), fs.list_xattr(file)), (0o664, Ok(vec![])));
    fs.set_xattr(dir, ACL_DEFAULT, &[2, 0, 0, 0], SetXattr::Any).unwrap();
    let file = fs.make(dir, b"last", FILE).unwrap();
    assert_eq!(permissions(&mut fs, file), 0o644, "an empty list is none");
    assert_sound(&mut fs);
}

#[test]
fn what_is_no_list_is_refused() {
    let (mut fs, _) = new();
    let file = fs.make(ROOT, b"file", FILE).unwrap();
    let link = fs.symlink(ROOT, b"link", b"file", FILE).unwrap();
    let mut set = |ino, name: &[u8], value: &[u8]| fs.set_xattr(ino, name, value, SetXattr::Any);
    assert!(matches!(set(file, ACL_ACCESS, b"nonsense"), Err(FsError::Invalid(_))));
    assert!(matches!(set(file, ACL_DEFAULT, &list([7; 5])), Err(FsError::Invalid(_))));
    assert_eq!(set(link, ACL_ACCESS, &list([7; 5])), Err(FsError::NotSupported));
    assert_eq!(permissions(&mut fs, file), 0o644);
}

/// A new folder would have the list twice, for which files have too little space.
#[test]
fn a_list_that_is_too_long_to_be_inherited_is_refused() {
    let (mut fs, _) = new();
    let dir = fs.make(ROOT, b"dir", DIR).unwrap();
    let short = list([7, 6, 5, 7, 0]);
    let users = (0..4400_u32).flat_map(|user| {
        let [a, b, c, d] = (1000 + user).to_le_bytes();
        [2, 0, 6, 0, a, b, c, d]
    });
    let users: Vec<u8> = users.collect();
    let long = [&short[..20], &users, &short[20..]].concat();
    fs.set_xattr(dir, ACL_DEFAULT, &long, SetXattr::Any).unwrap();
    assert_eq!(fs.make(dir, b"below", DIR), Err(FsError::NoSpace));
    let file = fs.make(dir, b"file", FILE).unwrap();
    assert!(fs.get_xattr(file, ACL_ACCESS).unwrap().len() == long.len());
    assert_sound(&mut fs);
}
