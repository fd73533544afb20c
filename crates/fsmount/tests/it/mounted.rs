//! Files through the kernel: written, unmounted, mounted again, compared. Needs /dev/fuse and root.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use prism_base::Bytes;
use prism_fs::{Access, Config, Damage};
use prism_fsmount::{Callbacks, MountOptions, make, mount, open, pass_through};
use rustix::fs::{Advice, SeekFrom};
use tempfile::TempDir;

use crate::options::Killed;

type AnyCallbacks<'a> =
    Callbacks<Box<dyn Fn() + 'a>, Box<dyn Fn() -> bool + 'a>, Box<dyn Fn() + 'a>>;

/// A mount in a thread of this process.
pub struct Mount {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Mount {
    pub fn new(file: &Path, folder: &Path, options: &str) -> Self {
        let options = MountOptions::parse(options).unwrap();
        let (file, folder) = (file.to_owned(), folder.to_owned());
        Self::start(move |callbacks| mount(&file, &folder, &options, callbacks).unwrap())
    }

    fn passed_through(source: &Path, folder: &Path) -> Self {
        let options = MountOptions::parse("").unwrap();
        let (source, folder) = (source.to_owned(), folder.to_owned());
        Self::start(move |callbacks| {
            pass_through(&source, &folder, &options, Advice::Normal, callbacks).unwrap();
        })
    }

    fn start(serve: impl FnOnce(AnyCallbacks) + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, receiver) = channel();
        let flag = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            serve(Callbacks {
                ready: Box::new(|| sender.send(()).unwrap()),
                stop: Box::new(|| flag.load(Ordering::SeqCst)),
                in_use: Box::new(|| ()),
            });
        });
        receiver.recv().expect("it is mounted");
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let ended = self.thread.take().expect("once").join();
        assert!(ended.is_ok() || thread::panicking(), "the mount ended with an error");
    }
}

/// A temporary folder, and in it a new file system and a folder for a mount; `None` where the
/// kernel or the user forbid it.
pub fn new() -> Option<(TempDir, PathBuf, PathBuf)> {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root || !Path::new("/dev/fuse").exists() {
        prism_testkit::skipped("mounting a file system needs root and /dev/fuse", "");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let [file, mounted] = ["disk.prism", "mounted"].map(|name| folder.path().join(name));
    fs::create_dir(&mounted).unwrap();
    drop(make(&file, Bytes(128 << 20)).unwrap());
    Some((folder, file, mounted))
}

pub fn assert_whole(file: &Path) {
    let opened = open(file, Config::NORMAL, Access::ReadOnly, Damage::Refuse);
    assert_eq!(opened.unwrap().fs.check().unwrap().problems, []);
}

fn pattern(seed: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 5) as u8 ^ seed).collect()
}

#[test]
fn files_are_there_after_the_next_mount() {
    let Some((_folder, file, at)) = new() else { return };
    for (round, options) in (0_u8..).zip(["", "writethrough", "preset=sfs"]) {
        let mounted = Mount::new(&file, &at, options);
        for before in 0..round {
            let dir = at.join(format!("round {before}"));
            for number in 0..50_u8 {
                let found = fs::read(dir.join(format!("file {number}"))).unwrap();
                assert!(found == pattern(before ^ number, usize::from(number) * 3000));
            }
            assert_eq!(fs::read_link(dir.join("link")).unwrap(), Path::new("file 1"));
            let meta = fs::metadata(dir.join("sparse")).unwrap();
            assert_eq!((meta.len(), meta.blocks()), ((1 << 40) + 4, 8));
            assert_eq!(fs::metadata(dir.join("file 2")).unwrap().mode() & 0o7777, 0o640);
            assert_eq!(fs::metadata(dir.join("hard")).unwrap().nlink(), 2);
            assert_eq!(fs::read_dir(&dir).unwrap().count(), 53);
        }
        let dir = at.join(format!("round {round}"));
        fs::create_dir(&dir).unwrap();
        for number in 0..50_u8 {
            let data = pattern(round ^ number, usize::from(number) * 3000);
            fs::write(dir.join(format!("temporary {number}")), data).unwrap();
            let name = dir.join(format!("file {number}"));
            fs::rename(dir.join(format!("temporary {number}")), name).unwrap();
        }
        fs::write(dir.join("removed"), "x").unwrap();
        fs::remove_file(dir.join("removed")).unwrap();
        symlink("file 1", dir.join("link")).unwrap();
        fs::hard_link(dir.join("file 3"), dir.join("hard")).unwrap();
        fs::set_permissions(dir.join("file 2"), fs::Permissions::from_mode(0o640)).unwrap();
        File::create(dir.join("sparse")).unwrap().write_all_at(b"last", 1 << 40).unwrap();
        drop(mounted);
        assert_whole(&file);
    }
}

/// The end of the first mount is noticed when the second one is there.
#[test]
fn a_mount_leaves_the_next_one_alone() {
    let Some((folder, file, at)) = new() else { return };
    let next = folder.path().join("next.prism");
    drop(make(&next, Bytes(128 << 20)).unwrap());
    let first = Mount::new(&file, &at, "");
    run("umount", &[at.to_str().unwrap()]);
    let second = Mount::new(&next, &at, "");
    fs::write(at.join("file"), "content").unwrap();
    drop(first);
    assert_eq!(fs::read_to_string(at.join("file")).unwrap(), "content");
    drop(second);
    assert_whole(&next);
}

/// The mount removes parts by itself, while no call needs them to be gone.
#[test]
fn a_large_file_is_removed_in_parts() {
    let Some((_folder, file, at)) = new() else { return };
    let mounted = Mount::new(&file, &at, "");
    let used = || {
        let stat = rustix::fs::statvfs(&at).unwrap();
        (stat.f_files - stat.f_ffree, stat.f_blocks - stat.f_bfree)
    };
    let (nodes, blocks) = used();
    let sparse = File::create(at.join("sparse")).unwrap();
    // More leaves of the map than one part has.
    for leaf in 0..600 {
        sparse.write_all_at(&[1; 4096], leaf << 20).unwrap();
    }
    sparse.sync_all().unwrap();
    drop(sparse);
    assert!(used().0 >= nodes + 550 && used().1 >= blocks + 1100, "{:?}", used());
    fs::remove_file(at.join("sparse")).unwrap();
    assert_eq!(fs::read_dir(&at).unwrap().count(), 0);
    while used().0 > nodes {
        thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(used().1 <= blocks + 1, "{:?}", used());
    drop(mounted);
    assert_whole(&file);
}

#[test]
fn an_append_that_was_synced_is_on_the_device() {
    let Some((_folder, file, at)) = new() else { return };
    let mounted = Mount::new(&file, &at, "");
    let mut log = OpenOptions::new().append(true).create(true).open(at.join("log")).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let path = at.join(format!("of thread {number}"));
            thread::spawn(move || {
                let mut log = File::create(path).unwrap();
                for _ in 0..50 {
                    log.write_all(b"a line of a log\n").unwrap();
                    log.sync_data().unwrap();
                }
            })
        })
        .collect();
    for _ in 0..50 {
        log.write_all(b"a line of a log\n").unwrap();
        log.sync_all().unwrap();
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let mut killed = Killed::of(&file);
    for name in ["log", "of thread 0", "of thread 1", "of thread 2", "of thread 3"] {
        assert_eq!(killed.attr(name).unwrap().1.size, 50 * 16, "{name}");
    }
    drop(log);
    drop(mounted);
}

/// The kernel has the times of files: what it writes from its cache later does not change them.
#[test]
fn times_stay_over_an_unmount() {
    let Some((_folder, file, at)) = new() else { return };
    let mount = Mount::new(&file, &at, "");
    let times = || {
        let names = (0..20).map(|number| at.join(number.to_string()));
        let stat = |path: PathBuf| fs::metadata(path).map(|stat| (stat.mtime(), stat.mtime_nsec()));
        names.map(|path| stat(path).unwrap()).collect::<Vec<_>>()
    };
    for number in 0..20 {
        let path = at.join(number.to_string());
        fs::write(&path, b"old").unwrap();
        let mut file = OpenOptions::new().append(number % 2 == 0).write(true).open(&path).unwrap();
        file.write_all(b"new").unwrap();
        file.sync_all().unwrap();
    }
    let old = SystemTime::UNIX_EPOCH - Duration::new(2, 250_000_000);
    File::open(at.join("0")).unwrap().set_modified(old).unwrap();
    let before = times();
    assert_eq!(before[0], (-3, 750_000_000));
    drop(mount);
    let _mount = Mount::new(&file, &at, "");
    assert!(times() == before, "{before:?} {:?}", times());
}

/// The inode of a file is damaged: its folder can be listed, and its name can be removed.
#[test]
fn a_damaged_file_does_not_hide_its_neighbours() {
    let Some((_folder, file, at)) = new() else { return };
    let mount = Mount::new(&file, &at, "");
    fs::create_dir(at.join("dir")).unwrap();
    for number in 0..5 {
        fs::write(at.join(format!("dir/{number}")), b"content").unwrap();
    }
    let ino = fs::metadata(at.join("dir/2")).unwrap().ino() as u32;
    drop(mount);
    let mut bytes = fs::read(&file).unwrap();
    let inode = [&b"INOD"[..], &ino.to_le_bytes()].concat();
    for at in (0..bytes.len()).step_by(4096) {
        if bytes[at..].starts_with(&inode) {
            bytes[at + 50] ^= 1;
        }
    }
    fs::write(&file, &bytes).unwrap();
    let mount = Mount::new(&file, &at, "");
    let names = || {
        let entries = fs::read_dir(at.join("dir")).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(), ["0", "1", "2", "3", "4"]);
    assert_eq!(fs::metadata(at.join("dir/2")).unwrap_err().raw_os_error(), Some(5));
    assert!(fs::read(at.join("dir/2")).is_err());
    assert_eq!(fs::read(at.join("dir/3")).unwrap(), b"content");
    fs::remove_file(at.join("dir/2")).unwrap();
    assert_eq!(names(), ["0", "1", "3", "4"]);
    fs::remove_dir_all(at.join("dir")).unwrap();
    drop(mount);
}

/// Runs a program, and returns what it prints.
fn run(program: &str, arguments: &[&str]) -> String {
    let output = std::process::Command::new(program).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn access_control_lists_are_obeyed_and_inherited() {
    if std::process::Command::new("setfacl").arg("--version").output().is_err() {
        return prism_testkit::skipped("access control lists of the file system", "acl");
    }
    let Some((folder, file, at)) = new() else { return };
    // Others must reach the folder.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mounted = Mount::new(&file, &at, "");
    let path = |name: &str| at.join(name).to_str().unwrap().to_owned();
    fs::write(path("secret"), "known").unwrap();
    fs::set_permissions(path("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    let read = || {
        let mut program = std::process::Command::new("cat");
        std::os::unix::process::CommandExt::uid(&mut program, 12_345);
        std::os::unix::process::CommandExt::gid(&mut program, 12_345);
        program.arg(path("secret")).output().unwrap().status.success()
    };
    assert!(!read(), "the mode forbids it");
    run("setfacl", &["-m", "u:12345:r", &path("secret")]);
    assert!(read(), "the list allows it");
    assert_eq!(fs::metadata(path("secret")).unwrap().mode() & 0o777, 0o640);
    fs::set_permissions(path("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    assert!(!read(), "the mask forbids it");
    fs::create_dir(path("dir")).unwrap();
    run("setfacl", &["-d", "-m", "u:12345:rwx,g::rwx,o::-", &path("dir")]);
    fs::create_dir(path("dir/below")).unwrap();
    fs::write(path("dir/below/file"), "x").unwrap();
    let shown = || run("getfacl", &["--absolute-names", "--numeric", "-R", &path("dir")]);
    let before = shown();
    let words: Vec<&str> = before.split_whitespace().collect();
    let wanted = "user::rw- user:12345:rwx #effective:rw- group::rwx #effective:rw- mask::rw- \
                  other::---";
    assert!(words.join(" ").contains(wanted), "{before}");
    drop(mounted);
    assert_whole(&file);
    let mounted = Mount::new(&file, &at, "");
    assert_eq!(shown(), before);
    assert!(!read());
    drop(mounted);
}

/// What is done to the mount is done to the folder behind it, and the other way round.
#[test]
fn a_folder_is_passed_through() {
    let Some((folder, _, at)) = new() else { return };
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("before"), b"before").unwrap();
    let mounted = Mount::passed_through(&source, &at);
    assert_eq!(fs::read(at.join("before")).unwrap(), b"before");
    fs::create_dir(at.join("sub")).unwrap();
    let path = at.join("sub/file");
    let data = pattern(7, 300_000);
    fs::write(&path, &data).unwrap();
    let mut file = OpenOptions::new().read(true).append(true).open(&path).unwrap();
    file.write_all(b"more").unwrap();
    file.sync_all().unwrap();
    assert!(fs::read(source.join("sub/file")).unwrap() == [&data[..], b"more"].concat());
    file.set_len(10).unwrap();
    file.sync_data().unwrap();
    assert_eq!(fs::metadata(source.join("sub/file")).unwrap().len(), 10);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(&path, at.join("moved")).unwrap();
    assert_eq!(fs::metadata(source.join("moved")).unwrap().mode() & 0o777, 0o600);
    let new = OpenOptions::new().write(true).create_new(true).open(at.join("moved"));
    assert_eq!(new.unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    // A file that was removed is there as long as it is open.
    fs::remove_file(at.join("moved")).unwrap();
    assert!(!source.join("moved").exists());
    let mut found = [0; 10];
    file.read_exact_at(&mut found, 0).unwrap();
    assert_eq!(found, data[..10]);
    fs::remove_dir(at.join("sub")).unwrap();
    assert!(!source.join("sub").exists());
    drop((file, mounted));
    assert_eq!(fs::read_dir(&source).unwrap().count(), 1);
}

/// A program of root loses its privileges when another user changes it, also for the kernel, which
/// remembers modes; root's own writes leave the bits, and a new owner takes them.
#[test]
fn changed_programs_lose_their_privileges() {
    let Some((folder, file, at)) = new() else { return };
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for options in ["", "writethrough"] {
        let mounted = Mount::new(&file, &at, options);
        let path = at.join("program");
        let text = path.to_str().unwrap().to_owned();
        let mode = || fs::metadata(&path).unwrap().mode() & 0o7777;
        let set = || {
            let _ = fs::remove_file(&path);
            fs::copy("/usr/bin/id", &path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o6777)).unwrap();
            assert_eq!(mode(), 0o6777);
        };
        let other = |script: &str| {
            let mut program = std::process::Command::new("sh");
            std::os::unix::process::CommandExt::uid(&mut program, 12_345);
            std::os::unix::process::CommandExt::gid(&mut program, 12_345);
            let output = program.args(["-c", script, "sh", &text]).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        set();
        assert_eq!(other("exec $1 -u"), "0\n", "it is root's");
        for script in [
            "printf x >>$1",
            "dd if=/dev/zero of=$1 seek=9999999 bs=1 count=1 conv=notrunc status=none",
            "truncate -s +5 $1",
            "fallocate -l 2M $1",
        ] {
            set();
            // Nothing looks at the file in between.
            assert_eq!(other(&format!("{script}; exec $1 -u")), "12345\n", "{script}, {options}");
            assert_eq!(mode(), 0o777, "{script}, {options}");
        }
        set();
        other(": >$1");
        assert_eq!(mode(), 0o777, "{options}");
        set();
        let mut program = OpenOptions::new().append(true).open(&path).unwrap();
        program.write_all(b"by root").unwrap();
        program.sync_all().unwrap();
        assert_eq!(mode(), 0o6777, "{options}");
        std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
        assert_eq!(mode(), 0o777, "{options}");
        drop((program, mounted));
    }
}

/// Capabilities that a program gets while writes of its content wait in the kernel stay, and go at
/// the next write.
#[test]
fn capabilities_of_programs_outlive_writes_before_them() {
    let Some((_folder, file, at)) = new() else { return };
    let mounted = Mount::new(&file, &at, "");
    let path = at.join("program");
    let mut program = File::create(&path).unwrap();
    program.write_all(&[1; 100_000]).unwrap();
    // Revision 2, effective, cap_chown.
    let mut value = 0x0200_0001_u32.to_le_bytes().to_vec();
    value.extend([1, 0, 0, 0].repeat(2));
    value.extend([0; 8]);
    let name = "security.capability";
    rustix::fs::setxattr(&path, name, &value, rustix::fs::XattrFlags::empty()).unwrap();
    program.sync_all().unwrap();
    let mut found = [0; 64];
    let has = |found: &mut [u8]| rustix::fs::getxattr(&path, name, found).is_ok();
    assert!(has(&mut found));
    program.write_all(b"more").unwrap();
    assert!(!has(&mut found));
    drop((program, mounted));
}

/// The end of a mount that is in use makes everything durable at once, also what the kernel has
/// not written yet; open files stay until they are closed.
#[test]
fn a_mount_in_use_ends_when_its_last_file_is_closed() {
    let Some((folder, file, at)) = new() else { return };
    let mounted = Mount::new(&file, &at, "");
    for number in 0..50_u8 {
        fs::write(at.join(format!("file {number}")), pattern(number, 5000)).unwrap();
    }
    let open = OpenOptions::new().read(true).write(true).open(at.join("file 7")).unwrap();
    mounted.stop.store(true, Ordering::SeqCst);
    while fs::read_dir(&at).unwrap().next().is_some() {
        thread::yield_now();
    }
    // As after the process was killed.
    let copy = folder.path().join("copy.prism");
    fs::copy(&file, &copy).unwrap();
    let found = open_at(&copy);
    assert!(found.iter().all(|content| content.len() == 5000) && found.len() == 50);
    open.write_all_at(b"later", 10_000).unwrap();
    let mut content = vec![0; 5];
    open.read_exact_at(&mut content, 10_000).unwrap();
    assert_eq!(content, b"later");
    drop(open);
    drop(mounted);
    assert!(open_at(&file).iter().any(|content| content.ends_with(b"later")));
    assert_whole(&file);
}

/// The content of all files in the root of a device.
fn open_at(file: &Path) -> Vec<Vec<u8>> {
    let mut fs = open(file, Config::NORMAL, Access::ReadOnly, Damage::Refuse).unwrap().fs;
    let (entries, _) = fs.list(prism_fs::ROOT, 0).unwrap();
    let files = entries.into_iter().filter(|entry| entry.name.starts_with(b"file"));
    files.map(|entry| fs.read(entry.ino, 0, 1 << 20).unwrap()).collect()
}

#[test]
fn a_device_that_cannot_be_written_is_not_mounted_for_writing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("disk.prism");
    drop(make(&file, Bytes(64 << 20)).unwrap());
    // Root may write files of any mode, but not those of a file system that is read-only.
    let at = folder.path().join("bound");
    fs::create_dir(&at).unwrap();
    let Some(_bound) = ReadOnly::new(folder.path(), &at) else { return };
    let file = at.join("disk.prism");
    let opened = open(&file, Config::NORMAL, Access::ReadWrite, Damage::Refuse);
    let error = opened.err().unwrap().to_string();
    assert!(error.contains("may not be written") && error.contains("-o ro"), "{error}");
    assert_whole(&file);
}

/// A folder that is mounted on another one for reading only.
struct ReadOnly(PathBuf);

impl ReadOnly {
    fn new(source: &Path, at: &Path) -> Option<Self> {
        use rustix::mount::{MountFlags, mount_bind, mount_remount};
        if !rustix::process::geteuid().is_root() {
            prism_testkit::skipped("mounting for reading only needs root", "");
            return None;
        }
        mount_bind(source, at).unwrap();
        let bound = Self(at.to_owned());
        mount_remount(at, MountFlags::BIND | MountFlags::RDONLY, "").unwrap();
        Some(bound)
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH).unwrap();
    }
}

/// Data that the kernel has in its cache only are no hole: tar and cp look for holes, also in files
/// that another program writes.
#[test]
fn seeks_find_what_was_written_to_the_cache() {
    const LEN: u64 = 3_000_000;
    for options in ["", "writethrough"] {
        let Some((_folder, file, at)) = new() else { return };
        let mounted = Mount::new(&file, &at, options);
        let written = File::create(at.join("file")).unwrap();
        written.write_all_at(&vec![7; LEN as usize], 0).unwrap();
        written.write_all_at(b"after a hole", 8 << 20).unwrap();
        let reader = File::open(at.join("file")).unwrap();
        // tar(1) does not read a file without blocks.
        assert!(reader.metadata().unwrap().blocks() > 0, "{options:?}");
        let empty = at.join("empty");
        drop(File::create(&empty).unwrap());
        assert_eq!(fs::metadata(&empty).unwrap().blocks(), 0, "{options:?}");
        let opened = File::options().append(true).open(&empty).unwrap();
        (&opened).write_all(b"x").unwrap();
        assert!(fs::metadata(&empty).unwrap().blocks() > 0, "{options:?}");
        let hole = LEN.next_multiple_of(4096);
        for (from, what, found) in [
            (SeekFrom::Hole(0), "a hole", hole),
            (SeekFrom::Data(1000), "data", 1000),
            (SeekFrom::Data(hole), "data after the hole", 8 << 20),
            (SeekFrom::Hole(8 << 20), "the end", (8 << 20) + 12),
        ] {
            assert_eq!(rustix::fs::seek(&reader, from), Ok(found), "{what}, {options:?}");
        }
        // More callers than threads that answer the kernel.
        thread::scope(|scope| {
            for number in 0..16_u64 {
                let path = at.join(format!("{number}"));
                scope.spawn(move || {
                    let file = File::options().append(true).read(true).create(true).open(path);
                    let file = file.unwrap();
                    for round in 1..=20 {
                        (&file).write_all(&[1; 70_000]).unwrap();
                        let end = rustix::fs::seek(&file, SeekFrom::Hole(number * 100));
                        assert_eq!(end, Ok(round * 70_000));
                    }
                });
            }
        });
        drop((written, reader, opened, mounted));
    }
}

/// Threads make, open and list files in one folder, and none waits for ever.
#[test]
fn many_threads_make_and_list_files() {
    let Some((_folder, file, at)) = new() else { return };
    let mounted = Mount::new(&file, &at, "");
    thread::scope(|scope| {
        for number in 0..8 {
            let at = &at;
            scope.spawn(move || {
                for round in 0..300 {
                    let path = at.join(format!("{number} {}", round % 20));
                    let made = OpenOptions::new().append(true).create(true).open(&path).unwrap();
                    (&made).write_all(b"x").unwrap();
                    drop(OpenOptions::new().write(true).open(&path).unwrap());
                    let entries = fs::read_dir(at).unwrap().take(30);
                    entries.for_each(|entry| drop(entry.unwrap().metadata()));
                    if round % 3 == 0 {
                        fs::remove_file(&path).unwrap();
                    }
                }
            });
        }
    });
    drop(mounted);
    assert_whole(&file);
}
