#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests .stargate/region, the volume's memory as a regular file. A store through region changes
# files, and a write to a file changes region. Large pages map region, and its allocation in advance
# changes no byte. The scenario also tests which users may open region, and the list of processes
# that have mapped it. The file volume.json gives the volume's address. The directory tree is the
# same with and without these files.
#
# rig: --size 64M --pages --pkgs attr
# maps: walk
# limit: 300
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

region=/mnt/sg/.stargate/region
about=/mnt/sg/.stargate/volume.json
program region

# place_of FILE: prints the offset of the file's first bytes in the volume.
place_of() {
	local phys
	phys=$("$SG_TOOLS/stargatectl" --json stat "$RIG_RANGE" "$1" 2>/dev/null |
		sed -nE 's/.*"phys": "(0x[0-9a-f]+)", "leaf".*/\1/p' | head -n 1)
	[[ -n $phys ]] || fail "stargatectl stat does not print the address of $1"
	echo $((phys - RIG_BASE))
}

step "the attributes of region"
same "the region has the volume's size" "$RIG_SIZE" "$(on g1 "stat -c %s $region")"
same "the region is a regular file of root, closed to others" "regular file 600 0:0" \
	"$(on g1 "stat -c '%F %a %u:%g' $region")"
same "the directory .stargate has only three files" "region semaphores volume.json" \
	"$(on g1 'cd /mnt/sg/.stargate && echo *')"
same "a listing of the root does not show .stargate" "" "$(on g1 'ls -A /mnt/sg')"
holds "the region's owner and mode can be set" "chown 107:107 $region && chmod 660 $region &&
	[ \"\$(stat -c '%a %u:%g' $region)\" = '660 107:107' ]"
holds "the region's owner and mode survive a dropped cache" "sync; echo 2 >/proc/sys/vm/drop_caches; [ \"\$(stat -c %u $region)\" = 107 ]"

step "volume.json"
uuid=$(on g1 'cat /sys/fs/stargatefs/pmem0/uuid')
# says KEY: prints the value of the key in JSON.
says() { on g1 "cat $about" </dev/null | python3 -c 'import json, sys
print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }
same "volume.json has the base address" "$(printf '0x%x' $((RIG_BASE)))" "$(says base)"
same "volume.json has the size" "$RIG_SIZE" "$(says size)"
same "volume.json has the UUID" "$uuid" "$(says uuid)"
same "volume.json has the alignment: $((RIG_BASE)) is a multiple of 1 GiB" 1073741824 "$(says alignment)"
same "volume.json has the mode" rw "$(says mode)"
same "volume.json shows that the system has joined" True "$(says joined)"
same "volume.json shows no bad memory" False "$(says bad)"
same "volume.json has its version" 1 "$(says version)"
same "a read of volume.json returns as many bytes as its size" "$(on g1 "stat -c %s $about")" "$(on g1 "cat $about" | wc -c)"
refused "volume.json cannot be written" "Invalid argument" "echo x >>$about"
refused "stargatectl info refuses the region of a mounted volume" "is the memory of a mounted volume; name the mounted device instead" "stargatectl info $region"

step "owner and mode by mount options"
# attributes: prints mode and owner of region and volume.json.
attributes() { on g1 "stat -c '%a %u:%g' $region $about | paste -sd' '" </dev/null; }
shown() { on g1 'grep " /mnt/sg " /proc/mounts' </dev/null; }
holds "a remount without these options succeeds" 'mount -o remount,errors=remount-ro /mnt/sg'
same "the remount changes neither owner nor mode" "660 107:107 400 0:0" "$(attributes)"
holds "a remount sets owner, group and mode" 'mount -o remount,region_uid=64055,region_gid=108,region_mode=0640 /mnt/sg'
same "both files have the new owner, group and mode" "640 64055:108 440 64055:108" "$(attributes)"
grep -q 'region_uid=64055,region_gid=108,region_mode=0640' <<<"$(shown)" || fail "/proc/mounts does not show the option: $(shown)"
passed "/proc/mounts shows owner, group and mode"
holds "a second remount without these options succeeds" 'mount -o remount,map=walk /mnt/sg'
same "the second remount changes neither owner nor mode" "640 64055:108 440 64055:108" "$(attributes)"
for bad in "region_mode=0777:at most 0666" "region_mode=9:not an octal number" "region_mode=u+r:not an octal number" \
	"region_uid=qemu:not an owner's number" "region_uid=-1:not an owner's number" \
	"region_gid=4294967295:no such group" "region_gid=99999999999:not an owner's number"; do
	refused "a remount with ${bad%%:*} is refused" "${bad#*:}" "mount -o remount,${bad%%:*} /mnt/sg"
done
same "the refused remounts have changed nothing" "640 64055:108 440 64055:108" "$(attributes)"
refused "a second mount with other options is refused" 'mounted already, with region_uid=64055,region_gid=108,region_mode=0640' \
	'mkdir -p /mnt/again && mount -t stargatefs -o region_uid=1 /dev/pmem0 /mnt/again'

step "with region_nodiratime, users can open region only by some mounts"
machine=00000000-1111-2222-3333-444444444444
# $member COMMAND...: runs COMMAND as a user of region's group without capabilities. The mode of
# region lets this user open it.
member="setpriv --reuid 1000 --regid 1000 --groups 107"
# $tame COMMAND...: runs COMMAND with the rights of a container's root and some further ones, but
# without CAP_SYS_ADMIN.
tame="setpriv --bounding-set -sys_admin --inh-caps -sys_admin"
# opens MOUNT FILE: prints a command that opens the file of .stargate for reading and writing.
opens() { echo "sh -c ': <>$1/.stargate/$2'"; }
holds "the volume has three mounts, one of them with the attribute" '
	mkdir -p /mnt/pod /mnt/launcher /mnt/again
	mount --bind /mnt/sg /mnt/pod && mount --bind /mnt/pod /mnt/again &&
	mount --bind /mnt/sg /mnt/launcher && mount -o remount,bind,nodiratime /mnt/launcher'
holds "a group can open the region by any mount" "mount -o remount,region_gid=107,region_mode=660 /mnt/sg &&
	$member $(opens /mnt/pod region) && $member $(opens /mnt/launcher region)"
holds "region_nodiratime can be set" 'mount -o remount,region_nodiratime /mnt/sg'
grep -q region_nodiratime <<<"$(shown)" || fail "/proc/mounts does not show region_nodiratime: $(shown)"
passed "/proc/mounts shows region_nodiratime"
holds "a remount without the option keeps it" 'mount -o remount,map=walk /mnt/sg && grep -q region_nodiratime /proc/mounts'
for name in region "region@$machine"; do
	holds "a group member can open $name by the mount with the attribute" "$member $(opens /mnt/launcher "$name")"
	for at in /mnt/pod /mnt/again; do
		refused "a group member cannot open $name by $at" "Permission denied" "$member $(opens $at "$name")"
		refused "root of a container cannot open $name by $at" "Permission denied" "$tame $(opens $at "$name")"
	done
done
refused "a remount in the user's own namespace does not help" "permission denied" \
	"$member unshare -Urm mount -o remount,bind,nodiratime /mnt/pod"
refused "a bind mount in the user's own namespace does not help" "Permission denied" \
	"$member unshare -Urm sh -c 'mount --bind /mnt/pod /mnt/again
		mount -o remount,bind,nodiratime /mnt/again
		: <>/mnt/again/.stargate/region'"
holds "the other files of .stargate can be opened" "$member cat /mnt/pod/.stargate/volume.json && $member $(opens /mnt/pod semaphores)"
holds "root of the system can open region by any mount" "$(opens /mnt/pod region)"

step "changes of owner and mode need CAP_SYS_ADMIN in the first user namespace"
# modes: prints mode and owner of the three files of .stargate.
modes() {
	on g1 "cd /mnt/pod/.stargate && stat -c '%n %a %u:%g' region volume.json semaphores |
		paste -sd' '" </dev/null
}
was=$(modes)
for name in region volume.json semaphores; do
	for change in "chmod 666" "chmod 0" "chown 1000" "chgrp 1000"; do
		refused "$change $name is refused for root of a container" "not permitted" \
			"$tame $change /mnt/pod/.stargate/$name"
	done
	for change in "chmod 666" "chmod 0"; do
		refused "$change $name is refused for root of a user namespace" "not permitted" \
			"unshare -Urm $change /mnt/pod/.stargate/$name"
	done
done
same "all files are unchanged" "$was" "$(modes)"
refused "the owner of the region cannot change its owner" "not permitted" \
	"chown 1000 $region && $member chmod 666 /mnt/pod/.stargate/region"
holds "root of the system can change the owner back" "chown 0 $region"

step "a second mount with the option"
refused "a second mount with the option is refused after a first one without it" "mounted already, without region_nodiratime" '
	umount /mnt/launcher /mnt/again /mnt/pod /mnt/sg
	mount -t stargatefs /dev/pmem0 /mnt/sg &&
	mount -t stargatefs -o region_nodiratime /dev/pmem0 /mnt/again'

step "the options end with their mount"
holds "a mount sets the options" "umount /mnt/sg &&
	mount -t stargatefs -o region_gid=109,region_mode=660 /dev/pmem0 /mnt/sg"
same "owner, group and mode are as requested" "660 0:109 440 0:109" "$(attributes)"
holds "the volume is mounted without the options" 'umount /mnt/sg && mount -t stargatefs /dev/pmem0 /mnt/sg'
same "owner and mode are the defaults" "600 0:0 400 0:0" "$(attributes)"

step "bytes of a file and of region"
on g1 'head -c 1M /dev/urandom >/mnt/sg/f; head -c 4096 /mnt/sg/f >/run/page'
at=$(place_of /f)
holds "a mapping has the file's bytes" "/root/region read $region $at 4096 | cmp - /run/page"
holds "read(2) returns the file's bytes" "dd if=$region bs=4096 skip=$((at / 4096)) count=1 status=none | cmp - /run/page"
holds "read(2) returns all bytes up to the end" "[ \$(cat $region | wc -c) = $RIG_SIZE ] &&
	[ \$(dd if=$region bs=3M status=none | wc -c) = $RIG_SIZE ]"
holds "the kernel can pin the pages, as KVM does" "/root/region pinned $region $at 4096 | cmp - /run/page"
holds "the file has the bytes that were stored through the region" "printf 'stored below' | /root/region write $region $at 12 &&
	[ \"\$(head -c 12 /mnt/sg/f)\" = 'stored below' ] && head -c 4096 /mnt/sg/f >/run/page"
holds "the next reader of the region sees the store" "/root/region read $region $at 4096 | cmp - /run/page"

step "large pages, and allocation in advance"
faults=$(on g1 "/root/region touch $region")
[[ $faults -le $((RIG_SIZE / 2097152 + 8)) ]] || fail "$faults faults for $RIG_SIZE bytes"
passed "$RIG_SIZE bytes are mapped by $faults faults"
holds "repeated allocations of the region lose no byte of files that change" '
	(while ! [ -e /run/stop ]; do /root/region populate '$region' || exit; done) &
	cd /mnt/sg
	for i in $(seq 40); do
		head -c 512K /dev/urandom >/run/bytes
		cp /run/bytes g && cmp g /run/bytes && mv g g.$((i % 4)) || exit
	done
	touch /run/stop; wait $!'

step "region for VMs that may only read"
holds "a read-only mapping can be read, and never becomes writable" "/root/region readonly $region"
holds "a read-only mapping for a VM never becomes writable" "/root/region readonly $region@00000000-1111-2222-3333-444444444444"

step "calls that are refused"
refused "a private mapping is refused" "Invalid argument" "/root/region private $region"
refused "write(2) is refused" "Invalid argument" "echo x >>$region"
refused "a truncation of the region is refused" "not permitted" "truncate -s 1M $region"
for mode in 4600 2600 1600 7777; do
	refused "mode $mode, which is for programs, is refused" "not permitted" "chmod $mode $region"
done
same "the refused modes have changed nothing" 600 "$(on g1 "stat -c %a $region")"
refused "direct I/O is refused" "Invalid argument" "dd if=$region iflag=direct bs=4096 count=1"
refused "a long-term pin, as for a device's DMA (VFIO), is refused" "io_uring_register: Operation not supported" "/root/region longterm $region"
for call in sendfile splice; do
	refused "$call(2) from the region is refused" "$call: Invalid argument" "/root/region $call $region"
done
holds "cat and cp can copy the region without these calls" \
	"cat $region | cmp -n 4096 - $region && cp $region /run/copy && cmp -n 4096 /run/copy $region &&
	rm /run/copy"
refused "the region cannot be removed" "not permitted" "rm -f $region"
refused "the directory .stargate cannot be removed" "not permitted" "rmdir /mnt/sg/.stargate"
refused "the directory .stargate cannot be renamed" "not permitted" "mv /mnt/sg/.stargate /mnt/sg/x"
refused "the region cannot get a second name" "not permitted" "ln $region /mnt/sg/x"
refused "the directory .stargate cannot be replaced" "not permitted|cannot overwrite|Directory not empty" \
	"mkdir /mnt/sg/d; mv -T /mnt/sg/d /mnt/sg/.stargate"
refused "the directory .stargate cannot be exchanged" "not permitted" "mv -T --exchange /mnt/sg/d /mnt/sg/.stargate"
refused "no file can be created in .stargate" "not permitted" "touch /mnt/sg/.stargate/x"
refused "no extended attribute of the region can be set" "not supported" "setfattr -n user.a -v b $region"
holds "a directory can have the name .stargate elsewhere" 'mkdir -p /mnt/sg/d/.stargate && touch /mnt/sg/d/.stargate/region &&
	rm -r /mnt/sg/d'
holds "a second look-up of an absent name in .stargate fails, too" '! ls /mnt/sg/.stargate/y && ! ls /mnt/sg/.stargate/y'

step "the list of holders"
machine=12345678-9abc-4def-8000-0123456789ab
holders=/sys/fs/stargatefs/pmem0/holders
# held: prints the list of holders in sysfs, without process numbers.
held() { on g1 "cut -d' ' -f2- $holders | sort | paste -sd,"; }
# hold VERB FILE: starts a process that maps the file until /run/enough exists. VERB is an order of
# programs/region.c.
hold() { on g1 "/root/region $1 $2 /run/enough >/run/held 2>&1 </dev/null &
	until [ -s /run/held ]; do sleep 0.05; done; rm /run/held" </dev/null; }
enough() {
	holds "all holders end" "touch /run/enough; for i in \$(seq 200); do
		[ \"\$(cat $holders)\" ] || { rm /run/enough; exit 0; }; sleep 0.05; done; exit 1"
}
same "no process holds the region" "" "$(held)"
hold look "$region"
hold hold "$region@$machine"
hold hold "$region"
same "the list has three processes, with their modes and VMs" "ro - region,rw - region,rw $machine region" "$(held)"
holds "the list of holders has the number of the process" "read -r pid mode <$holders && [ \"\$(cat /proc/\$pid/comm)\" = region ]"
said=$(on g1 "stargatectl systems $region")
grep -qE "^ +[0-9]+  rw       $machine  region$" <<<"$said" || fail "stargatectl systems says: $said"
passed "stargatectl systems shows the holders"
same "stargatectl systems shows the holders as JSON" "ro None region, rw $machine region, rw None region" \
	"$(on g1 "stargatectl --json systems $region" | python3 -c 'import json, sys
print(", ".join(sorted(" ".join(map(str, (h["mode"], h.get("machine"), h["command"])))
	for h in json.load(sys.stdin)["holders"])))')"
refused "the module in use is not unloaded" 'in use' 'rmmod stargatefs'
refused "umount -f fails while processes hold the region" 'busy' 'umount -f /mnt/sg'
holds "the log names the process that prevents the unmount" 'dmesg | grep "stays mounted: process [0-9]* (region) holds"'
enough
hold child "$region@$machine"
same "a child holds the region after its parent has ended" "rw $machine region" "$(held)"
enough
same "no process holds the region after the child's end" "" "$(held)"
hold neighbours "$region@$machine"
same "two adjacent mappings count as one holder" "rw $machine region" "$(held)"
enough
same "no process holds the region after the end of both mappings" "" "$(held)"
own=$(on g1 'cat /sys/class/dmi/id/product_uuid')
refused "the region cannot be opened with the host's own UUID" 'Invalid argument' "cat $region@$own"
for bad in 1234 "$machine-" "${machine/1/g}" ''; do
	refused "region@$bad does not exist" 'No such file' "cat $region@$bad"
done

step "a host's processor follows no table of its VMs (map=splice)"
# mounted_by: prints the map mode of the mount.
mounted_by() { on g1 'cat /sys/fs/stargatefs/pmem0/map' </dev/null; }
hold hold "$region@$machine"
refused "map=splice is refused while a VM may store" "host-splice" 'mount -o remount,map=splice /mnt/sg'
same "the refused remount changes nothing" walk "$(mounted_by)"
enough
hold look "$region@$machine"
holds "map=splice is accepted while a VM only reads" 'mount -o remount,map=splice /mnt/sg'
enough
refused "a VMM cannot map the region for writing while the host uses map=splice" "not permitted" \
	"timeout 10 /root/region hold $region@$machine /run/enough"
holds "the log has the reason and the remedy" \
	"dmesg | grep -F 'region@$machine: cannot be opened for writing while this host has map=splice' | grep -F map=walk"
same "the refused process holds nothing" "" "$(held)"
holds "a mapping of a tool does not count as a VM's" \
	"stargatectl tune $region --lease never && mount -o remount,map=walk /mnt/sg"
hold hold "$region@$machine"
same "a VMM can map the region after the change to map=walk" "rw $machine region" "$(held)"
enough

step "a page in a pipe, without a mapping"
hold lend "$region"
same "no process has a mapping" "" "$(held)"
refused "the volume stays mounted" "busy" "umount /mnt/sg"
refused "the module in use is not unloaded" 'in use' 'rmmod stargatefs'
refused "umount -f fails" 'busy' 'umount -f /mnt/sg'
holds "the log has the reason" 'dmesg | grep "stays mounted: no process maps .stargate/region, but pages of it"'
holds "other processes can map the page meanwhile" "/root/region read $region $at 4096 | cmp - /run/page"
refused "the volume stays mounted while the page is in the pipe" "busy" "umount /mnt/sg"
holds "the volume can be unmounted after the page is released" 'touch /run/enough
	for i in $(seq 100); do umount /mnt/sg && exec rm /run/enough; sleep 0.1; done; exit 1'
holds "the volume is mounted after the release" 'mount -t stargatefs /dev/pmem0 /mnt/sg'

step "a process that maps region prevents the unmount"
on g1 "/root/region hold $region /run/enough" >/dev/null </dev/null &
holder=$!
holds "a process has mapped the file" "for i in \$(seq 100); do grep -q $region /proc/*/maps && exit; sleep 0.1; done; exit 1"
refused "the volume stays mounted" "busy" "umount /mnt/sg"
on g1 'touch /run/enough'
wait "$holder"
holds "the volume can be unmounted after the process has ended" 'umount /mnt/sg'
holds "after the next mount, file and region have their bytes" "mount -t stargatefs /dev/pmem0 /mnt/sg && cmp -n 4096 /mnt/sg/f /run/page &&
	/root/region read $region $at 4096 | cmp - /run/page"
holds "a read-only mount allows only read-only mappings" "mount -o remount,ro /mnt/sg &&
	! /root/region write $region 0 1 </dev/null && grep -q '\"mode\": \"ro\"' $about && [ \$(dd if=$region bs=4096 count=1 status=none | wc -c) = 4096 ]"
finish
