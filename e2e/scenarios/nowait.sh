#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Calls that must not wait (RWF_NOWAIT, io_uring) do not sleep, on each data path. The cases:
# another system has just cut the file, so that the window is out of date; it holds the file's lock;
# it is in the middle of a change. A read copies the bytes, or fails with EAGAIN. A write fails with
# EAGAIN.
#
# rig: --guests 2 --size 64M
# kernels: 6.12
# limit: 300
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

again="Resource temporarily unavailable"
file=/mnt/sg/file
program nowait hostile

# call VERB [COMMAND]: makes the call on a file that g1 opened before g2 ran COMMAND, and after g1
# has seen the change. Prints the result.
call() {
	on g1 "rm -f /tmp/go; /root/nowait $1 $file /tmp/go >/tmp/said 2>&1 </dev/null &
		until grep -qs open /tmp/said; do sleep 0.05; done" </dev/null
	[[ -z ${2:-} ]] || on g2 "$2" </dev/null
	on g1 "stat $file >/dev/null; touch /tmp/go
		for try in \$(seq 100); do [ \$(wc -l </tmp/said) -lt 2 ] || break; sleep 0.05; done
		tail -n 1 /tmp/said" </dev/null
}

# word OFFSET [VALUE]: prints or stores eight bytes of the volume, from outside.
word() {
	python3 -c 'import sys
f = open(sys.argv[1], "r+b")
f.seek(int(sys.argv[2]))
if len(sys.argv) > 3: f.write(int(sys.argv[3]).to_bytes(8, "little"))
else: print(int.from_bytes(f.read(8), "little"))' "$RIG_RANGE" "$@"
}

holds "a file is made" "head -c 64K /dev/urandom >$file && mount -o remount,noatime /mnt/sg"
holds "it is read on the data path of this run" "cat $file >/dev/null &&
	grep -q ' /mnt/sg .*map=${SG_MAP:-walk}' /proc/mounts"

step "the file has just been changed by the other system"
same "a read after a cut" "done" "$(call read "fallocate -p -o 32K -l 4K $file")"
same "a read after a truncation" "done" "$(call read "truncate -s 16K $file")"
same "a read after a growth" "done" "$(call read "head -c 4M /dev/zero >>$file")"
for verb in write append fill; do
	same "$verb after a cut" "$again" "$(call $verb "fallocate -p -o 32K -l 4K $file")"
done

step "the other system holds the lock of the file"
ino=$(on g1 "stat -c %i $file" </dev/null)
"$compiled/hostile" hold "$RIG_RANGE" 0 "$RIG_SIZE" g2 1000 "$ino" >"$RIG_DIR/held" 2>&1 &
held=$!
until grep -q held "$RIG_DIR/held"; do
	kill -0 $held 2>/dev/null || fail "holding the lock: $(cat "$RIG_DIR/held")"
	sleep 0.05
done
same "a read" "done" "$(call read)"
for verb in write append fill; do same "$verb" "$again" "$(call $verb)"; done
holds "a read that would store the time of the access" "mount -o remount,strictatime /mnt/sg"
same "a read that would store the time of the access" "$again" "$(call read)"
holds "without the time" "mount -o remount,noatime /mnt/sg"

step "the other system is in the middle of a change"
record=$("$SG_TOOLS/stargatectl" -j dump "$RIG_RANGE" inode /file |
	python3 -c 'import json, sys; print(int(json.load(sys.stdin)["record"], 0))')
seq=$(word $((record + 16)))
on g1 "rm -f /tmp/go; for verb in read write append fill; do
		/root/nowait \$verb $file /tmp/go >/tmp/\$verb 2>&1 </dev/null &
	done; until [ \$(cat /tmp/read /tmp/write /tmp/append /tmp/fill | grep -c open) = 4 ]; do
		sleep 0.05
	done" </dev/null
word $((record + 16)) $((seq | 1))
for verb in read write append fill; do
	same "$verb" "$again" "$(on g1 "touch /tmp/go
		for i in \$(seq 100); do [ \$(wc -l </tmp/$verb) -lt 2 ] || break; sleep 0.05; done
		tail -n 1 /tmp/$verb" </dev/null)"
done
word $((record + 16)) "$seq"
kill $held
wait $held || true
"$compiled/hostile" hold "$RIG_RANGE" 0 "$RIG_SIZE" g2 0.001 "$ino" >/dev/null
holds "the file can be written to after that" "echo more >>$file"
finish
