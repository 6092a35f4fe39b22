#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A node's zone is LVM on reserved memory. Its volumes are at physical addresses that VMs can use,
# too. The scenario makes volumes, finds them after a power cut, and deletes them. stargatectl
# refuses to delete a volume while any system uses it. A new volume has no content of a deleted one.
# LVM's own tools show the complete zone.
#
# g2 has the same memory, and acts as another system that has a volume mounted.
#
# rig: --guests 2 --pages --no-mount --size 1152M --pkgs "lvm2 qemu-system-x86"
# maps: walk
# limit: 1800
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

# of VOLUME KEY: prints the value of KEY in the output of `volume show`.
of() {
	on g1 "stargatectl -j volume show $1" </dev/null | python3 -c 'import json, sys
print(json.load(sys.stdin)[sys.argv[1]])' "$2"
}

# largest KEY: prints the value of KEY in the output of `zone show`, for example of
# "largest_volume".
largest() {
	on g1 'stargatectl -j zone show sm' </dev/null | python3 -c 'import json, sys
print(json.load(sys.stdin)["zones"][0][sys.argv[1]])' "$1"
}

# because STATUS REASON COMMAND: checks that COMMAND fails with STATUS, and that its JSON output has
# REASON. Stores the complete JSON in $why.
because() {
	local status=0
	why=$(on g1 "stargatectl -j $3 2>/dev/null" </dev/null | tr -s '\n ' ' '; exit "${PIPESTATUS[0]}") || status=$?
	same "$3" "$1 \"$2\"" "$status $(grep -oP '"reason": \K"[a-z-]*"' <<<"$why")"
}

# bytes BASE SIZE: prints that part of the memory, which it reads from outside the VM.
bytes() { tail -c +$(($1 - RIG_BASE + 1)) "$RIG_RANGE" | head -c "$2" || true; }

# line COMMAND: prints the command's output in g1, with single blanks.
line() { on g1 "$1 | xargs" </dev/null; }

# zeroes WHAT BASE SIZE: checks that this part of the memory contains only zeroes.
zeroes() {
	same "$1" 0 "$(bytes "$2" "$3" | tr -d '\0' | head -c 1 | wc -c)"
}

# secret VOLUME: fills the volume with a secret text, and checks that the memory contains the text.
secret() {
	local base
	holds "volume $1 is filled with a secret text" "mkdir -p /mnt/$1 && mount -t stargatefs /dev/sm/$1 /mnt/$1 &&
		yes 'a secret of $1' | head -c 20M >/mnt/$1/secret && sync && umount /mnt/$1"
	base=$(of "$1" base)
	bytes "$base" "$(of "$1" size)" | grep -qa "a secret of $1" || fail "the memory of $1 does not contain its secret text"
}

step "devices that cannot be a zone"
refused "no volume can be made without a zone" "there is no zone" "stargatectl volume create a --size 16M"
refused "a file does not become a zone" "is not a block device" "truncate -s 64M /run/file && stargatectl zone create sm /run/file"
holds "a loop device is set up" "modprobe loop && losetup /dev/loop0 /run/file"
refused "a device without DAX does not become a zone" "is not DAX capable" "stargatectl zone create sm /dev/loop0"
refused "a missing device does not become a zone" "No such file" "stargatectl zone create sm /dev/pmem7"
refused "a user who is not root cannot make a zone" "run it as root" \
	"setpriv --reuid=65534 --regid=65534 --clear-groups stargatectl zone show"
refused "a command for zones is refused without LVM" "install the package lvm2" \
	"mv /usr/sbin/lvm /run/lvm; stargatectl zone show; s=\$?; mv /run/lvm /usr/sbin/lvm; exit \$s"
holds "a StargateFS fills the device" "mkfs.stargatefs -q /dev/pmem0"
refused "a device with a StargateFS does not become a zone" "holds a StargateFS.*--force" "stargatectl zone create sm /dev/pmem0"
holds "the StargateFS is mounted" "mkdir -p /mnt/all && mount -t stargatefs /dev/pmem0 /mnt/all"
refused "a mounted device does not become a zone, even with --force" "unmount it" \
	"stargatectl zone create --force sm /dev/pmem0"
holds "the StargateFS is unmounted" "umount /mnt/all"
for name in -x a/b '$(touch /run/pwned)' snapshot 'a b' ''; do
	refused "a zone cannot have the name '$name'" "name of a zone|no option" \
		"stargatectl zone create -- '$name' /dev/pmem0 2>&1 || stargatectl zone create '$name' /dev/pmem0"
done
same "LVM has changed no device" "" "$(on g1 'pvs --noheadings' </dev/null)"

step "a zone"
holds "the device becomes a zone with --force" "stargatectl zone create --force sm /dev/pmem0"
refused "the device does not become a second zone" "belongs to zone sm;.* zone destroy sm" "stargatectl zone create other /dev/pmem0"
refused "the device does not become a second zone with --force" "belongs to zone sm" "stargatectl zone create --force other /dev/pmem0"
refused "a second zone cannot have the same name" "zone sm: exists already" "stargatectl zone create --force sm /dev/pmem0"
same "LVM shows the zone" "sm stargate contiguous 2.00m" \
	"$(line 'vgs --noheadings -o vg_name,vg_tags,vg_allocation_policy,vg_extent_size')"
same "the zone has the UUID of its volume group" "$(line 'vgs --noheadings -o vg_uuid sm')" "$(largest uuid)"
same "the zone's data begins where a volume may begin" 0 \
	$(((RIG_BASE + $(line 'pvs --noheadings --units b --nosuffix -o pe_start')) % 2097152))

step "volumes"
for name in -x .x _x a_b a/b/c sm/ /a 'a b' 'a;reboot' '$(touch /run/pwned)' '../../dev/vda' \
	snapshot1 "$(printf 'n%.0s' {1..64})" "$(printf 'a\nb')" $'\303\244'; do
	refused "a volume cannot have the name '$name'" "name of a|no option|there is no" \
		"stargatectl volume create --size 16M -- '$name' 2>&1 || stargatectl volume create --size 16M '$name'"
done
for size in 0 1 15M 17M 65T -16M 16Q ''; do
	refused "a volume cannot have the size '$size'" "must be|a volume has" "stargatectl volume create a --size='$size'"
done
refused "an impossible option of mkfs is refused" "must be" \
	"stargatectl volume create a --size 16M -- --areas 99"
for place in base phys; do
	refused "the user cannot choose the volume's address" "leave --$place out" \
		"stargatectl volume create a --size 16M -- --$place 32G"
done
refused "an option with which mkfs makes no volume is refused" "has made no file system" \
	"stargatectl volume create a --size 16M -- --help"
same "no trace of the refused volumes remains" "" "$(on g1 'lvs --noheadings; ls /run/pwned 2>/dev/null' </dev/null)"
holds "a volume of 64 MiB is made" "stargatectl volume create a --size 64M -- --root-mode 1777"
same "LVM shows the volume" "a sm 64.00m stargate linear 1" \
	"$(line 'lvs --noheadings -o lv_name,vg_name,lv_size,lv_tags,segtype,seg_count')"
base=$(of a base)
same "the volume's address is aligned" 0 $((base % 2097152))
same "the volume has the first free address" $((RIG_BASE + 2097152)) $((base))
same "the volume is ready" ready "$(of a state)"
holds "the volume is mounted by its own physical address" "mkdir -p /mnt/a && mount -t stargatefs /dev/sm/a /mnt/a &&
	[ \$((\$(cat /sys/fs/stargatefs/*/phys))) = $((base)) ] &&
	[ \$(stat -c %a /mnt/a) = 1777 ] &&
	yes kept | head -n 200000 >/mnt/a/file && sync"
bytes "$base" 67108864 | grep -qa '^kept' || fail "the file's bytes are not in the memory at the volume's address"
passed "the file's bytes are in the memory at the volume's address"
refused "a second volume cannot have the same name" "exists already" "stargatectl volume create a --size 16M"
holds "a volume at a multiple of 1 GiB is made" "stargatectl volume create sm/big --size 32M --align 1G"
same "that volume is at the multiple of 1 GiB" $((RIG_BASE + (1 << 30))) $(($(of big base)))
holds "that volume can be mounted" "mkdir -p /mnt/big && mount -t stargatefs /dev/sm/big /mnt/big &&
	cp /bin/bash /mnt/big && cmp /bin/bash /mnt/big/bash && umount /mnt/big"
refused "a second volume with that alignment is refused" "no free address that is a multiple of 1 GiB" \
	"stargatectl volume create big2 --size 128M --align 1G"
most=$(largest largest_volume)
refused "a volume larger than the largest free range is refused" "largest possible volume has .*\\($most bytes\\)" \
	"stargatectl volume create large --size $((most + 2097152))"
because 5 no-room "volume create large --size $((most + 2097152))"
same "the error reports the largest possible size" "$most" "$(grep -oP '"largest": \K\d+' <<<"$why")"
because 4 exists "volume create a --size 16M"
because 3 not-found "volume delete none"
because 9 no-zone "volume delete none/a"
because 2 bad-argument "volume resize a --size 32M"
holds "a volume of the largest possible size is made" "stargatectl volume create large --size $most && stargatectl volume delete large"
holds "two volumes are made at the same time" "stargatectl volume create p --size 16M >/run/p & stargatectl volume create q --size 16M &&
	wait \$! && [ \$(lvs --noheadings sm | wc -l) = 4 ]"
holds "of two commands with one name, one makes the volume" "stargatectl volume create r --size 16M & stargatectl volume create r --size 16M
	s=\$?; wait \$!; s=\$((s + \$?)); { [ \$s = 4 ] || [ \$s = 7 ]; } && stargatectl volume delete r"
holds "both volumes are deleted" "stargatectl volume delete p && stargatectl volume delete sm/q"
holds "the list shows the volume in use" "stargatectl volume list | grep -E '^sm/a +in use +64 MiB +0x[0-9a-f]+ +2 MiB +- +/mnt/a\$'"
holds "the volume passes fsck" "stargatectl volume check big && stargatectl volume check big -- -p"

step "a volume in use is not deleted"
refused "a volume that is mounted here is not deleted" "mounted or in use here" "stargatectl volume delete a"
because 6 in-use "volume delete a"
holds "g1 unmounts the volume" "umount /mnt/a"
on g2 'mkdir -p /mnt/a && modprobe dm_mod && DM_DISABLE_UDEV=1 vgchange -qq -ay sm &&
	mount -t stargatefs /dev/sm/a /mnt/a' </dev/null || fail "g2 does not mount it"
refused "the error names the system that has mounted the volume" "in use by g2 .*unmount it there" "stargatectl volume delete a"
refused "--force does not delete a volume in use" "in use by g2" "stargatectl volume delete a --force"
because 6 in-use "volume delete a"
[[ $why == *'"systems": [ {"slot": '*', "name": "g2"} ]'* ]] || fail "the JSON does not list the systems that use the volume: $why"
same "the volume's tag is unchanged" "stargate" "$(line 'lvs --noheadings -o lv_tags sm/a')"
on g2 'cat /mnt/a/file && umount /mnt/a && DM_DISABLE_UDEV=1 vgchange -qq -an sm' </dev/null >/dev/null || fail "g2 cannot read and unmount the volume"
refused "a zone with volumes is not destroyed" "has volumes, .* among them" "stargatectl zone destroy sm"

step "a new volume has no old content"
holds "a volume is made" "stargatectl volume create old --size 48M"
secret old
place=$(of old base)
holds "the volume is deleted" "stargatectl volume delete old"
zeroes "the deleted volume's bytes are zero" "$place" $((48 << 20))
holds "another volume is made in its place" "stargatectl volume create old --size 48M"
same "the new volume has the same address" "$place" "$(of old base)"
secret old
holds "lvremove removes the volume without stargatectl" "lvremove -y sm/old"
holds "a new volume is made" "stargatectl volume create new --size 48M"
same "the new volume has the same address" "$place" "$(of new base)"
same "the new volume has no byte of the old one" 0 "$(bytes "$place" $((48 << 20)) | grep -ac secret || true)"
secret new
holds "a deletion is interrupted" "lvchange --deltag stargate --addtag stargate.wiping sm/new &&
	stargatectl volume list | grep -q 'sm/new *unfinished'"
holds "the next change finishes the interrupted deletion" "stargatectl volume create next --size 16M 2>&1 |
	grep -q 'sm/new: was left .* it is wiped and removed' && ! lvs sm/new"
zeroes "the bytes of the interrupted deletion are zero" "$((place + (16 << 20)))" $((32 << 20))
holds "the new volume is deleted" "stargatectl volume delete next"

# A wipe takes minutes. The wiping command has read the list of volumes before. So it sees a volume
# that another command is making as incomplete, although that command may complete the volume during
# the wipe. The test stops both commands at the critical times.
step "a volume that is completed while another command wipes"
holds "a full volume is made, whose deletion will be interrupted" "stargatectl volume create left --size 192M &&
	yes | dd of=/dev/sm/left bs=1M count=192 iflag=fullblock conv=notrunc status=none"
holds "a command is stopped while it makes a volume" 'stargatectl volume create made --size 384M >/run/made 2>&1 & echo $! >/run/maker
	for try in $(seq 1000); do
		[ "$(lvs --noheadings -o lv_tags sm/made 2>/dev/null | xargs)" != stargate.wiping ] || break
	done
	kill -STOP $(cat /run/maker) && [ "$(lvs --noheadings -o lv_tags sm/made | xargs)" = stargate.wiping ]'
holds "another command wipes the volume of the interrupted deletion" 'lvchange -q --deltag stargate --addtag stargate.wiping sm/left
	stargatectl volume create next --size 16M >/run/next 2>&1 & echo $! >/run/wiper
	for try in $(seq 1000); do grep -q "sm/left: was left" /run/next && break; sleep 0.01; done
	kill -STOP $(cat /run/wiper) && lvs sm/left'
holds "the first command completes its volume during the wipe" 'kill -CONT $(cat /run/maker)
	for try in $(seq 300); do [ -e /proc/$(cat /run/maker) ] || break; sleep 0.1; done
	stargatectl volume list | grep "sm/made *ready"'
holds "the wiping command continues" 'kill -CONT $(cat /run/wiper)
	for try in $(seq 600); do [ -e /proc/$(cat /run/wiper) ] || break; sleep 0.1; done
	! lvs sm/left && stargatectl volume list | grep "sm/next *ready"'
holds "the wiping command has not changed the finished volume" "stargatectl volume check made"
holds "both new volumes are deleted" "stargatectl volume delete made && stargatectl volume delete next"

step "growth of volumes"
refused "a volume cannot shrink" "cannot shrink" "stargatectl volume resize a --size 32M"
holds "a resize to the present size changes nothing" "stargatectl volume resize a --size 64M"
holds "a volume fills the smallest gap, behind the other volume" "stargatectl volume create filler --size 96M"
holds "a volume is made directly behind the first one" "stargatectl volume create b --size 16M -- --max-size 32M"
same "the volume is directly behind the first one" $((base + (64 << 20))) $(($(of b base)))
refused "a volume does not grow into the next volume" "largest possible size is 64 MiB \\(67108864 bytes\\)" \
	"stargatectl volume resize a --size 66M"
because 5 no-room "volume resize b --size 64M"
same "the error reports the largest possible size" 33554432 "$(grep -oP '"largest": \K\d+' <<<"$why")"
same "the volume's largest size is shown" 33554432 "$(of b max_size)"
refused "a volume does not grow beyond its --max-size" "32 MiB at most .* largest possible size \\(33554432 bytes\\)" \
	"stargatectl volume resize b --size 64M"
holds "the two volumes are deleted" "stargatectl volume delete b && stargatectl volume delete filler"
refused "a volume does not grow beyond the zone" "largest possible size is" "stargatectl volume resize big --size 256M"
holds "the volume grows to 96 MiB" "stargatectl volume resize a --size 96M"
same "the volume has 96 MiB" 100663296 "$(of a size)"
zeroes "the volume's new part is zero" "$((base + (90 << 20)))" $((4 << 20))
same "the volume is in one piece" "1 linear" "$(line 'lvs --noheadings -o seg_count,segtype sm/a')"
holds "the grown volume passes fsck and has its files" "stargatectl volume check a && mount -t stargatefs /dev/sm/a /mnt/a &&
	[ \"\$(sort -u /mnt/a/file)\" = kept ]"

step "the users of a volume"
holds "the users of the volume are shown" "mkdir -p /mnt/a/d && stargatectl systems /mnt/a/d | grep -E '^ +[0-9]+ +alive .*g1\$'"
refused "the mount itself is not fenced" "is this system itself: unmount it" \
	"stargatectl systems /mnt/a fence 0"
refused "a directory of another file system is refused" "is a directory, .*name the device" \
	"stargatectl systems /run fence 0"

step "recipes for VMs"
qemu="qemu-system-x86_64 -nodefaults -no-user-config -display none -S -monitor stdio -M q35"
qemu+=" -cpu max -accel tcg"
holds "QEMU starts with the volume at its own address" "args=\$(stargatectl volume qemu-args a --memory 256M) &&
	echo \"\$args\" && printf 'info memory-devices\\nquit\\n' | $qemu \$args | tee /dev/stderr |
	grep -q 'addr: $(printf '0x%x' "$base")'"
holds "QEMU starts with the volume read-only" "args=\$(stargatectl volume qemu-args a --memory 256M --read-only) &&
	printf 'info memory-devices\\nquit\\n' | $qemu \$args | grep -q 'addr: $(printf '0x%x' "$base")'"
holds "QEMU starts with a UUID by which the host can guard the VM" "uuid=12345678-9abc-4def-8000-0123456789ab &&
	args=\$(stargatectl volume qemu-args a --memory 256M --machine \$uuid) &&
	grep -q \"^-uuid \$uuid\$\" <<<\"\$args\" && grep -q \"/mnt/a/.stargate/region@\$uuid,\" <<<\"\$args\" &&
	printf 'quit\\n' | $qemu \$args"
own=$(on g1 'cat /sys/class/dmi/id/product_uuid' </dev/null)
refused "the host's own UUID is refused for a VM" "machine $own: is this host's UUID" \
	"stargatectl volume qemu-args a --memory 256M --machine $own"
for recipe in qemu-args libvirt-xml; do
	refused "$recipe refuses a VM that may store if the mount is read-only" \
		"sm/a: is mounted read-only at /mnt/a: give --read-only" \
		"mount -o remount,ro /mnt/a && stargatectl volume $recipe a --memory 256M"
	holds "$recipe accepts a VM that only reads if the mount is read-only" "stargatectl volume $recipe a --memory 256M --read-only &&
		mount -o remount,rw /mnt/a"
	refused "$recipe refuses a VM that may store if the device is read-only" \
		"sm/a: is a read-only device: give --read-only .* blockdev --setrw /dev/sm/a" \
		"blockdev --setro /dev/sm/a && stargatectl volume $recipe a --memory 256M"
	holds "$recipe accepts a VM that only reads if the device is read-only" "stargatectl volume $recipe a --memory 256M --read-only &&
		blockdev --setrw /dev/sm/a && stargatectl volume $recipe a --memory 256M"
done
refused "a VM whose own memory would reach the volume is refused" "give it at most 14 GiB" \
	"stargatectl volume qemu-args a --memory 15G"
refused "a VM with too few address bits is refused" "35 bits for them \\(--phys-bits\\) reach to 32 GiB" \
	"stargatectl volume qemu-args a --memory 2G --phys-bits 35"
holds "a VM with enough address bits is accepted" "stargatectl volume qemu-args a --memory 2G --phys-bits 36"
refused "a volume that is not mounted is refused" "is not mounted here" "stargatectl volume qemu-args big --memory 1G"
holds "the XML for libvirt has the volume's address" "stargatectl volume libvirt-xml a --memory 1G | grep -q \"base='$(printf '0x%x' "$base")'\" &&
	umount /mnt/a"

step "a power cut in the middle of a deletion"
holds "a volume is made" "stargatectl volume create gone --size 256M"
place=$(of gone base)
secret gone
on g1 'stargatectl volume delete gone' >/dev/null 2>&1 </dev/null &
deleting=$!
holds "a command has begun to delete the volume" 'for try in $(seq 300); do
		[ "$(lvs --noheadings -o lv_tags sm/gone | xargs)" = stargate.wiping ] && exit
	done; exit 1'
refused "a second deletion at the same time is refused" "at work on it" \
	"stargatectl volume delete gone; [ \$? != 7 ] || exit 7; exit 0"
kill_guest g1
wait "$deleting" || true
start_guest g1 --no-mount
holds "the zone exists after the power cut" "stargatectl zone show sm && DM_DISABLE_UDEV=1 vgchange -qq -ay sm"
holds "the list shows the half-deleted volume" "stargatectl volume list | grep 'sm/gone *unfinished'"
same "the other volume is at its address" "$((base)) ready" "$(($(of a base))) $(of a state)"
holds "the other volume has its files" "mkdir -p /mnt/a && mount -t stargatefs /dev/sm/a /mnt/a && [ \"\$(sort -u /mnt/a/file)\" = kept ] &&
	umount /mnt/a"
holds "the deletion can be finished" "stargatectl volume delete gone && ! lvs sm/gone"
holds "the other volume passes fsck" "stargatectl volume check a"
zeroes "the bytes of the deleted volume are zero" "$place" $((256 << 20))

step "devices that LVM has not made, and the end of the zone"
holds "volume check works for an inactive volume" "DM_DISABLE_UDEV=1 vgchange -qq -an sm && stargatectl volume list | grep 'sm/a *inactive' &&
	stargatectl volume check a"
holds "volume activate makes the device of an inactive volume" "DM_DISABLE_UDEV=1 vgchange -qq -an sm && [ ! -e /dev/sm/a ] && stargatectl volume activate a &&
	stargatectl volume activate a && [ -b /dev/sm/a ]"
holds "both volumes are deleted" "stargatectl volume delete a && stargatectl volume delete big"
refused "the deletion of a missing volume is refused" "there is no such volume" "stargatectl volume delete a"
holds "the zone is destroyed" "stargatectl zone destroy sm"
same "LVM has left nothing on the device" "" "$(on g1 'pvs --noheadings' </dev/null)"
refused "the zone no longer exists" "there is no zone 'sm'|there is no zone" "stargatectl zone show sm"
finish
