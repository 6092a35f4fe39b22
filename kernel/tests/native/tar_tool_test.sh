#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatectl get --tar and put --tar: an archive keeps all properties of a tree. GNU tar reads the
# archives (Python's tarfile, if tar has no ACLs), and stargatectl reads archives of other programs.
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "$0")/../lib/tools.sh"

# make PYTHON: makes the archive in.tar with Python's tarfile.
make() {
	"${python[@]}" -c 'import io, os, struct, sys, tarfile
def member(name, type=tarfile.REGTYPE, data=b"", **more):
    m = tarfile.TarInfo(name)
    m.type, m.size, m.mtime = type, len(data), 1000000000.125
    m.uid, m.gid, m.mode = 4711, 815, 0o640
    m.pax_headers = dict(more.pop("pax", {}))
    for k, v in more.items():
        setattr(m, k, v)
    archive.addfile(m, io.BytesIO(data))
archive = tarfile.open("in.tar", "w", format=tarfile.PAX_FORMAT)
exec(sys.argv[1])
archive.close()' "$1" || fail "python3 cannot make the archive"
}

# has EXPRESSION: EXPRESSION is true for out.tar, with its members as m[NAME].
has() {
	"${python[@]}" -c 'import sys, tarfile
archive = tarfile.open("out.tar")
m = {e.name: e for e in archive.getmembers()}
sys.exit(not eval("(" + sys.argv[1] + ")"))' "$1" || fail "not true for the archive: $1"
	checks=$((checks + 1))
}

acl='user::rw-,user:7:r--,user:1001:rwx,group::r--,group:30:-w-,mask::rwx,other::---'
long=$(printf 'n%.0s' {1..200})
expect 0 "$mkfs" --size 16M --phys 16G v.img
cp v.img empty.img

# --- in ---------------------------------------------------------------------------------------

make '
member("./", tarfile.DIRTYPE, mode=0o1777, uid=5)
member("d/", tarfile.DIRTYPE, mode=0o2750, pax={"SCHILY.acl.default": "'"$acl"'"})
member("d/file", data=b"contents\n", mode=0o4751, pax={"SCHILY.xattr.user.a b": "value",
    "SCHILY.xattr.user.x%3Dy%25": "2", "SCHILY.xattr.trusted.t": "3", "SCHILY.xattr.security.capability": "4",
    "SCHILY.acl.access": "'"$acl"'", "SCHILY.fflags": "nodump", "comment": "nothing"})
member("d/z-again", tarfile.LNKTYPE, linkname="d/file")
member("d/link", tarfile.SYMTYPE, linkname="../no/where", mode=0o777)
member("d/null", tarfile.CHRTYPE, devmajor=1, devminor=3)
member("d/disk", tarfile.BLKTYPE, devmajor=259, devminor=70000)
member("d/pipe", tarfile.FIFOTYPE)
member("d/big-id", uid=3000000000, gid=4000000000)
member("d/old", mtime=-1.5)
member("made/on/the/way", data=b"x" * 5000)
member("d/'"$long"'/'"$long"'", data=b"long")
member("d/\udcff\nodd", data=b"odd")
'
expect 0 "$ctl" put --tar v.img in.tar
[[ ! -s out && ! -s err ]] || fail "put --tar prints something"
expect 0 "$fsck" -n v.img
expect 0 "$ctl" -j stat v.img /d/file
json 'd["mode"] == "04751" and d["uid"] == 4711 and d["gid"] == 815 and d["links"] == 2 and d["modified"] == 1000000000125000000'
expect 0 "$ctl" -j stat v.img /
json 'd["mode"] == "01777" and d["uid"] == 5 and d["modified"] == 1000000000125000000'
expect 0 "$ctl" -j stat v.img /d
json 'd["mode"] == "02750" and d["modified"] == 1000000000125000000'
expect 0 "$ctl" -j stat v.img /d/old
json 'd["modified"] == -1500000000'
expect 0 "$ctl" -j ls v.img /d
json '{e["name"]: e for e in d["directories"][0]["entries"]}["big-id"]["gid"] == 4000000000'
expect 0 "$ctl" cat v.img "/d/$long/$long"
says '^long$'

# --- out, and in again: all is kept ---------------------------------------------------------------

expect 0 "$ctl" get --tar v.img / out.tar
[[ ! -s err && $(stat -c %a out.tar) == 600 ]] || fail "the archive's mode is not 600"
has 'm["./d/file"].pax_headers["SCHILY.acl.access"] == "'"$acl"'"'
has 'm["./d"].pax_headers["SCHILY.acl.default"] == "'"$acl"'"'
has 'm["./d/file"].pax_headers["SCHILY.xattr.user.a b"] == "value"'
has 'm["./d/file"].pax_headers["SCHILY.xattr.user.x%3Dy%25"] == "2"'
has 'm["./d/file"].pax_headers["SCHILY.xattr.trusted.t"] == "3"'
has 'm["./d/file"].pax_headers["SCHILY.xattr.security.capability"] == "4"'
has 'm["./d/file"].pax_headers["SCHILY.fflags"] == "nodump"'
has '{m["./d/file"].type, m["./d/z-again"].type} == {b"0", b"1"} and m["./d/disk"].devminor == 70000'
has 'm["./d/file"].mode == 0o4751 and m["./d/big-id"].uid == 3000000000 and m["./d/old"].mtime == -1.5'
has 'm["./d/link"].linkname == "../no/where" and m["./made/on/the/way"].size == 5000'
has 'm["."].uid == 5 and m["./d/'"$long/$long"'"].size == 4 and "./d/\udcff\nodd" in m'
cp empty.img back.img
expect 0 sh -c "'$ctl' get --tar v.img / | '$ctl' put --tar back.img -"
expect 0 "$ctl" get --tar back.img / back.tar
# compares all attributes except the times of last access
strip() {
	"${python[@]}" -c 'import sys, tarfile
for e in tarfile.open(sys.argv[1]):
    p = {k: v for k, v in e.pax_headers.items() if k != "atime"}
    if "on/the" in e.name or e.name == "./made": p.pop("mtime"); e.mtime = 0
    print(ascii((e.name, e.type, e.mode, e.uid, e.gid, e.size, e.mtime, e.linkname, e.devmajor, e.devminor, p)))' "$1"
}
strip out.tar >out.list
strip back.tar >back.list
same out.list back.list
expect 0 "$fsck" -n back.img

# Archives of one file, and of a part of the tree.
expect 0 "$ctl" get --tar v.img /d/z-again out.tar
has 'list(m) == ["z-again"] and archive.extractfile("z-again").read() == b"contents\n"'
expect 0 "$ctl" get --tar v.img /made/ out.tar
has '"./on/the/way" in m'
expect 0 "$ctl" mkdir v.img /into
expect 0 "$ctl" put --tar v.img out.tar /into
expect 0 "$ctl" stat v.img /into/on/the/way

# --- holes, and GNU tar ---------------------------------------------------------------------------

mkdir outside
truncate -s 3M outside/holes
printf begin | dd of=outside/holes bs=1 seek=1M conv=notrunc status=none
printf end | dd of=outside/holes bs=1 seek=2500000 conv=notrunc status=none
truncate -s 1M outside/empty
printf 'x%.0s' {1..9000} >outside/full
ln outside/full "outside/$long"
ln -s full outside/link
for format in posix gnu; do
	sparse=()
	[[ $format != posix ]] || sparse=(--sparse)
	tar -C outside --format="$format" "${sparse[@]}" -cf gnu.tar .
	cp empty.img v.img
	expect 0 "$ctl" put --tar v.img gnu.tar
	expect 0 "$fsck" -n v.img
	expect 0 "$ctl" get --tar v.img / out.tar
	[[ $(stat -c %s out.tar) -lt 100000 || $format != posix ]] ||
		fail "the archive has the bytes of holes"
	rm -rf got
	mkdir got
	tar -C got -xf out.tar 2>err || fail "GNU tar cannot read the archive"
	[[ ! -s err ]] || fail "GNU tar prints a warning"
	diff -r outside got >out || fail "$format: the tree differs"
	[[ $(stat -c %h got/full) -eq 2 && $(stat -c %Y got/full) -eq $(stat -c %Y outside/full) ]] ||
		fail "$format: the link count or the time differs"
done

# Attributes and ACLs, as GNU tar writes and reads them, if this file system has them.
attributes() {
	"${python[@]}" -c 'import os, struct, sys
acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in
    [(1, 6, 2**32 - 1), (2, 4, 1001), (4, 4, 2**32 - 1), (16, 6, 2**32 - 1), (32, 0, 2**32 - 1)])
a = {"user.one": b"1\0\xff", "user.two": b"", "system.posix_acl_access": acl}
f = sys.argv[2] + "/full"
if sys.argv[1] == "set":
    for k, v in a.items(): os.setxattr(f, k, v)
sys.exit(any(os.getxattr(f, k) != v for k, v in a.items()))' "$@"
}
if [[ $(id -u) -eq 0 ]] && tar --help | grep -q -- --acls && attributes set outside 2>/dev/null; then
	chown 4711:815 outside/full
	tar -C outside --format=posix --xattrs --acls -cf gnu.tar .
	cp empty.img v.img
	expect 0 "$ctl" put --tar v.img gnu.tar
	expect 0 "$fsck" -n v.img
	expect 0 "$ctl" -j stat v.img /full
	json '{x["name"]: x["bytes"] for x in d["xattrs"]} == {"user.one": 3, "user.two": 0, "system.posix_acl_access": 44}'
	expect 0 "$ctl" get --tar v.img / out.tar
	rm -rf got
	mkdir got
	tar -C got --xattrs --acls --numeric-owner -xf out.tar 2>err ||
		fail "GNU tar cannot read the archive"
	[[ ! -s err && $(stat -c %u:%g got/full) == 4711:815 ]] ||
		fail "GNU tar prints a warning, or the owner differs"
	attributes get got || fail "attributes that GNU tar restores differ"
fi

mkdir -p "old/${long:120}/${long:130}"
echo old >"old/${long:120}/${long:130}/file"
tar -C old --format=ustar -cf gnu.tar .
expect 0 "$ctl" put --tar v.img gnu.tar
expect 0 "$ctl" cat v.img "/${long:120}/${long:130}/file"
says '^old$'

# --- files that exist already ---------------------------------------------------------------------

make 'member("full", data=b"new", uid=1, pax={"SCHILY.xattr.user.n": "1"}); member("link", data=b"no"); member("z", data=b"z")'
expect 1 "$ctl" put --tar v.img in.tar
complains 'link: the volume has a symlink of that name'
expect 0 "$ctl" cat v.img /full
says '^new$'
expect 0 "$ctl" cat v.img "/$long" # another name of a replaced file keeps the old contents
says '^x{9000}$'
expect 0 "$ctl" cat v.img /z

# --- a hostile archive ----------------------------------------------------------------------------

cp v.img before.img
head -c 5000 /dev/urandom >noise
refuses 1 'noise: is not a tar archive' "$ctl" put --tar v.img noise
refuses 1 'no-such: No such file' "$ctl" put --tar v.img no-such
: >nothing
refuses 1 'nothing: is not a tar archive' "$ctl" put --tar v.img nothing
gzip -k in.tar
refuses 1 'in.tar.gz: is compressed: gzip -dc FILE [|] stargatectl put --tar VOLUME -' "$ctl" put --tar v.img in.tar.gz
same v.img before.img
refuses 1 'v.img: is the volume itself' "$ctl" get --tar v.img / v.img
same v.img before.img
refuses 1 'not a directory|Not a directory' "$ctl" put --tar v.img in.tar /full
refuses 2 'cat: takes no --tar' "$ctl" cat --tar v.img /full
make 'member("../up", data=b"1"); member("a/../../up", data=b"1"); member("/abs", data=b"abs"); member("link/x", data=b"1")'
expect 1 "$ctl" put --tar v.img in.tar
says '\.\./up: names with "\.\." are not followed' err
says 'link/x: a part of its path is not a directory' err
expect 0 "$ctl" cat v.img /abs
refuses 1 'no such|No such' "$ctl" stat v.img /up
make 'member("l", tarfile.LNKTYPE, linkname="nowhere")'
expect 1 "$ctl" put --tar v.img in.tar
complains 'l: No such file'
make 'member("acl", data=b"kept", pax={"SCHILY.acl.access": "user::rw-,user:no.such.one:r--,group::r--,mask::r--,other::---"})'
expect 1 "$ctl" put --tar v.img in.tar
complains 'an entry: SCHILY.acl.access: it names a user or group that this machine does not have'
expect 0 "$ctl" cat v.img /acl
make 'member("acl2", pax={"SCHILY.acl.access": "user::rwq"}); member("foreign", pax={"SCHILY.xattr.system.x": "1"})'
expect 1 "$ctl" put --tar v.img in.tar
says 'an entry: SCHILY.acl.access: Invalid argument' err
says 'an entry: SCHILY.xattr.system.x: volumes have no such attributes' err

# Archives that are truncated anywhere, or have changed bytes: put prints one line, stores no more
# data than the archive has, and leaves an intact volume.
tar -C outside --format=posix --sparse -cf gnu.tar .
size=$(stat -c %s gnu.tar)
cp empty.img v.img
for ((at = 100; at < size; at += 1777)); do
	head -c $at gnu.tar >cut.tar
	expect '*' "$ctl" put --tar v.img cut.tar
	[[ ! -s err ]] || says '^stargatectl: ' err
	cp gnu.tar cut.tar
	poke cut.tar $((at % 6000)) '9\n7 '
	expect '*' "$ctl" put --tar v.img cut.tar
	[[ ! -s err ]] || says '^stargatectl: ' err
done
expect 0 "$fsck" -n v.img
make 'member("size", pax={"size": "9223372036854775807"})'
expect 1 "$ctl" put --tar v.img in.tar
make 'member("big", data=b"1" * 512, pax={"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "10", "GNU.sparse.name": "big"})
'
expect 1 "$ctl" put --tar v.img in.tar
complains 'a list of holes is invalid'
head -c 20000000 /dev/zero >large
tar -cf large.tar large
expect 1 "$ctl" put --tar v.img large.tar
complains 'large: No space left in the volume'
expect 0 "$fsck" -n v.img
# --- an archive is readable by its owner only; a file with damaged attributes is still in it ----

make 'member("f", data=b"bytes\n", mode=0o664, pax={"SCHILY.xattr.user.a": "value"})
member("d/", tarfile.DIRTYPE, mode=0o775, pax={"SCHILY.xattr.user.a": "value"})
member("d/in", data=b"in\n")'
rm -f a.img open.tar
expect 0 "$mkfs" --size 16M --phys 16G a.img
expect 0 "$ctl" put --tar a.img in.tar
: >open.tar
chmod 666 open.tar
expect 0 "$ctl" get --tar a.img / open.tar
[[ $(stat -c %a open.tar) == 600 ]] || fail "the archive's mode is $(stat -c %a open.tar), not 600"
mkfifo pipe.tar
refuses 1 'pipe.tar: No such device' timeout 20 "$ctl" get --tar a.img / pipe.tar
for path in /f /d; do
	record=$("$ctl" --json dump a.img inode "$path" | pick 'int(d["record"], 16)')
	blob=$(od -An -t u8 -j $((record + 96)) -N 8 a.img)
	printf '\xff\xff' | dd of=a.img bs=1 seek=$((blob + 8)) conv=notrunc status=none
done
expect 1 "$ctl" get --tar a.img / out.tar
says '/f: damaged; run fsck.stargatefs' err
has 'archive.extractfile("./f").read() == b"bytes\n" and m["./f"].mode == 0o604'
has 'm["./d"].isdir() and m["./d"].mode == 0o705 and "./d/in" in m'
echo "$checks checks"
