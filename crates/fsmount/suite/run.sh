#!/bin/sh
# Runs the test suites of others on a mount of the file system.
#
#   run.sh PRISM [pjdfstest|fsx|stress|sqlite|fio|kill|databases|build...]
#
# Without names all of them run. pjdfstest and fsx come from crates.io, and RocksDB with the package
# rocksdict from PyPI; they are installed in a temporary folder. The others are the programs
# stress-ng, sqlite3 and fio of Debian, and those that are missing are reported. Needs root,
# /dev/fuse and the network.
set -eu

prism=$(realpath "$1")
shift
suites=${*:-pjdfstest fsx stress sqlite fio kill databases build}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
# Tests of permissions use the mount as other users.
chmod 755 "$work"
mnt=$work/mnt
mkdir "$mnt"
"$prism" mkfs "$work/disk.prism" --size "${SIZE:-4GiB}"
trap 'umount "$mnt" 2>/dev/null || true; rm -rf "$work"' EXIT INT TERM
status=0

start() {
    "$prism" mount "$work/disk.prism" "$mnt"
}

# Unmounts, and checks what is on the device; the process of the mount may still be ending.
stop() {
    umount "$mnt"
    check
}

check() {
    if "$prism" fsck "$work/disk.prism" >"$work/fsck"; then
        echo "  fsck: clean"
    else
        cat "$work/fsck"
        status=1
    fi
}

has() {
    command -v "$1" >/dev/null || {
        echo "$suite: SKIPPED: the program $1 is missing"
        return 1
    }
}

crate() {
    cargo install --quiet --root "${SUITES:-$work/suites}" "$@"
}

result() {
    if [ "$1" -eq 0 ]; then echo "$suite: passed"; else
        echo "$suite: FAILED"
        status=1
    fi
}

run_pjdfstest() {
    crate pjdfstest --version 0.2.2 || return 0
    id tests >/dev/null 2>&1 || useradd -M tests
    # The user and the group without rights.
    user=$(getent passwd 65534 | cut -d: -f1)
    group=$(getent group 65534 | cut -d: -f1)
    cat >"$work/pjdfstest.toml" <<CONFIG
[features]
posix_fallocate = {}
rename_ctime = {}
utime_now = {}
utimensat = {}
[settings]
naptime = 0.01
[dummy_auth]
entries = [["$user", "$group"], ["tests", "tests"]]
CONFIG
    chmod 777 "$mnt"
    code=0
    "${SUITES:-$work/suites}/bin/pjdfstest" -c "$work/pjdfstest.toml" -p "$mnt" >"$work/log" 2>&1 || code=$?
    grep "FAILED" "$work/log" | head -40 || true
    tail -1 "$work/log"
    result $code
}

run_fsx() {
    crate fsx || return 0
    code=0
    for seed in 1 2 3 4; do
        "${SUITES:-$work/suites}/bin/fsx" -N 5000 -S $seed -P "$work" "$mnt/fsx.$seed" \
            >"$work/log" 2>&1 || { code=1; tail -20 "$work/log"; }
    done
    result $code
}

run_stress() {
    has stress-ng || return 0
    code=0
    stress-ng --temp-path "$mnt" --verify --timeout "${SECONDS_EACH:-2}s" --sequential 2 \
        --class filesystem --exclude "${EXCLUDE:-ramfs,binderfs,fanotify}" >"$work/log" 2>&1 || code=$?
    grep -E "fail|passed|skipped" "$work/log" | tail -12 || true
    result $code
}

run_sqlite() {
    has sqlite3 || return 0
    code=0
    for mode in DELETE WAL; do
        db=$mnt/$mode.db
        {
            echo "PRAGMA journal_mode=$mode; PRAGMA synchronous=FULL; CREATE TABLE t(a INTEGER, b TEXT);"
            row=0
            while [ $row -lt 300 ]; do
                echo "INSERT INTO t VALUES($row, hex(randomblob(500)));"
                row=$((row + 1))
            done
        } | sqlite3 "$db" >/dev/null || code=1
        [ "$(sqlite3 "$db" 'PRAGMA integrity_check; SELECT count(*) FROM t;' | paste -sd' ')" = "ok 300" ] || code=1
    done
    result $code
}

run_fio() {
    has fio || return 0
    code=0
    for ioengine in psync mmap; do
        fio --name=verify --directory="$mnt" --size=64m --rw=randrw --bs=4k-64k --verify=crc32c \
            --ioengine=$ioengine --fsync=64 --end_fsync=1 --verify_fatal=1 --minimal \
            >"$work/log" 2>&1 || { code=1; tail -5 "$work/log"; }
    done
    fio --name=direct --directory="$mnt" --size=64m --rw=randwrite --bs=4k --direct=1 \
        --verify=crc32c --do_verify=1 --verify_fatal=1 --minimal >"$work/log" 2>&1 || code=1
    result $code
}

# Kills the mount after some seconds, waits until the writer with this number of a process ends, and
# mounts again.
kill_mount() {
    sleep "$1"
    kill -9 "$(pgrep -f "^$prism mount $work/disk.prism")"
    wait "$2" || true
    umount -l "$mnt"
    start
}

# SIGKILL while a writer syncs each line: what was acknowledged is there after the next mount.
run_kill() {
    code=0
    round=0
    while [ $round -lt 10 ]; do
        (
            line=0
            while [ $line -lt 400 ] && echo "$line" >>"$mnt/lines.$round" && sync "$mnt/lines.$round"; do
                echo $line >"$work/acknowledged"
                line=$((line + 1))
            done
        ) 2>/dev/null &
        kill_mount 1 $!
        last=$(tail -1 "$mnt/lines.$round")
        acknowledged=$(cat "$work/acknowledged")
        [ "$last" -ge "$acknowledged" ] || { echo "  $last found, $acknowledged acknowledged"; code=1; }
        round=$((round + 1))
    done
    result $code
}

# SIGKILL of the mount while SQLite and RocksDB sync each row: after the next mount the databases
# open, are whole, and have all rows that were acknowledged.
run_databases() {
    if ! { python3 -m venv "$work/venv" && "$work/venv/bin/pip" install --quiet rocksdict; }; then
        echo "$suite: SKIPPED: the package rocksdict cannot be installed"
        return 0
    fi
    code=0
    round=0
    while [ $round -lt "${ROUNDS:-5}" ]; do
        for name in sqlite.delete sqlite.wal rocksdb; do
            database() {
                "$work/venv/bin/python3" "$here/databases.py" "$1" "${name%%.*}" "$mnt/$name" \
                    "$work/rows.$name"
            }
            database write 2>"$work/log.$name" &
            kill_mount "1.$round" $!
            database check || { code=1; tail -5 "$work/log.$name"; }
        done
        round=$((round + 1))
    done
    result $code
}

# The repository of this file system is cloned and built on it, and its program runs.
run_build() {
    has git && has cargo || return 0
    code=0
    repository=$(git -C "$here" rev-parse --show-toplevel)
    git clone --quiet "$repository" "$mnt/prism" || code=1
    (cd "$mnt/prism" && CARGO_TARGET_DIR=$mnt/prism/target cargo build --quiet --release) || code=1
    "$mnt/prism/target/release/prism" --version || code=1
    # After the next mount the clone is whole, unchanged, and built.
    umount "$mnt"
    check
    start
    git -C "$mnt/prism" fsck --strict --no-dangling --no-progress || code=1
    out=$(git -C "$mnt/prism" status --porcelain) && [ -z "$out" ] || code=1
    "$mnt/prism/target/release/prism" report --help >"$work/log" || code=1
    rm -r "$mnt/prism"
    result $code
}

start
for suite in $suites; do
    "run_$suite"
    stop
    start
done
stop
exit $status
