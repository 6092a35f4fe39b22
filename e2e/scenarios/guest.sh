#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The guest side of a KubeVirt VM (kubevirt-manifests/guest). systemd and udev find the memory
# devices, including devices that appear later, and mount each volume at /mnt/stargate/LABEL. They
# ignore a device without a volume, and mount a read-only device read-only. A unit fails if its
# label cannot be a directory, if two devices have the label, or if the directory is in use. udev
# also makes links by UUID and label (kernel/tools/udev). lsblk and mount find volumes by these
# links.
#
# rig: --no-mount --size 256M --mem 1G --pages --pkgs "systemd udev fdisk"
# kernels: 6.12
# maps: walk
# limit: 600
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

# system COMMAND: runs the command in a namespace in which systemd is the first process, as in any
# VM.
system() { on g1 "nsenter -t \$(cat /run/systemd.pid) -a sh -c '$1'" </dev/null; }
# soon WHAT COMMAND: checks that COMMAND succeeds in the namespace of systemd within a short time.
soon() {
	local try said
	for ((try = 0; try < 150; try++)); do
		! said=$(system "$2" 2>&1) || { passed "$1"; return; }
		sleep 0.2
	done
	fail "$1: $2: $said: $(system 'systemctl list-units --all "stargate*"; journalctl -n 40 --no-pager')"
}
# tried DEVICE RESULT STATE: checks that the device's unit has ended with RESULT and is in STATE.
tried() { soon "the unit of $1 has the result $2" "[ \$(systemctl show -p Result --value stargate-mount@$1) = $2 ] && systemctl is-$3 stargate-mount@$1"; }
# anew PARTITIONS: makes the partitions disappear and appear again.
anew() {
	system "udevadm settle"
	on g1 "partx -d --nr $1 /dev/pmem0 && partx -a --nr $1 /dev/pmem0" </dev/null ||
		fail "the kernel cannot read partitions $1 once more"
}

guest=$(dirname "$0")/../../kubevirt-manifests/guest
step "the guest's files are installed before systemd starts"
for file in stargate-mount:/usr/local/sbin stargate-mount@.service:/etc/systemd/system \
	60-stargate.rules:/etc/udev/rules.d; do
	holds "the directory for ${file%%:*} exists" "mkdir -p ${file#*:}"
	on g1 "cat >'${file#*:}/${file%%:*}'" <"$guest/${file%%:*}"
done
rule=/etc/udev/rules.d/61-stargatefs.rules
on g1 "sed \"s|@SBIN@|\$(dirname \$(command -v stargatectl))|\" >$rule" <"$guest/../../kernel/tools/udev/61-stargatefs.rules.in"
holds "the script gets the mode that cloud-init sets" 'chmod 755 /usr/local/sbin/stargate-mount'
holds "a volume is made" 'mkfs.stargatefs -q -L shared /dev/pmem0'

step "systemd and udev"
on g1 'env -i container=vm PATH=/usr/sbin:/usr/bin \
	unshare --pid --fork --mount --cgroup --mount-proc \
	/lib/systemd/systemd --unit=sysinit.target >/run/systemd.log 2>&1 </dev/null &
	for try in $(seq 100); do pgrep -P $! >/run/systemd.pid && break; sleep 0.1; done'

soon "systemd runs" "systemctl is-active sysinit.target"
soon "udev runs" "systemctl is-active systemd-udevd"
soon "the volume is mounted by its label" "mountpoint -q /mnt/stargate/shared"
soon "the mount has the options nosuid and nodev" "findmnt -O nosuid,nodev /mnt/stargate/shared"
soon "the mounted volume is writable" "echo word >/mnt/stargate/shared/word"
soon "a restart of the unit keeps the volume" "systemctl restart stargate-mount@pmem0 && cat /mnt/stargate/shared/word"

step "links by UUID and label"
soon "udevadm verify accepts the rule" "! udevadm verify --help >/dev/null 2>&1 || udevadm verify $rule"
soon "the volume has a link by its label" '[ $(readlink -f /dev/disk/by-label/shared) = /dev/pmem0 ]'
soon "lsblk shows the file system" 'lsblk -nfo FSTYPE,LABEL /dev/pmem0 | grep "^stargatefs *shared$"'
soon "the volume has a link by its UUID" \
	'[ $(readlink -f /dev/disk/by-uuid/$(lsblk -nfo UUID /dev/pmem0)) = /dev/pmem0 ]'
soon "the volume is unmounted" "umount /mnt/stargate/shared"
soon "mount finds the volume by its label" 'mkdir -p /mnt/by && mount -t stargatefs LABEL=shared /mnt/by && cat /mnt/by/word && umount /mnt/by'
soon "mount finds the volume by its UUID" 'mount -t stargatefs UUID=$(lsblk -nfo UUID /dev/pmem0) /mnt/by && umount /mnt/by'
soon "the volume gets another UUID and label" 'stargatectl tune /dev/pmem0 --uuid 01234567-89ab-cdef-0123-456789abcdef --label again'
soon "udev replaces the links by links with the new UUID and label" '[ $(readlink -f /dev/disk/by-uuid/01234567-89ab-cdef-0123-456789abcdef) = /dev/pmem0 ] &&
	[ $(readlink -f /dev/disk/by-label/again) = /dev/pmem0 ] &&
	[ ! -e /dev/disk/by-label/shared ]'

step "three devices that appear later"
holds "the device has three partitions" 'printf "label: gpt\nfirst-lba: 4096\nsize=64M\nsize=64M\nsize=64M\n" | sfdisk -q --wipe always /dev/pmem0'
for n in 1 2 3; do tried pmem0p$n success active; done
same "a device without a volume is not mounted" "" "$(system 'ls /mnt/stargate/ | grep -v shared' || true)"
holds "two volumes are made" 'mkfs.stargatefs -q -L first /dev/pmem0p1 && mkfs.stargatefs -q -L ../up /dev/pmem0p2'
anew 1:3
soon "the volume of the first partition is mounted" "mountpoint -q /mnt/stargate/first"
soon "the first partition has a link by its label" '[ $(readlink -f /dev/disk/by-label/first) = /dev/pmem0p1 ]'
soon "udev escapes a label that cannot be a file name" 'ls -A /dev/disk/by-label | grep -F "..\\x2fup" && [ ! -e /dev/disk/up ]'
tried pmem0p2 exit-code failed
soon "the unit's log says that its label cannot be a directory" \
	"journalctl -u stargate-mount@pmem0p2 | grep \"label .../up. cannot be the name of a directory\""
tried pmem0p3 success active

step "a directory in use, and a read-only device"
soon "another file system is mounted at the directory" "umount /mnt/stargate/first && mount -t tmpfs none /mnt/stargate/first"
anew 1:1
tried pmem0p1 exit-code failed
soon "the unit keeps that mount, and its log reports it" "findmnt -t tmpfs /mnt/stargate/first &&
	journalctl -u stargate-mount@pmem0p1 | grep \"something is mounted at\""
holds "one device is set read-only" 'blockdev --setro /dev/pmem0p1'
soon "the read-only device is mounted read-only" "umount /mnt/stargate/first && systemctl restart stargate-mount@pmem0p1 &&
	findmnt -O ro /mnt/stargate/first"
soon "the volume is unmounted" "umount /mnt/stargate/first"

step "two volumes with the same label"
holds "two volumes with the same label are made" 'for n in 2 3; do mkfs.stargatefs -q --force -L twin /dev/pmem0p$n || exit; done'
anew 2:3
for n in 2 3; do tried pmem0p$n exit-code failed; done
same "neither of the two volumes is mounted" "" "$(system 'findmnt -rno SOURCE | grep /dev/pmem0p[23]' || true)"
holds "one volume gets another label" 'stargatectl label /dev/pmem0p3 other'
soon "then each volume is mounted by its own label" "systemctl restart stargate-mount@pmem0p2 stargate-mount@pmem0p3 &&
	mountpoint -q /mnt/stargate/twin && mountpoint -q /mnt/stargate/other"
soon "both volumes are unmounted" "umount /mnt/stargate/twin /mnt/stargate/other"
on g1 'kill $(cat /run/systemd.pid)' </dev/null || true
finish
