#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests .stargate/region, the volume's memory as a regular file. A store through region changes
# files, and a write to a file changes region. Large pages map it, and allocating it in advance
# changes no byte. More cases: which users may open it, which processes have it open, and
# volume.json, which gives its address. It does not affect the rest of the directory tree.
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

# Prints the offset of a file's first bytes in the volume.
place_of() {
	local phys
	phys=$("$SG_TOOLS/stargatectl" --json stat "$RIG_RANGE" "$1" 2>/dev/null |
		sed -nE 's/.*"phys": "(0x[0-9a-f]+)", "leaf".*/\1/p' | head -n 1)
	[[ -n $phys ]] || fail "stargatectl stat does not say where $1 is"
	echo $((phys - RIG_BASE))
}

step "its attributes"
same "its size is the volume's" "$RIG_SIZE" "$(on g1 "stat -c %s $region")"
same "a regular file, for root alone" "regular file 600 0:0" \
	"$(on g1 "stat -c '%F %a %u:%g' $region")"
same "the directory holds nothing else but what describes it" "region semaphores volume.json" \
	"$(on g1 'cd /mnt/sg/.stargate && echo *')"
same "and is not listed" "" "$(on g1 'ls -A /mnt/sg')"
holds "its owner and mode can be set" "chown 107:107 $region && chmod 660 $region &&
	[ \"\$(stat -c '%a %u:%g' $region)\" = '660 107:107' ]"
holds "which lasts" "sync; echo 2 >/proc/sys/vm/drop_caches; [ \"\$(stat -c %u $region)\" = 107 ]"

step "volume.json"
uuid=$(on g1 'cat /sys/fs/stargatefs/pmem0/uuid')
# says KEY: prints the value of the key in JSON.
says() { on g1 "cat $about" </dev/null | python3 -c 'import json, sys
print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }
same "base" "$(printf '0x%x' $((RIG_BASE)))" "$(says base)"
same "size" "$RIG_SIZE" "$(says size)"
same "uuid" "$uuid" "$(says uuid)"
same "alignment, as $((RIG_BASE)) is a multiple of 1 GiB" 1073741824 "$(says alignment)"
same "mode" rw "$(says mode)"
same "joined" True "$(says joined)"
same "bad" False "$(says bad)"
same "version" 1 "$(says version)"
same "it is as long as it says" "$(on g1 "stat -c %s $about")" "$(on g1 "cat $about" | wc -c)"
refused "it cannot be written" "Invalid argument" "echo x >>$about"
refused "a look from outside is for the device" "is the memory of a mounted volume; name the mounted device instead" "stargatectl info $region"

step "owner and mode by mount options"
# attributes: of both files.
attributes() { on g1 "stat -c '%a %u:%g' $region $about | paste -sd' '" </dev/null; }
shown() { on g1 'grep " /mnt/sg " /proc/mounts' </dev/null; }
holds "(chown's change stays in a remount)" 'mount -o remount,errors=remount-ro /mnt/sg'
same "by themselves root's" "660 107:107 400 0:0" "$(attributes)"
holds "an owner, a group and a mode" 'mount -o remount,region_uid=64055,region_gid=108,region_mode=0640 /mnt/sg'
same "are those of both" "640 64055:108 440 64055:108" "$(attributes)"
grep -q 'region_uid=64055,region_gid=108,region_mode=0640' <<<"$(shown)" || fail "not shown: $(shown)"
passed "and shown"
holds "a remount for another reason keeps them" 'mount -o remount,map=walk /mnt/sg'
same "all" "640 64055:108 440 64055:108" "$(attributes)"
for bad in "region_mode=0777:at most 0666" "region_mode=9:not an octal number" "region_mode=u+r:not an octal number" \
	"region_uid=qemu:not an owner's number" "region_uid=-1:not an owner's number" \
	"region_gid=4294967295:no such group" "region_gid=99999999999:not an owner's number"; do
	refused "${bad%%:*}" "${bad#*:}" "mount -o remount,${bad%%:*} /mnt/sg"
done
same "which has changed nothing" "640 64055:108 440 64055:108" "$(attributes)"
refused "a second mount with others" 'mounted already, with region_uid=64055,region_gid=108,region_mode=0640' \
	'mkdir -p /mnt/again && mount -t stargatefs -o region_uid=1 /dev/pmem0 /mnt/again'

step "which mounts it is opened through: region_nodiratime"
machine=00000000-1111-2222-3333-444444444444
# member COMMAND...: runs COMMAND as a user of the file's group, without capabilities, who may open
# the file.
member="setpriv --reuid 1000 --regid 1000 --groups 107"
# The rights of a container's root, and a few more.
tame="setpriv --bounding-set -sys_admin --inh-caps -sys_admin"
opens() { echo "sh -c ': <>$1/.stargate/$2'"; }
holds "(two mounts of it, one with the attribute, and the first one bound again)" '
	mkdir -p /mnt/pod /mnt/launcher /mnt/again
	mount --bind /mnt/sg /mnt/pod && mount --bind /mnt/pod /mnt/again &&
	mount --bind /mnt/sg /mnt/launcher && mount -o remount,bind,nodiratime /mnt/launcher'
holds "a group has it by any mount" "mount -o remount,region_gid=107,region_mode=660 /mnt/sg &&
	$member $(opens /mnt/pod region) && $member $(opens /mnt/launcher region)"
holds "until that is restricted" 'mount -o remount,region_nodiratime /mnt/sg'
grep -q region_nodiratime <<<"$(shown)" || fail "not shown: $(shown)"
passed "and shown"
holds "a remount for another reason keeps it" 'mount -o remount,map=walk /mnt/sg && grep -q region_nodiratime /proc/mounts'
for name in region "region@$machine"; do
	holds "$name: by the mount with the attribute" "$member $(opens /mnt/launcher "$name")"
	for at in /mnt/pod /mnt/again; do
		refused "not by $at" "Permission denied" "$member $(opens $at "$name")"
		refused "nor as root of a container" "Permission denied" "$tame $(opens $at "$name")"
	done
done
refused "nor after a remount in a namespace of one's own" "permission denied" \
	"$member unshare -Urm mount -o remount,bind,nodiratime /mnt/pod"
refused "nor by a bind mount there" "Permission denied" \
	"$member unshare -Urm sh -c 'mount --bind /mnt/pod /mnt/again
		mount -o remount,bind,nodiratime /mnt/again
		: <>/mnt/again/.stargate/region'"
holds "the files beside it can be opened" "$member cat /mnt/pod/.stargate/volume.json && $member $(opens /mnt/pod semaphores)"
holds "root of the system opens it by any mount" "$(opens /mnt/pod region)"

step "owner and mode are changed with CAP_SYS_ADMIN of the first user namespace alone"
# modes: of the three files.
modes() {
	on g1 "cd /mnt/pod/.stargate && stat -c '%n %a %u:%g' region volume.json semaphores |
		paste -sd' '" </dev/null
}
was=$(modes)
for name in region volume.json semaphores; do
	for change in "chmod 666" "chmod 0" "chown 1000" "chgrp 1000"; do
		refused "$change $name: not by root of a container" "not permitted" \
			"$tame $change /mnt/pod/.stargate/$name"
	done
	for change in "chmod 666" "chmod 0"; do
		refused "$change $name: not by root of a user namespace" "not permitted" \
			"unshare -Urm $change /mnt/pod/.stargate/$name"
	done
done
same "all files are unchanged" "$was" "$(modes)"
refused "the owner of region gives it to nobody" "not permitted" \
	"chown 1000 $region && $member chmod 666 /mnt/pod/.stargate/region"
holds "root of the system takes it back" "chown 0 $region"

step "mounts before and after the option"
refused "a second mount with the option is told of a first one without" "mounted already, without region_nodiratime" '
	umount /mnt/launcher /mnt/again /mnt/pod /mnt/sg
	mount -t stargatefs /dev/pmem0 /mnt/sg &&
	mount -t stargatefs -o region_nodiratime /dev/pmem0 /mnt/again'

step "a mount's options end with it"
holds "they come with a mount" "umount /mnt/sg &&
	mount -t stargatefs -o region_gid=109,region_mode=660 /dev/pmem0 /mnt/sg"
same "as they were asked for" "660 0:109 440 0:109" "$(attributes)"
holds "and go with it" 'umount /mnt/sg && mount -t stargatefs /dev/pmem0 /mnt/sg'
same "altogether" "600 0:0 400 0:0" "$(attributes)"

step "the same bytes"
on g1 'head -c 1M /dev/urandom >/mnt/sg/f; head -c 4096 /mnt/sg/f >/run/page'
at=$(place_of /f)
holds "a file's bytes by a mapping" "/root/region read $region $at 4096 | cmp - /run/page"
holds "by read(2)" "dd if=$region bs=4096 skip=$((at / 4096)) count=1 status=none | cmp - /run/page"
holds "all of it so, to its end and not beyond" "[ \$(cat $region | wc -c) = $RIG_SIZE ] &&
	[ \$(dd if=$region bs=3M status=none | wc -c) = $RIG_SIZE ]"
holds "and by the kernel, which gets the pages as KVM does" "/root/region pinned $region $at 4096 | cmp - /run/page"
holds "a store there is seen in the file" "printf 'stored below' | /root/region write $region $at 12 &&
	[ \"\$(head -c 12 /mnt/sg/f)\" = 'stored below' ] && head -c 4096 /mnt/sg/f >/run/page"
holds "and by the next reader of the region" "/root/region read $region $at 4096 | cmp - /run/page"

step "large pages, also where there were small ones; allocation in advance"
faults=$(on g1 "/root/region touch $region")
[[ $faults -le $((RIG_SIZE / 2097152 + 8)) ]] || fail "$faults faults for $RIG_SIZE bytes"
passed "$RIG_SIZE bytes are mapped by $faults faults"
holds "while files change it is allocated again and again: no byte is lost" '
	(while ! [ -e /run/stop ]; do /root/region populate '$region' || exit; done) &
	cd /mnt/sg
	for i in $(seq 40); do
		head -c 512K /dev/urandom >/run/bytes
		cp /run/bytes g && cmp g /run/bytes && mv g g.$((i % 4)) || exit
	done
	touch /run/stop; wait $!'

step "open for reading: for machines that may only read"
holds "a mapping can be read, and never becomes writable" "/root/region readonly $region"
holds "by the name of a machine, too" "/root/region readonly $region@00000000-1111-2222-3333-444444444444"

step "refusals"
refused "a private mapping, which would be a copy" "Invalid argument" "/root/region private $region"
refused "write(2)" "Invalid argument" "echo x >>$region"
refused "another size" "not permitted" "truncate -s 1M $region"
for mode in 4600 2600 1600 7777; do
	refused "mode $mode: it is no program" "not permitted" "chmod $mode $region"
done
same "which has changed nothing" 600 "$(on g1 "stat -c %a $region")"
refused "direct I/O" "Invalid argument" "dd if=$region iflag=direct bs=4096 count=1"
refused "a pin for long, as for a device's DMA (VFIO)" "io_uring_register: Operation not supported" "/root/region longterm $region"
for call in sendfile splice; do
	refused "$call(2) from it" "$call: Invalid argument" "/root/region $call $region"
done
holds "a copy by a program that can do without them" \
	"cat $region | cmp -n 4096 - $region && cp $region /run/copy && cmp -n 4096 /run/copy $region &&
	rm /run/copy"
refused "a removal" "not permitted" "rm -f $region"
refused "of the directory, too" "not permitted" "rmdir /mnt/sg/.stargate"
refused "another name" "not permitted" "mv /mnt/sg/.stargate /mnt/sg/x"
refused "a second name" "not permitted" "ln $region /mnt/sg/x"
refused "something in its place" "not permitted|cannot overwrite|Directory not empty" \
	"mkdir /mnt/sg/d; mv -T /mnt/sg/d /mnt/sg/.stargate"
refused "an exchange" "not permitted" "mv -T --exchange /mnt/sg/d /mnt/sg/.stargate"
refused "a file in it" "not permitted" "touch /mnt/sg/.stargate/x"
refused "attributes" "not supported" "setfattr -n user.a -v b $region"
holds "another zone can have the same name" 'mkdir -p /mnt/sg/d/.stargate && touch /mnt/sg/d/.stargate/region &&
	rm -r /mnt/sg/d'
holds "absent names are absent, twice" '! ls /mnt/sg/.stargate/y && ! ls /mnt/sg/.stargate/y'

step "holders"
machine=12345678-9abc-4def-8000-0123456789ab
holders=/sys/fs/stargatefs/pmem0/holders
# held: prints the list of holders in sysfs, without process numbers.
held() { on g1 "cut -d' ' -f2- $holders | sort | paste -sd,"; }
# hold VERB FILE: maps the file until /run/enough exists.
hold() { on g1 "/root/region $1 $2 /run/enough >/run/held 2>&1 </dev/null &
	until [ -s /run/held ]; do sleep 0.05; done; rm /run/held" </dev/null; }
enough() {
	holds "(all end)" "touch /run/enough; for i in \$(seq 200); do
		[ \"\$(cat $holders)\" ] || { rm /run/enough; exit 0; }; sleep 0.05; done; exit 1"
}
same "nobody" "" "$(held)"
hold look "$region"
hold hold "$region@$machine"
hold hold "$region"
same "three processes: how, and for which machine" "ro - region,rw - region,rw $machine region" "$(held)"
holds "by the number of the process" "read -r pid mode <$holders && [ \"\$(cat /proc/\$pid/comm)\" = region ]"
said=$(on g1 "stargatectl systems $region")
grep -qE "^ +[0-9]+  rw       $machine  region$" <<<"$said" || fail "stargatectl systems says: $said"
passed "stargatectl systems shows it"
same "as JSON, too" "ro None region, rw $machine region, rw None region" \
	"$(on g1 "stargatectl --json systems $region" | python3 -c 'import json, sys
print(", ".join(sorted(" ".join(map(str, (h["mode"], h.get("machine"), h["command"])))
	for h in json.load(sys.stdin)["holders"])))')"
refused "the module stays" 'in use' 'rmmod stargatefs'
refused "umount -f fails" 'busy' 'umount -f /mnt/sg'
holds "and the log names the process that prevents it" 'dmesg | grep "stays mounted: process [0-9]* (region) holds"'
enough
hold child "$region@$machine"
same "a child that has it from one who has ended holds it" "rw $machine region" "$(held)"
enough
same "nobody, after that" "" "$(held)"
hold neighbours "$region@$machine"
same "two mappings side by side are one process's" "rw $machine region" "$(held)"
enough
same "and end with it" "" "$(held)"
own=$(on g1 'cat /sys/class/dmi/id/product_uuid')
refused "nobody has it for the machine whose host this is" 'Invalid argument' "cat $region@$own"
for bad in 1234 "$machine-" "${machine/1/g}" ''; do
	refused "there is no region@$bad" 'No such file' "cat $region@$bad"
done

step "a host's processor follows no table of its machines (map=splice)"
mounted_by() { on g1 'cat /sys/fs/stargatefs/pmem0/map' </dev/null; }
hold hold "$region@$machine"
refused "not while one may store" "host-splice" 'mount -o remount,map=splice /mnt/sg'
same "which changes nothing" walk "$(mounted_by)"
enough
hold look "$region@$machine"
holds "one that only reads is in nobody's way" 'mount -o remount,map=splice /mnt/sg'
enough
refused "no process takes a hold while files are spliced" "not permitted" \
	"timeout 10 /root/region hold $region@$machine /run/enough"
holds "the log says why, and what to do" \
	"dmesg | grep -F 'region@$machine: cannot be opened for writing while this host has map=splice' | grep -F map=walk"
same "it holds nothing" "" "$(held)"
holds "a tool's mapping is no machine's" \
	"stargatectl tune $region --lease never && mount -o remount,map=walk /mnt/sg"
hold hold "$region@$machine"
same "then it comes" "rw $machine region" "$(held)"
enough

step "a page that somebody has, though nobody maps it"
hold lend "$region"
same "no process has a mapping" "" "$(held)"
refused "the volume stays mounted" "busy" "umount /mnt/sg"
refused "the module stays" 'in use' 'rmmod stargatefs'
refused "umount -f fails" 'busy' 'umount -f /mnt/sg'
holds "and the log has the reason" 'dmesg | grep "stays mounted: no process maps .stargate/region, but pages of it"'
holds "others map it meanwhile" "/root/region read $region $at 4096 | cmp - /run/page"
refused "which lets nothing go" "busy" "umount /mnt/sg"
holds "given back, it is unmounted" 'touch /run/enough
	for i in $(seq 100); do umount /mnt/sg && exec rm /run/enough; sleep 0.1; done; exit 1'
holds "and mounted" 'mount -t stargatefs /dev/pmem0 /mnt/sg'

step "as long as it is mapped"
on g1 "/root/region hold $region /run/enough" >/dev/null </dev/null &
holder=$!
holds "(it is)" "for i in \$(seq 100); do grep -q $region /proc/*/maps && exit; sleep 0.1; done; exit 1"
refused "the volume stays mounted" "busy" "umount /mnt/sg"
on g1 'touch /run/enough'
wait "$holder"
holds "and is unmounted then" 'umount /mnt/sg'
holds "the file has its bytes again" "mount -t stargatefs /dev/pmem0 /mnt/sg && cmp -n 4096 /mnt/sg/f /run/page &&
	/root/region read $region $at 4096 | cmp - /run/page"
holds "a mount that is read-only gives it to readers only" "mount -o remount,ro /mnt/sg &&
	! /root/region write $region 0 1 </dev/null && grep -q '\"mode\": \"ro\"' $about && [ \$(dd if=$region bs=4096 count=1 status=none | wc -c) = 4096 ]"
finish
