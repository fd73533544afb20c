#!/bin/sh
# Runs a test program and ends it when it takes longer than PRISM_TEST_LIMIT seconds (30 minutes), so
# that a test that hangs fails, and leaves what its processes were waiting for. `make test` gives it
# to cargo as the runner of every test program.
set -u
limit=${PRISM_TEST_LIMIT:-1800}
program=$$

# The processes that descend from process $1, one in a line.
descendants() {
  for status in /proc/[0-9]*/status; do
    parent=$(sed -n 's/^PPid:[[:space:]]*//p' "$status" 2>/dev/null)
    if [ "$parent" = "$1" ]; then
      child=${status#/proc/}
      child=${child%/status}
      [ "$child" = "$watcher" ] && continue
      echo "$child"
      descendants "$child"
    fi
  done
}

# What the threads of process $1 are doing.
describe() {
  echo "process $1: $(tr '\0' ' ' </proc/"$1"/cmdline)"
  for thread in /proc/"$1"/task/*; do
    echo "  $(cat "$thread/comm"): $(sed -n 's/^State:[[:space:]]*//p' "$thread/status")," \
      "waits in $(cat "$thread/wchan")"
    # Only root can read what the kernel does for it.
    sed 's/^/    /' "$thread/stack"
  done
}

watch() {
  # $$ stays the test program's number in a subshell; this is the subshell's own.
  read -r watcher _ </proc/self/stat
  waited=0
  while [ "$waited" -lt "$limit" ]; do
    sleep 1
    waited=$((waited + 1))
    # When the program ends, also before it was waited for, this process gets another parent.
    grep -q "^PPid:[[:space:]]*$program\$" "/proc/$watcher/status" || exit 0
  done
  echo "The test program ran for $limit seconds and is ended:"
  all="$program $(descendants "$program")"
  for process in $all; do describe "$process" 2>/dev/null; done
  # A test program in a debugger's or the kernel's hands may not end; nothing more can be done then.
  kill -KILL $all 2>/dev/null
}

watch >&2 </dev/null &
exec "$@"
