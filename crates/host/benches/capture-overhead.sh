#!/bin/sh
# Measures how much a capture slows down a workload: 4 KiB random writes and reads at queue
# depth 16 on a raw loop device. Each round runs without a capture and with each backend, so
# that other load on the machine affects all of them. Needs root and fio.
#
#   crates/host/benches/capture-overhead.sh target/release/prism [ROUNDS] [SECONDS]
set -eu
prism=$1
rounds=${2:-7}
seconds=${3:-3}
work=$(mktemp -d)
disk=
trap 'test -z "$disk" || losetup -d "$disk"; rm -rf "$work"' EXIT
truncate -s 1G "$work/image"
disk=$(losetup -f --show "$work/image")
# Every block is written before the first round.
fio --name=fill --filename="$disk" --rw=write --bs=1M --direct=1 --minimal >/dev/null

iops() { # rw, column of fio's terse output
  fio --name=x --filename="$disk" --rw="$1" --bs=4k --iodepth=16 --ioengine=libaio --direct=1 \
    --time_based --runtime="$seconds" --minimal | cut -d';' -f"$2"
}

for round in $(seq "$rounds"); do
  for way in none bpf ftrace blk; do
    for rw in randwrite:49 randread:8; do
      if [ "$way" = none ]; then
        count=$(iops "${rw%:*}" "${rw#*:}")
      else
        "$prism" capture "$disk" --backend "$way" -o "$work/t.parquet" >"$work/log" 2>&1 &
        capture=$!
        sleep 0.5
        count=$(iops "${rw%:*}" "${rw#*:}")
        kill -INT $capture
        wait $capture
        grep -q 'no event lost' "$work/log" || grep 'lost' "$work/log" >&2
      fi
      echo "$round $way ${rw%:*} $count"
    done
  done
done | tee "$work/rows" >&2

# Medians, and the median of the ratios to the run without a capture of the same round.
sort -k1,1n "$work/rows" | awk '
  { value[$3, $2, $1] = $4; if ($1 > rounds) rounds = $1 }
  function median(list, count,   i, j, t) {
    for (i = 1; i <= count; i++)
      for (j = i + 1; j <= count; j++)
        if (list[j] < list[i]) { t = list[i]; list[i] = list[j]; list[j] = t }
    return list[int((count + 1) / 2)]
  }
  END {
    split("randwrite randread", kinds, " "); split("none bpf ftrace blk", ways, " ")
    for (k = 1; k <= 2; k++) for (w = 1; w <= 4; w++) {
      for (r = 1; r <= rounds; r++) {
        all[r] = value[kinds[k], ways[w], r]
        ratio[r] = all[r] / value[kinds[k], "none", r]
      }
      printf "%-10s %-7s %8d IOPS  %.3f of none\n", kinds[k], ways[w], median(all, rounds), median(ratio, rounds)
    }
  }'
