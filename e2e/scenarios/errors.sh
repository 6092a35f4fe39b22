#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A structure is damaged while the volume is mounted. A process that reads it gets EUCLEAN. The log
# reports the damage once, with inode and offset. The option errors= decides whether the system
# continues. Operations on undamaged files still work, and fsck finds the damage later. A random
# store into a counter or a lock delays a process only for a limited time, and the process can be
# killed while it waits.
#
# rig: --size 32M
# test: walk
# test-rig: --size 64M
# maps: walk
# limit: 300
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

tools=$(dirname "$0")/../../build/tools
saved=$(mktemp -d)
trap 'rm -rf "$saved"' EXIT

restore() { dd if="$saved/volume" of="$RIG_RANGE" bs=1M conv=notrunc status=none; }
said() { console g1 | grep -c -- "$1" || true; }
reports() { console g1 | grep -c 'stargatefs (pmem0): damaged: .*(inode [0-9]*, offset' || true; }

# word OFFSET: prints eight bytes of the volume as a number.
word() { od -An -t u8 -N 8 -j "$1" "$RIG_RANGE" | tr -d ' '; }

# put_word OFFSET VALUE: stores a word from outside, which simulates a random store.
put_word() {
	python3 -c 'import sys; sys.stdout.buffer.write(int(sys.argv[1], 0).to_bytes(8, "little"))' \
		"$2" | dd of="$RIG_RANGE" bs=8 seek=$(($1 / 8)) conv=notrunc status=none
}

# bucket INODE: prints the offset of the page that holds the names of a small directory. The page
# begins with a magic number.
bucket() {
	local at
	while read -r at; do
		[[ $((at % 4096)) -eq 0 && $(word $((at + 8))) == "$1" ]] || continue
		echo "$at"
		return
	done < <(LC_ALL=C grep -aobF SBKT "$RIG_RANGE" | cut -d: -f1)
	fail "no page holds the names of directory $1"
}

program mapped
holds "two directories are made" 'mkdir /mnt/sg/hurt /mnt/sg/well && touch /mnt/sg/hurt/{a,b,c} &&
	echo x >/mnt/sg/well/f && echo y >/mnt/sg/victim'
ino=$(on g1 'stat -c %i /mnt/sg/hurt')
holds "the volume is unmounted" 'umount /mnt/sg'
cat "$RIG_RANGE" >"$saved/volume"
place=$(bucket "$ino")

for errors in continue remount-ro; do
	step "errors=$errors"
	before=$(reports)
	switched=$(said 'now read-only')
	holds "the volume is mounted with errors=$errors" "mount -t stargatefs -o errors=$errors /dev/pmem0 /mnt/sg &&
		grep -q errors=$errors /proc/mounts"
	holds "a process stores through a mapping" 'rm -f /tmp/stop /tmp/end
		{ /root/mapped /mnt/sg/well/m /tmp/stop
			echo $? >/tmp/end; } >/dev/null 2>&1 </dev/null &
		for try in $(seq 100); do [ -s /mnt/sg/well/m ] && exit 0; sleep 0.1; done; exit 1'
	printf 'XXXXXXXX' | dd of="$RIG_RANGE" bs=1 seek="$place" conv=notrunc status=none
	# The processes run at the same time, so that several find the damage together.
	refused "the damaged directory cannot be listed" 'needs cleaning' \
		'for i in 1 2 3 4; do ls /mnt/sg/hurt & done; wait; ls /mnt/sg/hurt'
	refused "a name in the damaged directory cannot be found" 'needs cleaning' 'stat /mnt/sg/hurt/a'
	refused "a second listing is refused" 'needs cleaning' 'ls /mnt/sg/hurt'
	same "the log reports the damage once" "$((before + 1))" "$(reports)"
	holds "undamaged files can be read" '[ "$(cat /mnt/sg/well/f)" = x ]'
	if [[ $errors == continue ]]; then
		holds "undamaged files can be written" 'echo y >/mnt/sg/well/g && rm /mnt/sg/well/g'
		ended=0
		holds "sysfs counts the error" '[ "$(awk "/^count/ { print \$2 }" \
			/sys/fs/stargatefs/pmem0/errors)" -ge 1 ]'
	else
		refused "undamaged files cannot be written" 'read-only' 'echo y >/mnt/sg/well/g'
		holds "/proc/mounts shows the mount as read-only" 'grep -q "stargatefs ro," /proc/mounts'
		same "the log reports once that the mount is read-only" "$((switched + 1))" "$(said 'now read-only')"
		ended=135	# SIGBUS
	fi
	same "the storing process ends as expected" "$ended" "$(on g1 '[ '"$ended"' = 135 ] || touch /tmp/stop
		for try in $(seq 100); do [ -s /tmp/end ] && break; sleep 0.1; done; cat /tmp/end' </dev/null)"
	holds "the volume is unmounted" 'umount /mnt/sg'
	if "$tools/fsck.stargatefs" -n "$RIG_RANGE" >"$saved/fsck" 2>&1; then
		fail "fsck does not find the damage: $(<"$saved/fsck")"
	fi
	passed "fsck finds the damage: $(grep -m 1 -i 'director\|bucket' "$saved/fsck")"
	restore
done
step "damage that is found while the volume is frozen"
switched=$(said 'now read-only')
holds "the volume is mounted and frozen" 'mount -t stargatefs /dev/pmem0 /mnt/sg && fsfreeze -f /mnt/sg'
printf 'XXXXXXXX' | dd of="$RIG_RANGE" bs=1 seek="$place" conv=notrunc status=none
refused "the damaged directory cannot be listed" 'needs cleaning' 'ls /mnt/sg/hurt'
holds "the volume is thawed" 'fsfreeze -u /mnt/sg'
holds "the mount is read-only after the thaw" 'grep -q "stargatefs ro," /proc/mounts'
refused "no process can write" 'read-only' 'touch /mnt/sg/well/g'
same "the log reports once that the mount is read-only after the thaw" "$((switched + 1))" "$(said 'now read-only')"
holds "a remount makes the volume writable" 'mount -o remount,rw /mnt/sg && touch /mnt/sg/well/g && rm /mnt/sg/well/g'
holds "the volume is unmounted" 'umount /mnt/sg'
restore

step "errors=panic"
holds "the volume is mounted with errors=panic" 'mount -t stargatefs -o errors=panic /dev/pmem0 /mnt/sg &&
	grep -q errors=panic /proc/mounts && echo precious >/mnt/sg/well/kept'
hurt=$(word "$place")
put_word "$place" 0x5858585858585858
on g1 'ls /mnt/sg/hurt' </dev/null >"$saved/said" 2>&1 && fail "the damaged directory could be listed"
await_panic g1 'damaged, and errors=panic'
passed "the system panics"
put_word "$place" "$hurt"
start_guest g1
holds "the next mount recovers" 'dmesg | grep -q "recovered g1"'
same "a file that was written before the panic has its contents" precious "$(on g1 'cat /mnt/sg/well/kept' </dev/null)"
holds "no other file is damaged" 'ls /mnt/sg/hurt/c && umount /mnt/sg'
restore

# wild FIELD VALUE: stores VALUE at the offset FIELD of the inode of /victim while the volume is
# mounted. This simulates a random store.
record=$("$tools/stargatectl" -j dump "$RIG_RANGE" inode /victim |
	python3 -c 'import json, sys; print(int(json.load(sys.stdin)["record"], 0))')
wild() { put_word $((record + $1)) "$2"; }
# takes AT_MOST WHAT PATTERN COMMAND: checks that COMMAND fails with PATTERN within AT_MOST seconds.
takes() {
	local begin=$SECONDS most=$1
	shift
	refused "$@"
	[[ $((SECONDS - begin)) -le $most ]] || fail "$1: took $((SECONDS - begin)) s"
}
# killed WHAT COMMAND: checks that COMMAND waits, and ends after a SIGKILL.
killed() {
	holds "$1" "$2"' & sleep 0.5; kill -9 $!; begin=$SECONDS; wait $!
		[ $? = 137 ] && [ $((SECONDS - begin)) -le 1 ]'
}

step "a change counter left odd"
holds "the volume is mounted" 'mount -t stargatefs -o errors=continue /dev/pmem0 /mnt/sg'
wild 16 12345
killed "a process that waits for the odd counter can be killed" 'stat /mnt/sg/victim'
takes 20 "a reader waits at most 20 s for the odd counter" 'needs cleaning' 'stat /mnt/sg/victim'
takes 5 "later readers do not wait for the odd counter" 'needs cleaning' \
	'for try in $(seq 10); do stat /mnt/sg/victim && exit; done; exit 1'
same "the log reports the odd counter once" 1 "$(said 'a change never ends')"
holds "the volume is unmounted" 'umount /mnt/sg'
restore

step "a lock word that names this system, which does not hold the lock"
holds "the volume is mounted" 'mount -t stargatefs -o errors=continue /dev/pmem0 /mnt/sg && cat /mnt/sg/victim'
own=$("$tools/stargatectl" -j slots "$RIG_RANGE" 2>"$saved/said" | python3 -c 'if True:
	import json, sys
	for slot in json.load(sys.stdin)["slots"]:
		if slot["state"] == "live":
			print(slot["slot"] + 1 | slot["incarnation"] << 8)')
wild 0 "$own"
holds "a writer detects that this system does not hold the lock" 'timeout 20 touch /mnt/sg/victim'
same "the log reports the lock once" 1 "$(said 'names this system, which does not hold it')"
holds "the writer releases the lock" 'touch /mnt/sg/victim; chmod 600 /mnt/sg/victim'

step "a file name that contains a line of the log"
holds "a file gets a name that contains a line of the log" 'touch /mnt/sg/victim; ln /mnt/sg/victim "/mnt/sg/well/x
stargatefs (pmem0): forged"; umount /mnt/sg'
mode=$(word $((record + 24)))
wild 24 0
holds "the volume is mounted" 'mount -t stargatefs -o errors=continue /dev/pmem0 /mnt/sg'
refused "a listing reports that the name has no inode" 'needs cleaning' 'ls -l /mnt/sg/well'
same "the log reports the name without an inode once" 1 "$(said 'without an inode: x.*forged')"
same "the log has no line that begins with the forged text" 0 "$(console g1 | grep 'stargatefs (pmem0): forged' | grep -vc 'without an inode' || true)"
wild 24 "$mode"

step "a live system that does not release its lock"
# The words simulate a live system in slot 9 with incarnation 77, which holds the lock of /victim.
slots=$("$tools/stargatectl" -j dump "$RIG_RANGE" super 2>"$saved/said" |
	python3 -c 'import json, sys; print(int(json.load(sys.stdin)["slot_off"], 0))')
put_word $((slots + 9 * 256)) $((1 | 77 << 32))
wild 0 $((10 | 77 << 8))
killed "a process that waits for the lock can be killed" 'touch /mnt/sg/victim'
program nowait
for verb in write append fill; do
	same "$verb with NOWAIT fails at once" "Resource temporarily unavailable" \
		"$(on g1 "timeout 10 /root/nowait $verb /mnt/sg/victim" </dev/null)"
done
same "a read with NOWAIT fails if the access time would be stored" "Resource temporarily unavailable" \
	"$(on g1 'timeout 10 /root/nowait read /mnt/sg/victim' </dev/null)"
same "a read with NOWAIT succeeds if no access time would be stored" "done" \
	"$(on g1 'mount -o remount,noatime /mnt/sg && timeout 10 /root/nowait read /mnt/sg/victim' </dev/null)"
wild 0 0
put_word $((slots + 9 * 256)) 0
holds "the system can take the lock after its release" 'touch /mnt/sg/victim; umount /mnt/sg'
restore
holds "the volume can be mounted, and has its files" 'mount -t stargatefs /dev/pmem0 /mnt/sg && ls /mnt/sg/hurt/c'
finish
