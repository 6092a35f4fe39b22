#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatectl guard, with processes in place of virtual machines. After any end of a process, the
# others get its locks within two seconds. A process that is only paused is not fenced, even after a
# long time. No other system is fenced.
# shellcheck source=kernel/tests/lib/guards.sh
source "$(dirname "$0")/../lib/guards.sh"

word=0x13f8 # offset of hot.reserved2, a word that the engine never stores

# --- killed, with a lock, in the middle of a commit -----------------------------------------

make_volume v.img
start survivor "$machine"
tell survivor "join v.img $b 1"
guarded vm $a v.img
tell vm "join v.img $a 1"
tell vm "mkdir 0 before"
tell vm "take 0"
tell vm "record 0 $word 77"
is_there 'b:alive a:alive'
ask survivor "take 0"
silent survivor 1
child=$(inner vm)
begin=$(now)
kill -KILL "$child"
answers survivor ok 10
soon "the time from SIGKILL to a survivor's lock" "$begin"
tell survivor "word 0 $word" 'ok 77' # the journal was replayed before the lock was released
tell survivor "give 0"
tell survivor "mkdir 0 after"
ends vm 137 "v.img: machine-aaaaaaaa \(slot 1\) had not left when its VM ended: fenced"
is_there 'b:alive'

# --- paused for longer than every time-out --------------------------------------------------

expect 0 "$ctl" tune v.img --lease 2
guarded vm $a v.img
tell vm "join v.img $a 2"
tell vm "take 0"
child=$(inner vm)
kill -STOP "$child"
ask survivor "take 0"
silent survivor 6
"$ctl" systems -j v.img >out
json '[s["state"] for s in d["systems"]] == ["alive", "suspected"]'
json '[s["guarded"] for s in d["systems"]] == [False, True]'
json 'd["lease_ms"] == 2000 and not d["systems"][1]["beats"] and d["systems"][1]["beat_age_ms"] > 2000'
kill -CONT "$child"
tell vm "mkdir 0 paused"
tell vm "give 0"
answers survivor ok
tell survivor "give 0"
tell vm "leave 0"
ask vm "exit 7"
ends vm 7

# Without a guard, the lease ends the same wait.
start lone "$machine" -uuid $a
tell lone "join v.img $a 3"
tell lone "take 0"
kill -STOP "${pid[lone]}"
ask survivor "take 0"
answers survivor ok 10
tell survivor "give 0"
kill -CONT "${pid[lone]}"
tell lone "mkdir 0 late" 'error mkdir: Input/output error'
tell lone "reset 0"
tell lone "join v.img $a 4"
tell lone "mkdir 1 again"
tell lone "leave 1"
ask lone "exit 0"
ends lone 0
expect 0 "$ctl" tune v.img --lease never

# --- a limit for pauses ---------------------------------------------------------------------

guarded vm $a v.img --pause-limit 2
tell vm "join v.img $a 5"
silent vm 4 # the VM runs longer than the pause limit
tell vm "take 0"
tell vm "still 0"
tell vm "join v.img $a 5" # the heartbeat of one of the VM's two systems is enough
silent vm 4
tell vm "leave 1"
ask survivor "take 0"
answers survivor ok 10
tell survivor "give 0"
ends vm 137 'no heartbeat for [23] s: process [0-9]+ is killed'
is_there 'b:alive'
# The guard itself was stopped. That time does not count as silence of the VM.
guarded vm $a v.img --pause-limit 4
tell vm "join v.img $a 5"
child=$(inner vm)
kill -STOP "$child"
sleep 0.8
kill -STOP "${pid[vm]}"
sleep 5
kill -CONT "${pid[vm]}"
sleep 0.1
kill -CONT "$child"
silent vm 1
tell vm "leave 0"
ask vm "exit 0"
ends vm 0
# A guard does not wait for a VM that uses no volume.
guarded vm $a v.img --pause-limit 1
child=$(inner vm)
kill -STOP "$child"
silent vm 3
kill -CONT "$child"
ask vm "exit 0"
ends vm 0

# --- several systems and volumes: only the right ones are fenced ----------------------------

make_volume w.img
guarded vm $a v.img w.img
tell vm "join v.img $a 6"
tell vm "join v.img $a 6"
tell vm "join w.img $a 6"
tell vm "take 0"
tell survivor "join w.img $b 1"
kill -KILL "$(inner vm)"
tell survivor "take 0"
tell survivor "give 0"
ends vm 137 '^stargatectl: warning: w.img: .* \(slot 0\)'
is_there 'b:alive'
is_there 'b:alive' w.img
tell survivor "leave 1"

# --- boots ----------------------------------------------------------------------------------

guarded vm $a v.img
tell vm "join v.img $a 7"
tell vm "take 0"
tell vm "reset 0"
ask survivor "take 0"
# the dead system keeps the lock: its machine still runs, and nothing reports the death
silent survivor 3
tell vm "join v.img $a 8"
answers survivor ok
tell survivor "give 0"
is_there 'b:alive a:alive'
tell vm "take 1"
kill -KILL "$(inner vm)"
tell survivor "take 0"
tell survivor "give 0"
ends vm 137 'slot [12]\) had not left'

# A delayed guard finds the machine's next incarnation, and does not fence it.
guarded old $a v.img
tell old "join v.img $a 9"
child=$(inner old)
sleep 0.6
kill -STOP "${pid[old]}"
kill -KILL "$child"
guarded next $a v.img
tell next "join v.img $a 10"
kill -STOP "$(inner next)"
kill -CONT "${pid[old]}"
ends old 137
kill -CONT "$(inner next)"
is_there 'b:alive a:alive'
tell next "mkdir 0 next"
# The guard also fences a system that was mounted just before the machine's end.
kill -STOP "${pid[next]}"
tell next "leave 0"
tell next "join v.img $a 11"
tell next "take 1"
kill -KILL "$(inner next)"
kill -CONT "${pid[next]}"
ask survivor "take 0"
answers survivor ok 10
tell survivor "give 0"
ends next 137 'had not left'

# --- a machine that runs already ------------------------------------------------------------

start vm "$machine" -smbios "type=1,manufacturer=x,uuid=$a,serial=1"
tell vm "join v.img $a 12"
start guard "$ctl" guard v.img --pid "${pid[vm]}"
sleep 1
"$ctl" systems -j v.img >out
json 'd["systems"][1]["guarded"]'
kill -KILL "${pid[guard]}" # a guard's end does not affect the machine
ends guard 137
tell vm "mkdir 0 unguarded"
start guard "$ctl" guard --pid "${pid[vm]}" --machine "${a^^}" v.img
sleep 1
kill -TERM "${pid[guard]}" # the second guard's end does not affect the machine either
ends guard 143
tell vm "take 0"
start guard "$ctl" guard v.img --pid="${pid[vm]}"
sleep 1
begin=$(now)
kill -KILL "${pid[vm]}"
tell survivor "take 0"
soon "the time from SIGKILL of a running machine to a survivor's lock" "$begin"
tell survivor "give 0"
ends guard 0 'when its VM ended: fenced'
ends vm 137

tell survivor "leave 0"
ask survivor "exit 0"
ends survivor 0
for volume in v.img w.img; do
	expect 0 "$fsck" -n $volume
	says ': clean'
done
echo "$checks checks"
