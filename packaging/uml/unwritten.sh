#!/bin/sh
# Records the traces of `prism reproduce unwritten-contract` in the virtual machines of record.sh:
#
#   packaging/uml/unwritten.sh KERNEL PRISM DIR
#   TIME=600s packaging/uml/unwritten.sh linux target/release/prism traces
#
# Four machines run at once: one for the usual runs on each file system, and one for sequential work
# by one, two and four instances. The device has 1 GiB, as in the paper, so it is written several
# times. An application ends when it has written about WRITE bytes to its files or after TIME.
set -eu
[ $# = 3 ] || { echo "usage: $0 KERNEL PRISM DIR" >&2; exit 2; }
here=$(realpath "$(dirname "$0")") kernel=$1 prism=$2 out=$3
: "${WRITE:=8GiB}" "${TIME:=600s}" "${WRITE_SEQ:=1GiB}" "${TIME_SEQ:=120s}"

# run NAME ARGUMENTS...: one machine; its traces go to $out.
run() {
  folder=$out/machine-$1
  shift
  "$here/record.sh" "$kernel" "$prism" "$folder" --size 1GiB "$@" || echo "failed: $*" >&2
  mv "$folder"/*.parquet "$out" 2>/dev/null || true
}

usual() {
  run "$1-varmail" --fs "$1" --app varmail --pattern mix --write "$WRITE" --for "$TIME" \
    --cold-reads 0KiB,128KiB,1MiB
  for app in sqlite-rb sqlite-wal leveldb rocksdb; do
    run "$1-$app" --fs "$1" --app $app --pattern rand --write "$WRITE" --for "$TIME" \
      --cold-reads 0KiB,128KiB,1MiB
  done
}

mkdir -p "$out"
for fs in ext4 xfs f2fs; do usual $fs & done
for app in leveldb sqlite-rb varmail; do
  for fs in f2fs ext4 xfs; do
    run "$fs-$app-seq" --fs $fs --app $app --pattern seq --instances 1,2,4 \
      --write "$WRITE_SEQ" --for "$TIME_SEQ"
  done
done
wait
