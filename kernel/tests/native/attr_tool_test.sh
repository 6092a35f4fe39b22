#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatectl attr on an unused volume, and mkfs.stargatefs --param data-atomic: the attribute is
# shown, set, cleared and inherited; a refused command changes nothing.
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "$0")/../lib/tools.sh"

# is VOLUME PATH WORD: attr shows WORD for PATH.
is() {
	expect 0 "$ctl" attr "$1" "$2"
	[[ $(<out) == "data=$3"*" $2" ]] || fail "$1 $2: '$(<out)', not $3"
	checks=$((checks + 1))
}

"$mkfs" -q --size 32M --phys 16G v.img
head -c 200000 /dev/urandom >a
mkdir -p tree/sub
echo x >tree/sub/x
ln -s x tree/sub/link

# --- shown, set, cleared -----------------------------------------------------------------------
expect 0 "$ctl" put v.img a /a
is v.img /a inplace
is v.img / inplace
expect 0 "$ctl" attr v.img data=atomic /a
is v.img /a atomic
expect 0 "$ctl" attr -j v.img /a /
json '[f["data"] for f in d["files"]] == ["atomic", "inplace"]'
expect 0 "$ctl" attr v.img data=inplace /a
is v.img /a inplace
expect 0 "$ctl" info -j v.img
json 'd["data"] == "inplace" and d["atomic_writes"]'

# --- inherited ---------------------------------------------------------------------------------
expect 0 "$ctl" mkdir v.img /db /plain
expect 0 "$ctl" attr v.img data=atomic /db
expect 0 "$ctl" put v.img a /db/a
expect 0 "$ctl" put -r v.img tree /db/tree
expect 0 "$ctl" put v.img a /plain/a
for path in /db/a /db/tree /db/tree/sub /db/tree/sub/x; do is v.img $path atomic; done
is v.img /plain/a inplace
expect 0 "$ctl" get v.img /db/a back
cmp a back || fail "the bytes differ"
# a file that put replaces keeps the attribute of the old file
expect 0 "$ctl" attr v.img data=inplace /db/a
expect 0 "$ctl" put v.img a /db/a
expect 0 "$ctl" attr v.img data=atomic /plain/a
expect 0 "$ctl" put v.img tree/sub/x /plain/a
is v.img /plain/a atomic
expect 0 "$fsck" -n v.img

# --- refused -----------------------------------------------------------------------------------
refuses 2 'PATH is missing' "$ctl" attr v.img data=atomic
refuses 2 'must be data=atomic or data=inplace' "$ctl" attr v.img data=ordered /a
refuses 1 'No such file' "$ctl" attr v.img /none
refuses 1 'is neither a file nor a directory of a mounted StargateFS' "$ctl" attr . tree
is v.img /a inplace

# --- a volume of atomic writes -----------------------------------------------------------------
expect 0 "$mkfs" --json -f --size 32M --phys 16G --param data-atomic w.img
json 'd["data"] == "atomic"'
is w.img / atomic
expect 0 "$ctl" put w.img a /a
is w.img /a atomic
expect 0 "$ctl" info -j w.img
json 'd["data"] == "atomic"'
expect 0 "$fsck" -n w.img
echo "$checks checks"
