#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatectl guard, with processes for virtual machines: whatever ends them, those who go on have
# what they held within two seconds; whatever stops them, they are not taken for dead; and nobody
# else is. Then systems and the lease, on the same volumes.
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "$0")/../lib/tools.sh"

machine=$tools/../tests/machine
a=aaaaaaaa-0000-4000-8000-000000000001
b=bbbbbbbb-0000-4000-8000-000000000002
[[ -x $machine ]] || fail "no $machine: make test-programs"

# --- machines -------------------------------------------------------------------------------

declare -A feed pid lines # of each name: where it listens, its process, lines that it has said

# start NAME COMMAND...: in the background, to be told what to do.
start() {
	local name=$1 fd
	shift
	rm -f "$name.in"
	mkfifo "$name.in"
	: >"$name.out"
	"$@" <"$name.in" >"$name.out" 2>"$name.err" &
	pid[$name]=$!
	exec {fd}>"$name.in"
	feed[$name]=$fd
	lines[$name]=0
}

# guarded NAME UUID VOLUME...: a machine with a guard beside it.
guarded() {
	local name=$1 uuid=$2
	shift 2
	start "$name" "$ctl" guard "$@" -- "$machine" -uuid "$uuid"
}

# inner NAME: the process of the machine that NAME guards.
inner() {
	local child=
	for _ in $(seq 100); do
		child=$(pgrep -P "${pid[$1]}" || true)
		[[ -z $child ]] || break
		sleep 0.02
	done
	[[ -n $child ]] || fail "$1 has no machine"
	echo "$child"
}

cleanup() {
	local name
	for name in "${!pid[@]}"; do
		pkill -KILL -P "${pid[$name]}" 2>/dev/null || true
		kill -KILL "${pid[$name]}" 2>/dev/null || true
	done
	rm -rf "$dir"
}
trap cleanup EXIT

ask() { echo "$2" >&"${feed[$1]}"; }

# answers NAME PATTERN [SECONDS]: its next line, within that time.
answers() {
	local name=$1 pattern=$2 end said
	end=$(now)
	lines[$name]=$((lines[$name] + 1))
	until [[ $(wc -l <"$name.out") -ge ${lines[$name]} ]]; do
		[[ $(since "$end") -lt $((${3:-10} * 1000)) ]] || fail "$name says nothing"
		sleep 0.01
	done
	said=$(sed -n "${lines[$name]}p" "$name.out")
	[[ $said =~ ^$pattern$ ]] || fail "$name says '$said', not '$pattern'"
	checks=$((checks + 1))
}

tell() {
	ask "$1" "$2"
	answers "$1" "${3:-ok}"
}

silent() {
	sleep "$2"
	[[ $(wc -l <"$1.out") -eq ${lines[$1]} ]] || fail "$1 goes on: $(tail -n 1 "$1.out")"
	checks=$((checks + 1))
}

# ends NAME STATUS [PATTERN]: it has ended so; its words on standard error.
ends() {
	local name=$1 want=$2 got=0 fd=${feed[$1]}
	{ wait "${pid[$name]}"; } 2>/dev/null || got=$?
	[[ $got -eq $want ]] || fail "$name: status $got, not $want: $(cat "$name.err")"
	exec {fd}>&-
	unset "pid[$name]" "feed[$name]"
	checks=$((checks + 1))
	if [[ $# -gt 2 ]]; then
		says "$3" "$name.err"
	elif [[ -s $name.err ]]; then
		fail "$name says: $(cat "$name.err")"
	fi
}

now() { echo "${EPOCHREALTIME/[.,]/}"; }
since() { echo $((($(now) - $1) / 1000)); } # ms

# soon WHAT START: that took less than 2 s.
soon() {
	local took
	took=$(since "$2")
	[[ $took -lt 2000 ]] || fail "$1 took $took ms"
	echo "$1: $took ms"
	checks=$((checks + 1))
}

# who VOLUME: names and states, as "systems" has them, in one line.
who() {
	"$ctl" systems -j "$1" |
		pick '" ".join(s["name"][8:9] + ":" + s["state"] for s in d["systems"])'
}

is_there() {
	local said
	said=$(who "${2:-v.img}")
	[[ $said == "$1" ]] || fail "there is '$said', not '$1'"
	checks=$((checks + 1))
}

make_volume() {
	rm -f "$1"
	expect 0 "$mkfs" -q --size 32M --phys 16G "$1"
}

word=0x13f8 # hot.reserved2: nobody else stores it

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
soon "from SIGKILL to a survivor's lock" "$begin"
tell survivor "word 0 $word" 'ok 77' # replayed before the lock was free
tell survivor "give 0"
tell survivor "mkdir 0 after"
ends vm 137 "v.img: machine-aaaaaaaa \(slot 1\) had not left when its machine ended: declared dead"
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

# The same without a guard: that is what the lease is for.
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

# --- a limit of patience --------------------------------------------------------------------

guarded vm $a v.img --pause-limit 2
tell vm "join v.img $a 5"
silent vm 4 # runs for longer than that
tell vm "take 0"
tell vm "still 0"
tell vm "join v.img $a 5" # one of two that beats is enough
silent vm 4
tell vm "leave 1"
ask survivor "take 0"
answers survivor ok 10
tell survivor "give 0"
ends vm 137 'no heartbeat for [23] s: process [0-9]+ is killed'
is_there 'b:alive'
# Time in which the guard was stopped itself is no silence that it has seen.
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
# Nobody waits for one that uses no volume.
guarded vm $a v.img --pause-limit 1
child=$(inner vm)
kill -STOP "$child"
silent vm 3
kill -CONT "$child"
ask vm "exit 0"
ends vm 0

# --- several systems and volumes, and who is not meant --------------------------------------

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
silent survivor 3 # nobody knows, and the machine runs
tell vm "join v.img $a 8"
answers survivor ok
tell survivor "give 0"
is_there 'b:alive a:alive'
tell vm "take 1"
kill -KILL "$(inner vm)"
tell survivor "take 0"
tell survivor "give 0"
ends vm 137 'slot [12]\) had not left'

# A guard that comes late finds the machine's next life, which is not its business.
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
# ... but who mounted in the last moment before the end has mounted.
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
kill -KILL "${pid[guard]}" # the machine does not notice
ends guard 137
tell vm "mkdir 0 unguarded"
start guard "$ctl" guard --pid "${pid[vm]}" --machine "${a^^}" v.img
sleep 1
kill -TERM "${pid[guard]}" # nor this
ends guard 143
tell vm "take 0"
start guard "$ctl" guard v.img --pid="${pid[vm]}"
sleep 1
begin=$(now)
kill -KILL "${pid[vm]}"
tell survivor "take 0"
soon "the same, of a machine that ran already" "$begin"
tell survivor "give 0"
ends guard 0 'declared dead'
ends vm 137

# --- signals and statuses -------------------------------------------------------------------

for signal in TERM:42 USR1:43 KILL:137 HUP:129; do
	guarded vm $a v.img
	tell vm "join v.img $a 13"
	tell vm "leave 0"
	if [[ $signal == KILL* ]]; then
		kill -KILL "$(inner vm)"
	else
		inner vm >/dev/null
		kill -"${signal%:*}" "${pid[vm]}"
	fi
	ends vm "${signal#*:}"
done
# With few descriptors it watches, or there is no machine: none runs unguarded.
few=0
for descriptors in $(seq 4 16); do
	rm -f started
	status=0
	# shellcheck disable=SC2016 # it is the machine's
	bash -c 'ulimit -n "$1"; exec "${@:2}"' - "$descriptors" "$ctl" guard v.img -- \
		bash -c 'echo $$ >started; sleep 1' -uuid $a >out 2>err || status=$?
	[[ $status -ne 0 ]] || break
	[[ $status -ne 125 ]] || few=$((few + 1))
	sleep 0.3
	[[ ! -e started ]] || fail "$descriptors descriptors: status $status, and the machine runs"
	checks=$((checks + 1))
done
[[ $status -eq 0 && $few -gt 0 ]] || fail "$few refusals, then status $status"
refuses 125 'none.img: cannot be opened: No such file' "$ctl" guard none.img -- true -uuid $a
refuses 125 'none.img: cannot be opened' "$ctl" guard v.img none.img -- true -uuid $a
refuses 125 'does not tell its UUID' "$ctl" guard v.img -- true
refuses 125 'does not tell its UUID' "$ctl" guard v.img --pid $$
refuses 125 'does not tell its UUID' "$ctl" guard v.img -- true -smbios "type=3,uuid=$a"
refuses 127 'nonesuch: cannot be run: No such file' "$ctl" guard v.img -- nonesuch -uuid $a
refuses 126 '/: cannot be run: Permission denied' "$ctl" guard v.img -- / -uuid $a
refuses 125 'cannot be watched: No such process' "$ctl" guard v.img --pid 2147483647 --machine $a
refuses 125 '\.: is a directory' "$ctl" guard . -- true -uuid $a
# What can be no volume, nor become one; and what is none yet.
echo text >text
refuses 125 'text: has 5 bytes; the smallest volume is 16 MiB' "$ctl" guard text -- true -uuid $a
refuses 125 'text: has 5 bytes' "$ctl" guard v.img text -- true -uuid $a
refuses 125 'null: is a character device' "$ctl" guard /dev/null -- true -uuid $a
: >none.img
truncate -s 16M zeroes.img
head -c 17M /dev/urandom >noise.img
for volume in none zeroes noise; do
	refuses 0 "warning: $volume.img: no StargateFS there yet" "$ctl" guard $volume.img -- true -uuid $a
done
refuses 0 'warning: none.img' "$ctl" guard v.img none.img -- true -uuid $a
rm none.img zeroes.img noise.img
refuses 2 'guard: takes VOLUME' "$ctl" guard v.img
refuses 2 'guard: takes VOLUME' "$ctl" guard v.img true
refuses 2 'guard: takes VOLUME' "$ctl" guard -- v.img true
refuses 2 'guard: takes VOLUME' "$ctl" guard v.img --pid 1 -- true
refuses 2 "--machine '0{32}': allowed is 32 hex" "$ctl" guard v.img --machine "$(printf %032d 0)" -- true
refuses 2 "--machine 'x': allowed" "$ctl" guard v.img --machine x -- true
for bad in 0 -1 x '' 2147483648; do
	refuses 2 "--pid '$bad': allowed is the number" "$ctl" guard v.img --pid="$bad"
	refuses 2 "--pause-limit '$bad': allowed is 1 to 86400" \
		"$ctl" guard v.img --pause-limit="$bad" -- true
done
refuses 2 'guard: takes no --lease' "$ctl" guard --lease 5 v.img -- true
[[ $("$ctl" guard v.img -- echo -uuid $a -- --pid 7) == "-uuid $a -- --pid 7" ]] ||
	fail "what is behind the dashes does not get through"

# --- a volume that is none yet, is made anew, and is cut short ------------------------------

: >u.img
guarded vm $a u.img
sleep 0.6
expect 0 "$mkfs" -q --size 32M --phys 16G u.img
tell vm "join u.img $a 1"
tell vm "leave 0"
expect 0 "$mkfs" -qf --phys 16G --areas 4 --max-size 64M u.img
sleep 0.6
truncate -s 0 u.img
sleep 0.6
expect 0 "$mkfs" -q --size 48M --phys 16G u.img
tell vm "join u.img $a 1"
sleep 0.6
kill -KILL "$(inner vm)"
ends vm 137 'u.img: .* declared dead'
says '^stargatectl: warning: u.img: no StargateFS there yet' vm.err
"$ctl" -j slots u.img >out 2>err
json '[s["state"] for s in d["slots"]] == ["dead"]'
is_there 'a:dead' u.img
expect 1 "$fsck" -p u.img
says 'recovered'

# --- systems --------------------------------------------------------------------------------

expect 0 "$ctl" systems v.img
says '^1 of 64 slots in use; epoch [0-9]+; no lease$'
says '^SLOT  STATE  '
says '^ +0  alive +0\.[0-9] s +no .* bbbbbbbb  622d3100  -  *machine-bbbbbbbb$'
expect 0 "$ctl" systems u.img
says '^0 of 64 slots'
[[ $(wc -l <out) -eq 1 ]] || fail "a table of nobody"
# What one holds up who is silent: all that is freed meanwhile.
start vm "$machine" -uuid $a
tell vm "join v.img $a 14"
tell vm "still 0"
tell survivor "join v.img $b 1" # one that will owe
tell survivor "fill 2 meg"
tell survivor "remove 2 meg"
sleep 1
"$ctl" systems -j v.img >out
json 'max(s["behind"] for s in d["systems"] if s["name"][8] == "a") == 1'
json 'max(s["held_up"] for s in d["systems"] if s["name"][8] == "a") >= 1 << 20'
json 'max(s["held_up"] for s in d["systems"] if s["name"][8] == "b") == 0'
json 'max(s["owed"] for s in d["systems"] if s["name"][8] == "b") >= 1 << 20'
expect 0 "$ctl" systems v.img
says ' suspected +>2\.[0-9] s +no +[0-9]+ late +1\.0 MiB '
tell vm "go 0"
sleep 1
"$ctl" systems -j v.img >out
json 'max(s["held_up"] for s in d["systems"]) == 0 and max(s["owed"] for s in d["systems"]) == 0'
# Again and again, as long as somebody reads.
timeout 20 "$ctl" systems --watch 1 v.img >tables &
sleep 3.5
kill -TERM $!
wait $! 2>/dev/null || true
[[ $(grep -c '^3 of 64 slots' tables) -ge 3 ]] || fail "no table again"
"$ctl" systems -j --watch 1 v.img | head -c 1 >/dev/null || [[ ${PIPESTATUS[0]} -eq 141 ]]
for bad in 0 -1 x '' 1.5; do
	refuses 2 "--watch '$bad': allowed is 1 to 86400" "$ctl" systems v.img --watch="$bad"
done
refuses 1 'none: cannot be opened' "$ctl" systems none
refuses 1 'vm.out: has .* bytes; the smallest volume' "$ctl" systems vm.out
# --- somebody says that one is dead ---------------------------------------------------------

refuses 2 'systems: takes VOLUME' "$ctl" systems v.img fence
refuses 2 'systems: takes VOLUME' "$ctl" systems v.img fence 1 2
refuses 2 'systems: takes VOLUME' "$ctl" systems v.img kill 1
refuses 2 'systems: takes VOLUME' "$ctl" systems v.img --force
refuses 2 'systems: takes VOLUME' "$ctl" systems v.img fence 1 --json
refuses 1 "there is no system 'nobody' that lives" "$ctl" systems v.img fence nobody
refuses 1 "there is no system '63' that lives" "$ctl" systems v.img fence 63
refuses 1 "2 systems are called 'machine-bbbbbbbb': say the number" "$ctl" systems v.img fence machine-bbbbbbbb
refuses 1 "2 systems are called '$b'" "$ctl" systems v.img fence $b
refuses 1 "there is no system '${a%1}2' that lives" "$ctl" systems v.img fence ${a%1}2
# Nor is whoever comes after him meant, if his incarnation is named.
inc=$("$ctl" systems -j v.img | python3 -c \
	'import json, sys; print(*[s["incarnation"] for s in json.load(sys.stdin)["systems"] if s["slot"] == 1])')
for name in "1/$((inc + 1))" "0/$inc/" "1/" "1/x" "/$inc" "00000000001"; do
	refuses 1 "there is no system '$name' that lives" "$ctl" systems v.img fence "$name"
done
# Who lives for all to see is not dead, whatever it is called by.
for name in machine-aaaaaaaa 1 "1/$inc" $a "${a^^}" "${a//-/}"; do
	refuses 1 'machine-aaaaaaaa \(slot 1\): its heart beats.*--force' "$ctl" systems v.img fence "$name"
done
tell vm "still 0"
for name in machine-aaaaaaaa 1 $a; do
	refuses 1 'machine-aaaaaaaa \(slot 1\): the volume is not mounted on this machine.*--force' \
		"$ctl" systems v.img fence "$name"
done
# Nor is one whose machine lives: all of a machine go together.
refuses 1 "machine-bbbbbbbb \\(slot .*\\): (the heart of its machine's slot|its heart beats)" \
	"$ctl" systems v.img fence 0
tell survivor "still 2"
refuses 1 "machine-bbbbbbbb \\(slot 2\\): the heart of its machine's slot 0 beats.*--force" \
	"$ctl" systems v.img fence 2
tell survivor "go 2"
tell vm "go 0"
tell vm "mkdir 0 alive" # it has only been refused
tell vm "take 0"
ask survivor "take 0"
silent survivor 1
begin=$(now)
expect 0 "$ctl" systems v.img fence machine-aaaaaaaa --force
says '^machine-aaaaaaaa \(slot 1\): declared dead$'
answers survivor ok
soon "from the word to a survivor's lock" "$begin"
tell survivor "give 0"
tell vm "mkdir 0 late" 'error mkdir: Input/output error'
tell vm "reset 0"
tell vm "join v.img $a 15"
slot=$("$ctl" systems -j v.img | pick '[s["slot"] for s in d["systems"] if s["name"][8] == "a"][0]')
refuses 1 'its heart beats' "$ctl" systems v.img fence $a
expect 0 "$ctl" systems v.img fence $a --force
says "^machine-aaaaaaaa \\(slot $slot\\): declared dead\$"
tell vm "mkdir 1 late" 'error mkdir: Input/output error'
tell vm "reset 1"
ask vm "exit 0"
ends vm 0

# --- the lease ------------------------------------------------------------------------------

rm -f l.img
expect 0 "$mkfs" --json --size 16M --phys 16G --lease 30 l.img
json 'd["lease_ms"] == 30000'
expect 0 "$ctl" tune l.img
says '^lease: 30 s$'
expect 0 "$ctl" info l.img
says '^lease: 30 s$'
expect 0 "$ctl" tune --lease never l.img
expect 0 "$ctl" -j tune l.img
json 'd["lease_ms"] == 0'
expect 0 "$ctl" tune --lease 5 l.img
expect 0 "$ctl" tune --lease 0 l.img
expect 0 "$ctl" tune l.img
says '^lease: never$'
expect 0 "$mkfs" -f --json --phys 16G --lease 0 l.img
json 'd["lease_ms"] == 0'
for bad in 1 -2 x '' 86401 2.5; do
	refuses 2 "--lease '$bad': allowed is never \(0\), or 2 to 86400" "$ctl" tune l.img --lease="$bad"
	refuses 2 "--lease '$bad': allowed is never \(0\), or 2 to 86400" "$mkfs" --lease="$bad" l.img
done
refuses 1 'none: cannot be opened' "$ctl" tune none --lease 5
truncate -s 32M empty
refuses 1 'no StargateFS here' "$ctl" tune empty --lease 5

tell survivor "leave 2"
tell survivor "leave 0"
ask survivor "exit 0"
ends survivor 0
for volume in v.img w.img; do
	expect 0 "$fsck" -n $volume
	says ': clean'
done
echo "$checks checks"
