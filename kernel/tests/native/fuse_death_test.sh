#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatefs-fuse: the server dies in each special step of a call, and the next server must know
# which part of the call was done.
# shellcheck source=kernel/tests/lib/fuse.sh
source "$(dirname "$0")/../lib/fuse.sh"
# shellcheck source=kernel/tests/lib/deaths.sh
source "$sources/tests/lib/deaths.sh"
if [[ -z $deaths ]]; then
	echo "1 checks"
	exit 0
fi

INIT=26 OPEN=14 CREATE=35 OPENDIR=27 WRITE=16 SETXATTR=21 REMOVEXATTR=24 INTERRUPT=36
make_volume v 64M

# --- the first request of a mount ------------------------------------------------------------

for moment in read reply replied; do
	serve_to_die $moment:$INIT m v
	timeout -s KILL 20 ls m >out || fail "$moment: the mount hangs, or has ended"
	died
	leave m
done

# --- a mount that the keeper cannot pass to its server ---------------------------------------

: >death
mkdir -p m
LD_PRELOAD="$dir/death.so" DEATH_AT=send:0 DEATH_FILE="$dir/death" \
	expect 1 "$fuse" "$memory/v" "$dir/m"
died
says 'm: cannot be mounted: .*buffer' err
is "no mount is left" "" "$(mountpoint -q m && echo mounted)"
ended m

# --- a kernel that does not check who may set flags -------------------------------------------

serve_to_die old:$INIT m v
: >m/f
expect 1 chattr +i m/f
says 'not supported' err
expect 0 lsattr m/f
rm m/f
died
leave m

# --- a server that is killed while it reads a request ------------------------------------------

# The kernel ends the call with EIO. The next server must not write what the buffer had behind the
# part that was read.
serve_to_die part:$WRITE m v
timeout -s KILL 20 "${python[@]}" -c 'import errno, os
fd = os.open("m/f", os.O_RDWR | os.O_CREAT)
old = b"old " * 0x3000
for at in range(0, 0x40000, len(old)): os.pwrite(fd, old, at)
size = os.fstat(fd).st_size
before = os.pread(fd, size, 0)
try: os.pwrite(fd, b"new " * 0x10000, 0)
except OSError as e: print(errno.errorcode[e.errno])
os.stat("m/f")
assert os.pread(fd, size, 0) == before, "a part of the request, or older bytes, were written"
assert os.fstat(fd).st_size == size
os.pwrite(fd, b"new", 0)' >got || fail "a request of which a part was read"
died
is "the caller" EIO "$(cat got)"
rm m/f
leave m

# --- calls that cannot be done twice ----------------------------------------------------------

# repeated WHAT OPCODE PYTHON: the server dies when it has done that call. The next server repeats
# it.
repeated() {
	serve_to_die "done:$2" m v
	timeout -s KILL 20 "${python[@]}" -c "import os; $3" || fail "PYTHON fails when the next server repeats the call: $1"
	died
	leave m
}
serve m v
: >m/f
"${python[@]}" -c 'import os; os.setxattr("m/f", "user.x", b"1")'
leave m
repeated "the call creates an attribute" $SETXATTR 'os.setxattr("m/f", "user.y", b"2", os.XATTR_CREATE)'
repeated "the call replaces the attribute" $SETXATTR 'os.setxattr("m/f", "user.y", b"3", os.XATTR_REPLACE)'
repeated "the call removes the attribute" $REMOVEXATTR 'os.removexattr("m/f", "user.x")'
serve m v
is "the repeated calls have their effect once" "['user.y'] b'3'" "$("${python[@]}" -c 'import os
print(os.listxattr("m/f"), os.getxattr("m/f", "user.y"))')"
rm m/f
leave m

# --- a repeated open has one handle -----------------------------------------------------------

# opened WHAT OPCODE PYTHON: the server dies when it has done that call. PYTHON makes files, and
# removes and closes them all: then the volume has as many files as before.
opened() {
	serve_to_die "done:$2" m v
	timeout -s KILL 30 "${python[@]}" -c "import os, time
def used():
    s = os.statvfs('m')
    return s.f_files - s.f_ffree
before = used()
$3
end = time.monotonic() + 10
while used() != before and time.monotonic() < end: time.sleep(0.1)
assert used() == before, f'{used() - before} more'" ||
		fail "$1 is repeated: a file stays in use"
	died
	leave m
}
serve m v
echo old >m/old
leave m
opened "an open" $OPEN 'fd = os.open("m/old", os.O_RDWR | os.O_TRUNC)
os.write(fd, b"new")
os.unlink("m/old")
assert os.pread(fd, 9, 0) == b"new"
os.close(fd)
before -= 1'
opened "a creation" $CREATE 'fd = os.open("m/f", os.O_RDWR | os.O_CREAT | os.O_EXCL)
os.unlink("m/f")
os.write(fd, b"new")
os.close(fd)'
opened "a directory" $OPENDIR 'os.mkdir("m/d")
fd = os.open("m/d", os.O_RDONLY | os.O_DIRECTORY)
os.rmdir("m/d")
os.close(fd)'

# --- appends: what is there is not appended again --------------------------------------------

# append PYTHON: a process appends "0123456789". The server does the append, runs PYTHON, and dies.
# PYTHON changes the file like another system, or like a death during the append.
append() {
	rm -f m/log
	echo begin >m/log
	leave m
	DEATH_SCRIPT="cd $dir; unset LD_PRELOAD; ${python[*]} -c 'import os; now = os.stat(\"other/log\").st_mtime_ns
$1'" serve_to_die done:$WRITE m v
	timeout -s KILL 30 "${python[@]}" -c 'import os
f = os.open("m/log", os.O_WRONLY | os.O_APPEND)
rest = b"0123456789"
while rest: rest = rest[os.write(f, rest):]' || fail "the repeated append fails"
	died
	cat m/log
}
serve other v
serve m v
is "the server appended all bytes before its death" "begin 0123456789" "$(append 'pass' | xargs)"
is "the server appended a part before its death" "begin 0123456789" \
	"$(append 'os.truncate("other/log", 10); os.utime("other/log", ns=(now, now))' | xargs)"
is "another system appended behind the call's bytes" "begin 0123456789more" \
	"$(append 'os.write(os.open("other/log", os.O_WRONLY | os.O_APPEND), b"more")' | xargs)"
is "the file ends in the same bytes, but from another call" "begin 01234567890123456789" \
	"$(append 'os.utime("other/log", ns=(now, now + 1))' | xargs)"
rm m/log
leave m
leave other

# --- removed files that are open --------------------------------------------------------------

# The next server stops before it marks the removed files as open. Meanwhile another server recovers
# the slot of the last server, takes over its deferred frees, and frees removed files that no system
# has open.
slots() { "$ctl" -j systems "$memory/v" | pick '[s["slot"] for s in d["systems"]]'; }
serve other v
for moment in starts joined; do
	LD_PRELOAD="$dir/death.so" DEATH_AT=$moment:0 DEATH_FILE="$dir/death" serve m v
	is "the slots" "[0, 1]" "$(slots)"
	echo here >m/here
	echo there >m/there
	exec 8<m/here 9<m/there
	rm m/here other/there
	: >death
	kill -KILL "$(server_of m)"
	is "$moment: a file that was removed through this mount" here "$(timeout -s KILL 20 cat <&8)"
	is "$moment: a file that was removed through the other mount" there "$(timeout -s KILL 20 cat <&9)"
	died
	is "only the two present servers have slots" "[0, 2]" "$(slots)"
	exec 8<&- 9<&-
	leave m
done
leave other

# --- fsck after a death of server and keeper ---------------------------------------------------

# Another server fences the killed one, with a lapse: a successor might need its files. fsck needs
# no such wait, because the process has ended.
used() { "$fsck" -n --json "$memory/v" | pick 'd["files"]'; }
used=$(used)
serve third v
serve m v
echo x >m/removed
exec 8<m/removed
rm m/removed
read -ra both <<<"$(pids_of m | xargs)"
kill -KILL "${both[@]}"
exec 8<&-
umount -l m
soon "the killed server is fenced" 20 grep -q 'has ended without leaving: fenced' third.log
leave third
begin=$SECONDS
expect 1 "$fsck" -p "$memory/v"
! grep -q 'may still store' err || fail "fsck waits for a process that has ended"
[[ $((SECONDS - begin)) -lt 8 ]] || fail "fsck took $((SECONDS - begin)) s"
clean v
is "the removed file has been freed" "$used" "$(used)"

# --- a name that gets another file between its look-up and its open ---------------------------

# replaced COMMAND: a process opens m/f. Before the server handles the first two calls OPEN, the
# other system replaces the file, and frees it. Then COMMAND delays this server, or ends it.
replaced() {
	leave m
	rm -f opens
	: >death
	LD_PRELOAD="$dir/death.so" DEATH_AT=each:$OPEN DEATH_FILE="$dir/death" \
		DEATH_SCRIPT="cd $dir; unset LD_PRELOAD; echo >>opens
[ \$(wc -l <opens) -le 2 ] || exit 0
wc -l <opens >other/new && mv other/new other/f; $1" serve m v
	timeout -s KILL 60 cat m/f || fail "the file that was replaced twice cannot be opened"
	rm death
}
serve other v
echo first >other/f
serve m v
is "a file that is replaced twice, slowly" 1 "$(replaced 'sleep 2.5')"
# shellcheck disable=SC2016 # the server's shell expands it
is "and the server dies before the second open" 1 \
	"$(replaced '[ $(wc -l <opens) -lt 2 ] || kill -KILL $PPID')"
rm other/f
leave m
leave other

# --- a seal during an open for writing --------------------------------------------------------

# Whenever the seal comes, not both succeed: a file that is open for writing can be written to. The
# seal goes on in the background, because the thread may already hold a lock.
serve m v
echo x >m/f
for n in {1..10}; do
	leave m
	DEATH_LOCK=$n DEATH_SCRIPT="cd $dir; unset LD_PRELOAD
'$ctl' seal m f >sealed 2>&1 & sleep 0.5" \
		serve_to_die lock:$OPEN m v
	timeout -s KILL 30 "${python[@]}" -c 'import os
try: fd = os.open("m/f", os.O_WRONLY)
except OSError: fd = -1
if fd >= 0: os.write(fd, b"x")' || fail "lock $n: the file was sealed although a process has it open for writing"
	died
	"$ctl" unseal m f 2>err || true
done
rm m/f
leave m

# --- interrupts -----------------------------------------------------------------------------

# The kernel sends an interrupt once. A server that has read it dies, and the next server acts on
# it.
program locks
machine=$tools/../tests/machine
[[ -x $machine ]] || fail "no $machine: make build PART=test-programs"
coproc system { exec "$machine"; }
# say LINE: sends a command to another system.
say() {
	local answer
	echo "$*" >&"${system[1]}"
	read -r -t 60 -u "${system[0]}" answer || fail "no answer to '$*'"
	[[ $answer == ok ]] || fail "$*: $answer"
	checks=$((checks + 1))
}
# interrupted WHAT NUMBER COMMAND...: COMMAND waits in the system call with that number. A signal
# ends COMMAND, although the server dies.
interrupted() {
	local pid
	: >death
	"${@:3}" >got 2>&1 &
	pid=$!
	soon "$1: the command waits" 20 grep -q "^$2 " "/proc/$pid/syscall"
	kill -TERM $pid
	soon "$1: the command ends" 20 bash -c "! kill -0 $pid"
	wait $pid && fail "$1: the interrupted command succeeded"
	died
}
serve_to_die read:$INTERRUPT m v
: >m/f
say join "$memory/v" 11111111-2222-3333-4444-555555555501 1
say hold 0 f
interrupted "a call" 1 "${python[@]}" -c 'import os
os.write(os.open("m/f", os.O_WRONLY | os.O_APPEND), b"x")'
say let 0 f
./locks hold flock ex 0 0 m/l >held &
holder=$!
soon "the lock is held" 5 grep -q held held
interrupted "a wait for a lock" 73 ./locks wait flock ex 0 0 m/l
end $holder
is "the interrupted wait has left no lock" got "$(timeout 20 ./locks wait flock ex 0 0 m/l)"
is "the interrupted write has written nothing" 0 "$(stat -c %s m/f)"
rm m/f m/l
leave m

# --- locks, while another system is paused ---------------------------------------------------

# A system has the table of locks locked. The next server serves all calls that need no lock, and no
# process gets a lock that a process here has.
serve m v
rm -f held
./locks hold flock ex 0 0 m/l >held &
holder=$!
soon "the lock is held" 5 grep -q held held
say jam 0
kill -KILL "$(server_of m)"
timeout -s KILL 20 touch m/new || fail "the next server does not create a file"
: >got
./locks wait flock ex 0 0 m/l >got &
waiter=$!
soon "the second process waits" 20 grep -q '^73 ' "/proc/$waiter/syscall"
say free 0
sleep 0.5
is "the lock is still held" "" "$(cat got)"
is "the other mount's processes cannot take the lock either" EAGAIN "$(./locks try flock sh 0 0 m/l)"
end $holder
soon "the lock is handed over" 20 grep -q got got
wait $waiter

# A request whose lock was released meanwhile does not take the lock again.
rm -f held
./locks hold flock ex 0 0 m/l >held &
holder=$!
soon "the lock is held" 5 grep -q held held
say jam 0
kill -KILL "$(server_of m)"
timeout -s KILL 20 touch m/new || fail "the next server does not create a file"
end $holder
say free 0
is "the released lock is free" got "$(timeout 20 ./locks wait flock ex 0 0 m/l)"
say leave 0
rm m/l m/new
leave m

# --- a full chain of locks ------------------------------------------------------------------

# A process changes the middle of its lock. The change splits the lock, and needs two more records.
# The last page of the file's chain (63 records) has room for only one, so the chain grows.
serve m v
cat >chain.py <<'END'
import fcntl, os, sys, time
EX, SH, UN = fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_UN
def run(body):
    r, w = os.pipe()
    pid = os.fork()
    if not pid:
        fd = os.open("m/chain", os.O_RDWR | os.O_CREAT)
        body(fd, lambda: os.write(w, b"x"))
        os._exit(0)
    os.close(w)
    assert os.read(r, 1)
    return pid, r
def waiter(fd, said):
    fcntl.lockf(fd, SH, 1001, 0)
    said()
    fcntl.lockf(fd, EX, 1, 500)
    said()
def filler(fd, said):
    for i in range(60):
        fcntl.lockf(fd, EX, 1, 2000 + 2 * i)
    said()
    time.sleep(60)
fd = os.open("m/chain", os.O_RDWR | os.O_CREAT)
fcntl.lockf(fd, SH, 1, 500)
pid, r = run(waiter)
while not open(f"/proc/{pid}/syscall").read().startswith("72 "):
    time.sleep(0.01)
other, _ = run(filler)
fcntl.lockf(fd, UN, 1, 500)
print(os.read(r, 1) == b"x")
os.kill(other, 9)
os.waitpid(other, 0)
END
timeout -s KILL 20 "${python[@]}" chain.py >got || fail "the waiter does not get the lock"
is "the waiter gets the middle of the lock" True "$(cat got)"
rm m/chain
leave m

# --- signals to the keeper -------------------------------------------------------------------

# A signal that arrives just before the keeper waits still removes the mount.
: >death
LD_PRELOAD="$dir/death.so" DEATH_AT=wait:0 DEATH_FILE="$dir/death" serve m v
ended m
died
is "the mount is gone" "" "$(mountpoint -q m && echo still there)"

# The keeper does not remove a later mount at the same place while another server still serves an
# open file.
serve m v
exec 9>m/open
kill -TERM "$(keeper_of m)"
soon "the mount is gone" 5 bash -c '! mountpoint -q m'
mount -t tmpfs tmpfs m
kill -KILL "$(server_of m)"
timeout -s KILL 20 sh -c 'echo more >&9' || fail "the other server does not continue"
is "the later mount is still there" tmpfs "$(stat -f -c %T m)"
umount m
exec 9>&-
ended m

# A second signal ends the server while calls are in progress, one of them slow. The server leaves
# the volume after the slow call. So no thread uses the volume after the server has left it, and no
# slot remains in use.
: >death
mkdir -p m
LD_PRELOAD="$dir/death.so" DEATH_AT=late:$WRITE DEATH_FILE="$dir/death" \
	"$fuse" -f "$memory/v" "$dir/m" 2>>m.log &
keeper=$!
servers+=(m)
soon "the volume is mounted" 20 mountpoint -q m
echo slow >m/slow &
slow=$!
soon "the server is in the slow call" 20 test ! -e death
kill -TERM $keeper
soon "the mount is gone" 10 bash -c '! mountpoint -q m'
kill -TERM $keeper
status=0
wait $keeper || status=$?
is "the keeper's exit status" 0 $status
wait $slow || fail "the slow call fails"
is "the slow call's bytes are in the file" slow "$("$ctl" cat "$memory/v" /slow)"

clean v
echo "$checks checks"
