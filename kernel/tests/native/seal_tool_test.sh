#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatectl seal, unseal and verify, as a user calls them, on a volume that no system uses. The
# digests are compared with another implementation.
set -euo pipefail
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "$0")/../lib/tools.sh"

# digest FILE: prints the digest of a file as fs-verity defines it.
digest() {
	"${python[@]}" - "$1" <<'END'
import hashlib, struct, sys
data = open(sys.argv[1], "rb").read()
sha = lambda b: hashlib.sha256(b).digest()
cut = lambda b: [b[i:i + 4096].ljust(4096, b"\0") for i in range(0, len(b), 4096)]
level = [sha(b) for b in cut(data)]
while len(level) > 1:
    level = [sha(b) for b in cut(b"".join(level))]
root = level[0] if level else b""
head = struct.pack("<BBBBIQ", 1, 1, 12, 0, 0, len(data))
print("sha256:" + sha(head + root.ljust(64, b"\0") + bytes(32 + 144)).hex())
END
}

"$mkfs" -q --phys 16G --size 32M v.img
expect 0 "$ctl" dump v.img super
says '^ro_compat: 0x0$'

# --- digests of every shape of a tree ---
for n in 0 1 63 4095 4096 4097 524288 524289 3000000; do
	head -c "$n" /dev/urandom >"f$n"
	"$ctl" put v.img "f$n" "/f$n"
	expect 0 "$ctl" seal --digest v.img "/f$n"
	says "^$(digest "f$n")  /f$n\$"
	expect 0 "$ctl" verify v.img "/f$n"
	says "^$(digest "f$n")  /f$n\$"
done
expect 0 "$ctl" dump v.img super
says '^ro_compat: 0x2$'
expect 0 "$ctl" stat v.img /f4097
says '^flags: sealed digest$'
says '^root_hash: [0-9a-f]{64}$'
expect 0 "$ctl" -j verify v.img /f1 /f0
json '[(f["path"], f["ok"]) for f in d["files"]] == [("/f1", True), ("/f0", True)]'
expect 0 "$ctl" -j stat v.img /f1
json 'd["flags"] == "sealed digest" and len(d["root_hash"]) == 64'
expect 0 "$ctl" seal v.img /f1 /f63
expect 0 "$fsck" -n v.img
says ': clean;'

# --- names may change; contents may not ---
expect 0 "$ctl" mv v.img /f63 /moved
expect 0 "$ctl" chmod v.img 600 /moved
expect 0 "$ctl" ln v.img /moved /linked
expect 0 "$ctl" rm v.img /linked
expect 0 "$ctl" verify v.img /moved
expect 0 "$ctl" get v.img /moved copy
cmp copy f63 || fail "the sealed file's bytes have changed"

# --- a page that another program has changed ---
place=$("$ctl" -j stat v.img /f3000000 | "${python[@]}" -c 'import json, sys
run = json.load(sys.stdin)["table"]["runs"][0]
print(run["offset"] if isinstance(run["offset"], int) else int(run["offset"], 0))')
cp v.img changed.img
printf 'X' | dd of=changed.img bs=1 seek=$((place + 1000)) conv=notrunc status=none
refuses 1 '/f3000000: the contents differ from the digest' "$ctl" verify changed.img /f3000000
expect 1 "$ctl" -j verify changed.img /f3000000
json 'd["files"][0]["ok"] is False'

# --- refusals ---
refuses 1 '/f4096: is not sealed' bash -c "$ctl unseal v.img /f4096 && $ctl verify v.img /f4096"
expect 0 "$ctl" seal v.img /f4096
refuses 1 'sealed without a digest: .*seal --digest' "$ctl" verify v.img /f4096
expect 0 "$ctl" seal --digest v.img /f4096
says "$(digest f4096)"
refuses 1 '/: is not a regular file' "$ctl" seal v.img /
refuses 1 '/none: ' "$ctl" seal v.img /none
truncate -s 1M sparse
"$ctl" put v.img sparse /sparse
refuses 1 '/sparse: the file has a hole at byte 0: .*fallocate' "$ctl" seal v.img /sparse
refuses 2 'seal' "$ctl" seal v.img

# --- hostile bytes: the checker finds them, and its repair leaves a usable file ---
record=$("$ctl" -j stat v.img /f1 | "${python[@]}" -c 'import json, sys
r = json.load(sys.stdin)["record"]
print(r if isinstance(r, int) else int(r, 0))')
cp v.img forged.img
printf '\0\0\0\0\0\0\0\0' | dd of=forged.img bs=1 seek=$((record + 48)) conv=notrunc status=none
expect '*' "$fsck" -n forged.img
says 'is sealed, but has holes'
expect '*' "$fsck" -y forged.img
expect 0 "$fsck" -n forged.img
says ': clean;'
refuses 1 '/f1: is not sealed' "$ctl" verify forged.img /f1

# A size beyond the volume: the file cannot be whole, so it is not read to its end.
cp v.img forged.img
printf '\0\0\0\0\0\100\0\0' | dd of=forged.img bs=1 seek=$((record + 40)) conv=notrunc status=none
refuses 1 '/f1: is larger than its volume: unmount it everywhere and run fsck.stargatefs' \
	timeout -s KILL 10 "$ctl" verify forged.img /f1

# --- an image has no digests, because it has no contents of files ---
expect 0 "$ctl" image v.img small.img
expect 0 "$fsck" -n small.img
expect '*' "$ctl" stat small.img '<3>'
! grep -q root_hash out || fail "the image has the digest of a file"
checks=$((checks + 1))

expect 0 "$ctl" unseal v.img /f0 /f1 /f4096 /f4097
expect 0 "$fsck" -n v.img
says ': clean;'
echo "$checks checks"
