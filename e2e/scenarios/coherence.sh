#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Systems share one volume. When a call has returned in one system, the other systems see its
# effect, even if they have cached the old state. The scenario tests names, absent names,
# attributes, contents, open files and mappings. Each system makes all changes while its neighbour
# reads. With two systems, both directions are tested.
#
# rig: --guests 2 --size 256M --mem 384M --pkgs "acl attr"
# test: walk
# test-rig: --guests 2 --size 128M --mem 384M --pkgs "acl attr sqlite3"
# atomic: inside
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

# --- An observer is a process in each system, which has read the state before a change. ---

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

# tell SYSTEM WORD...: gives an order to the system's observer, and checks that it answers `ok`.
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

# shows SYSTEM EXPECTED WHAT COMMAND: checks that the shell command in SYSTEM prints EXPECTED.
shows() {
	run "$1" "$4"
	[[ $said == "$2" ]] || fail "$3: $1: $4: '$said' instead of '$2'"
	passed "$3"
}

# --- Changes that the neighbour must see. ---

names() {
	local a=$1 b=$2 d=$3
	sees "$b" ENOENT "the observer finds no file before it is made" have "$d/new"
	tell "$a" put "$d/new" hello
	sees "$b" file "the observer finds the new file" have "$d/new"
	shows "$b" hello "the observer reads the contents of the new file" "cat $d/new"
	run "$b" "mkdir $d/sub && ls $d/sub"
	sees "$a" directory "the actor sees the directory that the observer made" have "$d/sub"
	sees "$b" ENOENT "the observer finds no file in the new directory" have "$d/sub/deep"
	tell "$a" put "$d/sub/deep" x
	sees "$b" file "the observer finds the file that was made in the directory" have "$d/sub/deep"
	run "$a" "mv $d/new $d/newer"
	sees "$b" ENOENT "a renamed file has lost its old name" have "$d/new"
	sees "$b" file "a renamed file has its new name" have "$d/newer"
	run "$a" "ln $d/newer $d/second"
	shows "$b" 2 "a new hard link increases the link count" "stat -c %h $d/newer"
	run "$a" "ln -s newer $d/soft"
	shows "$b" newer "a new symbolic link has its target" "readlink $d/soft"
	run "$a" "ln -sfn second $d/soft"
	shows "$b" second "a replaced symbolic link has its new target" "readlink $d/soft"
	run "$a" "mv $d/sub $d/moved"
	sees "$b" ENOENT "the old path into a renamed directory is gone" have "$d/sub/deep"
	sees "$b" file "the new path into a renamed directory leads to the file" have "$d/moved/deep"
	run "$a" "mkdir $d/other && mv $d/moved $d/other/sub"
	sees "$b" file "a directory is found in the directory to which it was moved" have "$d/other/sub/deep"
	shows "$b" "$d/other" "the moved directory's .. is its new parent" \
		"cd $d/other/sub/.. && pwd -P | sed s,/mnt/sg/,,"
	tell "$a" put "$d/replacing" two
	run "$a" "mv $d/replacing $d/newer"
	shows "$b" two "a file that was replaced by a rename has the new contents" "cat $d/newer"
	shows "$b" 1 "the replaced file keeps its other hard link" "stat -c %h $d/second"
	run "$a" "rm $d/second"
	sees "$b" ENOENT "an unlinked name is gone" have "$d/second"
	run "$a" "rm $d/other/sub/deep && rmdir $d/other/sub"
	sees "$b" ENOENT "a removed directory is gone" have "$d/other/sub"
	tell "$b" dir 1 "$d/other"
	sees "$b" "" "an open empty directory lists no name" list 1
	tell "$a" put "$d/other/one" x
	sees "$b" "one " "the open directory lists a new name" list 1
	run "$a" "mkfifo $d/pipe && mknod $d/null c 1 3"
	shows "$b" "fifo character special file" "a new pipe and a new device have their types" "stat -c %F $d/pipe $d/null | xargs"
	run "$a" "mv --exchange $d/newer $d/soft 2>/dev/null || { mv $d/newer $d/t &&
		mv $d/soft $d/newer && mv $d/t $d/soft; }"
	sees "$b" link "after an exchange of two names, the first names the symbolic link" have "$d/newer"
}

attributes() {
	local a=$1 b=$2 d=$3
	run "$a" "echo text >$d/f; mkdir $d/dir; touch $d/dir/in"
	run "$b" "stat $d/f $d/dir/in; getfattr -d $d/f; getfacl $d/f; ls -l $d"
	run "$a" "chmod 640 $d/f"
	shows "$b" 640 "the observer sees the mode that chmod set" "stat -c %a $d/f"
	run "$a" "chown 12:34 $d/f"
	shows "$b" 12:34 "the observer sees the owner that chown set" "stat -c %u:%g $d/f"
	run "$a" "touch -d @1000000000 $d/f"
	shows "$b" 1000000000 "the observer sees the time that touch set" "stat -c %Y $d/f"
	run "$a" "setfattr -n user.colour -v red $d/f"
	shows "$b" red "the observer reads a new extended attribute" "getfattr --only-values -n user.colour $d/f"
	run "$a" "setfattr -n user.colour -v blue $d/f"
	shows "$b" blue "the changed extended attribute has its new value" "getfattr --only-values -n user.colour $d/f"
	run "$a" "setfattr -x user.colour $d/f"
	shows "$b" "" "the removed extended attribute is gone" "getfattr -d $d/f"
	run "$a" "setfacl -m u:99:r $d/f"
	shows "$b" "user:99:r--" "the observer sees a new entry of an access list" "getfacl -np $d/f | grep 99"
	run "$a" "chmod 711 $d/dir"
	run "$b" "setpriv --reuid 77 --clear-groups cat $d/dir/in"
	run "$a" "chmod 700 $d/dir"
	shows "$b" denied "after chmod 700, another user cannot search the directory" \
		"setpriv --reuid 77 --clear-groups cat $d/dir/in 2>/dev/null || echo denied"
	run "$a" "setfacl -m u:77:x $d/dir"
	shows "$b" "" "an access list lets one user search the directory" \
		"setpriv --reuid 77 --clear-groups cat $d/dir/in"
	run "$a" "setfacl -b $d/dir"
	shows "$b" denied "after the removal of the access list, that user cannot search the directory" \
		"setpriv --reuid 77 --clear-groups cat $d/dir/in 2>/dev/null || echo denied"
	run "$b" "stat -c %Y $d/f"
	tell "$a" open 0 "$d/f"
	tell "$a" write 0 0 T
	shows "$b" new "a write in place changes the modification time" \
		"[ \$(stat -c %Y $d/f) -gt 1600000000 ] && echo new || stat -c %Y $d/f"
	tell "$a" immutable 0 1
	shows "$b" refused "an immutable file cannot be written" "(echo x >>$d/f) 2>/dev/null || echo refused"
	tell "$a" immutable 0 0
	shows "$b" "" "the file can be written after the flag is cleared" "echo x >>$d/f"
	tell "$b" open 1 "$d/f"
	tell "$a" immutable 0 1
	sees "$b" EPERM "fchmod of an immutable file is refused" chmod 1 640
	tell "$a" immutable 0 0
	shows "$b" "" "the file can be changed after the flag is cleared" "echo x >>$d/f"
	tell "$b" close 1
	run "$a" "mv $d/f $d/g"
	tell "$a" immutable 0 1
	shows "$b" refused "an immutable file cannot be written under its new name" \
		"(echo x >>$d/g) 2>/dev/null || echo refused"
	tell "$a" immutable 0 0
	tell "$a" put "$d/open" text
	shows "$b" text "another user can read a file that is open to others" "setpriv --reuid 77 --clear-groups cat $d/open"
	run "$a" "mv $d/open $d/closed && chmod 600 $d/closed"
	shows "$b" denied "after a rename and chmod 600, that user cannot read it under a name that is not cached" \
		"setpriv --reuid 77 --clear-groups cat $d/closed 2>/dev/null || echo denied"
	tell "$a" close 0
}

contents() {
	local a=$1 b=$2 d=$3
	run "$a" "printf 0123456789 >$d/f"
	tell "$a" open 0 "$d/f"
	tell "$b" open 0 "$d/f"
	sees "$b" 0123456789 "the observer reads the contents" read 0 0 100
	tell "$a" write 0 3 XYZ
	sees "$b" 012XYZ6789 "the observer reads bytes that the actor wrote" read 0 0 100
	tell "$b" write 0 10 more
	sees "$a" 012XYZ6789more "the actor reads bytes that the observer wrote behind the end" read 0 0 100
	sees "$a" "14 1 644" "the actor sees the new size" stat 0
	run "$a" "truncate -s 5 $d/f"
	sees "$b" 012XY "the observer sees the truncated contents" read 0 0 100
	run "$a" "truncate -s 8 $d/f"
	sees "$b" 012XY... "an extended file has zeroes at its end" read 0 0 100
	run "$a" "head -c 1M /dev/zero | tr '\\0' a >$d/f; sync"
	sees "$b" aaaa "the observer reads the last bytes of a file of 1 MiB" read 0 1048572 100
	run "$a" "fallocate -p -o 4096 -l 8192 $d/f"
	sees "$b" a.. "the observer sees a punched hole" read 0 4095 3
	run "$a" "fallocate -c -o 4096 -l 8192 $d/f"
	sees "$b" aaa "the observer sees that a range was collapsed" read 0 4095 3
	run "$a" "fallocate -i -o 4096 -l 4096 $d/f"
	sees "$b" a.. "the observer sees an inserted range" read 0 4095 3
	tell "$a" close 0
	tell "$b" close 0
}

open_files() {
	local a=$1 b=$2 d=$3
	run "$a" "printf kept >$d/f; printf kept >$d/g"
	tell "$b" open 0 "$d/f"
	tell "$b" open 1 "$d/g"
	run "$a" "rm $d/f"
	sees "$b" ENOENT "the name of a removed open file is gone" have "$d/f"
	sees "$b" kept "the removed open file keeps its contents" read 0 0 10
	sees "$b" "4 0 644" "the removed open file has no links" stat 0
	tell "$b" write 0 4 more
	sees "$b" keptmore "the removed open file can be written" read 0 0 10
	run "$a" "for i in \$(seq 64); do echo other >$d/other\$i; done; sleep 1.5
		for i in \$(seq 64); do echo other >$d/another\$i; done"
	sees "$b" keptmore "other files do not get the pages of the removed open file" read 0 0 10
	run "$a" "echo new >$d/h && mv $d/h $d/g"
	sees "$b" kept "a replaced open file keeps its contents" read 1 0 10
	tell "$b" close 0
	tell "$b" close 1
	shows "$b" new "a new open gets the replacing file" "cat $d/g"
	tell "$b" open 0 "$d/g"
	run "$b" "mount --bind /etc/hostname $d/g"
	run "$a" "rm $d/g"
	tell "$b" close 0
	shows "$b" 0 "a mount on a removed file has ended" \
		"grep -c $d/g /proc/mounts || true"
	run "$a" "rm $d/other* $d/another*"
}

# $1 makes names, and $2 removes them. The kernel of $2 gets no notification about the new names.
tmpfiles() {
	local a=$1 b=$2 d=$3
	run "$a" "mkdir $d/t && for i in \$(seq 20); do echo \$i >$d/t/\$i; done"
	run "$b" "rm -r $d/t"
	shows "$a" "" "a directory that the observer has removed is gone" "ls $d | grep -x t || true"
	run "$a" "mkdir $d/t && echo again >$d/t/1"
	shows "$b" again "the removed file can be made once more" "cat $d/t/1"
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
	sees "$a" "$((2 * n * length)) 1 644" "the file has all records of $length bytes that both systems appended" stat 2
	run "$b" "awk 'length != $length - 1 || !/^(A+|B+)\$/' $d/log$length | wc -l"
	wrong=$said
	same "no two appended records overlap" 0 "$wrong"
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
	sees "$b" a "the observer reads a byte through a mapping" peek 3 5
	tell "$a" poke 3 5 b
	sees "$b" b "a mapping shows a store by the other mapping" peek 3 5
	tell "$a" write 3 6 c
	sees "$b" c "a mapping shows bytes of a write" peek 3 6
	tell "$b" poke 3 7 d
	sees "$a" abcda "a read returns bytes that were stored through a mapping" read 3 4 5
	sees "$b" a "the observer touches a page before the truncation" peek 3 8192
	sees "$b" a "the observer touches the last page before the truncation" peek 3 65535
	run "$a" "truncate -s 4096 $d/m"
	sees "$b" SIGBUS "an access behind the new end of a truncated file gets SIGBUS" peek 3 8192
	sees "$b" SIGBUS "an access to the old last page gets SIGBUS" peek 3 65535
	sees "$b" b "a byte before the new end is unchanged" peek 3 5
	run "$a" "truncate -s 65536 $d/m"
	sees "$b" . "after the file is extended, the mapping shows zeroes" peek 3 8192
	tell "$a" write 3 8192 filled
	sees "$b" f "a mapping that showed a hole shows the bytes that filled the hole" peek 3 8192
	tell "$b" poke 3 8193 x
	sees "$a" fxlled "a read returns a byte that was stored into the filled hole" read 3 8192 6
	run "$a" "fallocate -p -o 8192 -l 4096 $d/m"
	sees "$b" . "a mapping shows a hole that was punched below it" peek 3 8192
	tell "$b" poke 3 8192 y
	sees "$a" y.. "a read returns a byte that was stored through the mapping into the hole" read 3 8192 3
	run "$a" "rm $d/m; for i in \$(seq 40); do head -c 65536 /dev/zero | tr '\\0' Z >$d/z\$i; done"
	sees "$b" b "the mapping of a removed file keeps the file's bytes" peek 3 5
	run "$a" "rm $d/z*"
	tell "$a" unmap 3
	tell "$b" unmap 3
	tell "$a" close 3
	tell "$b" close 3
	# System $b stored through a mapping of the removed file, and still knows the file's inode
	# number. Now a directory gets this number.
	run "$a" "sleep 1.5 && mkdir $d/then && cd $d/then &&
		mkdir \$(seq 80) && touch \$(seq -f %g/in 80)"
	shows "$b" "" "sync succeeds after a directory got the inode number of a stored file" "sync -f ."
	run "$a" "rm -r $d/then"
}

# $b has mapped and read a hole of 8 MiB. Then $a fills it.
large_holes() {
	local a=$1 b=$2 d=$3
	# Since 6.15 large entries follow this setting (posix.sh).
	run "$b" 'echo madvise >/sys/kernel/mm/transparent_hugepage/enabled'
	run "$a" "truncate -s 8M $d/h"
	tell "$a" open 3 "$d/h"
	tell "$b" open 3 "$d/h"
	tell "$b" map 3 8388608
	sees "$b" . "the observer reads a large hole through a mapping" peek 3 3145728
	sees "$b" . "the observer reads the large hole at a second place" peek 3 5242880
	tell "$a" write 3 3145729 filled
	sees "$b" f "the mapping shows a page that filled a part of the hole" peek 3 3145729
	sees "$b" . "the byte before the write is still zero" peek 3 3145728
	tell "$b" poke 3 5242880 x
	sees "$a" .x. "a read returns a byte that was stored into the hole" read 3 5242879 3
	run "$a" "fallocate -p -o 0 -l 8M $d/h"
	sees "$b" . "after a punch of the whole range, the mapping shows zeroes" peek 3 3145729
	run "$a" "head -c 8M /dev/zero | tr '\\0' g >$d/h"
	sees "$b" g "the mapping shows the bytes that filled the whole hole" peek 3 3145729
	tell "$b" unmap 3
	tell "$a" close 3
	tell "$b" close 3
	run "$a" "rm $d/h"
}

# $a truncates a file and writes it again with the same letter. At the same time, $b reads the whole
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
	wait $! || fail "$b: the reader of the truncated file failed"
	same "a reader of a file that is truncated gets only bytes that were written" 0 "$(cat "$work/foreign")"
}

# Both systems create the same names without O_EXCL. The second one opens the file of the first.
together() {
	local a=$1 b=$2 d=$3
	for system in "$a" "$b"; do
		on "$system" "cd /mnt/sg/$d && for i in \$(seq 150); do echo $system >>both\$i ||
			exit 1; done" </dev/null >"$work/both.$system" 2>&1 &
	done
	wait -n || fail "creating the same names: $(cat "$work"/both.*)"
	wait -n || fail "creating the same names: $(cat "$work"/both.*)"
	shows "$a" "150 300" "names that both systems create exist once, with the lines of both" \
		"ls $d/both* | wc -l | tr '\\n' ' '; cat $d/both* | wc -l"
	run "$b" "rm $d/both*"
}

subjects=(names attributes contents open_files tmpfiles together reading mappings large_holes)

# everything: runs all cases in both directions. Then it checks that all space is free. A quick run
# uses one direction, because both systems then have the same kernel.
everything() {
	local actor observer subject length
	while read -r actor observer <&3; do
		for subject in "${subjects[@]}"; do
			step "$subject: $actor makes changes, and $observer looks"
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
	step "the space of removed files"
	run "${systems[0]}" 'rm -rf /mnt/sg/*'
	sees "${systems[1]}" ENOENT "the removed files are gone in the other system" have "names.${systems[0]}"
	sleep 2
	run "${systems[1]}" 'df --output=used -k /mnt/sg | tail -n 1'
	[[ $said -lt 2048 ]] || fail "$said KiB are still in use"
	passed "only $said KiB are in use after all files were removed"
}

# Each system uses each map mode once, while its neighbour uses another one. In a node only one turn
# runs, because all systems share one processor.
read -ra maps <<<"$(map_modes)"
turns=${#maps[@]}
! in_a_node || turns=$(scaled 1 1 "$turns")
for ((turn = 0; turn < turns; turn++)); do
	maps_from "$turn"
	everything
done
finish
