//! umount(8) of a mount waits for its process, by a helper that `make install-cli` installs.

use std::path::Path;
use std::process::Command;

use prism_testkit::skipped;

use crate::common::folder;

/// The programs that the test needs; a machine without them is one where it is skipped.
const PROGRAMS: [&str; 4] = ["unshare", "findmnt", "flock", "mountpoint"];

/// A namespace of mounts in which the helpers are installed, and the table of umount(8) is empty.
/// Exit code 99 says that the kernel does not allow it.
const INSTALLED: &str = r#"set -eu
cd "$WORK"
mkdir installed place
mkdir -p /run/mount
{
    mount -t tmpfs none installed && mkdir installed/upper installed/work &&
    mount -t overlay none /sbin/. \
        -o lowerdir="$(realpath /sbin)",upperdir=installed/upper,workdir=installed/work &&
    mount -t tmpfs none /run/mount
} 2>/dev/null || exit 99
# Other mounts of this machine, which `umount -a` would wait for, are not in this namespace.
umount -i -l -a -t fuse.prismfs 2>/dev/null || true
install -m 755 "$HELPERS/mount.prismfs" "$HELPERS/umount.fuse.prismfs" /sbin
# Before a program of this name that the machine may have.
ln -s "$PRISM" /sbin/prism
export PATH="/sbin:$PATH"
prism mkfs disk --size 256MiB

# Data that are not durable yet when the mount ends.
fill() { for name in 1 2 3 4 5 6; do head -c 3000000 /dev/zero >"place/$name"; done; }
fail() { echo "$*" >&2; exit 1; }
is_free() { flock -ns disk true; }
is_listed() { grep -q " TARGET=$WORK/place " /run/mount/utab; }
is_mounted_and_listed() { mountpoint -q place && is_listed; }
wait_for() {
    end=$(($(date +%s) + 120))
    until "$@"; do
        [ "$(date +%s)" -lt $end ] || fail "two minutes were not enough: $*"
        sleep 0.02
    done
}
"#;

/// Runs a script in such a namespace.
fn run(script: &str) {
    let work = folder();
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let has = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    let may_mount = rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists();
    if !may_mount || !PROGRAMS.iter().all(has) {
        return skipped("the helper of umount(8) needs root, /dev/fuse and findmnt", "util-linux");
    }
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &format!("{INSTALLED}{script}")])
        .env("WORK", work.path())
        .env("HELPERS", packaging)
        .env("PRISM", env!("CARGO_BIN_EXE_prism"))
        .output()
        .unwrap();
    if output.status.code() == Some(99) {
        return skipped("the helper of umount(8) needs namespaces and overlayfs", "");
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stdout));
}

/// The file can be used at once, however the mount is named.
#[test]
fn umount_returns_when_the_process_of_the_mount_has_ended() {
    run(r#"
for how in "$WORK/place" place "$WORK/disk" "-c $WORK/place" "-f $WORK/place" "-r $WORK/place" \
    "-n $WORK/place" "-R $WORK/place" "-t fuse.prismfs $WORK/place" "-a -t fuse.prismfs"; do
    mount -t prismfs "$WORK/disk" "$WORK/place"
    [ "$(findmnt -n -o FSTYPE -M place)" = fuse.prismfs ] || fail "the type"
    fill
    umount $how || fail "umount $how failed"
    is_free || fail "umount $how did not wait"
    mountpoint -q place && fail "umount $how left it mounted"
    prism fs info disk >/dev/null
done
# Names with spaces, and no file at all.
mv disk "a disk" && mkdir "a place"
prism mount "a disk" "a place"
umount "$WORK/a place"
flock -ns "a disk" true || fail "names with spaces"
prism mount memory place --size 64MiB
umount "$WORK/place"
"#);
}

/// The source is read as the kernel has it, in any locale.
#[test]
fn umount_waits_for_files_with_any_name() {
    run(r#"
for disk in 'dïsk' 'a\x41 \134 \b' '100%s, or more' '-n' 'a	b'; do
    mv disk "./$disk"
    for locale in C C.UTF-8; do
        prism mount "./$disk" place
        fill
        LC_ALL=$locale umount "$WORK/place" || fail "$disk in $locale"
        flock -ns "./$disk" true || fail "umount did not wait for $disk in $locale"
    done
    mv "./$disk" disk
done
"#);
}

/// A mount of another kind may have any source, and a machine no flock(1).
#[test]
fn umount_does_not_wait_where_it_cannot() {
    run(r#"
mkfifo pipe
for source in "$WORK/pipe" -x "$WORK/none" "100%s"; do
    mount -t tmpfs -- "$source" "$WORK/place"
    timeout 60 /sbin/umount.fuse.prismfs "$WORK/place" || fail "$source: $?"
    mountpoint -q place && fail "$source is mounted"
    :
done
mkdir few
for program in findmnt sed tail umount sleep; do ln -s "$(command -v $program)" few; done
prism mount disk place
timeout 60 env PATH=few /bin/sh /sbin/umount.fuse.prismfs "$WORK/place" || fail "without flock: $?"
"#);
}

/// What cannot end is not waited for, and what stays mounted is said to be.
#[test]
fn umount_of_what_is_in_use_does_as_always() {
    run(r#"
prism mount disk place
fill
exec 7<place/1
umount "$WORK/place" 2>said && fail "it is in use"
grep -q "target is busy" said || fail "$(cat said)"
mountpoint -q place || fail "it is not mounted any more"
umount -r "$WORK/place" || fail "it becomes read-only"
findmnt -n -o OPTIONS -M place | grep -q "^ro" || fail "it is not read-only"
umount -l "$WORK/place" || fail "umount -l"
mountpoint -q place && fail "umount -l left it mounted"
is_free && fail "umount -l has waited"
cmp -n 1000000 /proc/self/fd/7 /dev/zero || fail "an open file"
exec 7<&-
wait_for is_free
# Mounted twice: the process goes on.
prism mount disk place
mkdir second && mount --bind place second
umount "$WORK/place" && mountpoint -q second || fail "the second mount"
umount "$WORK/second"
wait_for is_free
"#);
}

/// The entry in the table of umount(8) goes with the mount, also when it ends by itself.
#[test]
fn no_mount_is_left_in_the_table_of_umount() {
    run(r#"
for signal in "" INT TERM; do
    prism mount disk place --foreground &
    wait_for is_mounted_and_listed
    if [ "$signal" ]; then kill -$signal $!; else umount "$WORK/place"; fi
    wait $! || fail "the mount failed"
    is_listed && fail "it is listed after $signal: $(cat /run/mount/utab)"
    :
done
prism mount disk place
pid=$(sed -n "s/.*WRITE *\([0-9]*\) [^ ]*:$(stat -c %i disk) .*/\1/p" /proc/locks)
kill -9 "$pid"
wait_for is_free
umount "$WORK/place" || fail "of a process that was killed"
is_listed && fail "it is listed after SIGKILL"
:
"#);
}

/// What could not be written is reported.
#[test]
fn umount_reports_that_the_rest_could_not_be_written() {
    run(r#"
mkdir small
mount -t tmpfs -o size=64M none small
prism mkfs small/disk --size 1GiB
prism mount small/disk place
dd if=/dev/zero of=small/filler bs=1M 2>/dev/null || true
cp /etc/passwd place/lost
umount "$WORK/place" 2>said && fail "umount reports nothing"
grep -q "unmounted, but not all was written: .*the disk is full" said || fail "$(cat said)"
mountpoint -q place && fail "it is mounted"
# Only once.
rm small/filler
prism mount small/disk place
umount "$WORK/place" || fail "the error of before"
umount small
"#);
}
