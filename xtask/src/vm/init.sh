#!/bin/busybox sh
# The first process of a guest: mounts what psitrace and its tests look at, and runs the tests.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tracefs tracefs /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf

# One CPU at a time runs, and the first one always before the others unless it idles or says that it only waits ("pause").
# The kernel does not say so while it starts a CPU; the load does.
psi-load spin >/dev/null &
load=$!
for cpu in /sys/devices/system/cpu/cpu*/online; do
    [ "$(cat "$cpu")" = 1 ] || echo 1 >"$cpu"
done
kill "$load"

for module in /modules/*; do
    [ -e "$module" ] && insmod "$module"
done

# Swap, so that memory can be reclaimed. The disk comes up on its own time.
for second in 1 2 3 4 5 6 7 8 9 10; do
    [ -b /dev/vda ] && break
    sleep 1
done
mkswap /dev/vda >/dev/null && swapon /dev/vda

PSITRACE_BIN=/bin/psitrace psi-guest
# It ends the guest itself, with a result. Without one this counts as a failure.
echo "psi-guest came back: $?"
poweroff -f
