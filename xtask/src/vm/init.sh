#!/bin/busybox sh
# The first process of a guest: mounts what psitrace and its tests look at, and runs the tests.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tracefs tracefs /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf
for module in /modules/*; do
    [ -e "$module" ] && insmod "$module"
done

# Swap, so that memory can be reclaimed. The disk comes up on its own time.
for second in 1 2 3 4 5 6 7 8 9 10; do
    [ -b /dev/nvme0n1 ] && break
    sleep 1
done
mkswap /dev/nvme0n1 >/dev/null && swapon /dev/nvme0n1

PSITRACE_BIN=/bin/psitrace psi-guest
# It ends the guest itself, with a result. Without one this counts as a failure.
echo "psi-guest came back: $?"
poweroff -f
