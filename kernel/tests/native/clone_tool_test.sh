#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatectl clone, as a user calls it: of an unused file, of a file that processes use as systems
# (machine.c), and of a snapshot of that file; larger targets, refusals, kills.
set -euo pipefail
# shellcheck source=kernel/tests/lib/machines.sh
source "$(dirname "$0")/../lib/machines.sh"

nothing_left() { [[ ! -e $1 && ! -e $1.part ]] || fail "$1 is there"; }

# info FILE EXPRESSION: prints EXPRESSION of the output of `stargatectl info`.
info() { "$ctl" -j info "$1" | pick "$2"; }

# own FILE BASE LABEL: the volume is clean, has this base and label, no systems, and a new UUID.
own() {
	expect 0 "$fsck" -n "$1"
	says ': clean'
	expect 0 "$ctl" -j info "$1"
	json "int(d['base'], 16) == $2 and d['label'] == '$3'"
	[[ $(info "$1" 'd["uuid"]') != "$uuid" ]] || fail "$1 has the UUID of the copied volume"
	expect 0 "$ctl" -j slots "$1"
	json 'd["taken"] == 0'
}

# holds FILE: the volume has all files of the source.
holds() {
	rm -rf back
	expect 0 "$ctl" get -r "$1" / back
	diff -r --no-dereference tree back >/dev/null ||
		fail "$1: its files differ from those of the source"
}

mkdir -p tree/dir
head -c 3M /dev/urandom >tree/large
head -c 100 /dev/urandom >tree/dir/small
ln -s "$(printf 'x%.0s' $(seq 200))" tree/link
"$mkfs" -q --phys 16G --size 32M --max-size 64M --label first v.img
expect 0 "$ctl" put -r v.img tree/. /
uuid=$(info v.img 'd["uuid"]')

# --- on an unused file ---
cp v.img before
expect 0 "$ctl" clone --base 20G --label second v.img c1
says '^v.img: copied to c1, 32 MiB at 0x500000000$'
own c1 $((20 << 30)) second
holds c1
cmp v.img before || fail "the copied volume has changed"
[[ $(stat -c %a c1) == 600 ]] || fail "the copy's mode is not 600"
(($(stat -c %b c1) * 512 >= 32 << 20)) || fail "the copy is sparse: its memory is not allocated"
# the copy has the same base and a larger size
expect 0 "$ctl" -j clone --base 16G --size 48M v.img c2
says '"file": "c2"'
json 'd["base"] == "0x400000000" and d["size"] == 48 << 20 and d["tries"] == 0'
own c2 $((16 << 30)) ''
holds c2
[[ $(stat -c %s c2) -eq $((48 << 20)) ]] || fail "the larger copy does not have the requested size"
[[ $(info c1 'd["uuid"]') != $(info c2 'd["uuid"]') ]] || fail "two copies have the same UUID"
# The copies share nothing, and a copy can be copied.
expect 0 "$ctl" rm c1 /large
holds v.img
holds c2
expect 0 "$ctl" clone --base 24G c2 c3
own c3 $((24 << 30)) ''
holds c3
[[ $(info c3 'd["size"]') -eq $((48 << 20)) ]] ||
	fail "the copy of the larger volume is smaller than its source"
cmp v.img before || fail "the copied volume has changed"

# --- free pages of a locked chunk: they may have the log of a write that recovery needs ---
cp v.img logged.img
off=$("$ctl" -j dump v.img super | pick 'int(d["chunk_off"], 16)')
printf '\100\1' | dd of=logged.img bs=1 seek=$((off + 14 * 128)) conv=notrunc status=none
at=$(((14 << 21) + 5 * 4096))
for name in locked free; do
	[[ $name == locked ]] || at=$((at - (1 << 21)))
	printf 'log of a write' | dd of=logged.img bs=1 seek=$at conv=notrunc status=none
done
expect 0 "$ctl" clone --base 20G logged.img c21
has_at() { tail -c +$(($1 + 1)) c21 | head -c 14 | tr -d '\0'; }
[[ $(has_at $((at + (1 << 21)))) == 'log of a write' ]] || fail "the log of a write is not copied"
[[ -z $(has_at $at) ]] || fail "a free page is copied"
holds c21

# --- of a volume whose only system was fenced for its silence, and may still run ---
cp v.img lapsed.img
start 7
say 7 join lapsed.img "$m1" 1
say 7 still 0
expect 0 "$ctl" systems lapsed.img fence 0 --force
begun=$(date +%s%N)
expect 0 "$ctl" clone --base 20G lapsed.img c20
complains 'lapsed.img: a system that was fenced for its silence may still store: waiting for up to 10 s'
(($(date +%s%N) - begun >= 10000000000)) ||
	fail "the copy was made while the fenced system could still store"
holds c20
say 7 reset 0

# --- refusals ---
refuses 2 '--base is missing' "$ctl" clone v.img c4
refuses 2 "--base '17': must be 2M to 4095T" "$ctl" clone --base 17 v.img c4
refuses 2 'clone: takes VOLUME FILE' "$ctl" clone --base 20G v.img
refuses 2 'takes no --align' "$ctl" clone --base 20G --align 1G v.img c4
refuses 2 '--size 17825793: a volume has' "$ctl" clone --base 20G --size 17825793 v.img c4
refuses 2 "--label .*: must be up to 63 bytes" "$ctl" clone --base 20G \
	--label "$(printf 'l%.0s' $(seq 64))" v.img c4
refuses 1 'v.img: has 32 MiB, and a copy cannot be smaller: the least size is 33554432 bytes, not 16 MiB' \
	"$ctl" clone --base 20G --size 16M v.img c4
refuses 1 'v.img: the volume and its copies can grow to 64 MiB at most .*\(67108864 bytes\)' \
	"$ctl" clone --base 20G --size 80M v.img c4
refuses 1 'c1: exists already' "$ctl" clone --base 20G v.img c1
refuses 1 'none: cannot be opened: No such file' "$ctl" clone --base 20G none c4
refuses 1 'no/c4.part: cannot be created: No such file' "$ctl" clone --base 20G v.img no/c4
head -c 32M /dev/zero >empty
refuses 1 'empty: no StargateFS' "$ctl" clone --base 20G empty c4
(ulimit -f 1024; trap '' XFSZ; refuses 1 'c4.part: cannot be made as large' \
	"$ctl" clone --base 20G v.img c4)
cp v.img damaged.img
off=$("$ctl" -j dump v.img inode /large | pick 'int(d["record"], 16)')
printf '\1' | dd of=damaged.img bs=1 seek=$((off + 48 + 5)) conv=notrunc status=none
refuses 1 'damaged: repair it with fsck.stargatefs -y first' "$ctl" clone --base 20G damaged.img c4
nothing_left c4
echo old >c4.part
expect 0 "$ctl" clone --base 20G v.img c4
own c4 $((20 << 30)) ''
holds c4
[[ ! -e c4.part ]] || fail "clone has left c4.part"

# --- bad memory: the copy lists the same pages as bad ---
cp v.img bad.img
phys=$("$ctl" -j stat bad.img /large | pick 'd["table"]["runs"][0]["phys"]')
expect 0 "$ctl" bad bad.img add "$((phys + 4096))"
expect 0 "$ctl" clone --base 20G bad.img c9
expect 0 "$ctl" -j bad c9
json "int(d['bad'][0]['phys'], 16) == $((phys + 4096 + (4 << 30))) and len(d['bad']) == 1"
expect 1 "$ctl" cat c9 /large
complains 'Input/output error'
expect 0 "$ctl" cat c9 /dir/small
off=$((phys + 4096 - (16 << 30)))
[[ -z $(tail -c +$((off + 1)) c9 | head -c 4096 | tr -d '\0' | head -c 1) ]] ||
	fail "bad memory was read"

# --- while other systems use the volume, and clones of a snapshot ---
start 1
start 2
say 1 join v.img $m1 1
say 2 join v.img $m2 1
say 1 mkdir 0 dir2
mkdir tree/dir2
expect 0 "$ctl" clone --stall 4000 --base 20G v.img c5
says ' at 0x500000000; all systems paused for [0-9.]+ ms$'
own c5 $((20 << 30)) ''
holds c5
expect 0 "$ctl" snapshot --stall 4000 v.img s5
cp s5 before
say 1 mkdir 0 later
expect 0 "$ctl" clone --base 28G --size 64M s5 c6
own c6 $((28 << 30)) ''
holds c6
cmp s5 before || fail "the snapshot has changed"
say 2 still 0
refuses 7 'v.img: machine-11111111 \(slot [0-9]+\) does not freeze' \
	"$ctl" clone --stall 4000 --base 20G v.img c7
nothing_left c7
say 2 go 0

# --- a system joins while an unused volume is copied: the copy would mix two moments ---
"$mkfs" -q --phys 16G --size 128M --label large large.img
head -c 60M /dev/urandom >bytes
expect 0 "$ctl" put large.img bytes /bytes
for try in $(seq 7); do
	"$ctl" clone --base 20G large.img c10 >out 2>err &
	cloning=$!
	until [[ -e c10.part ]] || ! kill -0 $cloning 2>/dev/null; do :; done
	kill -STOP $cloning 2>/dev/null || true
	say 1 join large.img $m1 1
	kill -CONT $cloning 2>/dev/null || true
	status=0
	wait $cloning || status=$?
	say 1 leave "$try"
	((status == 0)) || break
	own c10 $((20 << 30)) ''
	rm c10
	[[ $try != 7 ]] || fail "no clone ran during the join: the test has proved nothing"
done
complains 'large.img: a system began to use it during the copy: try again'
nothing_left c10

# --- the name is given to another volume during the copy ---
swapped=0
for try in 1 2 3 4 5 6 7 8; do
	"$mkfs" -q --phys 40G --size 32M --label victim victim.img
	cp victim.img victim.before
	"$ctl" clone --base 20G large.img sw >/dev/null 2>&1 &
	cloning=$!
	until [[ -e sw.part ]] || ! kill -0 $cloning 2>/dev/null; do :; done
	sleep 0.0$try
	if mv sw.part sw.mine 2>/dev/null && ln -s victim.img sw.part; then swapped=$((swapped + 1)); fi
	wait $cloning || true
	cmp victim.img victim.before || fail "clone has changed another volume instead of the copy"
	rm -f sw sw.part sw.mine victim.img
done
((swapped > 0)) || fail "no name was replaced during a copy: the test has proved nothing"
checks=$((checks + 8))

# --- clone is killed at any time: it leaves a partial file or none, and can be run again ---
for ms in 5 20 50 100 200; do
	"$ctl" clone --base 28G s5 c8 >/dev/null 2>&1 &
	sleep "$(printf '0.%03d' $ms)"
	kill -9 $! 2>/dev/null || true
	wait $! 2>/dev/null || true
	[[ ! -e c8 ]] || { own c8 $((28 << 30)) ''; rm c8; }
done
expect 0 "$ctl" clone --base 28G s5 c8
own c8 $((28 << 30)) ''
holds c8
cmp s5 before || fail "the snapshot has changed"
[[ ! -e c8.part ]] || fail "clone has left c8.part"

say 1 leave 0
say 2 leave 0
echo "exit 0" >&"${to[1]}"
echo "exit 0" >&"${to[2]}"
wait "${pid[1]}" "${pid[2]}" || true
expect 0 "$fsck" -n v.img
echo "$checks checks"
