#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatectl image: an image has all metadata and no user data. Checks of a volume and of its image
# give the same findings, with and without damage. An image can only be inspected.
# shellcheck source=kernel/tests/lib/machines.sh
source "$(dirname "$0")/../lib/machines.sh"

scale=${SG_TEST_SCALE:-quick}
rounds=12
[[ $scale == quick ]] || rounds=300

# findings FILE TO: writes the findings of a check and its counts to TO, without paths.
findings() {
	"$fsck" -n --json "$1" >check.json 2>err || true
	[[ -s check.json ]] || { echo "fsck -n --json $1 prints nothing: $(<err)" >&2; exit 1; }
	python3 - "$2" <<'PY'
import json, sys
d = json.load(open("check.json"))
with open(sys.argv[1], "w") as out:
    for f in d["findings"]:
        print(f["what"], f.get("inode"), f["offset"], file=out)
    for key in sorted(d):
        if key not in ("findings", "path"):
            print(key, d[key], file=out)
PY
}

# alike VOLUME: fails unless checks of its images, with hidden and with kept names, have the same
# findings as a check of VOLUME.
alike() {
	rm -f hidden.img kept.img
	expect '*' "$ctl" image "$1" hidden.img
	[[ -e hidden.img ]] || return 1
	expect 0 "$ctl" image --keep-names "$1" kept.img
	findings "$1" volume.txt
	findings hidden.img hidden.txt
	findings kept.img kept.txt
	same volume.txt kept.txt
	same volume.txt hidden.txt
}

# --- a volume with each kind of structure ----------------------------------------------------

secret=SeCrEt
mkdir -p tree/${secret}Dir tree/many tree/links
head -c 3M /dev/urandom >tree/random
for i in $(seq 200); do echo "$secret contents $i" >"tree/${secret}Dir/${secret}Name-$i.txt"; done
for i in $(seq 3000); do : >"tree/many/${secret}-with-a-long-name-$i"; done
for i in a b c 1 2 é ü 'ß.c' .x '+'; do : >"tree/links/$i"; done
ln -s "${secret}Target/x" tree/links/short
ln -s "${secret}Target/$(printf 'y%.0s' $(seq 200))" tree/links/long
ln "tree/${secret}Dir/${secret}Name-1.txt" tree/links/hard
truncate -s 40M tree/hole
echo end >>tree/hole
"$mkfs" -q --size 64M --phys 16G -L shown v.img
"$ctl" put -r v.img tree /
python3 -c '
import io, tarfile
tar = tarfile.open("attrs.tar", "w", format=tarfile.PAX_FORMAT)
info = tarfile.TarInfo("attrs")
info.pax_headers = {"SCHILY.xattr.user.SeCrEtKey": "SeCrEtValue", "SCHILY.xattr.user.big": "SeCrEt" * 3000,
	"SCHILY.xattr.trusted.SeCrEt": "x", "SCHILY.xattr.security.selinux": "SeCrEtLabel",
	"SCHILY.acl.access": "user::rwx,user:7:rwx,group::r-x,mask::r-x,other::r--"}
tar.addfile(info)
tar.close()'
"$ctl" put --tar v.img attrs.tar /
"$ctl" put v.img "tree/${secret}Dir/${secret}Name-1.txt" "/${secret}Removed"
"$ctl" rm v.img "/${secret}Removed"

umask 022
cp v.img before
expect 0 "$ctl" image v.img i.img
says '^v.img: metadata copied to i.img, .* of 64 MiB; 0 findings of a check, names hidden$'
same v.img before
[[ $(stat -c %a:%s i.img) == "600:$((64 << 20))" ]] ||
	fail "mode and size of the image are $(stat -c %a:%s i.img)"
[[ $(($(stat -c %b i.img) * 512)) -lt $((2 << 20)) ]] ||
	fail "the image is not sparse: $(stat -c %b i.img) blocks"
! grep -aq "$secret" i.img || fail "the image has contents or names of users"
! grep -aq 'with-a-long\|Target' i.img || fail "the image has names or link targets of users"
grep -aq shown i.img || fail "the image has no label"
expect 0 "$fsck" -n i.img
says '^i.img: clean; '
alike v.img
expect 0 "$ctl" -j image --keep-names v.img k.img
json "d['file'] == 'k.img' and d['size'] == $((64 << 20)) and not d['names_hidden'] and d['found'] == 0"
grep -aq "${secret}Name-7" k.img || fail "--keep-names has not kept the names"
grep -aq "${secret}Value" k.img || fail "--keep-names has not kept the attributes"
! grep -aq "$secret contents" k.img || fail "an image with names has contents of files"
expect 0 "$ctl" find v.img
cp out names
expect 0 "$ctl" find k.img
same out names

# --- inspecting an image ---------------------------------------------------------------------

# shape FILE: prints all inodes by number, without names. The output is the same for a volume and
# its image.
shape() {
	"$ctl" -j find "$1" | python3 -c '
import json, sys
for f in json.load(sys.stdin)["found"]:
    print(f["inode"], f["type"], f["mode"], f["links"], f["uid"], f["gid"], f["size"], len(f["path"]),
          f["path"].count("/"))' | sort >"$2"
}
shape v.img shape.v
shape i.img shape.i
same shape.v shape.i
"$ctl" -j find i.img | python3 -c '
import json, subprocess, sys
found = json.load(sys.stdin)["found"]
paths = set(f.get("path_hex", f["path"]) for f in found)
assert len(paths) == len(found), "two files have the same name"
for f in found[::100] + [f for f in found if f["type"] == "symlink" or len(f["path"]) < 12]:
    path = bytes.fromhex(f["path_hex"]) if "path_hex" in f else f["path"].encode()
    got = json.loads(subprocess.run([sys.argv[1], "-j", "stat", "i.img", path], capture_output=True,
                                    check=True).stdout)
    assert got["inode"] == f["inode"], path' "$ctl" ||
    	fail "a file cannot be found by its name in the image"
number=$("$ctl" -j stat v.img /tree/random | pick 'd["inode"]')
"$ctl" stat v.img "<$number>" >stat.v
"$ctl" stat i.img "<$number>" >stat.i
same stat.v stat.i
number=$("$ctl" -j stat v.img /attrs | pick 'd["inode"]')
expect 0 "$ctl" -j stat i.img "<$number>"
json '[len(x["name"]) for x in d["xattrs"]] == [len(n) for n in ("user.SeCrEtKey", "user.big", "trusted.SeCrEt",
	"security.selinux", "system.posix_acl_access")] or len(d["xattrs"]) == 5'
says 'security.selinux'
expect 0 "$ctl" dump i.img dir '<1>'
expect 0 "$ctl" dump i.img table "<$("$ctl" -j stat v.img /tree/hole | pick 'd["inode"]')>"
expect 0 "$ctl" ls -lr i.img
says ' -> xxxxxxxxxxxx/x$'
expect 0 "$ctl" info i.img
says '^image: metadata, names hidden$'
expect 0 "$ctl" info k.img
says '^image: metadata, names kept$'
expect 0 "$ctl" df i.img
# Makes an image of an image, which hides names that the first image kept.
expect 0 "$ctl" image k.img late.img
! grep -aq "$secret" late.img || fail "an image of an image does not hide the names"
expect 0 "$fsck" -n late.img
# Two images have different names: each has a random key, which is not stored.
expect 0 "$ctl" image v.img j.img
[[ $("$ctl" find i.img | sort | md5sum) != $("$ctl" find j.img | sort | md5sum) ]] ||
	fail "two images have the same names"

# --- no other data ---------------------------------------------------------------------------

cp i.img was
none='is a metadata image, without contents of files|a metadata image, without contents of files'
echo x >x
refuses 1 "$none" "$ctl" cat i.img '<2>'
refuses 1 "$none" "$ctl" get -r i.img / to
refuses 1 "$none" "$ctl" get --tar i.img / to
for command in 'put i.img x' 'mkdir i.img /x' 'rm -r i.img /x' 'mv i.img /x /y' 'ln -s i.img /x /y' \
	'chmod i.img 0 /' 'chown i.img 0 /' 'label i.img x' 'grow i.img' 'tune i.img --lease 60' \
	'relocate i.img --base 20G' 'snapshot i.img s.img' 'clone i.img s.img --base 20G'; do
	# shellcheck disable=SC2086
	expect 1 "$ctl" $command
	says "$none" err
done
for mode in -p -y; do refuses 8 "$none" "$fsck" $mode i.img; done
same i.img was
[[ ! -e s.img ]] || fail "a refused command has made s.img"

# --- wrong arguments -------------------------------------------------------------------------

refuses 2 'image: takes VOLUME FILE' "$ctl" image v.img
refuses 2 'image: takes no --recursive' "$ctl" image -r v.img x.img
refuses 1 'i.img: exists already' "$ctl" image v.img i.img
refuses 1 'v.img: exists already' "$ctl" image v.img v.img
refuses 1 'none/x: cannot be created|none/x.part: cannot be created' "$ctl" image v.img none/x
refuses 1 'none: cannot be opened' "$ctl" image none x.img
truncate -s 32M foreign
refuses 1 'foreign: holds no StargateFS' "$ctl" image foreign x.img
cp v.img short
truncate -s 32M short
refuses 1 'short: is cut short' "$ctl" image short x.img
cp v.img lost
poke lost 0 'xxxxxxxx'
poke lost $(((64 << 20) - 4096)) 'xxxxxxxx'
refuses 1 'lost: ' "$ctl" image lost x.img
(
	trap '' XFSZ
	ulimit -f $((1 << 10))
	refuses 1 'x.img.part: cannot be' "$ctl" image v.img x.img
)
[[ ! -e x.img && ! -e x.img.part ]] || fail "a failed command has left a file"
same v.img before
rm -f foreign short lost

# --- damage ----------------------------------------------------------------------------------

# mutate FILE SEED: changes random words of metadata.
mutate() {
	python3 - "$1" "$2" i.img <<'PY'
import random, struct, sys
r = random.Random(int(sys.argv[2]))
with open(sys.argv[3], "rb") as image:
    data = image.read()
pages = [p for p in range(0, len(data), 4096) if any(data[p:p + 4096])]
super_pages = (0, len(data) - 4096)
with open(sys.argv[1], "r+b") as f:
    for i in range(r.choice((1, 1, 2, 5, 20))):
        page = r.choice(pages)
        if page in super_pages and r.random() < 0.9:
            continue
        at = page + 8 * r.choice((r.randrange(512), r.randrange(32)))
        f.seek(at)
        old = struct.unpack("<Q", f.read(8))[0]
        # another page of metadata, as an offset and as an entry of a table
        other = r.choice(pages)
        new = r.choice((0, 1, old ^ 1 << r.randrange(64), r.getrandbits(64), other | r.randrange(4),
                        (16 << 30) + other | 0x8000000000000063, old + 4096, old + 1))
        f.seek(at)
        f.write(struct.pack("<Q", new & 2**64 - 1))
PY
}

made=0
for seed in $(seq "$rounds"); do
	cp --sparse=always v.img m.img
	mutate m.img "$seed"
	! alike m.img || made=$((made + 1))
done
[[ $made -gt $((rounds * 3 / 4)) ]] ||
	fail "images could be made of only $made of $rounds damaged volumes"

# If damage makes a data page take the place of metadata, the image does not get that page.
cp v.img m.img
run=$("$ctl" -j stat m.img "/tree/${secret}Dir/${secret}Name-2.txt" | pick 'd["table"]["runs"][0]["offset"]')
many=$("$ctl" -j stat m.img /tree/many | pick 'd["record"]')
long=$("$ctl" -j stat m.img /tree/links/long | pick 'd["record"]')
attrs=$("$ctl" -j stat m.img /attrs | pick 'd["record"]')
python3 - m.img "$((run))" "$((many + 48))" "$((long + 48))" "$((attrs + 96))" <<'PY'
import struct, sys
run = int(sys.argv[2])
with open(sys.argv[1], "r+b") as f:
    for at, low in zip(sys.argv[3:], (2, 0, 0)):
        f.seek(int(at))
        f.write(struct.pack("<Q", run | low))
PY
expect 0 "$ctl" image m.img m.hidden
! grep -aq "$secret" m.hidden || fail "the image has a data page"

# Stores the same bytes at known offsets: over hints, the mount table, and reserved words. The image
# keeps only words that a finding or a lock needs.
cp v.img m.img
"$ctl" -j dump v.img super >super.json
python3 - m.img super.json <<'PY'
import json, sys
sb = json.load(open(sys.argv[2]))
hint, chunk, slot = (int(sb[k], 16) for k in ("hint_off", "chunk_off", "slot_off"))
text = b"SeCrEt contents "
with open(sys.argv[1], "r+b") as f:
    def fill(at, n):
        f.seek(at)
        f.write((text * (n // len(text) + 1))[:n])
    fill(hint, chunk - hint)
    fill(slot + 4096, 4096)             # invalid slots
    fill(slot + 8, 248)                 # a free slot
    fill(chunk + 16, 48)
    fill(4096 + 192 - 16, 16)
    fill(4096 + 4096 - 512, 512)
PY
rm m.hidden
expect 0 "$ctl" image m.img m.hidden
! grep -aq "the image has bytes that no finding and no lock needs" m.hidden || fail "contents are in it"
findings m.img volume.txt
findings m.hidden hidden.txt
same volume.txt hidden.txt
[[ $(wc -l <volume.txt) -gt 16 ]] || fail "the stored bytes cause too few findings"

# --- dead systems ----------------------------------------------------------------------------

for wait in 0.02 0.05 0.1 0.2 0.3; do
	cp v.img dead.img
	"$ctl" put -r dead.img tree /again 2>/dev/null &
	sleep "$wait"
	kill -9 $! 2>/dev/null || true
	wait $! 2>/dev/null || true
	alike dead.img
	! grep -aq "$secret" hidden.img || fail "the image has contents or names of users"
done

# --- a system uses the volume ----------------------------------------------------------------

start 1
say 1 join v.img $m1 1
expect 0 "$ctl" image v.img used.img
complains 'is in use, so the image may look damaged'
expect 0 "$fsck" -n used.img
# A name in the mount table is copied only while its system has the slot.
grep -aq machine-11111111 used.img ||
	fail "the image lacks the name of the system that uses the volume"
say 1 leave 0
expect 0 "$ctl" image v.img left.img
grep -aq machine-11111111 v.img ||
	fail "the volume does not keep the name of the system that has left"
! grep -aq machine-11111111 left.img || fail "the image has the name of a system that has left"

echo "$checks checks"
