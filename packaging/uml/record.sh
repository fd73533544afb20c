#!/bin/sh
# Runs `prism capture stack` in a virtual machine with the kernel of build.sh:
#
#   packaging/uml/record.sh KERNEL PRISM DIR ARGUMENTS...
#   packaging/uml/record.sh linux target/release/prism traces --fs f2fs --app varmail
#
# The traces appear in DIR, its output in DIR/run.txt. The machine has one CPU, 1 GiB of memory unless
# MEMORY says otherwise, and a disk in a new file of DISK_SIZE (6G) in DISK_FOLDER (/dev/shm), which
# is removed at the end.
set -eu
[ $# -gt 3 ] || { echo "usage: $0 KERNEL PRISM DIR ARGUMENTS..." >&2; exit 2; }
here=$(realpath "$(dirname "$0")") kernel=$(realpath "$1") prism=$(realpath "$2")
mkdir -p "$3" && out=$(realpath "$3")
rm -f "$out/run.code"
shift 3
disk=$(mktemp "${DISK_FOLDER:-/dev/shm}/prism-uml.XXXXXX")
trap 'rm -f "$disk"' EXIT
truncate -s "${DISK_SIZE:-6G}" "$disk"
cp "$here/init.sh" "$out/init.sh"
{
  printf '%s' "$prism capture stack --work-dir /mnt/work --keep-traces . --no-replay --json stack.json"
  printf " '%s'" "$@"
  echo
} >"$out/run.sh"
"$kernel" mem="${MEMORY:-1G}" rootfstype=hostfs rootflags=/ ro init="$out/init.sh" \
  PRISM_OUT="$out" ubd0="$disk" con=null con0=null,fd:1 </dev/null >"$out/console.txt" 2>&1 || true
if [ ! -f "$out/run.code" ]; then
  echo "$0: the virtual machine ended too early; $out/console.txt says why" >&2
  # Linux 6.1 has too little room for the registers of such a processor, and its first process
  # dies with SIGSEGV.
  if grep -qw amx_tile /proc/cpuinfo; then
    echo "this processor has AMX, on which User-mode Linux 6.1 does not run: use another machine" >&2
  fi
  exit 2
fi
cat "$out/run.txt"
exit "$(cat "$out/run.code")"
