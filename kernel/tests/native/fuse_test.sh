#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatefs-fuse: the POSIX matrix over its mount. FUSE has no request for some calls: the kernel
# refuses them, and the test lists them (docs/fuse.md). Then the command line, and the ways in which
# a mount ends.
# shellcheck source=kernel/tests/lib/fuse.sh
source "$(dirname "$0")/../lib/fuse.sh"

# FUSE has no request for these calls, so the kernel refuses them.
no_request=(!statx_shows_flags !statx_tells_of_direct_access !vectors_that_must_not_wait
	!preallocated_is_data_for_fiemap !fiemap !collapse_range !insert_range
	!collapse_moves_what_is_mapped !map_sync)
# Shared mappings are refused by default: other systems would not see them.
shared_maps=(!shared_is_the_file !hole_read_then_filled_by_write
	!hole_filled_through_another_mapping !large_hole !large_hole_and_fork !fork_shares
	!sigbus_beyond_the_end !neighbours_of_a_page !truncation_takes_pages_away
	!bytes_behind_the_end_are_not_kept !punched_pages_become_zero !large_pages
	!modification_time_follows_stores !file_is_source_and_target !advice_and_moves
	!locking_does_nothing !grows_where_it_is !unlinked_while_mapped !other_process_looks_in
	!other_process_looks_beyond !nobody_gets_large_pages !freeze_stops_stores)
# With --shared-mmap a mapping shows pages of the kernel's page cache, which are ordinary memory.
cached_maps=(!bytes_behind_the_end_are_not_kept !locking_does_nothing !other_process_looks_in
	!nobody_gets_large_pages)

"$programs/posix/build" "$dir/posix"

# The kernel reports a close to the server with a delay. Until then a removed file counts as open.
later=(-handle_of_a_removed_file)

# matrix NAME ARGUMENT...: runs the POSIX matrix in the mount NAME.
matrix() {
	local passed
	./posix "$dir/$1" "${later[@]}" "${@:2}" >matrix.out 2>&1 ||
		fail "the POSIX matrix: $(tail -n 40 matrix.out)"
	passed=$(sed -n 's/^\([0-9]*\) passed.*/\1/p' matrix.out)
	checks=$((checks + passed))
	is "the matrix leaves no file" "" "$(ls -A "$1")"
}

# --- the matrix -----------------------------------------------------------------------------

make_volume v 64M
serve m v
matrix m "${no_request[@]}" "${shared_maps[@]}"
leave m
clean v
serve m v --shared-mmap
matrix m mmap "${no_request[@]}" "${cached_maps[@]}"
leave m
clean v
# With cache= the kernel trusts its cache for a while. That must not break calls of a single system.
serve m v -o cache=1000
matrix m names data xattrs "${no_request[@]}" "${shared_maps[@]}"
leave m
clean v

# --- the caller's output ---------------------------------------------------------------------

# A caller that reads the output of the command sees its end, although the server runs on.
mkdir -p m
"$fuse" "$memory/v" "$dir/m" 2>>m.log | timeout -s KILL 20 cat >out ||
	fail "the server keeps the output of its caller open"
is "the output" "" "$(cat out)"
leave m

# --- locks of one system --------------------------------------------------------------------

program locks
serve m v
expect 0 ./locks alone m/l
says 'checks'
rm m/l

# --- files with atomic writes: writes of units, and replacement of complete pages -------------

make_volume atomic 64M --param data-atomic
serve at atomic
place_of() { "$ctl" -j stat "$memory/atomic" /f | pick 'd["table"]["runs"][0]["phys"]'; }
head -c 1M /dev/urandom >bytes
dd if=bytes of=at/f bs=1M status=none
dd if=bytes of=at/f bs=1M oflag=append conv=notrunc status=none
place=$(place_of)
dd if=bytes of=at/f bs=1M conv=notrunc status=none
[[ $(place_of) != "$place" ]] || fail "an atomic file was written in place"
dd if=bytes of=at/f bs=4097 count=40 conv=notrunc status=none
cmp bytes <(head -c 1M at/f) || fail "the written bytes differ"
cmp bytes <(tail -c 1M at/f) || fail "the appended bytes differ"
leave at
clean atomic

# --- refusals: one line of error, and no change ---------------------------------------------

# no_mount PATTERN ARGUMENT...: the mount is refused with an error that matches PATTERN.
no_mount() {
	expect '*' "$fuse" "${@:2}"
	[[ $(wc -l <err) -eq 1 ]] || fail "the refusal is not exactly one line"
	says "^stargatefs-fuse: .*$1" err
	[[ ! -s out ]] || fail "the refused mount prints to standard output"
	! mountpoint -q n || fail "a refused mount exists"
}

mkdir n
no_mount 'takes DEVICE\|FILE and DIRECTORY'
no_mount 'takes DEVICE\|FILE and DIRECTORY' "$memory/v"
no_mount 'cannot be opened' "$memory/none" n
no_mount 'cannot be mounted on' "$memory/v" none
no_mount 'is no directory' "$memory/v" "$memory/v"
no_mount "'x': must be 0 to 60000" --cache x "$memory/v" n
no_mount "'1': must be 2 to 64" --workers 1 "$memory/v" n
no_mount "there is no option 'nonsense'" -o nonsense "$memory/v" n
no_mount "'panic': must be remount-ro or continue" -o errors=panic "$memory/v" n
head -c 32M /dev/zero >"$memory/zero"
no_mount 'no StargateFS|not a StargateFS' "$memory/zero" n
head -c 1000 /dev/zero >"$memory/short"
no_mount 'the smallest volume is 16 MiB' "$memory/short" n
: >"$memory/empty"
no_mount 'is empty' "$memory/empty" n
no_mount 'is a directory' "$memory" n
expect 0 "$fuse" --help
says 'DEVICE\|FILE DIRECTORY'
expect 0 "$fuse" --version
says '^stargatefs-fuse [0-9]'
is "the volume has one system" 1 "$("$ctl" -j systems "$memory/v" | pick 'len(d["systems"])')"

# --- read-only, and the ways to end ---------------------------------------------------------

echo kept >m/kept
leave m
serve m v -o ro
is "a read-only mount shows the file" kept "$(cat m/kept)"
expect 1 touch m/new
says 'Read-only' err
leave m
clean v

serve m v
exec 9>m/open
rm m/open
server=$(server_of m)
# ends the keeper: the mount ends, and its last user continues
kill -TERM "$(keeper_of m)"
soon "the mount is gone" 5 bash -c '! mountpoint -q m'
echo more >&9 || fail "an open file cannot be written after the end of the mount"
checks=$((checks + 1))
exec 9>&-
soon "the server exits when its last user closes the file" 10 \
	bash -c "! kill -0 $server"
clean v
is "the removed file does not exist any more" "" "$("$ctl" ls "$memory/v" | grep open || true)"

# --- servers that die one after the other: the keeper ends the mount --------------------------

serve m v
for ((i = 0; i < 11; i++)); do
	soon "server $i answers" 10 test -d m/.
	kill -KILL "$(server_of m)"
	sleep 0.2
done
ended m
says 'has ended 10 times within a minute: no other one starts, and the mount ends' m.log
expect '*' "$fsck" -p "$memory/v"
says ': clean'

echo "$checks checks"
