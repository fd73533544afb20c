#!/bin/sh
# The first process in the virtual machine of record.sh. Its root is that of the machine, read
# only; the variables come from the kernel's command line.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t devtmpfs dev /dev
mount -t tracefs tracefs /sys/kernel/tracing && mount -t cgroup2 cgroup2 /sys/fs/cgroup
for folder in /run /var/tmp /mnt; do mount -t tmpfs tmpfs $folder; done
mkdir /mnt/out /mnt/work && mount -t hostfs -o "$PRISM_OUT" none /mnt/out
# The images of prism capture stack are files here, and their requests go on to the disk of the
# virtual machine without a page cache between.
mkfs.ext4 -q -O ^has_journal -E lazy_itable_init=0 /dev/ubda && mount /dev/ubda /mnt/work
# The root is read only; a long trace needs a temporary file.
export TMPDIR=/mnt/work
cd /mnt/out && sh ./run.sh >run.txt 2>&1
echo $? >run.code
cd / && umount /mnt/work
sync
poweroff -f
