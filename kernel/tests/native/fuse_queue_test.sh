#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatefs-fuse while all its threads wait for another system: calls queue, and further calls are
# refused. A file that is closed meanwhile has released its locks when the other system continues.
# shellcheck source=kernel/tests/lib/fuse.sh
source "$(dirname "$0")/../lib/fuse.sh"

machine=$tools/../tests/machine
[[ -x $machine ]] || fail "no $machine: make build PART=test-programs"
files=40 # more than the two threads and the queue can take

program locks
make_volume v 64M
serve a v --workers 2
serve b v
for ((i = 0; i < files; i++)); do : >"a/f$i"; done
: >a/l

coproc system { exec "$machine"; }
# say LINE: sends a command to the other system.
say() {
	local answer
	echo "$*" >&"${system[1]}"
	read -r -t 60 -u "${system[0]}" answer || fail "no answer to '$*'"
	[[ $answer == ok ]] || fail "$*: $answer"
	checks=$((checks + 1))
}
say join "$memory/v" 11111111-2222-3333-4444-555555555501 1
for ((i = 0; i < files; i++)); do say hold 0 "f$i"; done
rm -f held
./locks hold flock ex 0 0 a/l >held &
holder=$!
soon "held" 5 grep -q held held
for ((i = 0; i < files; i++)); do
	(until echo "$i" >>"a/f$i"; do sleep 0.1; done) 2>/dev/null &
	writers[i]=$!
done
# refused: fails unless ten consecutive calls are refused. One call is not enough, because a writer
# may be between two calls.
refused() {
	local i
	for ((i = 0; i < 10; i++)); do
		! LC_ALL=C timeout -s KILL 5 stat a/l >out 2>&1 && grep -q 'busy' out || return 1
		sleep 0.05
	done
}
soon "calls beyond the queue are refused" 60 refused
is "the lock is still held" EAGAIN "$(./locks try flock sh 0 0 b/l)"
kill -KILL $holder
wait $holder 2>/dev/null || true
for ((i = 0; i < files; i++)); do say let 0 "f$i"; done
for ((i = 0; i < files; i++)); do wait "${writers[i]}" || fail "a write to f$i"; done
is "a closed file has no lock" got "$(timeout 30 ./locks wait flock sh 0 0 b/l)"
say leave 0

leave a
leave b
clean v
echo "$checks checks"
