#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatectl info --export, and the udev rule that calls it: ordinary and hostile labels, files
# that are no volume, and the rule's results for devices. A small interpreter evaluates the rule,
# and udevadm checks it where it is installed. e2e/scenarios/guest.sh tests udev itself.
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "$0")/../lib/tools.sh"

uuid=01234567-89ab-cdef-0123-456789abcdef
"$mkfs" -q --phys 16G --size 32M --uuid $uuid --label box v.img

# named FILE LABEL: stores any bytes as the label in both superblocks, with right checksums, as a
# member can.
named() {
	python3 - "$1" "$2" <<'END'
import os, struct, sys
path, label = sys.argv[1], os.fsencode(sys.argv[2])
table = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
    table.append(n)
def crc(data):
    c = 0xffffffff
    for byte in data:
        c = c >> 8 ^ table[(c ^ byte) & 0xff]
    return c
b = bytearray(open(path, "rb").read())
for at in (0, len(b) - 4096):
    sb = b[at:at + 512]
    said = struct.unpack_from("<I", sb, 12)[0]
    sb[12:16] = bytes(4)
    assert crc(sb) == said, "the test's checksum differs from the engine's"
    sb[56:120] = label.ljust(64, b"\0")[:64]
    struct.pack_into("<I", sb, 12, crc(sb))
    b[at:at + 512] = sb
open(path, "wb").write(b)
END
}

# exported FILE: the output as udev reads it; each line is KEY=value, in characters that udev
# accepts.
exported() {
	expect 0 "$ctl" info --export "$1"
	[[ ! -s err ]] || fail "info --export prints to standard error"
	python3 - <<'END' || fail "udev may misread a line of the export"
import re, sys
lines = open("out", "rb").read().split(b"\n")
assert lines.pop() == b""
keys = [l.split(b"=")[0] for l in lines]
assert len(set(keys)) == len(keys)
for l in lines:
    key, value = l.split(b"=", 1)
    assert key in (b"ID_FS_LABEL", b"ID_FS_LABEL_ENC", b"ID_FS_UUID", b"ID_FS_UUID_ENC",
                   b"ID_FS_VERSION", b"ID_FS_BLOCKSIZE", b"ID_FS_TYPE", b"ID_FS_USAGE"), key
    value.decode()
    safe = rb"(?:[A-Za-z0-9#+.:=@_-]|[\x80-\xff])"
    if key.endswith(b"_ENC"):
        safe = rb"(?:" + safe + rb"|\\x[0-9a-f]{2})"
    assert re.fullmatch(safe + b"+", value), value
END
	checks=$((checks + 1))
}
# label LABEL PLAIN ENC: the export of a volume with LABEL shows PLAIN and ENC.
label() {
	named v.img "$1"
	exported v.img
	[[ $(sed -n 's/^ID_FS_LABEL=//p' out) == "$2" ]] || fail "ID_FS_LABEL is not $2"
	[[ $(sed -n 's/^ID_FS_LABEL_ENC=//p' out) == "$3" ]] || fail "ID_FS_LABEL_ENC is not $3"
	cp out last
}

# --- an ordinary label ---
exported v.img
cat >want <<END
ID_FS_LABEL=box
ID_FS_LABEL_ENC=box
ID_FS_UUID=$uuid
ID_FS_UUID_ENC=$uuid
ID_FS_VERSION=1
ID_FS_BLOCKSIZE=4096
ID_FS_TYPE=stargatefs
ID_FS_USAGE=filesystem
END
same out want
label 'two words' two_words 'two\x20words'
label $'caf\303\251 \342\202\254' $'caf\303\251_\342\202\254' $'caf\303\251\\x20\342\202\254'
label 'a+b-c.d:e=f@g_h#1' 'a+b-c.d:e=f@g_h#1' 'a+b-c.d:e=f@g_h#1'
named v.img ''
exported v.img
! grep -q LABEL out || fail "the export shows a label for a volume without one"

# --- hostile labels ---
label $'x\nID_FS_TYPE=ext4\nSYSTEMD_WANTS=evil.service' x_ID_FS_TYPE=ext4_SYSTEMD_WANTS=evil.service \
	'x\x0aID_FS_TYPE=ext4\x0aSYSTEMD_WANTS=evil.service'
grep -q '^ID_FS_TYPE=stargatefs$' last || fail "the label has changed the exported type"
label '../../../etc/passwd' .._.._.._etc_passwd '..\x2f..\x2f..\x2fetc\x2fpasswd'
# shellcheck disable=SC2016 # part of the label
label '$(id)`id`${HOME}%k$devnode' '__id__id___HOME__k_devnode' '\x24\x28id\x29\x60id\x60\x24\x7bHOME\x7d\x25k\x24devnode'
label "\"a\" 'b'" '_a___b_' '\x22a\x22\x20\x27b\x27'
label '\x41\n' '_x41_n' '\x5cx41\x5cn'
label $'a\rb\tc\e[31m\177' 'a_b_c__31m_' 'a\x0db\x09c\x1b\x5b31m\x7f'
label $'\377\300\200\355\240\200' '______' '\xff\xc0\x80\xed\xa0\x80'
# These characters also end lines, or change the direction of the text.
label $'a\302\205b\342\200\250c\342\200\256d' 'a__b___c___d' \
	'a\xc2\x85b\xe2\x80\xa8c\xe2\x80\xaed'
label $'\303' _ '\xc3'
label "$(printf '\\%.0s' {1..63})" "$(printf '_%.0s' {1..63})" "$(printf '\\x5c%.0s' {1..63})"
# A label without a final NUL makes the superblock and its copy invalid.
named v.img "$(printf 'l%.0s' {1..64})"
refuses 1 'v.img: holds no intact StargateFS' "$ctl" info --export v.img
named v.img box

# The same escapes as libblkid's: mount derives the link's name from them (ext4's labels: 16 bytes).
if command -v mke2fs >/dev/null && command -v blkid >/dev/null; then
	truncate -s 4M ext.img
	mke2fs -q -F -t ext4 ext.img
	# shellcheck disable=SC2016
	for name in box 'two words' 'a/b$c' $'caf\303\251' 'x"y' "x'y" 'a\b' '%k;|&' $'a\tb' $'a\nb' $'\377x'; do
		poke ext.img 1144 '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
		printf %s "$name" | dd of=ext.img bs=1 seek=1144 conv=notrunc status=none
		named v.img "$name"
		exported v.img
		cp out ours
		# the checksum is wrong, and blkid may report that
		expect '*' blkid -p -o udev ext.img
		[[ ! -s out ]] || [[ $(grep ^ID_FS_LABEL_ENC= out) == "$(grep ^ID_FS_LABEL_ENC= ours)" ]] ||
			fail "blkid escapes '$name' differently: $(grep ^ID_FS_LABEL_ENC= ours)"
	done
	named v.img box
fi

# --- no volume, or a volume that cannot be mounted ---
head -c 32M /dev/zero >empty
refuses 1 'empty: holds no intact StargateFS' "$ctl" info --export empty
refuses 1 'none: cannot be opened' "$ctl" info --export none
refuses 1 'is a directory' "$ctl" info --export .
head -c 4096 /dev/zero >small
refuses 1 'small: has 4096 bytes' "$ctl" info --export small
refuses 2 'info: give only one of --export and --json' "$ctl" -j info --export v.img
refuses 2 'df: takes no --export' "$ctl" df --export v.img
refuses 2 'info: takes VOLUME' "$ctl" info --export v.img v.img
head -c 24M v.img >cut.img
refuses 1 'cut.img: a StargateFS that is cut short' "$ctl" info --export cut.img
cp v.img first.img # the first copy is damaged: the other one identifies the volume
dd if=/dev/zero of=first.img bs=4096 count=1 conv=notrunc status=none
exported first.img
says '^ID_FS_LABEL=box$'
# a backup superblock remains at the end of another file system
if command -v mke2fs >/dev/null; then
	cp v.img over.img
	mke2fs -q -F -t ext4 over.img 16M
	refuses 1 'over.img: holds .*ext.*, not a StargateFS' "$ctl" info --export over.img
fi
sum=$(sha256sum <v.img)
expect 0 "$ctl" info --export v.img
[[ $(sha256sum <v.img) == "$sum" ]] || fail "info --export has changed the volume"
expect 1 sh -c "'$ctl' info --export v.img >/dev/full"

# --- the rule ---
rules=$src/udev/61-stargatefs.rules.in
sed "s|@SBIN@|$tools|" "$rules" >61-stargatefs.rules
! grep -q '@' 61-stargatefs.rules || fail "the rule has a placeholder that was not replaced"
if udevadm verify --help >/dev/null 2>&1; then
	expect 0 udevadm verify --resolve-names=never ./61-stargatefs.rules
fi
cat >rule.py <<'END'
# The rule's result for a device: rule.py RULES KEY=VALUE... (ENV{X}=, ATTRS{X}=, KERNEL=, ...).
import fnmatch, re, subprocess, sys
TOKEN = re.compile(r'\s*([A-Z]+)(?:\{([^}"]+)\})?(==|!=|\+=|=)"([^"]*)"\s*(,|$)')
MATCH, ASSIGN = {"ACTION", "SUBSYSTEM", "KERNEL", "ENV", "ATTRS", "IMPORT"}, {"GOTO", "LABEL", "SYMLINK", "OPTIONS"}
dev = dict(a.split("=", 1) for a in sys.argv[2:])
links, priority, lines = [], 0, []
for line in open(sys.argv[1]):
    if line.strip() and not line.startswith("#"):
        at, tokens = 0, []
        while at < len(line.rstrip("\n")):
            m = TOKEN.match(line.rstrip("\n"), at)
            assert m, "no rule: " + line
            assert m[1] in MATCH | ASSIGN, "no key: " + m[1]
            tokens.append(m.groups()[:4])
            at = m.end()
        lines.append(tokens)
labels = {v: i for i, t in enumerate(lines) for k, _, op, v in t if k == "LABEL"}
for t in lines:
    for k, _, _, v in t:
        assert k != "GOTO" or v in labels, "no label " + v
def fill(text):
    text = text.replace("$devnode", dev["DEVNAME"])
    return re.sub(r"\$env\{(\w+)\}", lambda m: dev.get("ENV{%s}" % m[1], ""), text)
i = 0
while i < len(lines):
    goto = None
    for key, attr, op, value in lines[i]:
        name = "%s{%s}" % (key, attr) if attr else key
        if key == "IMPORT":
            assert attr == "program"
            run = subprocess.run(fill(value).split(" "), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            if run.returncode:
                break
            for line in run.stdout.decode().splitlines():
                k, v = line.split("=", 1)
                dev["ENV{%s}" % k] = v
        elif op in ("==", "!="):
            had = dev.get(name, "")
            if any(fnmatch.fnmatchcase(had, p) for p in value.split("|")) != (op == "=="):
                break
        elif key == "SYMLINK":
            links += fill(value).split(" ")
        elif key == "OPTIONS":
            priority = int(value.split("=")[1])
        elif key == "GOTO":
            goto = labels[value]
    i = goto if goto is not None else i + 1
print(priority, *links)
END
# rule WANT KEY=VALUE...: the rule sets priority and links WANT for a device with these keys and
# v.img.
rule() {
	local want=$1
	shift
	expect 0 python3 rule.py 61-stargatefs.rules "DEVNAME=v.img" "$@"
	[[ $(<out) == "$want" ]] || fail "the rule's result for $* is '$(<out)', not '$want'"
}
dm=(ACTION=add SUBSYSTEM=block KERNEL=dm-3 'ATTRS{queue/dax}=1')
both="-50 disk/by-uuid/$uuid disk/by-label/box"
rule "$both" "${dm[@]}"
rule "$both" "${dm[@]}" ACTION=change
rule "$both" ACTION=add SUBSYSTEM=block KERNEL=pmem0p1 'ATTRS{queue/dax}=1'
rule 0 "${dm[@]}" ACTION=remove
rule 0 "${dm[@]}" KERNEL=sda1
rule 0 "${dm[@]}" SUBSYSTEM=net
rule 0 "${dm[@]}" 'ATTRS{queue/dax}=0' # a plain disk
rule 0 ACTION=add SUBSYSTEM=block KERNEL=dm-3
rule 0 "${dm[@]}" 'ENV{ID_FS_TYPE}=ext4' # blkid has found another file system
rule 0 "${dm[@]}" 'ENV{DM_SUSPENDED}=1' # reading a suspended device would block
rule 0 "${dm[@]}" 'ENV{DM_NOSCAN}=1'
rule 0 "${dm[@]}" 'ENV{DM_UDEV_DISABLE_OTHER_RULES_FLAG}=1'
rule 0 "${dm[@]}" DEVNAME=empty
rule "-100 disk/by-uuid/$uuid disk/by-label/box" "${dm[@]}" 'ENV{STARGATEFS_MOVED}=1'
named v.img 'x /../../../etc/passwd'
rule "-50 disk/by-uuid/$uuid disk/by-label/x\\x20\\x2f..\\x2f..\\x2f..\\x2fetc\\x2fpasswd" "${dm[@]}"
named v.img ''
rule "-50 disk/by-uuid/$uuid" "${dm[@]}"
echo "$checks checks"
