#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests stargate-module, the program that loads the module on a cluster's node, on a kernel without
# the module. The module is in the image, installed, loaded, or loaded from another release. Further
# cases are a node that cannot build a module, and a kernel that accepts no module. The program
# always succeeds, and prints which module it used.
#
# suite: csi-vm
# rig: --guests 1 --no-mount --size 64M --copy-in build/csi
# kernels: 6.1 6.12 7.2
# maps: walk
# limit: 600
# shellcheck disable=SC2016 # quoted text is for the shells inside
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sources=$(mk/build/dkms-sources "$work")
release=$(on g1 'uname -r' </dev/null)
mk/image/modules "$work/modules" "$SG_KERNEL"
module=$work/modules/$release/stargatefs.ko
of="the image"
if [[ ! -e $module ]]; then # the archive has a newer update of the kernel than the rig's cache
	mk/build/module "$SG_KERNEL"
	module=build/module/$SG_KERNEL/stargatefs.ko
	of="the rig, as the image has $(ls "$work/modules")"
fi

# says WHAT WORDS [OPTION]...: checks that stargate-module succeeds, and that its output has WORDS.
says() {
	local what=$1 words=$2
	shift 2
	holds "$what" "/root/in/csi/stargate-module --host / --sources /root/${sources##*/} $* 2>/root/log |
		tee /root/said | grep -F '$words' || { cat /root/said /root/log; false; }"
}

tar -C "$work" -c "${sources##*/}" | on g1 'tar -x -C /root' || fail "copying"
folder=/usr/lib/stargate/modules # the default place for modules
on g1 "mkdir -p $folder/$release && cat >$folder/$release/stargatefs.ko" <"$module" || fail "copying"

step "a node without the module"
holds "the rig's own module is unloaded" 'rmmod stargatefs'
says "without DKMS, the program says that there is no module" "none, kernel" --prebuilt /none
says "the program names the packages that are missing" "apt-get install dkms linux-headers-" --prebuilt /none
says "the option --build=false forbids a build" "may not be built" --prebuilt /none --build=false
says "with an empty --prebuilt, no prebuilt module is used" "the node has no DKMS" --prebuilt=
holds "the node has no module loaded" '[ ! -e /sys/module/stargatefs ]'

step "the node loads the module that $of has built for $release"
says "the prebuilt module is loaded" "prebuilt, kernel $release, version"
holds "a volume is made and mounted" 'mkfs.stargatefs -q /dev/pmem0 && mkdir -p /mnt/sg && mount -t stargatefs /dev/pmem0 /mnt/sg'
holds "a program is copied to the volume and runs" 'cp /bin/bash /mnt/sg/ && cmp /bin/bash /mnt/sg/bash && /mnt/sg/bash -c true'
says "a loaded module is kept" "loaded before, kernel"
holds "the sources get another release" 'sed -i "s/^#define SG_RELEASE.*/#define SG_RELEASE\t\"9.9.9\"/" /root/stargatefs-*/core/format/version.h'
says "a loaded module of another release in use is kept, and the program asks for a drain" "the image has 9.9.9: drain the node"
says "without DKMS, the other release cannot be built" "the image has 9.9.9: the node has no DKMS" --prebuilt /none
holds "the loaded module was not replaced" 'umount /mnt/sg'
says "an unused module of another release is replaced" "prebuilt, kernel"
holds "the new module can mount a volume" 'mount -t stargatefs /dev/pmem0 /mnt/sg && umount /mnt/sg && rmmod stargatefs'

step "an installed module"
holds "the kernel's modules can be changed" 'mount -o remount,rw "/lib/modules/$(uname -r)"'
holds "the module is installed" 'mkdir -p "/lib/modules/$(uname -r)/updates" &&
	cp '$folder'/*/stargatefs.ko "/lib/modules/$(uname -r)/updates/" && depmod'
says "the installed module is loaded" "installed on the node, kernel" --prebuilt /none
holds "the installed module can mount a volume" 'mount -t stargatefs /dev/pmem0 /mnt/sg && umount /mnt/sg && rmmod stargatefs'

step "a module for another kernel"
holds "the installed module is built for another kernel" 'sed -i "s/ SMP preempt / SMP PREEMPT /" '$folder'/*/stargatefs.ko &&
	rm -r "/lib/modules/$(uname -r)/updates" && depmod'
says "the program prints the kernel's reason" "Invalid module format"

step "a kernel that accepts no more modules"
holds "the kernel loads no module from now on" 'sysctl -qw kernel.modules_disabled=1'
says "the program says that the kernel accepts no modules" "takes no more modules"
finish
