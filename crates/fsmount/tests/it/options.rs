//! Options of mounts do what they ask for.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use prism_fs::{Access, Attr, Config, Damage, Fs, FsError, ROOT};
use prism_fsmount::{AnyStore, open};

use crate::mounted::{Mount, new};

/// The file system as it is on the device now, as after the process was killed.
pub struct Killed(Fs<AnyStore>);

impl Killed {
    pub fn of(file: &Path) -> Self {
        let copy = file.with_extension("copy");
        fs::copy(file, &copy).unwrap();
        let mut fs = open(&copy, Config::NORMAL, Access::ReadWrite, Damage::Refuse).unwrap().fs;
        assert_eq!(fs.check().unwrap().problems, []);
        Self(fs)
    }

    pub fn attr(&mut self, name: &str) -> Result<(u32, Attr), FsError> {
        let found = self.0.lookup(ROOT, name.as_bytes())?;
        Ok((found, self.0.get_attr(found)?))
    }

    pub fn content(&mut self, name: &str) -> Vec<u8> {
        let (file, _) = self.attr(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        self.0.read(file, 0, 1 << 20).unwrap()
    }
}

/// Each call of a mount with `sync` is durable when it returns.
#[test]
fn with_sync_all_is_durable_at_once() {
    let Some((_folder, file, at)) = new() else { return };
    for options in ["sync", "sync,writethrough"] {
        let mounted = Mount::new(&file, &at, options);
        let path = |name: &str| at.join(name);
        let written = File::create(path("file")).unwrap();
        (&written).write_all(&[7; 10_000]).unwrap();
        assert_eq!(Killed::of(&file).content("file"), [7; 10_000], "{options}");
        written.write_all_at(b"more", 4000).unwrap();
        assert_eq!(Killed::of(&file).content("file")[4000..4004], *b"more");
        written.set_len(5000).unwrap();
        assert_eq!(Killed::of(&file).content("file").len(), 5000);
        fs::set_permissions(path("file"), PermissionsExt::from_mode(0o640)).unwrap();
        assert_eq!(Killed::of(&file).attr("file").unwrap().1.mode & 0o777, 0o640);
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(path("file"), "user.colour", b"red", flags).unwrap();
        let mut killed = Killed::of(&file);
        let (found, _) = killed.attr("file").unwrap();
        assert_eq!(killed.0.get_xattr(found, b"user.colour").unwrap(), b"red");
        drop(killed);
        fs::rename(path("file"), path("renamed")).unwrap();
        assert_eq!(Killed::of(&file).content("renamed").len(), 5000);
        fs::remove_file(path("renamed")).unwrap();
        assert!(Killed::of(&file).attr("renamed").is_err(), "{options}");
        drop((written, mounted));
    }
}

/// Names are durable when the call returns with `dirsync`; without it they are after some seconds.
#[test]
fn with_dirsync_names_are_durable_at_once() {
    let Some((_folder, file, at)) = new() else { return };
    let mounted = Mount::new(&file, &at, "dirsync");
    let path = |name: &str| at.join(name);
    let there = |name: &str| Killed::of(&file).attr(name).is_ok();
    fs::create_dir(path("folder")).unwrap();
    assert!(there("folder"));
    File::create(path("file")).unwrap();
    assert!(there("file"));
    fs::hard_link(path("file"), path("hard")).unwrap();
    assert!(there("hard"));
    std::os::unix::fs::symlink("file", path("link")).unwrap();
    assert!(there("link"));
    fs::rename(path("link"), path("other")).unwrap();
    assert!(there("other") && !there("link"));
    fs::remove_dir(path("folder")).unwrap();
    assert!(!there("folder"));
    drop(mounted);
}

/// The kernel leaves these times to the file system.
#[test]
fn noatime_leaves_the_time_of_the_last_access() {
    let Some((_folder, file, at)) = new() else { return };
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let mounted = Mount::new(&file, &at, "");
    let path = at.join("file");
    fs::write(&path, "content").unwrap();
    let opened = OpenOptions::new().write(true).open(&path).unwrap();
    opened.set_times(fs::FileTimes::new().set_accessed(old)).unwrap();
    drop((opened, mounted));
    for (options, is_changed) in [("noatime", false), ("noatime,k=2,preset=sfs", false), ("", true)]
    {
        let mounted = Mount::new(&file, &at, options);
        assert_eq!(fs::read(&path).unwrap(), b"content");
        let atime = fs::metadata(&path).unwrap().atime();
        assert_eq!(atime != 1_000_000, is_changed, "{options}: {atime}");
        drop(mounted);
    }
}

/// What the kernel has as a flag it gets. The last of two options that exclude each other counts.
#[test]
fn the_kernel_gets_its_flags() {
    let Some((_folder, file, at)) = new() else { return };
    for (options, has, has_not) in [
        ("", "rw relatime", "ro sync dirsync lazytime nosuid nodev noexec noatime"),
        ("sync,lazytime,nosuid", "rw sync lazytime nosuid", "nodev"),
        ("sync,dirsync,nodev,async", "dirsync nodev", "sync"),
        ("ro,noexec", "ro noexec", "rw"),
        (
            "ro,noatime,nosuid,lazytime,rw,relatime,suid,nolazytime",
            "rw",
            "ro noatime nosuid lazytime",
        ),
    ] {
        let mounted = Mount::new(&file, &at, options);
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let at = at.to_str().unwrap();
        let line = mounts.lines().find(|line| line.split(' ').nth(1) == Some(at)).unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words[2], "fuse.prismfs");
        let flags: Vec<&str> = words[3].split(',').collect();
        for flag in has.split(' ') {
            assert!(flags.contains(&flag), "{options}: {flag} in {flags:?}");
        }
        for flag in has_not.split(' ') {
            assert!(!flags.contains(&flag), "{options}: no {flag} in {flags:?}");
        }
        let written = fs::write(Path::new(at).join("file"), options);
        assert_eq!(written.is_ok(), flags.contains(&"rw"), "{options}: {written:?}");
        drop(mounted);
        let mut fs = open(&file, Config::NORMAL, Access::ReadOnly, Damage::Refuse).unwrap().fs;
        assert_eq!(fs.check().unwrap().problems, []);
    }
}
