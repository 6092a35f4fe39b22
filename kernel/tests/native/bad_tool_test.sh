#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatectl bad, as a user calls it: on a file that no system uses, and on one that a system uses.
# Also the output of other commands and of fsck for a volume with bad memory.
set -euo pipefail
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "$0")/../lib/tools.sh"

base=0x400000000
"$mkfs" -q --phys 16G --size 32M v.img
head -c 20000 /dev/urandom >file
"$ctl" put v.img file /file
"$ctl" put v.img file /other
expect 0 "$ctl" bad v.img
says '^none$'
expect 0 "$ctl" -j bad v.img
json 'd == {"bad": []}'

# --- wrong arguments ---
for words in add remove 'add 1 2 3' 'frob 0x400000000' 'add x' 'add 0x400000000 x' 'add 0x400000000 0'; do
	# shellcheck disable=SC2086
	refuses 2 'bad: ' "$ctl" bad v.img $words
done
refuses 2 'bad: takes VOLUME' "$ctl" -j bad v.img add $base
for words in 'add 0x3fffffff8' 'add 0x402000000' 'add 0x401fff000 8K' 'remove 0x1000'; do
	# shellcheck disable=SC2086
	refuses 1 'v.img: lies at 0x400000000 to 0x401ffffff$' "$ctl" bad v.img $words
done
expect 0 "$ctl" bad v.img
says '^none$'

# --- a member has stored a wrong count of inodes ---
cp v.img counted.img
expect 0 "$ctl" bad counted.img add $base
printf '\0\0\0\0\0\0\0\x20' | dd of=counted.img bs=1 seek=4176 conv=notrunc status=none
expect 0 timeout 20 "$ctl" bad counted.img

# --- a page of a file ---
"$ctl" -j stat v.img /file >out
phys=$(pick 'd["table"]["runs"][0]["phys"]' <out)
expect 0 "$ctl" bad v.img add "$((phys + 4096))"
expect 0 "$ctl" bad v.img
says "^$(printf '0x%x' $((phys + 4096)))  4 KiB  in use <2>\$"
expect 0 "$ctl" -j bad v.img
json "len(d['bad']) == 1 and d['bad'][0]['files'] == [2] and d['bad'][0]['bytes'] == 4096 and
	int(d['bad'][0]['phys'], 16) == $((phys + 4096)) and
	d['bad'][0]['offset'] == $((phys + 4096 - base)) and d['bad'][0]['what'] == 'in use'"
expect 1 "$ctl" cat v.img /file
complains 'Input/output error'
cmp -n 4096 out file || fail "the bytes before the bad page differ"
expect 0 "$ctl" cat v.img /other
same out file
expect 0 "$ctl" stat v.img /file
expect 0 "$fsck" -n v.img
expect 0 "$ctl" rm v.img /file
expect 0 "$ctl" bad v.img
says '  free$'
expect 0 "$fsck" -n v.img
expect 0 "$ctl" bad v.img add "$((phys + 4096))"	# already good
expect 0 "$ctl" bad v.img remove "$((phys + 4096 + 7))" 1
expect 0 "$ctl" bad v.img
says '^none$'

# --- ranges ---
expect 0 "$ctl" bad v.img add 0x401000000 64K
expect 0 "$ctl" bad v.img remove 0x401004000
expect 0 "$ctl" bad v.img
says '^0x401000000  16 KiB  free$'
says '^0x401005000  44 KiB  free$'
expect 0 "$ctl" bad v.img remove $base 32M

# --- pages that the complete volume needs ---
expect 0 "$ctl" bad v.img add 0x400003000
expect 0 "$ctl" bad v.img
says '^0x400003000  4 KiB  mount table$'
refuses 8 'bad memory at offset 0x3000 \(mount table\)' "$fsck" -n v.img
refuses 8 'bad memory' "$fsck" -y v.img
refuses 1 'bad memory.*backup.*stargatectl bad VOLUME remove' "$ctl" put v.img file /again
expect 0 "$ctl" cat v.img /other	# reading files still works
same out file
expect 0 "$ctl" bad v.img remove 0x400003000
expect 0 "$fsck" -n v.img
expect 0 "$ctl" put v.img file /again

# --- while a system uses the volume ---
machine=$tools/../tests/machine
[[ -x $machine ]] || fail "no $machine: make build PART=test-programs"
mkfifo in out.m
"$machine" <in >out.m &
beater=$!
exec {to}>in {from}<out.m
say() {
	local answer
	echo "$*" >&"$to"
	read -r -t 60 -u "$from" answer || fail "no answer to '$*'"
	[[ $answer == ok ]] || fail "$*: $answer"
}
say join v.img 11111111-2222-3333-4444-555555555501 1
expect 0 "$ctl" bad v.img add 0x401000000
expect 0 "$ctl" -j systems v.img
json "[s['version'] for s in d['systems']] == ['']"	# that system reports no version
expect 0 "$ctl" systems v.img
says ' VERSION +NAME$'
expect 0 "$ctl" bad v.img
says '^0x401000000  4 KiB  free$'
exec {to}>&- {from}<&-
wait "$beater" || true
beater=
echo "$checks checks"
