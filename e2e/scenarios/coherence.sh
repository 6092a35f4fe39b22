#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Systems share one volume. When a call has returned in one system, the other systems see its
# effect, even if they have cached the old state. This state is names, absent names, attributes,
# contents, open files and mappings. Each system makes all changes while its neighbour reads. Two
# systems do so in both directions.
#
# rig: --guests 2 --size 256M --mem 384M --pkgs "acl attr"
# test: walk
# test-rig: --guests 2 --size 128M --mem 384M --pkgs "acl attr sqlite3"
# node: --guests 2 --kernel 6.1,7.2 --size 256M --pkgs "acl attr" --timeout 60m
# kernels: 6.12
# node-kernels: 6.12 7.2
# maps: inside
# limit: 1200
# node-limit: 3600
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

program_everywhere observer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# --- an observer: a process in each system that has read the state before
# ----------------------------------------

declare -A hand ear
for system in "${systems[@]}"; do
	mkfifo "$work/$system.in" "$work/$system.out"
	on "$system" 'cd /mnt/sg && exec /root/observer' <"$work/$system.in" >"$work/$system.out" &
	exec {fd}>"$work/$system.in"
	hand[$system]=$fd
	exec {fd}<"$work/$system.out"
	ear[$system]=$fd
done

# ask SYSTEM WORD...: puts the answer of the system's observer into $said.
ask() {
	local system=$1
	shift
	printf '%s\n' "$*" >&"${hand[$system]}"
	IFS= read -r -t 120 said <&"${ear[$system]}" || fail "$system does not answer: $*"
}

# tell SYSTEM WORD...: checks that the system's observer executes the order without an error.
tell() {
	ask "$@"
	[[ $said == ok ]] || fail "$*: $said"
}

# sees SYSTEM EXPECTED WHAT WORD...: checks that the observer in SYSTEM answers EXPECTED.
sees() {
	local system=$1 expected=$2 what=$3
	shift 3
	ask "$system" "$@"
	[[ $said == "$expected" ]] || fail "$what: $system: $*: '$said' instead of '$expected'"
	passed "$what"
}

# run SYSTEM COMMAND: runs COMMAND with a shell in the volume; stores the output in $said.
run() {
	said=$(on "$1" "cd /mnt/sg && $2" 2>&1 </dev/null) || fail "$1: $2: status $?: $said"
}

# shows SYSTEM EXPECTED WHAT COMMAND: as sees, but with the output of a shell command.
shows() {
	run "$1" "$4"
	[[ $said == "$2" ]] || fail "$3: $1: $4: '$said' instead of '$2'"
	passed "$3"
}

# --- changes that the neighbour must see
# ----------------------------------------------------------------------

names() {
	local a=$1 b=$2 d=$3
	sees "$b" ENOENT "an absent name" have "$d/new"
	tell "$a" put "$d/new" hello
	sees "$b" file "... is there when it has been made" have "$d/new"
	shows "$b" hello "the new file has its contents" "cat $d/new"
	run "$b" "mkdir $d/sub && ls $d/sub"
	sees "$a" directory "a directory is made" have "$d/sub"
	sees "$b" ENOENT "absent in the directory" have "$d/sub/deep"
	tell "$a" put "$d/sub/deep" x
	sees "$b" file "present in the directory" have "$d/sub/deep"
	run "$a" "mv $d/new $d/newer"
	sees "$b" ENOENT "renamed: the old name is gone" have "$d/new"
	sees "$b" file "renamed: the new one is there" have "$d/newer"
	run "$a" "ln $d/newer $d/second"
	shows "$b" 2 "a link counts" "stat -c %h $d/newer"
	run "$a" "ln -s newer $d/soft"
	shows "$b" newer "a symbolic link" "readlink $d/soft"
	run "$a" "ln -sfn second $d/soft"
	shows "$b" second "a replaced link leads to the new target" "readlink $d/soft"
	run "$a" "mv $d/sub $d/moved"
	sees "$b" ENOENT "a directory renamed: the old way is gone" have "$d/sub/deep"
	sees "$b" file "a directory renamed: the new way leads there" have "$d/moved/deep"
	run "$a" "mkdir $d/other && mv $d/moved $d/other/sub"
	sees "$b" file "a directory moved to another one" have "$d/other/sub/deep"
	shows "$b" "$d/other" "the moved directory has its new parent" \
		"cd $d/other/sub/.. && pwd -P | sed s,/mnt/sg/,,"
	tell "$a" put "$d/replacing" two
	run "$a" "mv $d/replacing $d/newer"
	shows "$b" two "replaced by renaming" "cat $d/newer"
	shows "$b" 1 "the other hard link remains" "stat -c %h $d/second"
	run "$a" "rm $d/second"
	sees "$b" ENOENT "unlinked" have "$d/second"
	run "$a" "rm $d/other/sub/deep && rmdir $d/other/sub"
	sees "$b" ENOENT "a directory removed" have "$d/other/sub"
	tell "$b" dir 1 "$d/other"
	sees "$b" "" "an open directory lists nothing" list 1
	tell "$a" put "$d/other/one" x
	sees "$b" "one " "a listing shows the new names" list 1
	run "$a" "mkfifo $d/pipe && mknod $d/null c 1 3"
	shows "$b" "fifo character special file" "special files" "stat -c %F $d/pipe $d/null | xargs"
	run "$a" "mv --exchange $d/newer $d/soft 2>/dev/null || { mv $d/newer $d/t &&
		mv $d/soft $d/newer && mv $d/t $d/soft; }"
	sees "$b" link "two names exchanged" have "$d/newer"
}

attributes() {
	local a=$1 b=$2 d=$3
	run "$a" "echo text >$d/f; mkdir $d/dir; touch $d/dir/in"
	run "$b" "stat $d/f $d/dir/in; getfattr -d $d/f; getfacl $d/f; ls -l $d"
	run "$a" "chmod 640 $d/f"
	shows "$b" 640 "chmod" "stat -c %a $d/f"
	run "$a" "chown 12:34 $d/f"
	shows "$b" 12:34 "chown" "stat -c %u:%g $d/f"
	run "$a" "touch -d @1000000000 $d/f"
	shows "$b" 1000000000 "times" "stat -c %Y $d/f"
	run "$a" "setfattr -n user.colour -v red $d/f"
	shows "$b" red "an extended attribute" "getfattr --only-values -n user.colour $d/f"
	run "$a" "setfattr -n user.colour -v blue $d/f"
	shows "$b" blue "a changed attribute has its new value" "getfattr --only-values -n user.colour $d/f"
	run "$a" "setfattr -x user.colour $d/f"
	shows "$b" "" "a removed attribute is gone" "getfattr -d $d/f"
	run "$a" "setfacl -m u:99:r $d/f"
	shows "$b" "user:99:r--" "an ACL" "getfacl -np $d/f | grep 99"
	run "$a" "chmod 711 $d/dir"
	run "$b" "setpriv --reuid 77 --clear-groups cat $d/dir/in"
	run "$a" "chmod 700 $d/dir"
	shows "$b" denied "a directory closed to others" \
		"setpriv --reuid 77 --clear-groups cat $d/dir/in 2>/dev/null || echo denied"
	run "$a" "setfacl -m u:77:x $d/dir"
	shows "$b" "" "an ACL opens the directory to one user" \
		"setpriv --reuid 77 --clear-groups cat $d/dir/in"
	run "$a" "setfacl -b $d/dir"
	shows "$b" denied "a removed ACL closes the directory again" \
		"setpriv --reuid 77 --clear-groups cat $d/dir/in 2>/dev/null || echo denied"
	run "$b" "stat -c %Y $d/f"
	tell "$a" open 0 "$d/f"
	tell "$a" write 0 0 T
	shows "$b" new "a write in place moves the times" \
		"[ \$(stat -c %Y $d/f) -gt 1600000000 ] && echo new || stat -c %Y $d/f"
	tell "$a" immutable 0 1
	shows "$b" refused "an immutable file cannot be written" "(echo x >>$d/f) 2>/dev/null || echo refused"
	tell "$a" immutable 0 0
	shows "$b" "" "the file can be written after the flag is cleared" "echo x >>$d/f"
	tell "$b" open 1 "$d/f"
	tell "$a" immutable 0 1
	sees "$b" EPERM "an open descriptor cannot change the mode of an immutable file" chmod 1 640
	tell "$a" immutable 0 0
	shows "$b" "" "the file can be changed after the flag is cleared" "echo x >>$d/f"
	tell "$b" close 1
	run "$a" "mv $d/f $d/g"
	tell "$a" immutable 0 1
	shows "$b" refused "an immutable file cannot be written by a new name" \
		"(echo x >>$d/g) 2>/dev/null || echo refused"
	tell "$a" immutable 0 0
	tell "$a" put "$d/open" text
	shows "$b" text "open to others" "setpriv --reuid 77 --clear-groups cat $d/open"
	run "$a" "mv $d/open $d/closed && chmod 600 $d/closed"
	shows "$b" denied "closed to them, under a name that has not been looked at" \
		"setpriv --reuid 77 --clear-groups cat $d/closed 2>/dev/null || echo denied"
	tell "$a" close 0
}

contents() {
	local a=$1 b=$2 d=$3
	run "$a" "printf 0123456789 >$d/f"
	tell "$a" open 0 "$d/f"
	tell "$b" open 0 "$d/f"
	sees "$b" 0123456789 "contents" read 0 0 100
	tell "$a" write 0 3 XYZ
	sees "$b" 012XYZ6789 "a write" read 0 0 100
	tell "$b" write 0 10 more
	sees "$a" 012XYZ6789more "a write behind the end" read 0 0 100
	sees "$a" "14 1 644" "the size has changed" stat 0
	run "$a" "truncate -s 5 $d/f"
	sees "$b" 012XY "shorter" read 0 0 100
	run "$a" "truncate -s 8 $d/f"
	sees "$b" 012XY... "longer, by zeroes" read 0 0 100
	run "$a" "head -c 1M /dev/zero | tr '\\0' a >$d/f; sync"
	sees "$b" aaaa "a million bytes: the last" read 0 1048572 100
	run "$a" "fallocate -p -o 4096 -l 8192 $d/f"
	sees "$b" a.. "a hole punched" read 0 4095 3
	run "$a" "fallocate -c -o 4096 -l 8192 $d/f"
	sees "$b" aaa "a range collapsed" read 0 4095 3
	run "$a" "fallocate -i -o 4096 -l 4096 $d/f"
	sees "$b" a.. "a range inserted" read 0 4095 3
	tell "$a" close 0
	tell "$b" close 0
}

open_files() {
	local a=$1 b=$2 d=$3
	run "$a" "printf kept >$d/f; printf kept >$d/g"
	tell "$b" open 0 "$d/f"
	tell "$b" open 1 "$d/g"
	run "$a" "rm $d/f"
	sees "$b" ENOENT "removed while open" have "$d/f"
	sees "$b" kept "... its contents stay" read 0 0 10
	sees "$b" "4 0 644" "the open file has no links" stat 0
	tell "$b" write 0 4 more
	sees "$b" keptmore "... and can be written to" read 0 0 10
	run "$a" "for i in \$(seq 64); do echo other >$d/other\$i; done; sleep 1.5
		for i in \$(seq 64); do echo other >$d/another\$i; done"
	sees "$b" keptmore "... and nobody gets its pages" read 0 0 10
	run "$a" "echo new >$d/h && mv $d/h $d/g"
	sees "$b" kept "replaced while open" read 1 0 10
	tell "$b" close 0
	tell "$b" close 1
	shows "$b" new "the new one is what opens" "cat $d/g"
	tell "$b" open 0 "$d/g"
	run "$b" "mount --bind /etc/hostname $d/g"
	run "$a" "rm $d/g"
	tell "$b" close 0
	shows "$b" 0 "removed: what was mounted on it is not any more" \
		"grep -c $d/g /proc/mounts || true"
	run "$a" "rm $d/other* $d/another*"
}

# $1 makes names, and $2 removes them. No notification tells the VFS of $2 about the new names.
tmpfiles() {
	local a=$1 b=$2 d=$3
	run "$a" "mkdir $d/t && for i in \$(seq 20); do echo \$i >$d/t/\$i; done"
	run "$b" "rm -r $d/t"
	shows "$a" "" "a file that the other has removed is gone" "ls $d | grep -x t || true"
	run "$a" "mkdir $d/t && echo again >$d/t/1"
	shows "$b" again "the removed file can be made again" "cat $d/t/1"
}

appending() {
	local a=$1 b=$2 d=$3 n length=$4 wrong
	n=$(scaled 30 100 1000)
	[[ $length -lt 100000 ]] || n=$((n / 10))
	tell "$a" log 2 "$d/log$length"
	tell "$b" log 2 "$d/log$length"
	printf '%s\n' "records 2 A $n $length" >&"${hand[$a]}"
	printf '%s\n' "records 2 B $n $length" >&"${hand[$b]}"
	for system in "$a" "$b"; do
		IFS= read -r -t 300 said <&"${ear[$system]}" || fail "$system does not end appending"
		[[ $said == ok ]] || fail "$system: appending: $said"
	done
	sees "$a" "$((2 * n * length)) 1 644" "appended by both, $length bytes each: the size" stat 2
	run "$b" "awk 'length != $length - 1 || !/^(A+|B+)\$/' $d/log$length | wc -l"
	wrong=$said
	same "no record is inside another" 0 "$wrong"
	tell "$a" close 2
	tell "$b" close 2
	run "$a" "rm $d/log$length"
}

mappings() {
	local a=$1 b=$2 d=$3
	run "$a" "head -c 65536 /dev/zero | tr '\\0' a >$d/m"
	tell "$a" open 3 "$d/m"
	tell "$b" open 3 "$d/m"
	tell "$a" map 3 65536
	tell "$b" map 3 65536
	sees "$b" a "mapped" peek 3 5
	tell "$a" poke 3 5 b
	sees "$b" b "a store" peek 3 5
	tell "$a" write 3 6 c
	sees "$b" c "a write, seen in a mapping" peek 3 6
	tell "$b" poke 3 7 d
	sees "$a" abcda "a store, seen by reading" read 3 4 5
	sees "$b" a "a page" peek 3 8192
	sees "$b" a "the last page" peek 3 65535
	run "$a" "truncate -s 4096 $d/m"
	sees "$b" SIGBUS "behind the new end" peek 3 8192
	sees "$b" SIGBUS "... and the last page" peek 3 65535
	sees "$b" b "before it" peek 3 5
	run "$a" "truncate -s 65536 $d/m"
	sees "$b" . "longer again: zeroes" peek 3 8192
	tell "$a" write 3 8192 filled
	sees "$b" f "a hole filled that is mapped as zeroes" peek 3 8192
	tell "$b" poke 3 8193 x
	sees "$a" fxlled "... and stored to" read 3 8192 6
	run "$a" "fallocate -p -o 8192 -l 4096 $d/m"
	sees "$b" . "a hole punched under a mapping" peek 3 8192
	tell "$b" poke 3 8192 y
	sees "$a" y.. "... and filled by a store" read 3 8192 3
	run "$a" "rm $d/m; for i in \$(seq 40); do head -c 65536 /dev/zero | tr '\\0' Z >$d/z\$i; done"
	sees "$b" b "removed: the mapping keeps the file" peek 3 5
	run "$a" "rm $d/z*"
	tell "$a" unmap 3
	tell "$b" unmap 3
	tell "$a" close 3
	tell "$b" close 3
	# A system that stored through the mapping still remembers it when a directory has the inode
	# number.
	run "$a" "sleep 1.5 && mkdir $d/then && cd $d/then &&
		mkdir \$(seq 80) && touch \$(seq -f %g/in 80)"
	shows "$b" "" "removed: what was stored is nobody's to write back" "sync -f ."
	run "$a" "rm -r $d/then"
}

# One system has mapped and read a hole of several times 2 MiB. The other one fills it.
large_holes() {
	local a=$1 b=$2 d=$3
	# The same setting as in posix.sh.
	run "$b" 'echo madvise >/sys/kernel/mm/transparent_hugepage/enabled'
	run "$a" "truncate -s 8M $d/h"
	tell "$a" open 3 "$d/h"
	tell "$b" open 3 "$d/h"
	tell "$b" map 3 8388608
	sees "$b" . "a large hole" peek 3 3145728
	sees "$b" . "... and behind it" peek 3 5242880
	tell "$a" write 3 3145729 filled
	sees "$b" f "a page of it filled" peek 3 3145729
	sees "$b" . "... and nothing before" peek 3 3145728
	tell "$b" poke 3 5242880 x
	sees "$a" .x. "... another one by a store" read 3 5242879 3
	run "$a" "fallocate -p -o 0 -l 8M $d/h"
	sees "$b" . "punched: one hole again" peek 3 3145729
	run "$a" "head -c 8M /dev/zero | tr '\\0' g >$d/h"
	sees "$b" g "all of it filled" peek 3 3145729
	tell "$b" unmap 3
	tell "$a" close 3
	tell "$b" close 3
	run "$a" "rm $d/h"
}

# One system truncates a file of one letter and writes it again, while the other reads the whole
# file.
reading() {
	local a=$1 b=$2 d=$3 turns
	turns=$(scaled 8 20 200)
	run "$a" "head -c 8M /dev/zero | tr '\\0' a >$d/cut"
	on "$b" "cd /mnt/sg/$d && while [ -e cut ]; do
		dd if=cut bs=8M count=1 status=none | tr -d a; done 2>/dev/null | wc -c" \
		</dev/null >"$work/foreign" &
	run "$a" "for i in \$(seq $turns); do truncate -s 0 $d/cut
		head -c 8M /dev/zero | tr '\\0' a >>$d/cut; done; rm $d/cut"
	wait $! || fail "$b: reading what is cut"
	same "cut while it is read: no byte but those written" 0 "$(cat "$work/foreign")"
}

# Both create the same names without O_EXCL: each opens the existing file.
together() {
	local a=$1 b=$2 d=$3
	for system in "$a" "$b"; do
		on "$system" "cd /mnt/sg/$d && for i in \$(seq 150); do echo $system >>both\$i ||
			exit 1; done" </dev/null >"$work/both.$system" 2>&1 &
	done
	wait -n || fail "creating the same names: $(cat "$work"/both.*)"
	wait -n || fail "creating the same names: $(cat "$work"/both.*)"
	shows "$a" "150 300" "the same names made by both" \
		"ls $d/both* | wc -l | tr '\\n' ' '; cat $d/both* | wc -l"
	run "$b" "rm $d/both*"
}

subjects=(names attributes contents open_files tmpfiles together reading mappings large_holes)

# everything: runs all cases in both directions, and checks that then all space is free again. A
# quick run uses one direction, because both systems then have the same kernel.
everything() {
	local actor observer subject length
	while read -r actor observer <&3; do
		for subject in "${subjects[@]}"; do
			step "$subject: $actor does, $observer sees"
			run "$actor" "mkdir $subject.$actor"
			run "$observer" "ls $subject.$actor"
			"$subject" "$actor" "$observer" "$subject.$actor"
		done
		step "appending"
		run "$actor" "mkdir append.$actor"
		for length in 20 5000 3000000; do
			appending "$actor" "$observer" "append.$actor" $length
		done
	done 3< <(ring | head -n "$(scaled 1 9 9)")
	step "space comes back"
	run "${systems[0]}" 'rm -rf /mnt/sg/*'
	sees "${systems[1]}" ENOENT "all is gone" have "names.${systems[0]}"
	sleep 2
	run "${systems[1]}" 'df --output=used -k /mnt/sg | tail -n 1'
	[[ $said -lt 2048 ]] || fail "$said KiB are still in use"
	passed "$said KiB in use"
}

# Each system uses each map mode once, and its neighbour another one. In a node it runs only one
# turn, because all systems share one processor.
read -ra maps <<<"$(map_modes)"
turns=${#maps[@]}
! in_a_node || turns=$(scaled 1 1 "$turns")
for ((turn = 0; turn < turns; turn++)); do
	maps_from "$turn"
	everything
done
finish
