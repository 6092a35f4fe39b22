#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# fsck.stargatefs on real damage: repairs that are killed repeatedly, and many volumes with random
# changed words. A repair ends, leaves a volume that passes a check, and reports its losses. SEED=N
# selects another run; SG_TEST_SCALE sets the amount.
set -euo pipefail

tools=${SG_TOOLS:-$(dirname "$0")/../../../build/tools}
tools=$(cd "$tools" && pwd)
mkfs=$tools/mkfs.stargatefs fsck=$tools/fsck.stargatefs ctl=$tools/stargatectl
dir=$(mktemp -d "${TMPDIR:-/tmp}/sg-fsck.XXXXXX")
trap 'rm -rf "$dir"' EXIT
cd "$dir"
seed=${SEED:-1}
RANDOM=$seed
checks=0
case ${SG_TEST_SCALE:-normal} in
quick) rounds=5 images=25 ;;
long) rounds=300 images=2000 ;;
*) rounds=15 images=120 ;;
esac

fail() {
	echo "failed: $* (SEED=$seed)" >&2
	[[ ! -s out ]] || tail -n 30 out | sed 's/^/  /' >&2
	exit 1
}

# expect STATUS COMMAND...: checks that COMMAND exits with STATUS; its output goes to out.
expect() {
	local want=$1 got=0
	shift
	timeout 120 "$@" >out 2>&1 </dev/null || got=$?
	[[ $got -eq $want ]] || fail "status $got, not $want: $*"
	checks=$((checks + 1))
}

# --- a volume, and a repair that is not interrupted -----------------------------------------

mkdir -p tree/sub/deeper
for i in $(seq 400); do echo "$i" >"tree/file $i"; done
for i in $(seq 100); do head -c $((i * 300)) /dev/zero | tr '\0' "$((i % 10))" >"tree/sub/deeper/$i"; done
expect 0 "$mkfs" --size 16M --phys 16G good.img
expect 0 "$ctl" put -r good.img tree /tree

# Damages inode records, that of /tree among them; the root word of the inode file; a page of names.
cp good.img bad.img
"$ctl" --json dump good.img inode / >record
"$ctl" --json dump good.img dir /tree/sub/deeper >index
first=$(($(grep -o '"record": *"0x[0-9a-f]*' record | grep -o '0x.*') & ~4095))
bucket=$(($(grep -o '"bucket": *"0x[0-9a-f]*' index | grep -o '0x.*' | tail -n 1)))
dd if=/dev/zero of=bad.img bs=1 seek="$first" count=4096 conv=notrunc status=none
dd if=/dev/zero of=bad.img bs=1 seek=$((0x1430)) count=8 conv=notrunc status=none
dd if=/dev/zero of=bad.img bs=1 seek="$bucket" count=1200 conv=notrunc status=none

# contents IMAGE FOLDER: copies all readable files.
contents() {
	rm -rf "$2"
	mkdir "$2"
	expect 0 "$ctl" get -r "$1" / "$2/all"
}

cp bad.img v.img
expect 1 "$fsck" -y v.img
grep -qE '^14 inodes are lost: .* 1 directories' out || fail "fsck does not report the lost inodes"
expect 0 "$fsck" -n v.img
contents v.img want
[[ $(find want -type f | wc -l) -gt 480 ]] || fail "the repair keeps too few files"

# --- no free page to rebuild a directory ------------------------------------------------------

cp good.img v.img
# Fills the volume with smaller and smaller files.
number=0
for size in 2000000 200000 20000 4096; do
	head -c "$size" /dev/zero >piece
	while "$ctl" put v.img piece "/piece$number" >/dev/null 2>&1; do
		number=$((number + 1))
	done
	"$ctl" rm v.img "/piece$number" >/dev/null 2>&1 || true
done
"$ctl" --json dump v.img inode /tree/sub/deeper >record
index=$(($(grep -o '"record": *"0x[0-9a-f]*' record | grep -o '0x.*') + 48))
dd if=/dev/zero of=v.img bs=1 seek="$index" count=8 conv=notrunc status=none
expect 5 "$fsck" -y v.img
grep -q 'because no pages are free; remove files' out ||
	fail "fsck does not report that it needs free pages"
expect 4 "$fsck" -n v.img
grep -q 'full; remove files if you can' out || fail "fsck does not advise to remove files"
expect 0 "$ctl" rm v.img /piece0
expect 1 "$fsck" -y v.img
! grep -q 'are lost' out || fail "fsck reports lost inodes"
expect 0 "$fsck" -n v.img
rm -rf got
expect 0 "$ctl" get -r v.img /tree got
diff -r tree got >out 2>&1 || fail "the repair has not restored all files"

# --- more findings than are shown, and an output without a reader -------------------------------

mkdir names
for i in $(seq 1100); do : >"names/$i"; done
expect 0 "$mkfs" --size 16M --phys 16G many.img
expect 0 "$ctl" put -r many.img names /
"$ctl" --json ls many.img /names >listing
python3 -c 'import json
print(*sorted({e["inode"] & ~15 for e in json.load(open("listing"))["directories"][0]["entries"]}))' >first
for ino in $(<first); do # zeroes the pages of their records, except the page of the root's record
	[[ $ino -ne 0 ]] || continue
	"$ctl" --json dump many.img inode "<$ino>" >record
	at=$(($(grep -o '"record": *"0x[0-9a-f]*' record | grep -o '0x.*')))
	dd if=/dev/zero of=many.img bs=4096 seek=$((at / 4096)) count=1 conv=notrunc status=none
done
expect 4 "$fsck" -n many.img
grep -qE '^\.\.\. and [0-9]+ more findings$' out || fail "fsck does not report more findings"
expect 4 "$fsck" --json -n many.img
grep -q '"truncated": true' out || fail "the JSON output does not report that more findings exist"
[[ $(grep -c '"what"' out) -eq 1000 ]] || fail "the JSON output does not have 1,000 findings"
status=0
{
	sleep 0.5 # until the reader has closed the pipe
	"$fsck" -y many.img 2>err || status=$?
	echo "$status" >ended
} > >(exec true)
[[ $(<ended) -eq 9 ]] || fail "a repair without a reader of its output ends with status $(<ended)"
expect 0 "$fsck" -n many.img

# --- killed -----------------------------------------------------------------------------------

duration() {
	local start=$EPOCHREALTIME
	cp bad.img v.img
	"$fsck" -y --force-live v.img >/dev/null || true
	echo $((${EPOCHREALTIME/./} - ${start/./})) # microseconds
}
most=$(duration)

killed=0
for _ in $(seq "$rounds"); do
	cp bad.img v.img
	for _ in $(seq 20); do
		"$fsck" -y --force-live v.img >/dev/null 2>&1 &
		pid=$!
		sleep "$(printf '0.%06d' $((RANDOM * most / 65536)))"
		kill -9 "$pid" 2>/dev/null || true
		status=0
		wait "$pid" 2>/dev/null || status=$?
		[[ $status -eq 137 ]] || break
		killed=$((killed + 1))
	done
	timeout 120 "$fsck" -y --force-live v.img >out 2>&1 || [[ $? -eq 1 ]] ||
		fail "fsck does not repair the volume after a kill"
	expect 0 "$fsck" -n v.img
	contents v.img got
	diff -r want got >out 2>&1 || fail "the result of an interrupted repair differs"
	checks=$((checks + 1))
done
[[ $killed -gt 0 ]] || fail "no repair was killed"
echo "killed $killed times"

# --- random words -----------------------------------------------------------------------------

SG_IMAGES=$images SG_SEED=$seed python3 - "$fsck" "$ctl" <<'EOF' || exit 1
import collections, json, os, random, re, struct, subprocess, sys

fsck, ctl = sys.argv[1:3]
good = open("good.img", "rb").read()
rnd = random.Random(int(os.environ["SG_SEED"]))

def run(*args):
    done = subprocess.run(args, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr

def inodes(image):
    """Returns the numbers of the inodes that have a name, except lost+found, which a repair makes."""
    status, out = run(ctl, "--json", "ls", "-r", image, "/")
    assert not status, out
    rows = [row for d in json.loads(out[:out.rindex("}") + 1])["directories"] for row in d["entries"]]
    return {row["inode"] for row in rows if not row["name"].startswith("lost+found")}

def record(ino):
    return int(json.loads(run(ctl, "--json", "dump", "good.img", "inode", "<%d>" % ino)[1])["record"], 16)

before = inodes("good.img")
records = [record(1)] + [record(ino) for ino in sorted(before)]
pages = sorted({off & ~4095 for off in records})
places = [
    lambda: 0x1000 + 8 * rnd.randrange(512),                      # hot page
    lambda: 0x2000 + 8 * rnd.randrange(64 * 32),                  # mount table
    lambda: rnd.choice(records) + 8 * rnd.randrange(32),          # an inode
    lambda: rnd.choice(pages) + 8 * rnd.randrange(512),           # a used or free inode
    lambda: rnd.choice([0x1430, 0x1078]),                         # words that locate the inode file
    lambda: len(good) - 4096 + 1024 + 8 * rnd.randrange(12),      # the copy of these words
    lambda: rnd.choice(records) + 48,                             # roots of tables and indexes
    lambda: 8 * rnd.randrange(len(good) // 8),                    # anything
]

def damaged():
    image = bytearray(good)
    if rnd.random() < 0.1:
        page = rnd.choice(pages)
        image[page:page + 4096] = bytes(4096)
    for _ in range(rnd.choice([1, 1, 2, 3, 5, 10, 30])):
        off = rnd.choice(places)()
        old, = struct.unpack_from("<Q", image, off)
        other, = struct.unpack_from("<Q", good, rnd.choice(records) + 8 * rnd.randrange(32))
        new = rnd.choice([0, rnd.getrandbits(64), old ^ 1 << rnd.randrange(64),
                          (old + rnd.randrange(-8, 9)) % 2**64, other])
        struct.pack_into("<Q", image, off, new)
    return image

ends = collections.Counter()
for number in range(int(os.environ["SG_IMAGES"])):
    open("x.img", "wb").write(damaged())
    status, out = run(fsck, "-y", "--force-live", "--force-foreign", "x.img")
    said = re.search(r"^(\d+) inodes are lost", out, re.M)
    def check(good, what):
        if not good:
            print(out[-3000:])
            sys.exit("image %d: %s" % (number, what))
    # both words that locate the inode file, or both superblocks: reported, and not changed
    if status & ~1:
        check(re.search("beyond repair|superblock and backup", out), "status %d" % status)
        ends["beyond repair"] += 1
        continue
    check(not run(fsck, "-n", "x.img")[0], "the volume is not clean after the repair")
    missing = len(before - inodes("x.img"))
    check(missing <= (int(said[1]) if said else 0),
          "%d inodes are lost, and fsck does not report that" % missing)
    ends["with losses" if missing else "whole"] += 1
print("%d images: %s" % (sum(ends.values()), dict(ends)))
if not (ends["whole"] and ends["with losses"]):
    sys.exit("the random words caused only one kind of result")
EOF
checks=$((checks + images))

echo "$checks checks"
