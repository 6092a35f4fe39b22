#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A kernel that is not a guest may be the host of guests. With map=splice, it would follow tables
# that guests write. It therefore uses map=splice only if the volume's parameter allows this and the
# mount requests it (D5).
#
# rig: --size 32M --append clearcpuid=hypervisor
# kernels: 6.12
# maps: walk
# limit: 300
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

# map: prints the map mode of the mount.
map() { on g1 'cat /sys/fs/stargatefs/pmem0/map' </dev/null; }

step "a volume without the parameter host-splice"
holds "this kernel does not run as a guest" '! grep -qw hypervisor /proc/cpuinfo'
same "the mount uses map=walk" walk "$(map)"
refused "a remount cannot select map=splice" "host-splice" 'mount -o remount,map=splice /mnt/sg'
same "the refused remount changes nothing" walk "$(map)"
holds "the mount may use map=shadow" 'mount -o remount,map=shadow /mnt/sg && head -c 5M /dev/urandom >/mnt/sg/f && cat /mnt/sg/f >/dev/null && umount /mnt/sg'
refused "a mount cannot select map=splice" "host-splice" 'mount -t stargatefs -o map=splice /dev/pmem0 /mnt/sg'

step "a volume with the parameter host-splice"
holds "a volume with host-splice is made and mounted" 'mkfs.stargatefs -q -f --param host-splice /dev/pmem0 && mount -t stargatefs /dev/pmem0 /mnt/sg'
same "a mount without an option uses map=walk" walk "$(map)"
holds "the mount may use map=splice" 'mount -o remount,map=splice /mnt/sg && head -c 5M /dev/urandom >/mnt/sg/f && cmp /mnt/sg/f /mnt/sg/f'
same "the mount uses map=splice" splice "$(map)"
holds "the mount uses windows" '! grep -q "^hooks 0" /sys/fs/stargatefs/pmem0/windows'
finish
