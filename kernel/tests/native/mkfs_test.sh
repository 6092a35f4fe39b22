#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# mkfs.stargatefs with wrong arguments and targets: it refuses each in one line, before it makes or
# changes anything.
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "$0")/../lib/tools.sh"

# --- arguments: the line names the option, the value, and what is allowed -------------------

newline=$'16M\n'
long=$(printf 'x%.0s' $(seq 5000))
for bad in '' 0 -1 abc 1Q 1.5G 16777217 17M 18446744073709551616 99999999999999999999 128T 15M \
	' 16M' 16M16 '16 M' ++16M "$newline" "$long" ünf 0x; do
	refuses 2 "--size '.*': must be 16M to 64T, a multiple of 2M" "$mkfs" --size "$bad" \
		--phys 16G v.img
	refuses 2 "--max-size '.*': must be the volume's size to 64T" "$mkfs" --max-size "$bad" \
		--size 16M --phys 16G v.img
done
refuses 2 "--size '1.5G': .* multiple of 2M, and no fraction: use a smaller unit" "$mkfs" \
	--size 1.5G --phys 16G v.img
refuses 2 "--max-size '.16M': .* to 64T, .*not relative: give the whole size" "$mkfs" --max-size +16M \
	--size 16M --phys 16G v.img
for bad in '' 0 -2M 4097 1M abc 4096T 18446744073709551615 0xfffffffffffff000; do
	refuses 2 "--phys '.*': must be 2M to 4095T, a multiple of 2M" "$mkfs" --phys "$bad" \
		--size 16M v.img
	refuses 2 "--base '.*': must be" "$mkfs" --base "$bad" --size 16M v.img
done
for bad in '' 0 17 -1 1.5 two 1Q 18446744073709551617; do
	refuses 2 "--areas '.*': must be 1 to 16" "$mkfs" --areas "$bad" --size 16M --phys 16G v.img
done
for bad in '' 1 : 1: :1 -1:0 0:-1 4294967295:0 0:4294967296 '1: 1' ' 1:1' root:root 1:1: 1:1x; do
	refuses 2 "--root-owner '.*': must be UID:GID" "$mkfs" --root-owner "$bad" --size 16M \
		--phys 16G v.img
done
for bad in '' 0 8 -1 10000 0x1ff rwx ' 755'; do
	refuses 2 "--root-mode '.*': must be permissions in octal" "$mkfs" --root-mode "$bad" \
		--size 16M --phys 16G v.img
done
for bad in '' 1234 12345678-9abc-def0-1234-56789abcdef 12345678-9abc-def0-1234-56789abcdef01 \
	123456789abc--def0-1234-56789abcdef0 g2345678-9abc-def0-1234-56789abcdef0 "$long"; do
	refuses 2 "--uuid '.*': must be 32 hexadecimal digits" "$mkfs" -U "$bad" --size 16M \
		--phys 16G v.img
done
for bad in "$long" $'two\nlines' $'\xff\xfe' $'\e[31m' $'\xc2\x9b1m' "${long:0:64}"; do
	refuses 2 "--label '.*': must be up to 63 bytes" "$mkfs" -L "$bad" --size 16M --phys 16G v.img
done
refuses 2 "--param 'nonsense': must be host-splice or data-atomic" "$mkfs" --param nonsense v.img
refuses 2 "there is no option '--bogus'" "$mkfs" --bogus v.img
refuses 2 "there is no option '-Z'" "$mkfs" -nZ v.img
refuses 2 "an argument is missing behind '--size'" "$mkfs" v.img --size
refuses 2 "an argument is missing behind '-L'" "$mkfs" v.img -L
refuses 2 "'--force' takes no argument" "$mkfs" --force=yes v.img
refuses 2 'which device or file' "$mkfs"
refuses 2 'one volume at a time' "$mkfs" --size 16M --phys 16G v.img w.img
refuses 2 'name of the device or file is empty' "$mkfs" --size 16M --phys 16G ''
refuses 2 '--sparse needs --size' "$mkfs" --sparse --phys 16G v.img

# Each of these arguments excludes another one.
refuses 1 'room to grow to 16777216 bytes \(allowed: the volume.s 33554432' "$mkfs" --size 32M \
	--max-size 16M --phys 16G v.img
refuses 1 'does not fit into 16777216 bytes' "$mkfs" --size 16M --max-size 1T \
	--phys 16G v.img
refuses 1 'invalid base 0x[0-9a-f]+ \(allowed' "$mkfs" --size 64T --phys 4080T --sparse v.img
refuses 1 'give the address where VMs map it' "$mkfs" --size 16M v.img
[[ ! -e v.img ]] || fail "a refused command has made the file"

# The smallest and largest allowed values.
expect 0 "$mkfs" -n --size 64T --phys 2M --sparse v.img
expect 0 "$mkfs" -n --size 16M --phys 4095T --areas 16 --max-size 16M --root-mode 7777 v.img
expect 0 "$mkfs" -n --size 0x1000000 --phys 020000000 --root-owner 4294967294:0 --json v.img
json 'd["size"] == 16 << 20 and d["phys"] == 4 << 20 and not d["made"]'
expect 0 "$mkfs" -n --size 16M --phys 16G -L "${long:0:63}" v.img
expect 0 "$mkfs" -n --size 16M --phys 16G -U 123456789abcdef0123456789abcdef0 v.img
says 12345678-9abc-def0-1234-56789abcdef0
[[ ! -e v.img ]] || fail "a dry run has made the file"
expect 0 "$mkfs" --size 16M --phys 16G -L $'größe "\\' --json v.img
json 'd["label"] == "größe \"\\"'
expect 0 "$fsck" -n v.img
rm v.img

# --- targets --------------------------------------------------------------------------------

at=(--size 16M --phys 16G)
mkdir place
refuses 1 'place: is a directory; name a device, or a file in it' "$mkfs" "${at[@]}" place
refuses 1 'none/v.img: cannot be made: none: No such file or directory' "$mkfs" "${at[@]}" none/v.img
echo text >text
refuses 1 'Not a directory' "$mkfs" "${at[@]}" text/v.img
refuses 1 'that names a directory' "$mkfs" "${at[@]}" place/v.img/
refuses 1 'File name too long' "$mkfs" "${at[@]}" "$long"
ln -s nowhere dangling
refuses 1 'symbolic link to nothing' "$mkfs" "${at[@]}" dangling
mkfifo pipe
refuses 1 'pipe: is a FIFO' "$mkfs" --phys 16G pipe
refuses 1 'pipe: is a FIFO' "$mkfs" "${at[@]}" pipe
refuses 1 'pipe: is a FIFO' "$mkfs" -n -f "${at[@]}" pipe
"${python[@]}" -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
refuses 1 'socket: is a socket, not a file or device' "$mkfs" "${at[@]}" socket
refuses 1 'place: is a directory' "$mkfs" --phys 16G place
refuses 1 'place: is a directory' "$mkfs" -n place
for how in '' '--size 16M' '-n --size 16M -f'; do
	# shellcheck disable=SC2086 # words
	for device in null zero tty; do
		refuses 1 "/dev/$device: is a character device, but not a device-dax node" \
			"$mkfs" $how --phys 16G "/dev/$device"
	done
done
refuses 1 'cannot be made' "$mkfs" "${at[@]}" /proc/v.img
refuses 1 'there is no such file or device; to make a file' "$mkfs" --phys 16G v.img
chmod 755 .
cp "$mkfs" "$dir/mkfs" # a directory from which every user can run mkfs
mkdir -m 555 closed
refuses 1 'cannot be made: closed: Permission denied' "${unprivileged[@]}" "$dir/mkfs" "${at[@]}" closed/v.img
truncate -s 16M readonly
chmod 444 readonly
refuses 1 'readonly: cannot be written: Permission denied' "${unprivileged[@]}" "$dir/mkfs" "${at[@]}" readonly
refuses 1 'does not fit there: 64 TiB are needed, and .* free' "$mkfs" --size 64T \
	--phys 16G v.img
[[ ! -e v.img && ! -e nowhere && -z $(find place closed -type f) ]] ||
	fail "a refused command has made a file"
[[ $(cat text) == text ]] || fail "a refused command has changed a file"

# A failed command restores the previous state. Here a limit prevents so large a file.
refuses 1 'cannot be made that large: File too large' bash -c "ulimit -f 8192
	exec '$mkfs' --size 16M --phys 16G v.img"
[[ ! -e v.img ]] || fail "the failed command has left the file"
truncate -s 4M small
refuses 1 'cannot be made that large' bash -c "ulimit -f 8192
	exec '$mkfs' --size 16M --phys 16G small"
[[ $(stat -c %s small) -eq $((4 << 20)) ]] ||
	fail "the failed command has changed the size of the file"
# Here the file can become large enough, but the address space is too small. (Sanitizers need more
# address space.)
# shellcheck disable=SC2016 # for the inner shell
few='ulimit -v 300000; exec "$0" "$@"'
if bash -c "$few" "$mkfs" --version >out 2>&1; then
	refuses 1 'cannot be made that large: Cannot allocate memory' bash -c "$few" "$mkfs" \
		--size 512M --phys 16G v.img
	[[ ! -e v.img ]] || fail "the failed command has left the file"
	refuses 1 'cannot be made that large: Cannot allocate memory' bash -c "$few" "$mkfs" \
		--size 512M --phys 16G small
	[[ $(stat -c %s small) -eq $((4 << 20)) ]] ||
		fail "the failed command has changed the size of the file"
fi
refuses 1 'has 4194304 bytes; the smallest volume is 16 MiB: --size 16M' "$mkfs" --phys 16G small
refuses 1 'has 4194304 bytes; the smallest' "$mkfs" -f --phys 16G small

# --- existing contents ----------------------------------------------------------------------

# A file of zeroes, sparse or not, counts as new. One other byte is data.
head -c 16M /dev/zero >zeroes
expect 0 "$mkfs" --phys 16G zeroes
expect 0 "$mkfs" --size 32M --phys 16G small
for at_byte in 0 5000000 16777215; do
	rm -f data
	truncate -s 16M data
	poke data "$at_byte" x
	cp data before
	refuses 1 "data: holds data of unknown kind, from byte $at_byte on; give -f" "$mkfs" \
		--phys 16G data
	refuses 1 'holds data of unknown kind' "$mkfs" --size 32M --phys 16G data
	refuses 1 'holds data of unknown kind' "$mkfs" -n --size 32M --phys 16G data
	same data before
done
refuses 1 'text: holds data of unknown kind, from byte 0 on' "$mkfs" "${at[@]}" text
expect 0 "$mkfs" -f --size 32M --phys 16G data
says 'data: StargateFS made'
truncate -s 20M ext
poke ext 0x438 '\x53\xef'
refuses 1 'ext: holds ext2, ext3 or ext4; give -f' "$mkfs" --size 32M --phys 16G ext
[[ $(stat -c %s ext) -eq $((20 << 20)) ]] || fail "the file has grown"
refuses 1 'ext: has 20971520 bytes, more than --size says \(16777216\)' "$mkfs" -f "${at[@]}" ext
expect 0 "$mkfs" -f --phys 16G ext
refuses 1 'ext: holds a StargateFS \(' "$mkfs" --phys 16G ext
refuses 1 'ext: holds a StargateFS \(' "$mkfs" --size 32M --phys 16G ext

# --- a volume in a sparse file has memory for its metadata, so that mkfs gets no SIGBUS ------

expect 0 "$mkfs" --size 1G --sparse --phys 16G sparse
[[ $(stat -c %b sparse) -lt 100000 ]] || fail "a sparse volume takes all of its memory"
expect 0 "$fsck" -n sparse

# --- the search for other volumes fills no hole, as loads from a shared mapping on tmpfs would ---

holes=$(mktemp /dev/shm/sg-mkfs.XXXXXX)
truncate -s 16G "$holes"
expect 0 "$mkfs" -f --phys 16G "$holes"
taken=$(stat -c %b "$holes")
rm "$holes"
((taken < 20000)) || fail "an empty volume of 16 GiB takes $((taken / 2)) KiB"

# --- output ---------------------------------------------------------------------------------

odd=$'odd\nname\xff.img'
expect 0 "$mkfs" "${at[@]}" "$odd"
says '^odd\\x0aname\\xff.img: StargateFS made'
expect 0 "$mkfs" -f --json "${at[@]}" "$odd"
json 'd["path"] == "odd\nname\ufffd.img" and bytes.fromhex(d["path_hex"]) == b"odd\nname\xff.img"'
refuses 1 'odd\\x0aname\\xff.img: holds a StargateFS' "$mkfs" "${at[@]}" "$odd"
expect 1 sh -c "'$mkfs' -f --json --phys 16G zeroes >/dev/full"
complains 'the output cannot be written: No space left on device'
expect 0 "$mkfs" -q -f --phys 16G zeroes
[[ ! -s out && ! -s err ]] || fail "mkfs -q prints a message"

# --- the owner of the folder replaces the file by a link to another file, at any moment ---
# shellcheck source=kernel/tests/lib/swaps.sh
source "$src/../tests/lib/swaps.sh"
if [[ $swaps ]]; then
	head -c 40M /dev/zero | tr '\0' v >victim
	cp victim was
	for skip in 0 1 2; do
		for made in yes no; do
			rm -f own.img gone
			[[ $made == no ]] || : >own.img
			swap_skip=$skip swapped open own.img 'mv own.img gone; ln -s victim own.img' '*' \
				"$mkfs" --size 32M --phys 16G own.img
			same victim was
			head -c 32M /dev/zero >own.img.2 && rm -f own.img gone && mv own.img.2 own.img
			swap_skip=$skip swapped open own.img 'mv own.img gone; ln -s victim own.img' '*' \
				"$mkfs" --phys 16G own.img
			same victim was
		done
	done
	# after a failure, mkfs does not remove a file that has taken the name
	rm -f own.img gone
	swap_skip=0 swapped open own.img 'mv own.img gone; echo other >own.img' 1 \
		bash -c "ulimit -f 1024; trap '' XFSZ; exec '$mkfs' --size 32M --phys 16G own.img"
	[[ $(cat own.img) == other ]] || fail "mkfs has removed a file of another process"
fi

echo "$checks checks"
