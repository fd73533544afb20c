#!/bin/sh
# Records the traces of `prism reproduce unwritten-contract` in the virtual machines of record.sh:
#
#   packaging/uml/unwritten.sh KERNEL PRISM DIR
#   TIME=150s JOBS=2 packaging/uml/unwritten.sh linux target/release/prism traces
#
# There is a machine for each application on each file system, JOBS (2) of them at once: the usual
# run with reads with cold caches, and sequential work by one, two and four instances. The device has
# 1 GiB, as in the paper, so that it can be written several times. An application ends when it has
# written about WRITE (4GiB) to its files or after TIME (600s), sequential work after WRITE_SEQ (1GiB)
# or TIME_SEQ (120s). What is in DIR already is not recorded again.
set -eu
[ $# -ge 3 ] || { echo "usage: $0 KERNEL PRISM DIR" >&2; exit 2; }
here=$(realpath "$(dirname "$0")") kernel=$1 prism=$2 out=$3
shift 3

if [ $# -gt 0 ]; then
  # One machine: FS APP PATTERN INSTANCES.
  fs=$1 app=$2 pattern=$3 instances=$4 name=$1-$2-$3
  [ "$instances" = 1 ] || name=$name-x$instances
  [ ! -e "$out/$name.parquet" ] || exit 0
  if [ "$pattern" = seq ]; then
    set -- --write "${WRITE_SEQ:-1GiB}" --for "${TIME_SEQ:-120s}"
  else
    set -- --write "${WRITE:-4GiB}" --for "${TIME:-600s}" --cold-reads 0KiB,128KiB,1MiB
  fi
  folder=$out/machine-$name
  "$here/record.sh" "$kernel" "$prism" "$folder" --size 1GiB --fs "$fs" --app "$app" \
    --pattern "$pattern" --instances "$instances" "$@" >"$folder.txt" 2>&1 &&
    mv "$folder/$name.parquet" "$out" || echo "$name failed: see $folder.txt" >&2
  exit 0
fi

mkdir -p "$out"
{
  for app in sqlite-wal rocksdb leveldb sqlite-rb; do
    for fs in xfs f2fs ext4; do echo $fs $app rand 1; done
  done
  for fs in ext4 f2fs xfs; do echo $fs varmail mix 1; done
  for app in leveldb sqlite-rb varmail; do
    for instances in 1 2 4; do
      for fs in f2fs ext4 xfs; do echo $fs $app seq $instances; done
    done
  done
} | xargs -P "${JOBS:-2}" -L 1 "$0" "$kernel" "$prism" "$out"
