#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Atomic writes on running kernels: RWF_ATOMIC by pwritev2() and io_uring, statx(), the attribute
# and its inheritance, data=atomic. Two systems write and read the same blocks at the same time, and
# one is killed during its writes. A process maps the pages while writes replace them. The last case
# is a full volume.
#
# rig: --guests 2 --size 128M
# kernels: 6.12 7.2
# test: walk
# limit: 1200
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

seconds=$(scaled 3 6 120)
program_everywhere atomic

# together NAME COMMAND1 COMMAND2: runs the commands in g1 and g2 at the same time; both must
# succeed.
together() {
	local job
	on g2 "$3" >"$RIG_DIR/second" 2>&1 </dev/null &
	job=$!
	on g1 "$2" >"$RIG_DIR/first" 2>&1 </dev/null || fail "$1: g1: $(cat "$RIG_DIR/first")"
	wait "$job" || fail "$1: g2: $(cat "$RIG_DIR/second")"
	passed "$1: $(cat "$RIG_DIR/first"); $(cat "$RIG_DIR/second")"
}

step "rules"
holds "RWF_ATOMIC and statx() follow their rules" '/root/atomic rules /mnt/sg/rules'

step "the attribute"
holds "set on a directory" 'mkdir /mnt/sg/db && stargatectl attr /mnt/sg data=atomic db'
holds "a file and a directory inherit the attribute" 'cd /mnt/sg && mkdir db/sub && touch db/file db/sub/file
	stargatectl attr . db db/file db/sub db/sub/file | grep -c data=atomic | grep -x 4'
same "the other system sees the change" "data=atomic   db/file" \
	"$(on g2 'stargatectl attr /mnt/sg db/file' </dev/null)"
holds "other files do not have the attribute" 'touch /mnt/sg/plain && stargatectl attr /mnt/sg plain | grep data=inplace'
holds "the attribute can be set and cleared" 'cd /mnt/sg && stargatectl attr . data=atomic plain &&
	stargatectl attr . plain | grep data=atomic && stargatectl attr . data=inplace plain &&
	stargatectl attr . plain | grep data=inplace'
holds "the rules are the same with it" '/root/atomic rules /mnt/sg/db/rules'
refused "a user who does not own the file cannot set the attribute" 'not permitted' \
	'setpriv --reuid 7 stargatectl attr /mnt/sg data=atomic plain'
refused "a link cannot have the attribute" 'neither|Invalid' 'ln -s /dev/null /mnt/sg/null
	stargatectl attr /mnt/sg data=atomic null'

step "two systems write the same blocks"
for how in rwf attr; do
	on g1 'touch /mnt/sg/rwf' </dev/null
	file=/mnt/sg/db/attr
	[[ $how == attr ]] || file=/mnt/sg/rwf
	together "$how" "/root/atomic blocks $file $how $seconds" "/root/atomic blocks $file $how $seconds"
done

step "a long read beside a writer"
holds "a file is made" 'head -c 24M /dev/urandom >/mnt/sg/db/long'
walked() { on g1 "sed -n 's/^walked_bytes //p' /sys/fs/stargatefs/*/operations" </dev/null; }
on g2 'until [ -e /tmp/stop ]; do touch /mnt/sg/db/long; done' >/dev/null 2>&1 </dev/null &
job=$!
sleep 1
before=$(walked)
holds "each read of the file ends" 'for i in 1 2 3; do
	dd if=/mnt/sg/db/long of=/dev/null bs=24M count=1 iflag=fullblock 2>/dev/null || exit; done'
[[ $(($(walked) - before)) -lt $((2 * 72 << 20)) ]] || fail "$(($(walked) - before)) bytes for 72 MiB"
passed "no more than two copies of each byte"
on g2 'touch /tmp/stop' </dev/null
wait "$job" || fail "the writer"

step "a mapping while pages are replaced"
together "one writes, one maps" "/root/atomic mapped /mnt/sg/db/stamps $seconds" \
	"/root/atomic stamps /mnt/sg/db/stamps $seconds"
together "the same system" "/root/atomic stamps /mnt/sg/db/stamps2 $seconds & sleep 1
	/root/atomic mapped /mnt/sg/db/stamps2 $((seconds - 2)); wait" "true"

step "a system dies in the middle"
for turn in $(seq "$(scaled 1 1 20)"); do
	for how in $(scaled attr "rwf attr" "rwf attr"); do
		file=/mnt/sg/db/attr
		[[ $how == attr ]] || file=/mnt/sg/rwf
		on g2 "/root/atomic blocks $file $how 600" >"$RIG_DIR/killed" 2>&1 </dev/null &
		job=$!
		on g1 "/root/atomic blocks $file $how 2" </dev/null >/dev/null || fail "$how: g1"
		kill_guest g2
		wait "$job" || true
		! grep '^atomic:' "$RIG_DIR/killed" || fail "$how: g2 found something"
		holds "$how, turn $turn: each block is whole" "/root/atomic check $file &&
			/root/atomic blocks $file $how 1"
		start_guest g2
		program_everywhere atomic
		on g2 "/root/atomic check $file" </dev/null >/dev/null || fail "$how: g2 after its boot"
	done
done
on g1 '/root/atomic blocks /mnt/sg/db/attr attr 600' >"$RIG_DIR/killed" 2>&1 </dev/null &
job=$!
sleep 3
kill_guest g1
wait "$job" || true
on g2 '/root/atomic check /mnt/sg/db/attr' </dev/null >/dev/null || fail "g2 after the death of g1"
passed "the power of the first system is cut"
start_guest g1
program_everywhere atomic

step "a full volume"
holds "the volume is filled" 'head -c 262144 /dev/urandom >/mnt/sg/db/full
	dd if=/dev/zero of=/mnt/sg/filler bs=64K 2>/dev/null || true
	dd if=/dev/zero of=/mnt/sg/filler2 bs=4K 2>/dev/null || true; sync'
holds "a failed write leaves the old bytes" '/root/atomic full /mnt/sg/db/full'
holds "the volume has free space again" 'rm /mnt/sg/filler*'

step "mount and volume"
mount_with "${SG_MAP:+map=$SG_MAP,}data=atomic"
holds "new files of such a mount have the attribute" 'touch /mnt/sg/new &&
	stargatectl attr /mnt/sg new | grep data=atomic && grep -w data=atomic /proc/mounts'
holds "writes to other files are atomic" '/root/atomic blocks /mnt/sg/plain attr 2'
holds "a remount ends the default of atomic writes" 'mount -o remount,data=inplace /mnt/sg && touch /mnt/sg/new2 &&
	stargatectl attr /mnt/sg new2 | grep data=inplace'
refused "another value of the option is refused" 'data=inplace or atomic|Invalid|wrong' \
	'mount -o remount,data=ordered /mnt/sg'
finish
