#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Snapshots and clones as volumes of a zone. The source is a volume that two systems have mounted
# and write to, or an unused one. Copies may be larger than the source. The scenario checks their
# contents, deletes them in any order, and makes invalid requests. It kills the command while it
# makes a copy, and cuts the node's power.
#
# g2 has the same memory, and acts as another system that has a volume mounted.
#
# rig: --guests 2 --pages --no-mount --size 1152M --pkgs lvm2
# maps: walk
# limit: 1800
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

# of VOLUME KEY: prints the value of KEY in the output of `volume show`.
of() {
	on g1 "stargatectl -j volume show $1" </dev/null | python3 -c 'import json, sys
print(json.load(sys.stdin).get(sys.argv[1], "none"))' "$2"
}

# because STATUS REASON COMMAND: checks that COMMAND fails with STATUS, and that its JSON output has
# REASON.
because() {
	local status=0 why
	why=$(on g1 "stargatectl -j $3 2>/dev/null" </dev/null | tr -s '\n ' ' '; exit "${PIPESTATUS[0]}") || status=$?
	same "$3" "$1 \"$2\"" "$status $(grep -oP '"reason": \K"[a-z-]*"' <<<"$why")"
}

# bytes BASE SIZE: prints that part of the memory, which it reads from outside the VM.
bytes() { tail -c +$(($1 - RIG_BASE + 1)) "$RIG_RANGE" | head -c "$2" || true; }

# zeroes WHAT BASE SIZE: checks that this part of the memory contains only zeroes.
zeroes() { same "$1" 0 "$(bytes "$2" "$3" | tr -d '\0' | head -c 1 | wc -c)"; }

# counts SYSTEM: writes numbers into a file, one after the other, until /run/enough exists.
counts() {
	on "$1" "rm -f /run/enough; : >/mnt/a/$1; (i=0; while [ ! -e /run/enough ]; do
		i=\$((i + 1)); echo \$i >>/mnt/a/$1; done) >/dev/null 2>&1 &" </dev/null ||
		fail "$1 does not write"
}
counted() { on "$1" "tail -n 1 /mnt/a/$1" </dev/null; }

# holds_numbers VOLUME LEAST1 LEAST2: checks that fsck finds no damage. Also checks that the files
# of g1 and g2 have the numbers from 1 to at least LEAST1 and LEAST2.
holds_numbers() {
	holds "$1 passes fsck" "stargatectl volume check $1"
	holds "$1 has the files of its source" "mkdir -p /mnt/$1 && mount -t stargatefs /dev/sm/$1 /mnt/$1 &&
		cmp /bin/bash /mnt/$1/bash && for f in 'g1 $2' 'g2 $3'; do set -- \$f
			n=\$(wc -l </mnt/$1/\$1) && [ \$n -ge \$2 ] || exit 1
			seq \$n | cmp - /mnt/$1/\$1 || exit 1
		done; umount /mnt/$1"
}

step "a volume that two systems use"
holds "a zone is made" "stargatectl zone create sm /dev/pmem0"
holds "a volume is made" "stargatectl volume create a --size 64M -- --max-size 256M"
holds "the volume is mounted" "mkdir -p /mnt/a && mount -t stargatefs /dev/sm/a /mnt/a && cp /bin/bash /mnt/a/bash && sync"
on g2 'mkdir -p /mnt/a && modprobe dm_mod && DM_DISABLE_UDEV=1 vgchange -qq -ay sm &&
	mount -t stargatefs /dev/sm/a /mnt/a' </dev/null || fail "g2 does not mount it"
uuid=$(of a uuid)
counts g1
counts g2
sleep 1

step "a snapshot"
had1=$(counted g1) had2=$(counted g2)
holds "a snapshot is made while both systems write" "stargatectl -j volume snapshot --stall 8000 a s1"
same "the snapshot shows its state, its origin and its size" "snapshot a 67108864" "$(of s1 state) $(of s1 origin) $(of s1 size)"
[[ $(of s1 base) != "$(of a base)" ]] || fail "the snapshot has the same base as its source"
holds "LVM shows the snapshot" "[ \"\$(lvs --noheadings -o lv_tags sm/s1 | xargs | tr , '\n' | sed 's/created=[0-9]*/created=N/' |
	sort | xargs)\" = 'stargate.created=N stargate.origin=a stargate.snapshot' ]"
holds "the list shows the snapshot" "stargatectl volume list | grep -E '^sm/s1 +snapshot +64 MiB +0x[0-9a-f]+ +[0-9]+ [MG]iB +a +\$'"
holds "the snapshot can be checked and read" "stargatectl volume check s1 && stargatectl get /dev/sm/s1 /bash /run/bash && cmp /bin/bash /run/bash"
on g2 "true" </dev/null || fail "g2 is gone"
before=$(counted g2)
sleep 0.5
((before < $(counted g2))) || fail "g2 writes no more numbers"
passed "both systems continue"

step "a snapshot cannot change"
refused "a snapshot cannot be mounted" "wrong base|made for" "mkdir -p /mnt/s1 && mount -t stargatefs /dev/sm/s1 /mnt/s1"
for c in "qemu-args s1 --memory 256M" "libvirt-xml s1 --memory 256M" "resize s1 --size 96M" "relocate s1" \
	"check s1 -- -y" "snapshot s1 s2"; do
	refused "the command '$c' is refused for a snapshot" "is a snapshot, which stays as it is: make a volume of it by stargatectl volume clone" \
		"stargatectl volume $c"
done
because 10 unusable "volume resize s1 --size 96M"
refused "a second snapshot cannot have the same name" "exists already" "stargatectl volume snapshot a s1"
because 4 exists "volume snapshot a a"
because 3 not-found "volume snapshot none s2"
because 2 bad-argument "volume clone a c --size 32M"
refused "a clone smaller than its snapshot is refused" "the least size is 67108864 bytes" "stargatectl volume clone a c --size 32M"
refused "a clone beyond its largest size is refused" "largest possible size \\(268435456 bytes\\)" "stargatectl volume clone a c --size 512M"
refused "a clone in another zone is refused" "name of the copy" "stargatectl volume clone a other/c"
holds "a volume fills the zone" "stargatectl volume create filler --size \$(stargatectl -j zone show sm |
	sed -nE 's/.*\"largest_volume\": ([0-9]+).*/\\1/p')"
because 5 no-room "volume snapshot a s2"
because 5 no-room "volume clone s1 c"
holds "a snapshot can still be made as a file" "stargatectl -j volume snapshot --stall 8000 a /run/out@a.snapshot"
same "free pages take no space in the file" yes "$(on g1 'set -- $(stat -c "%s %b" /run/out@a.snapshot)
	[ "$1" = 67108864 ] && [ "$2" -lt 40000 ] && echo yes || echo "$@"' </dev/null)"
because 5 no-room "volume clone /run/out@a.snapshot c"
because 4 exists "volume snapshot a /run/out@a.snapshot"
because 3 not-found "volume snapshot none /run/other"
because 3 not-found "volume clone /run/other c"
because 2 bad-argument "volume clone /dev/sm/a c"
refused "a name without a volume is refused" "the name of a volume is" "stargatectl volume clone /run/out@a.snapshot other/c/d"
because 9 no-zone "volume clone /run/out@a.snapshot other/c"
on g1 'mkdir /run/full && mount -t tmpfs -o size=64k none /run/full' </dev/null || fail "no small file system can be mounted"
because 5 no-room "volume snapshot a /run/full/a"
same "no part of the failed snapshot remains" "" "$(on g1 'ls -A /run/full' </dev/null)"
holds "the filling volume is deleted" "stargatectl volume delete filler"

step "clones"
holds "a larger clone of the snapshot is made" "stargatectl volume clone s1 c1 --size 96M --align 4M"
same "the clone shows its state, its origin and its size" "ready s1 100663296 c1" "$(of c1 state) $(of c1 origin) $(of c1 size) $(of c1 label)"
same "the clone's address has the requested alignment" 0 $(($(of c1 base) % (4 << 20)))
[[ $(of c1 uuid) != "$uuid" ]] || fail "the clone has the UUID of its source"
holds_numbers c1 "$had1" "$had2"
holds "a larger clone of the file is made" "stargatectl volume clone /run/out@a.snapshot sm/c5 --size 96M && rm /run/out@a.snapshot"
same "the clone of the file shows its state and its size" "ready out 100663296 c5" "$(of c5 state) $(of c5 origin) $(of c5 size) $(of c5 label)"
holds_numbers c5 "$had1" "$had2"
holds "the clone of the file is deleted" "stargatectl volume delete c5"
had1=$(counted g1) had2=$(counted g2)
holds "a clone of the volume is made while both systems write" "stargatectl volume clone --stall 8000 --label other a c2"
same "the clone shows its state, its origin and its label" "ready a 67108864 other 0" "$(of c2 state) $(of c2 origin) $(of c2 size) $(of c2 label) $(of c2 systems)"
for s in g1 g2; do on "$s" 'touch /run/enough; sleep 1; sync' </dev/null; done
holds_numbers c2 "$had1" "$had2"
holds "both clones can be mounted at the same time" "mount -t stargatefs /dev/sm/c1 /mnt/c1 && mount -t stargatefs /dev/sm/c2 /mnt/c2 &&
	rm /mnt/c1/bash && cmp /bin/bash /mnt/c2/bash && cmp /bin/bash /mnt/a/bash &&
	dd if=/dev/zero of=/mnt/c1/more bs=1M count=80 2>/dev/null && umount /mnt/c1 /mnt/c2"
holds "the volume is unmounted" "umount /mnt/a"
on g2 'umount /mnt/a; DM_DISABLE_UDEV=1 vgchange -qq -an sm' </dev/null || fail "g2 does not unmount it"
holds "an unmounted volume can be cloned" "stargatectl volume clone a c3"
holds "a snapshot of an unmounted volume is made" "stargatectl volume snapshot a s3"
holds "the snapshot has the volume's files" "stargatectl get /dev/sm/s3 /bash /run/bash2 && cmp /bin/bash /run/bash2"
holds_numbers c3 "$had1" "$had2"

step "deletion in any order"
holds "a volume is deleted before its snapshots and clones" "stargatectl volume delete a"
holds "the snapshot can be cloned after the volume's deletion" "stargatectl volume clone s1 c4 && stargatectl volume check c4 && stargatectl volume check c2"
place=$(of s1 base)
holds "the snapshot is deleted before its clones" "stargatectl volume delete s1"
zeroes "the deleted snapshot's bytes are zero" "$place" $((64 << 20))
holds "the clones pass fsck after the snapshot's deletion" "stargatectl volume check c1 && stargatectl volume check c4"
holds "the clones and the other snapshot are deleted" "for v in c1 c2 c4 s3; do stargatectl volume delete \$v || exit 1; done"

step "clones whose command is killed"
for after in 0.1 0.5 1 2; do
	holds "after $after s: the next change removes the unfinished clone" "stargatectl volume clone c3 k >/dev/null 2>&1 & sleep $after
		kill -9 \$! 2>/dev/null; wait \$! 2>/dev/null
		case \"\$(lvs --noheadings -o lv_tags sm/k 2>/dev/null | xargs)\" in
		'' | stargate.wiping | *stargate,* | *,stargate) ;;
		*) lvs -o lv_tags sm/k; exit 1 ;;
		esac
		stargatectl volume create next --size 16M && stargatectl volume delete next ||
			exit 1
		if lvs sm/k >/dev/null 2>&1; then stargatectl volume check k && stargatectl volume delete k; fi"
done
holds "the copy passes fsck" "stargatectl volume check c3"
on g1 'stargatectl volume snapshot c3 k' >/dev/null 2>&1 </dev/null &
making=$!
holds "the command has begun to make the snapshot" 'for try in $(seq 300); do
		[ "$(lvs --noheadings -o lv_tags sm/k 2>/dev/null | xargs)" = stargate.wiping ] && exit
	done; exit 1'
because 7 busy "volume delete k"
because 7 busy "volume delete c3"
kill_guest g1
wait "$making" || true
start_guest g1 --no-mount
holds "after a power cut the snapshot is unfinished or complete" "DM_DISABLE_UDEV=1 vgchange -qq -ay sm &&
	stargatectl volume list | grep -E 'sm/k +(unfinished|snapshot)'"
holds "the snapshot of the interrupted command can be deleted" "stargatectl volume delete k && ! lvs sm/k"
holds_numbers c3 "$had1" "$had2"
holds "the last volume and the zone are deleted" "stargatectl volume delete c3 && stargatectl zone destroy sm"
finish
