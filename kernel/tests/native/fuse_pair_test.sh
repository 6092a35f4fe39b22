#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Two servers of stargatefs-fuse on one volume: a change through one mount is immediately visible
# through the other; locks conflict across mounts; when one server is killed or paused, the other
# continues.
# shellcheck source=kernel/tests/lib/fuse.sh
source "$(dirname "$0")/../lib/fuse.sh"

case ${SG_TEST_SCALE:-normal} in
quick) rounds=200 kills=3 ;;
normal) rounds=2000 kills=9 ;;
*) rounds=20000 kills=9 ;; # the keeper gives up after ten deaths within a minute
esac

program locks
make_volume v 128M
serve a v
serve b v
is "systems" "2" "$("$ctl" -j systems "$memory/v" | pick 'len(d["systems"])')"

# --- a change through one mount is visible to the next call on the other --------------------

for ((i = 0; i < rounds / 4; i++)); do
	echo "$i" >a/f
	[[ $(<b/f) == "$i" ]] || fail "round $i: b has $(<b/f)"
	echo more >>b/f
	[[ $(stat -c %s a/f) == $((${#i} + 6)) ]] ||
		fail "round $i: mount a shows $(stat -c %s a/f) bytes"
	mv b/f "b/f$i"
	[[ ! -e a/f && -e a/f$i ]] || fail "round $i: mount a shows the old name"
	chmod 0600 "a/f$i"
	[[ $(stat -c %a "b/f$i") == 600 ]] || fail "round $i: mount b shows the old mode"
	rm "a/f$i"
	[[ ! -e b/f$i ]] || fail "round $i: mount b shows a removed file"
	checks=$((checks + 5))
done
mkdir a/d
setfacl -m u:1:rwx a/d 2>/dev/null || setfattr -n user.x -v 1 a/d 2>/dev/null || true
is "attributes" "$(getfattr -dm - a/d 2>/dev/null)" "$(getfattr -dm - b/d 2>/dev/null | sed 's|b/d|a/d|')"

# --- appends through both mounts are complete, and none is lost ------------------------------

# append DIRECTORY WORD: appends lines of 100 bytes.
append() {
	local i
	for ((i = 0; i < rounds; i++)); do
		printf '%s %0*d\n' "$2" $((98 - ${#2})) "$i" >>"$1/log" || return 1
	done
}
append a one &
append b two &
append b three &
wait
is "no appended line is lost" $((3 * rounds)) "$(wc -l <a/log)"
is "appended lines are complete" $((3 * rounds)) "$(sort -u b/log | awk 'length == 99' | wc -l)"
rm a/log

# --- an open file that is removed through the other mount -----------------------------------

echo still >a/open
exec 8<a/open
rm b/open
is "the removed names do not exist any more" "" "$(find a -name 'open*')"
is "a removed file is readable while open" still "$(cat <&8)"
exec 8<&-

# --- locks ----------------------------------------------------------------------------------

for kind in posix ofd flock; do
	rm -f held
	./locks hold $kind ex 0 0 a/l >held &
	holder=$!
	soon "$kind: held" 5 grep -q held held
	is "$kind: a lock attempt on the other mount fails" EAGAIN "$(./locks try $kind ex 0 0 b/l)"
	timeout 60 ./locks wait $kind ex 0 0 b/l >got &
	waiter=$!
	sleep 0.2
	is "$kind: a waiter waits" "" "$(cat got)"
	kill $holder
	wait $waiter || fail "$kind: the waiter does not get the lock"
	is "$kind: after the release the waiter has the lock" got "$(cat got)"
	wait $holder 2>/dev/null || true
done
timeout 60 ./locks cross a/x 0 1 300 >one &
timeout 60 ./locks cross b/x 1 0 300 >two || fail "two processes that wait for each other: $(cat one two | xargs)"
wait $! || fail "two processes that wait for each other: $(cat one two | xargs)"
is "a deadlock ends with EDEADLK for one process" "EDEADLK got" \
	"$(cat one two | grep -v first | sort | xargs)"
rm -f held
./locks hold posix ex 5 5 a/l >held &
soon "held" 5 grep -q held held
is "the other mount shows the holder's lock" "ex 5 5 0" "$(./locks get ex 0 0 b/l)"
end "$!"
./locks count posix $((rounds / 4)) a/n >/dev/null &
./locks count posix $((rounds / 4)) b/n >/dev/null
wait
is "a counter under a lock loses no step" $((rounds / 2)) "$(cat a/n)"

# --- a signal ends a wait -------------------------------------------------------------------

rm -f held
./locks hold posix ex 0 0 a/l >held &
holder=$!
soon "held" 5 grep -q held held
timeout -s INT 0.5 ./locks wait posix ex 0 0 b/l >got && fail "the interrupted process got the lock"
is "an interrupted wait gets no lock" "" "$(cat got)"
end "$holder"
is "an interrupted wait leaves no lock" got "$(timeout 60 ./locks wait posix ex 0 0 a/l)"

# --- a server is killed: its mount continues ------------------------------------------------

# write_numbers DIRECTORY FILE N: appends 1 to N, one line each.
write_numbers() {
	local i
	for ((i = 1; i <= $3; i++)); do
		echo "$i" >>"$1/$2" || { echo "write $i: failed"; return 1; }
	done
}
# names DIRECTORY N: makes, renames and removes names, each exactly once.
names() {
	local i
	for ((i = 0; i < $2; i++)); do
		mkdir "$1/n$i" && mv "$1/n$i" "$1/m$i" && rmdir "$1/m$i" || return 1
	done
}

echo kept >a/unlinked
exec 8<>a/unlinked
rm a/unlinked
rm -f held
./locks hold posix ex 0 0 a/l >held &
holder=$!
soon "held" 5 grep -q held held
timeout 60 ./locks wait flock ex 0 0 b/w >got
rm -f held2
./locks hold flock ex 0 0 b/w >held2 &
other=$!
soon "held" 5 grep -q held held2
# This process waits until the end of the test, for a time that depends on the machine.
./locks wait flock ex 0 0 a/w >got &
waiter=$!
write_numbers a numbers $((kills * 1000)) >numbers.out &
writer=$!
names a $((kills * 200)) >names.out 2>&1 &
namer=$!
write_numbers b others $((kills * 1000)) >others.out &
beside=$!
for ((i = 0; i < kills; i++)); do
	sleep 0.2
	kill -0 $writer $namer 2>/dev/null || fail "a writer has ended before kill $i"
	victim=$(server_of a)
	kill -KILL "$victim"
	soon "another server answers" 30 test -d a/.
	[[ $i -ne 0 ]] || is "a lock outlives its server" EAGAIN "$(./locks try posix sh 0 0 b/l)"
	sleep $((i % 2))
done
wait $writer || fail "a write failed: $(cat numbers.out)"
wait $namer || fail "an operation on names failed: $(tail -n 3 names.out)"
wait $beside || fail "a write of the other system failed: $(cat others.out)"
is "the file has each number once" "$(seq $((kills * 1000)) | cksum)" "$(cksum <b/numbers)"
is "the other system's file has each number once" "$(seq $((kills * 1000)) | cksum)" \
	"$(cksum <a/others)"
is "all made names are removed again" "" "$(find b -maxdepth 1 -name '[nm][0-9]*')"
is "a removed file that is open outlives its server" kept "$(cat <&8)"
echo more >&8
exec 8>&-
end "$other"
soon "the lock is handed over" 60 test -s got
wait $waiter
is "a waiter outlives its server" got "$(cat got)"
end "$holder"
is "the lock is free after the holder's end" got "$(timeout 60 ./locks wait posix ex 0 0 b/l)"
says 'signal 9 ended the server: another server continues' a.log

# --- keeper and server are killed: the other system recovers --------------------------------

rm -f held
./locks hold posix ex 0 0 a/l >held &
holder=$!
soon "held" 5 grep -q held held
read -ra both <<<"$(pids_of a | xargs)"
kill -KILL "${both[@]}"
killed=$SECONDS
is "the lock of the killed system is free" got "$(timeout 60 ./locks wait posix ex 0 0 b/l)"
kill $holder 2>/dev/null || true
says 'has ended without leaving: fenced' b.log
expect 1 cat a/f
says 'not connected|abort' err
umount -l a
echo on >b/on
is "the other mount continues" on "$(cat b/on)"
serve a v
is "the volume can be mounted again" on "$(cat a/on)"

# --- a tool is killed: the next server of this machine sees that its process has gone ----------

machine=$tools/../tests/machine
[[ -x $machine ]] || fail "no $machine: make build PART=test-programs"
coproc tool { exec "$machine"; }
echo "tool $memory/v" >&"${tool[1]}"
read -r -t 60 -u "${tool[0]}" answer
is "a tool joins" ok "$answer"
slots() { "$ctl" -j systems "$memory/v" | pick 'len(d["systems"])'; }
is "systems" 3 "$(slots)"
# shellcheck disable=SC2154 # of the coprocess
{ kill -KILL "$tool_PID" && wait "$tool_PID"; } 2>/dev/null || true
gone() { [[ $(slots) -eq 2 ]]; }
soon "the tool is fenced" 10 gone

# --- a system is paused ---------------------------------------------------------------------

mkdir b/work
paused=$(server_of a)
rm -f stop
(until [[ -e stop ]]; do echo x >a/busy; rm a/busy; done) 2>/dev/null &
busy=$!
sleep 0.3
kill -STOP "$paused"
for ((i = 0; i < 100; i++)); do
	mkdir "b/work/d$i" && echo "$i" >"b/work/d$i/f"
done
is "the other system continues to work" 100 "$(cat b/work/d*/f | wc -l)"
# The paused system may hold the lock of the root's inode. Then a call waits until a signal ends it.
for ((i = 0; i < 40; i++)); do
	timeout -s INT -k 5 0.5 mkdir "b/r$i" || true
done
timeout 10 ls b/work >/dev/null || fail "waiting calls delay other calls"
checks=$((checks + 1))
kill -CONT "$paused"
: >stop
wait "$busy" || true	# without a process that still uses the mount
soon "the other system can change the root directory again" 10 mkdir b/after
is "the resumed system shows the change" after "$(basename a/aft*)"

# The killed system's lapse ends after 10 s. Until then no page is reclaimed.
until ((SECONDS > killed + 13)); do sleep 0.2; done
leave a
leave b
clean v
echo "$checks checks"
