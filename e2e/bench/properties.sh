# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Two guests have mounted one file system. These functions test which effects of g1's actions g2
# sees. They print lines "sees FILESYSTEM PROPERTY ANSWER". ANSWER is yes, no, or refused (ERROR).

declare -A answers hand voice

# talk FILESYSTEM FOLDER: starts the program observer in each guest. It keeps its files open during
# all tests.
talk() {
	local guest fd
	for guest in g1 g2; do
		rm -f "${work:?}/$guest".{in,out}
		mkfifo "$work/$guest.in" "$work/$guest.out"
		on "$guest" "cd $2 && exec /root/observer" <"$work/$guest.in" >"$work/$guest.out" &
		exec {fd}>"$work/$guest.in"
		hand[$guest]=$fd
		exec {fd}<"$work/$guest.out"
		voice[$guest]=$fd
	done
}

hush() {
	local guest fd
	for guest in g1 g2; do
		fd=${hand[$guest]}
		exec {fd}>&-
		fd=${voice[$guest]}
		exec {fd}<&-
	done
	wait
}

# tells GUEST WORD...: sends a command to the guest's observer. hears GUEST: waits for the
# observer's answer, and stores it in $said.
tells() { printf '%s\n' "${*:2}" >&"${hand[$1]}"; }
hears() { IFS= read -r -t 120 said <&"${voice[$1]}" || fail "$1 does not answer"; }
ask() {
	tells "$@"
	hears "$1"
}

# must GUEST WORD...: runs an operation that every file system must support.
must() {
	ask "$@"
	[[ $said == ok ]] || fail "$*: $said"
}

answer() { # FILESYSTEM PROPERTY ANSWER
	answers[$1,$2]=$3
	echo "sees $1 $2 $3"
}

# if_is FILESYSTEM PROPERTY EXPECTED: the answer is yes if $said is EXPECTED. It is refused if the
# file system has refused the operation, and no in all other cases.
if_is() {
	case $said in
	"$3") answer "$1" "$2" yes ;;
	EINVAL | ENODEV | EOPNOTSUPP | ENOSYS | ENOLCK | EACCES) answer "$1" "$2" "refused ($said)" ;;
	*) answer "$1" "$2" no ;;
	esac
}

excludes() { [[ ${answers[$1,lock-$2]} == yes ]]; } # FILESYSTEM KIND

# lock FILESYSTEM FOLDER KIND: g1 has the lock, and g2 requests it.
lock() {
	on g1 "rm -f /tmp/held
		setsid /root/locks hold $3 ex 0 0 $2/lock-$3 >/tmp/held 2>&1 </dev/null &
		for i in \$(seq 200); do ! grep -qs . /tmp/held || break; sleep 0.05; done; cat /tmp/held" \
		</dev/null >"$work/held"
	grep -qx held "$work/held" || fail "$1: g1 does not get the $3 lock: $(<"$work/held")"
	said=$(on g2 "/root/locks try $3 ex 0 0 $2/lock-$3" </dev/null 2>&1) || true
	if_is "$1" "lock-$3" EAGAIN
	on g1 'pkill -KILL -x locks
		while pgrep -x locks; do sleep 0.05; done' </dev/null >/dev/null
}

names() { # FILESYSTEM FOLDER
	ask g2 have new
	[[ $said == ENOENT ]] || fail "$1: have new: $said"
	must g1 put new hello
	ask g2 have new
	if_is "$1" absent-then-made file
	ask g2 have new
	on g1 "rm $2/new" </dev/null
	ask g2 have new
	if_is "$1" present-then-removed ENOENT
}

contents() { # FILESYSTEM
	must g1 create 1 text
	must g1 write 1 0 old
	must g2 open 1 text
	ask g2 read 1 0 16
	must g1 write 1 0 newer
	ask g2 read 1 0 16
	if_is "$1" contents newer
	ask g2 stat 1
	said=${said%% *}
	if_is "$1" size 5
}

# Both guests append 500 records of 64 bytes at the same time.
append() { # FILESYSTEM FOLDER
	must g1 log 2 log
	must g2 log 2 log
	tells g1 records 2 a 500 64
	tells g2 records 2 b 500 64
	hears g1
	[[ $said == ok ]] || fail "$1: records: $said"
	hears g2
	[[ $said == ok ]] || fail "$1: records: $said"
	said=$(on g1 "grep -cE '^(a{63}|b{63})\$' $2/log" </dev/null) || true
	if_is "$1" append 1000
}

mapping() { # FILESYSTEM FOLDER
	local guest
	must g1 create 3 mapped
	must g1 write 3 0 aaaa
	must g2 open 3 mapped
	for guest in g1 g2; do
		ask "$guest" map 3 4096
		if [[ $said != ok ]]; then
			if_is "$1" store "(ok)"
			answer "$1" cut-mapping "${answers[$1,store]}"
			return 0
		fi
		ask "$guest" peek 3 0
	done
	must g1 poke 3 0 Z
	ask g2 peek 3 0
	if_is "$1" store Z
	on g1 "truncate -s 0 $2/mapped" </dev/null
	ask g2 peek 3 0
	if_is "$1" cut-mapping SIGBUS
}

# Reads, writes and examines an open file whose last name another system removes.
orphan() { # FILESYSTEM FOLDER
	must g2 create 4 orphan
	must g2 write 4 0 alive
	on g1 "rm $2/orphan" </dev/null
	ask g2 write 4 5 -still
	[[ $said != ok ]] || ask g2 read 4 0 16
	[[ $said != alive-still ]] || ask g2 stat 4
	said=${said%% *}
	if_is "$1" orphan 11
}

properties() { # FILESYSTEM MOUNT
	local kind
	on g1 "mkdir $2/check" </dev/null
	for kind in flock posix; do lock "$1" "$2/check" "$kind"; done
	talk "$1" "$2/check"
	names "$1" "$2/check"
	contents "$1"
	append "$1" "$2/check"
	mapping "$1" "$2/check"
	orphan "$1" "$2/check"
	hush
}
