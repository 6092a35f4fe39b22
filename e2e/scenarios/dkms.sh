#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the module as a user does. The command `make install PART=module` runs on the Debian
# release of the kernel, with that kernel's headers. After a boot, mount(8) loads the module
# automatically. The command `mk/build/dkms remove` leaves no file. DKMS builds in the rig's root
# for the kernel, at native speed. The built modules are then copied into the guest, which runs that
# kernel.
#
# rig: --no-mount --size 64M
# maps: walk
# limit: 900
# shellcheck disable=SC2016 # quoted text is for the shells inside
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
eval "$(e2e/rig kernel-build-dir "$SG_KERNEL")" # root=, dir=, release=
: "${dir:?}"
modules=/lib/modules/${release:?}
machine=$work/root

# inside WHAT COMMAND...: checks that the command succeeds in the copied root.
inside() {
	local what=$1
	shift
	mk/tools/in-root "$machine" root "$@" >"$work/said" 2>&1 || fail "$what: $(<"$work/said")"
	passed "$what"
}

# Lists every file, except files that the commands themselves make and remove, and depmod's indexes.
# Newer versions of DKMS remove the indexes of a kernel that has no other modules.
files() {
	(cd "$machine" && find . \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp \
		-o -path ./root/stargate -o -path "./usr$modules/modules.*" \) -prune -o -print |
		LC_ALL=C sort)
}

step "a machine with DKMS and the headers of $release"
# Skip /tmp, because other builds in that root make and remove files there.
mkdir -p "$machine"
find "${root:?}" -mindepth 1 -maxdepth 1 ! -name tmp -exec cp -a --reflink=auto -t "$machine" {} +
mkdir "$machine/tmp"
chmod 1777 "$machine/tmp"
mkdir -p "$machine/root/stargate"
cp -r Makefile versions.env mk kernel "$machine/root/stargate/"
files >"$work/before"

step "make install PART=module"
inside "make install builds and installs the module" make -C stargate install PART=module KVER="$release"
inside "DKMS lists the module as installed" sh -c 'dkms status stargatefs | grep -q ": installed"'
inside "the sources of the module are in /usr/src" sh -c '
	[ "$(ls /usr/src/stargatefs-*/core/*/*.c | wc -l)" -gt 20 ] && ls /usr/src/stargatefs-*/dkms.conf'
inside "DKMS builds the module automatically for a kernel that is installed later" sh -c '
	package=$(dkms status stargatefs | sed -n "s/[,:] .*//p" | head -n 1)
	dkms uninstall "$package" -k "$1" && dkms autoinstall -k "$1" &&
		dkms status stargatefs | grep -q ": installed"' sh "$release"

step "a guest with the installed module"
holds "the rig's own module is unloaded" 'rmmod stargatefs'
refused "the kernel does not have the file system yet" 'unknown filesystem type' \
	'mount -t stargatefs /dev/pmem0 /mnt'
holds "the kernel's modules can be changed" "mount -o remount,rw $modules"
tar -C "$machine$modules" -c updates | on g1 "tar -x -C $modules && depmod" || fail "copying"
holds "modprobe finds the module" "modinfo -n stargatefs | grep -qx '$modules/updates/.*/stargatefs.ko.*'"
holds "the module is built for this kernel" '[ "$(modinfo -F vermagic stargatefs | cut -d " " -f 1)" = "$(uname -r)" ]'
holds "a volume is made" 'mkfs.stargatefs -q /dev/pmem0'
holds "mount loads the module" 'mkdir -p /mnt/sg && mount -t stargatefs /dev/pmem0 /mnt/sg &&
	grep -q "^stargatefs " /proc/modules'
holds "a program is copied to the volume and runs" 'cp /bin/bash /mnt/sg/ && cmp /bin/bash /mnt/sg/bash && /mnt/sg/bash -c true'
holds "the volume is unmounted, and the module unloaded" 'umount /mnt/sg && modprobe -r stargatefs && [ ! -e /sys/module/stargatefs ]'
holds "the volume passes fsck" 'fsck.stargatefs -n /dev/pmem0'

step "mk/build/dkms remove"
inside "mk/build/dkms remove succeeds" stargate/mk/build/dkms remove
files >"$work/after"
same "no installed file remains" "" "$(diff "$work/before" "$work/after")"
finish
