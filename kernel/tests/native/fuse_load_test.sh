#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatefs-fuse under load: random operations on a file, many processes of two systems in the same
# directories, a full volume, growth in use, a freeze, and a volume whose bytes another member
# stores at random.
# shellcheck source=kernel/tests/lib/fuse.sh
source "$(dirname "$0")/../lib/fuse.sh"

case ${SG_TEST_SCALE:-normal} in
quick) operations=3000 seconds=3 pokes=60 ;;
normal) operations=50000 seconds=30 pokes=1500 ;;
*) operations=1000000 seconds=600 pokes=50000 ;;
esac
seed=${SEED:-$RANDOM}
echo "SEED=$seed"

# --- one file, compared with a copy in memory -----------------------------------------------

program fsx
make_volume v 48M
serve a v
serve b v
expect 0 ./fsx -s "$seed" -n "$operations" -x mapread,mapwrite,beyond,collapse,insert a/fsx
is "both mounts show the same bytes" "$(cksum <a/fsx)" "$(cksum <b/fsx)"
rm b/fsx

# --- many processes in the same directories, while another system reads them ----------------

program stress
mkdir a/stress
(while :; do find b/stress -type f -exec cat {} + || true; done) >/dev/null 2>&1 &
looker=$!
expect 0 ./stress -s "$seed" -p 4 -t "$seconds" a/stress
end "$looker"
is "both mounts list the same files" "$(cd a && find . | sort | cksum)" \
	"$(cd b && find . | sort | cksum)"
rm -r b/stress

# --- the memory of a server is bounded ------------------------------------------------------

mkdir a/many
for ((i = 0; i < 20; i++)); do
	for ((k = 0; k < 100; k++)); do
		: >"a/many/$i-$k"
	done
done
head -c 24M /dev/urandom >a/large
cmp a/large b/large || fail "the other system reads wrong bytes"
kib=$(awk '/^(RssAnon|RssShmem)/ { sum += $2 } END { print sum }' "/proc/$(server_of a)/status")
# RssShmem includes the volume's own pages, which belong to the tmpfs.
[[ $kib -lt $(((48 + 112) * 1024)) ]] || fail "the server uses $kib KiB of memory"
checks=$((checks + 2))
rm -r a/many b/large

# --- full -----------------------------------------------------------------------------------

program fill
mkdir a/full
for way in large small append allocate; do
	mkdir "a/full/$way"
	expect 0 ./fill $way "a/full/$way"
	expect 1 dd if=/dev/zero of=b/full/more bs=1M count=8
	says 'No space' err
	rm -rf "b/full/$way" b/full/more
	soon "space is free again after removal of $way" 10 cp ./fill b/again
	same ./fill a/again
	rm a/again
done

# --- growth in use --------------------------------------------------------------------------

size_of() {
	df --output=size -k "$1" | tail -n 1
}
before=$(size_of a)
expect 0 "$ctl" grow --size 80M "$memory/v"
[[ $(size_of a) -gt $((before + 30000)) ]] || fail "the mount a has not grown: $(size_of a) KiB"
[[ $(size_of b) -gt $((before + 30000)) ]] || fail "the mount b has not grown: $(size_of b) KiB"
head -c 60M /dev/urandom >a/large
same a/large b/large
rm a/large

# --- a copy while both mounts are used ------------------------------------------------------

(for ((i = 0; ; i++)); do echo "$i" >>a/counted || exit 1; done) &
writer=$!
expect 0 "$ctl" snapshot "$memory/v" "$memory/copy"
end "$writer"
expect '*' "$fsck" -p "$memory/copy"
says ': clean'
"$ctl" cat "$memory/copy" /counted >counted
is "the copy has a prefix of the file" "$(head -n "$(wc -l <counted)" a/counted | cksum)" \
	"$(cksum <counted)"
rm "$memory/copy"
leave a
leave b
clean v

# --- hostile bytes --------------------------------------------------------------------------

# Another member stores into the metadata at random while the server works. The server answers each
# call with a result or an error, and continues.
make_volume h 16M
serve h h --errors continue
for ((i = 0; i < 30; i++)); do
	mkdir "h/d$i" && echo "$i" >"h/d$i/f" && ln -s "f" "h/d$i/l"
done
setfattr -n user.x -v y h/d1/f 2>/dev/null || true
server=$(server_of h)
RANDOM=$seed
for ((i = 0; i < pokes; i++)); do
	# In a small volume the first 2 MiB have all tables. The superblock and the slots stay
	# unchanged.
	at=$(((RANDOM * 32768 + RANDOM) % (2 << 20)))
	[[ $at -ge $((256 << 10)) ]] || continue
	head -c 8 /dev/urandom | dd of="$memory/h" bs=1 seek=$at conv=notrunc status=none
	timeout 20 find h -ls >/dev/null 2>&1 || [[ $? -ne 124 ]] ||
		fail "find does not exit: SEED=$seed"
	{ timeout 20 cat h/d$((i % 30))/f || [[ $? -ne 124 ]]; } >/dev/null 2>&1 ||
		fail "cat does not exit: SEED=$seed"
	{ timeout 20 sh -c "echo x >h/d$((i % 30))/n$i" || [[ $? -ne 124 ]]; } 2>/dev/null ||
		fail "a write does not return: SEED=$seed"
done
kill -0 "$server" || fail "the server has exited: SEED=$seed: $(tail -n 5 h.log)"
! grep -q 'signal' h.log || fail "the server died: SEED=$seed: $(grep signal h.log)"
checks=$((checks + pokes + 2))

echo "$checks checks"
