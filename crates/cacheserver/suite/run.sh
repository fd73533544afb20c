#!/bin/sh
# Runs memcached's own tests against `prism cache serve`.
#
#   run.sh PRISM [FILE.t...]
#
# The tests come from Debian's source package of memcached, which is downloaded to a temporary
# folder; it is removed afterwards. Needs apt-get, perl, a C compiler and the network.
set -eu

VERSION=1.6.45
POOL=http://deb.debian.org/debian/pool/main/m/memcached
# Files that must pass. docs/cache-protocol.md says which others there are, and why they do not run.
FILES="bogus-commands cas expirations flags getandtouch getset incrdecr issue_104 issue_108 issue_152
issue_14 issue_192 issue_3 issue_68 issue_70 line-lengths malicious-commands multiversioning noreply quit
stats-detail strtol-testing touch chunked-items binary-get issue_41 whitespace
evictions metaget flush-all item_size_max maxconns unixsocket shutdown idle-timeout ascii-auth ascii-auth2
issue_61 daemonize"
# Files of which exactly these assertions fail, for the reasons in docs/cache-protocol.md.
PARTLY="stats:111 stats-conns:10 00-startup:5,13,16"

prism=$(realpath "$1")
shift
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

cd "$work"
mkdir -p lists/partial
echo "deb-src http://deb.debian.org/debian testing main" >sources.list
set_apt="-o Dir::Etc::sourcelist=$work/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$work/lists"
# The archive moves on; the file of this version stays in the pool for a while.
apt-get -qq $set_apt update >/dev/null 2>&1 || true
apt-get -qq $set_apt source --download-only memcached >/dev/null 2>&1 || true
archive=memcached_$VERSION.orig.tar.xz
if [ ! -f $archive ]; then
    apt-get -qq $set_apt source --download-only --print-uris memcached >uris 2>/dev/null || true
    /usr/lib/apt/apt-helper download-file "$POOL/$archive" $archive >/dev/null 2>&1 || {
        echo "cannot download $archive from Debian: is there a network?" >&2
        exit 2
    }
fi
tar xf $archive
cd memcached-$VERSION
cc -O1 -w -o timedrun timedrun.c
sed "s|@PRISM@|$prism|" "$here/memcached-debug" >memcached-debug
chmod +x memcached-debug

tests=
if [ $# -gt 0 ]; then
    for file in "$@"; do tests="$tests t/$(basename "$file" .t).t"; done
else
    for file in $FILES; do tests="$tests t/$file.t"; done
fi
# The summary is "Files=N, Tests=M".
prove -j2 $tests
[ $# -eq 0 ] || exit 0

status=0
for part in $PARTLY; do
    file=${part%%:*}
    expected=${part#*:}
    perl "t/$file.t" >output 2>/dev/null || true
    failed=$(sed -n 's/^not ok \([0-9]*\).*/\1/p' output | paste -sd,)
    passed=$(grep -c '^ok' output)
    echo "t/$file.t: $passed pass; fail: $failed"
    [ "$failed" = "$expected" ] || { echo "  expected to fail: $expected" >&2; status=1; }
done
exit $status
