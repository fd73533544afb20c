#!/bin/sh
# Builds a kernel that runs as an ordinary process (User-mode Linux) and has ext4, XFS, F2FS and
# the tracing of block devices: a virtual machine for `prism capture stack` where there is no
# hardware virtualization, or where the kernel of the machine lacks F2FS.
#
#   packaging/uml/build.sh SOURCE KERNEL
#
# SOURCE is a folder with the sources of Linux, such as the unpacked
# /usr/src/linux-source-6.1.tar.xz of Debian's package linux-source-6.1. KERNEL is the file to write.
# Needs gcc, make, bc, bison and flex.
set -eu
[ $# = 2 ] || { echo "usage: $0 SOURCE KERNEL" >&2; exit 2; }
source=$1 kernel=$2
[ -f "$source/arch/um/Makefile" ] || { echo "$source: no sources of Linux" >&2; exit 2; }
make -s -C "$source" ARCH=um defconfig
(cd "$source" && scripts/config \
  -e FTRACE -e ENABLE_DEFAULT_TRACERS -e BLK_DEV_IO_TRACE \
  -e EXT4_FS -e XFS_FS -e F2FS_FS -e TMPFS -e HOSTFS -e DEVTMPFS \
  -e BLK_DEV_UBD -e BLK_DEV_LOOP --set-val BLK_DEV_LOOP_MIN_COUNT 8 \
  -e CGROUPS -e MEMCG -e CRYPTO_CRC32 -e CRYPTO_CRC32C -e LIBCRC32C \
  -e HIGH_RES_TIMERS -e NO_HZ_IDLE -d STATIC_LINK \
  -d MODULES -d DEBUG_KERNEL -d DEBUG_INFO -d WERROR -d SOUND -d UML_SOUND -d UML_NET -d WIRELESS \
  -d REISERFS_FS -d BTRFS_FS -d QUOTA -d SLIP -d PPP)
make -s -C "$source" ARCH=um olddefconfig
make -s -C "$source" ARCH=um -j"$(nproc)" linux
cp "$source/linux" "$kernel"
