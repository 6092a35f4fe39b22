#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatectl guard, as a user calls it: signals and exit statuses that it passes on, refusals, and
# volumes that are made while the guard watches. Then `systems`, which lists and fences systems, and
# the lease.
# shellcheck source=kernel/tests/lib/guards.sh
source "$(dirname "$0")/../lib/guards.sh"

make_volume v.img
start survivor "$machine"
tell survivor "join v.img $b 1"

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
# The guard passes on no signal after it has waited for the machine: another process may have the
# machine's process ID by then.
cat >late.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t gone;

pid_t waitpid(pid_t pid, int *status, int options)
{
	pid_t (*real)(pid_t, int *, int) = (__typeof__(real))dlsym(RTLD_NEXT, "waitpid");
	pid_t r = real(pid, status, options);

	if (r > 0) {
		gone = r;
		close(open("waited", O_CREAT | O_WRONLY, 0600));
		raise(SIGTERM);
	}
	return r;
}

int kill(pid_t pid, int sig)
{
	int (*real)(pid_t, int) = (__typeof__(real))dlsym(RTLD_NEXT, "kill");

	if (pid > 0 && pid == gone)
		close(open("signalled", O_CREAT | O_WRONLY, 0600));
	return real(pid, sig);
}
END
symbols=$(nm -D "$ctl" 2>/dev/null || true)
if [[ $symbols == *' waitpid@'* && $symbols != *san_* ]]; then
	gcc -shared -fPIC -O1 -Wall -Werror -o late.so late.c -ldl || fail "cannot compile late.c"
	rm -f waited signalled
	LD_PRELOAD="$dir/late.so" expect 0 "$ctl" guard v.img -- true -uuid $a
	[[ -e waited ]] || fail "no signal came after the wait"
	[[ ! -e signalled ]] || fail "the guard sent a signal to a process that it had already waited for"
	checks=$((checks + 1))
fi
# With few file descriptors the guard either watches or starts no machine: no machine runs
# unguarded.
few=0
for descriptors in $(seq 4 16); do
	rm -f started
	status=0
	# shellcheck disable=SC2016 # for the inner shell
	bash -c 'ulimit -n "$1"; exec "${@:2}"' - "$descriptors" "$ctl" guard v.img -- \
		bash -c 'echo $$ >started; sleep 1' -uuid $a >out 2>err || status=$?
	[[ $status -ne 0 ]] || break
	[[ $status -ne 125 ]] || few=$((few + 1))
	sleep 0.3
	[[ ! -e started ]] ||
		fail "$descriptors descriptors: guard exits with $status, but the machine runs"
	checks=$((checks + 1))
done
[[ $status -eq 0 && $few -gt 0 ]] ||
	fail "with few descriptors: $few refusals, then exit status $status"
refuses 125 'none.img: cannot be opened: No such file' "$ctl" guard none.img -- true -uuid $a
refuses 125 'none.img: cannot be opened' "$ctl" guard v.img none.img -- true -uuid $a
refuses 125 'has no UUID' "$ctl" guard v.img -- true
refuses 125 'has no UUID' "$ctl" guard v.img --pid $$
refuses 125 'has no UUID' "$ctl" guard v.img -- true -smbios "type=3,uuid=$a"
refuses 127 'nonesuch: cannot be run: No such file' "$ctl" guard v.img -- nonesuch -uuid $a
refuses 126 '/: cannot be run: Permission denied' "$ctl" guard v.img -- / -uuid $a
refuses 125 'cannot be watched: No such process' "$ctl" guard v.img --pid 2147483647 --machine $a
refuses 125 '\.: is a directory' "$ctl" guard . -- true -uuid $a
# Files that can never be a volume, and files that are no volume yet.
echo text >text
refuses 125 'text: has 5 bytes; the smallest volume is 16 MiB' "$ctl" guard text -- true -uuid $a
refuses 125 'text: has 5 bytes' "$ctl" guard v.img text -- true -uuid $a
refuses 125 'null: is a character device' "$ctl" guard /dev/null -- true -uuid $a
: >none.img
truncate -s 16M zeroes.img
head -c 17M /dev/urandom >noise.img
for volume in none zeroes noise; do
	refuses 0 "warning: $volume.img: holds no mountable StargateFS yet" "$ctl" guard $volume.img -- true -uuid $a
done
refuses 0 'warning: none.img' "$ctl" guard v.img none.img -- true -uuid $a
rm none.img zeroes.img noise.img
refuses 2 'guard: takes VOLUME' "$ctl" guard v.img
refuses 2 'guard: takes VOLUME' "$ctl" guard v.img true
refuses 2 'guard: takes VOLUME' "$ctl" guard -- v.img true
refuses 2 'guard: takes VOLUME' "$ctl" guard v.img --pid 1 -- true
refuses 2 "--machine '0{32}': must be 32 hex" "$ctl" guard v.img --machine "$(printf %032d 0)" -- true
refuses 2 "--machine 'x': must be" "$ctl" guard v.img --machine x -- true
for bad in 0 -1 x '' 2147483648; do
	refuses 2 "--pid '$bad': must be the number" "$ctl" guard v.img --pid="$bad"
	refuses 2 "--pause-limit '$bad': must be 1 to 86400" \
		"$ctl" guard v.img --pause-limit="$bad" -- true
done
refuses 2 'guard: takes no --lease' "$ctl" guard --lease 5 v.img -- true
[[ $("$ctl" guard v.img -- echo -uuid $a -- --pid 7) == "-uuid $a -- --pid 7" ]] ||
	fail "the command does not get the words after the dashes"

# --- a file that becomes a volume, is formatted again, and is truncated ---------------------

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
ends vm 137 'u.img: .* when its VM ended: fenced'
says '^stargatectl: warning: u.img: holds no mountable StargateFS yet' vm.err
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
[[ $(wc -l <out) -eq 1 ]] || fail "systems prints a table for a volume without systems"
# A silent system delays all deferred frees since its last heartbeat.
start vm "$machine" -uuid $a
tell vm "join v.img $a 14"
tell vm "still 0"
tell survivor "join v.img $b 1" # this system will have deferred frees
tell survivor "fill 1 meg"
tell survivor "remove 1 meg"
sleep 1
"$ctl" systems -j v.img >out
json 'max(s["behind"] for s in d["systems"] if s["name"][8] == "a") == 1'
json 'max(s["held_up"] for s in d["systems"] if s["name"][8] == "a") >= 1 << 20'
json 'max(s["held_up"] for s in d["systems"] if s["name"][8] == "b") == 0'
json 'max(s["deferred"] for s in d["systems"] if s["name"][8] == "b") >= 1 << 20'
expect 0 "$ctl" systems v.img
says ' suspected +>2\.[0-9] s +no +[0-9]+ late +1\.0 MiB '
tell vm "go 0"
sleep 1
"$ctl" systems -j v.img >out
json 'max(s["held_up"] for s in d["systems"]) == 0 and max(s["deferred"] for s in d["systems"]) == 0'
# --watch repeats the table until the reader exits.
timeout 20 "$ctl" systems --watch 1 v.img >tables &
sleep 3.5
kill -TERM $!
wait $! 2>/dev/null || true
[[ $(grep -c '^3 of 64 slots' tables) -ge 3 ]] || fail "--watch has not repeated the table"
"$ctl" systems -j --watch 1 v.img | head -c 1 >/dev/null || [[ ${PIPESTATUS[0]} -eq 141 ]]
for bad in 0 -1 x '' 1.5; do
	refuses 2 "--watch '$bad': must be 1 to 86400" "$ctl" systems v.img --watch="$bad"
done
refuses 1 'none: cannot be opened' "$ctl" systems none
refuses 1 'vm.out: has .* bytes; the smallest volume' "$ctl" systems vm.out
# --- an operator fences a system ------------------------------------------------------------

refuses 2 'systems: takes VOLUME' "$ctl" systems v.img fence
refuses 2 'systems: takes VOLUME' "$ctl" systems v.img fence 1 2
refuses 2 'systems: takes VOLUME' "$ctl" systems v.img kill 1
refuses 2 'systems: takes VOLUME' "$ctl" systems v.img --force
refuses 2 'systems: takes VOLUME' "$ctl" systems v.img fence 1 --json
refuses 1 "there is no live system 'nobody'" "$ctl" systems v.img fence nobody
refuses 1 "there is no live system '63'" "$ctl" systems v.img fence 63
refuses 1 "2 systems have the name 'machine-bbbbbbbb': give the number" "$ctl" systems v.img fence machine-bbbbbbbb
refuses 1 "2 systems have the name '$b'" "$ctl" systems v.img fence $b
refuses 1 "there is no live system '${a%1}2'" "$ctl" systems v.img fence ${a%1}2
# With an incarnation, a later system in the slot is not fenced.
inc=$("$ctl" systems -j v.img | "${python[@]}" -c \
	'import json, sys; print(*[s["incarnation"] for s in json.load(sys.stdin)["systems"] if s["slot"] == 1])')
for name in "1/$((inc + 1))" "0/$inc/" "1/" "1/x" "/$inc" "00000000001"; do
	refuses 1 "there is no live system '$name'" "$ctl" systems v.img fence "$name"
done
# A system with a visible heartbeat is not fenced, by any of its names.
for name in machine-aaaaaaaa 1 "1/$inc" $a "${a^^}" "${a//-/}"; do
	refuses 1 'machine-aaaaaaaa \(slot 1\): its heartbeat moves.*--force' "$ctl" systems v.img fence "$name"
done
tell vm "still 0"
for name in machine-aaaaaaaa 1 $a; do
	refuses 1 'machine-aaaaaaaa \(slot 1\): the volume is not mounted on this host.*--force' \
		"$ctl" systems v.img fence "$name"
done
# A system on a live machine is not fenced either: all systems of a machine die together.
refuses 1 "machine-bbbbbbbb \\(slot .*\\): (the heartbeat of its VM's slot|its heartbeat moves)" \
	"$ctl" systems v.img fence 0
tell survivor "still 1"
refuses 1 "machine-bbbbbbbb \\(slot 2\\): the heartbeat of its VM's slot 0 moves.*--force" \
	"$ctl" systems v.img fence 2
tell survivor "go 1"
tell vm "go 0"
tell vm "mkdir 0 alive" # the system was not fenced, and works
tell vm "take 0"
ask survivor "take 0"
silent survivor 1
begin=$(now)
expect 0 "$ctl" systems v.img fence machine-aaaaaaaa --force
says '^machine-aaaaaaaa \(slot 1\): fenced$'
answers survivor ok
soon "the time from the fence command to a survivor's lock" "$begin"
tell survivor "give 0"
tell vm "mkdir 0 late" 'error mkdir: Input/output error'
tell vm "reset 0"
tell vm "join v.img $a 15"
# A system that is fenced already is said to be so, whatever recovers it. Here the slot 63 is
# forged.
cp v.img dead.img
# forge STATE BY: the state of slot 63, and the slot of its recoverer.
forge() {
	"${python[@]}" - "$1" "$2" <<'END'
import struct, sys
state, by = map(int, sys.argv[1:])
f = open("dead.img", "r+b")
f.seek(200)
slot = struct.unpack("<Q", f.read(8))[0] + 63 * 256
f.seek(slot)
f.write(struct.pack("<Q", state | (by + 1 << 8 | 7 << 16 if by >= 0 else 0) | 7 << 32))
f.seek(slot + 64)
f.write(b"gone".ljust(64, b"\0"))
f.seek(slot + 152)
f.write(struct.pack("<Q", 7))
END
}
for name in 63 63/7 gone; do
	forge 2 -1
	refuses 1 'gone \(slot 63\): is fenced already: live systems recover it' \
		"$ctl" systems dead.img fence "$name" --force
	forge 3 5
	refuses 1 'gone \(slot 63\): is fenced already, and the system of slot 5 recovers it: wait' \
		"$ctl" systems dead.img fence "$name" --force
	forge 3 63
	refuses 1 'gone \(slot 63\): is fenced already, and a system that needs the slot recovers it: wait' \
		"$ctl" systems dead.img fence "$name" --force
done
refuses 1 "there is no live system '63/8'" "$ctl" systems dead.img fence 63/8 --force
rm dead.img
slot=$("$ctl" systems -j v.img | pick '[s["slot"] for s in d["systems"] if s["name"][8] == "a"][0]')
refuses 1 'its heartbeat moves' "$ctl" systems v.img fence $a
expect 0 "$ctl" systems v.img fence $a --force
says "^machine-aaaaaaaa \\(slot $slot\\): fenced\$"
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
	refuses 2 "--lease '$bad': must be never \(0\), or 2 to 86400" "$ctl" tune l.img --lease="$bad"
	refuses 2 "--lease '$bad': must be never \(0\), or 2 to 86400" "$mkfs" --lease="$bad" l.img
done
refuses 1 'none: cannot be opened' "$ctl" tune none --lease 5
truncate -s 32M empty
refuses 1 'no StargateFS here' "$ctl" tune empty --lease 5

tell survivor "leave 1"
tell survivor "leave 0"
ask survivor "exit 0"
ends survivor 0
expect 0 "$fsck" -n v.img
says ': clean'
echo "$checks checks"
