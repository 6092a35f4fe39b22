#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# put and get while an attacker owns the tree outside the volume. During the copy, the attacker
# replaces files and directories by links. The tools must neither read nor write through these
# links. The test also covers entries that exist at the target: FIFOs, set-ID bits, paths of any
# length.
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "$0")/../lib/tools.sh"
# shellcheck source=kernel/tests/lib/swaps.sh
source "$src/../tests/lib/swaps.sh"

clean() {
	expect 0 "$fsck" -n v.img
}

# --- a tree that changes during the copy ------------------------------------------------------

fresh_tree() {
	rm -rf tree secret gone
	mkdir -p tree/sub secret
	echo mine >tree/sub/key
	echo mine >tree/file
	echo secret >secret/key
	rm -f v.img
	expect 0 "$mkfs" --phys 16G --size 16M v.img
}

no_secret() {
	rm -rf all
	expect 0 "$ctl" get -r v.img / all
	! grep -rl secret all >err || fail "the target of a link was copied"
	[[ -z $(find all -type l) ]] || fail "put has copied a link"
	clean
}

if [[ $swaps ]]; then
	fresh_tree
	swapped stat sub 'mv tree/sub gone && ln -s ../secret tree/sub' 1 "$ctl" put -r v.img tree /
	[[ -e swapped ]] || fail "nothing was swapped"
	says 'tree/sub: (Not a directory|was replaced meanwhile)' err
	no_secret
	fresh_tree # replaced by another directory, not by a link
	swapped stat sub 'mv tree/sub gone && mv secret tree/sub' 1 "$ctl" put -r v.img tree /
	[[ -e swapped ]] || fail "nothing was swapped"
	says 'tree/sub: was replaced meanwhile' err
	no_secret
	fresh_tree
	swapped stat file 'mv tree/file gone && ln -s ../secret/key tree/file' 1 "$ctl" put -r v.img tree /
	[[ -e swapped ]] || fail "nothing was swapped"
	says 'tree/file: (Too many levels of symbolic links|was replaced)' err
	no_secret
	fresh_tree
	swapped stat file 'mv tree/file gone && ln secret/key tree/file' 1 "$ctl" put -r v.img tree /
	[[ -e swapped ]] || fail "nothing was swapped"
	says 'tree/file: was replaced' err
	no_secret
	fresh_tree # put does not wait for a FIFO
	swapped stat file 'mv tree/file gone && mkfifo tree/file' 1 timeout 20 "$ctl" put -r v.img tree /
	[[ -e swapped ]] || fail "nothing was swapped"
	no_secret

	# Copies out of the volume, into a directory that exists.
	fresh_tree
	expect 0 "$ctl" put -r v.img tree /
	for call in stat mkdir open; do
		rm -rf back secret gone && mkdir -p back/sub secret
		echo secret >secret/key
		swapped "$call" sub 'mv back/sub gone && ln -s ../secret back/sub' '*' \
			"$ctl" get -r v.img /tree/. back
		[[ $(cat secret/key) == secret ]] || fail "$call: get wrote through a link"
		rm -rf back secret gone && mkdir -p back secret
		chmod 751 secret
		touch -d '2001-01-01 UTC' secret
		swapped "$call" sub 'mv back/sub gone && ln -s ../secret back/sub' '*' \
			"$ctl" get -r v.img /tree/. back
		[[ ! -e secret/key ]] || fail "$call: get created a file through a link"
		[[ $(stat -c '%a %Y' secret) == '751 978307200' ]] ||
			fail "$call: get changed mode or times of a link's target"
	done
	# get makes no hard link to a file that has replaced the copied one.
	fresh_tree
	rm tree/file tree/sub/key
	echo mine >tree/a
	ln tree/a tree/sub/b
	expect 0 "$ctl" put -r v.img tree /
	rm -rf back && mkdir back
	swapped open a 'mv back/a gone && ln secret/key back/a' 1 "$ctl" get -r v.img /tree/. back
	[[ -e swapped ]] || fail "nothing was swapped"
	says 'back/sub/b: was replaced' err
	[[ ! -e back/sub/b && $(cat secret/key) == secret ]] ||
		fail "get has made a hard link to a file that it did not copy"
fi

# --- files that exist at the target -----------------------------------------------------------

rm -rf tree v.img && mkdir tree
head -c 300000 /dev/urandom >tree/large
expect 0 "$mkfs" --phys 16G --size 16M v.img
expect 0 "$ctl" put -r v.img tree /

# A copy that fails leaves a partial file without set-ID bits, and readable by its owner only.
install -m 6755 /dev/null out.bin
expect 1 bash -c "ulimit -f 8; exec '$ctl' get v.img /tree/large out.bin"
says 'out.bin: File too large' err
[[ $(stat -c %s out.bin) -gt 0 && $(stat -c %a out.bin) == 600 ]] ||
	fail "the partial file has mode $(stat -c %a out.bin)"
expect 0 "$ctl" get v.img /tree/large out.bin
same out.bin tree/large
[[ $(stat -c %a out.bin) == "$(stat -c %a tree/large)" ]] ||
	fail "the file's mode differs from its mode in the volume"

# get does not write into a FIFO or a device, and does not wait for it.
mkfifo fifo
refuses 1 'fifo: exists, and is not a file' timeout 20 "$ctl" get v.img /tree/large fifo
refuses 1 '/dev/null: exists, and is not a file' timeout 20 "$ctl" get v.img /tree/large /dev/null
mkdir -p back2/tree && mkfifo back2/tree/large
refuses 1 'back2/tree/large: exists, and is not a file' timeout 20 "$ctl" get -r v.img /tree back2

# put follows a link that the command line names, but no link inside the directory.
echo other >other
ln -s other named
expect 0 "$ctl" get v.img /tree/large named
same other tree/large
mkdir into && ln -s ../other into/large
echo other >other
refuses 1 'into/large: Too many levels of symbolic links' "$ctl" get v.img /tree/large into
[[ $(cat other) == other ]] || fail "get wrote through a link"

# --- paths longer than 4,096 bytes ------------------------------------------------------------

name=$(printf 'n%.0s' $(seq 200))
path=
for _ in $(seq 40); do path+=/$name; done
expect 0 "$ctl" mkdir -p v.img "$path"
expect 0 "$ctl" put v.img other "$path/end"
rm -rf deep
expect 0 "$ctl" get -r v.img "/$name" deep
[[ $(find deep -type d | wc -l) -eq 40 && $(find deep -name end -execdir cat {} +) == other ]] ||
	fail "a deep file was not copied"
expect 0 "$ctl" put -r v.img deep /again
expect 0 "$ctl" ls v.img "/again${path#/"$name"}"
says '^end$'
clean

echo "$checks checks"
