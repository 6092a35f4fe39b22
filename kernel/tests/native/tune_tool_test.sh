#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatectl tune --uuid and --label, as a user calls them: on an unused file, on a file that a
# system uses (machine.c), by two tools at the same time, and killed at any time. guard_test.sh
# covers the lease.
set -euo pipefail
# shellcheck source=kernel/tests/lib/machines.sh
source "$(dirname "$0")/../lib/machines.sh"

# info EXPRESSION: prints EXPRESSION of the output of `stargatectl info` for v.img.
info() { "$ctl" -j info v.img | pick "$1"; }
# is UUID LABEL: v.img has this UUID and label, and is clean.
is() {
	[[ $(info 'd["uuid"]') == "$1" && $(info 'd["label"]') == "$2" ]] ||
		fail "v.img should have UUID and label $1 '$2', but has $(info 'd["uuid"], d["label"]')"
	expect 0 "$fsck" -n v.img
	says ': clean'
}

"$mkfs" -q --phys 16G --size 32M --label first v.img
echo kept >file
"$ctl" put v.img file /file
uuid=$(info 'd["uuid"]') created=$(info 'd["created"]')

# --- no system uses the volume ---
expect 0 "$ctl" tune v.img
says "^uuid: +$uuid\$"
says '^label: +first$'
says '^lease: +never$'
expect 0 "$ctl" tune v.img --uuid random
[[ ! -s out && ! -s err ]] || fail "tune prints something"
new=$(info 'd["uuid"]')
[[ $new != "$uuid" && $new =~ ^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$ ]] ||
	fail "the new UUID is not random: $new"
is "$new" first
[[ $(info 'd["created"]') == "$created" ]] || fail "tune has changed the volume's creation time"
expect 0 "$ctl" tune v.img --uuid random
[[ $(info 'd["uuid"]') != "$new" ]] || fail "a second random UUID equals the first"
expect 0 "$ctl" tune v.img --uuid 01234567-89AB-cdef-0123-456789abcdef
is 01234567-89ab-cdef-0123-456789abcdef first
expect 0 "$ctl" tune v.img --uuid ffffffffffffffffffffffffffffffff --label $'caf\303\251'
is ffffffff-ffff-ffff-ffff-ffffffffffff $'caf\303\251'
expect 0 "$ctl" tune --label second v.img
is ffffffff-ffff-ffff-ffff-ffffffffffff second
expect 0 "$ctl" tune --label '' v.img
is ffffffff-ffff-ffff-ffff-ffffffffffff ''
expect 0 "$ctl" tune v.img --lease 7 --uuid "$uuid" --label third
is "$uuid" third
expect 0 "$ctl" -j tune v.img
json "d == {'uuid': '$uuid', 'label': 'third', 'lease_ms': 7000}"
expect 0 "$ctl" cat v.img /file
same out file
# Both copies of the superblock have the new UUID: without the first copy, the volume has the same
# UUID.
cp v.img whole.img
dd if=/dev/zero of=v.img bs=4096 count=1 conv=notrunc status=none
expect 1 "$fsck" -y v.img
is "$uuid" third
mv whole.img v.img

# --- invalid arguments ---
cp v.img before
for bad in '' RANDOM 1 00000000-0000-0000-0000-000000000000 00000000000000000000000000000000 \
	0123456789abcdef0123456789abcdeg 01234567-89ab-cdef-0123-456789abcdef0 \
	01234567-89abc-def-0123-456789abcdef ' random' $'random\n'; do
	expect 2 "$ctl" tune v.img --uuid="$bad"
	complains "--uuid '.*': must be the word random, or 32 hexadecimal digits, not all of them 0"
done
refuses 2 "--label '.*': must be up to 63 bytes" "$ctl" tune v.img --label "$(printf 'l%.0s' {1..64})"
refuses 2 "--label '.*': must be up to 63 bytes" "$ctl" tune v.img --label $'a\nb'
refuses 2 "--label '.*': must be up to 63 bytes" "$ctl" tune v.img --label $'\377'
refuses 2 'tune: takes no --force' "$ctl" tune v.img --force --uuid random
refuses 2 'tune: takes VOLUME' "$ctl" tune v.img --uuid random other
refuses 2 'info: takes no --uuid' "$ctl" info v.img --uuid random
refuses 1 'none: cannot be opened' "$ctl" tune none --uuid random
head -c 32M /dev/zero >empty
refuses 1 'empty: no StargateFS here' "$ctl" tune empty --uuid random
if [[ ${#unprivileged[@]} -gt 0 ]]; then
	chmod 755 . && chmod 644 v.img && cp "$ctl" ctl && chmod 755 ctl
	refuses 1 'v.img: cannot be opened for writing: Permission denied' \
		"${unprivileged[@]}" ./ctl tune v.img --uuid random
fi
same v.img before

# --- a system uses the volume: every change is refused ---
start 1
say 1 join v.img $m1 1
cp v.img before
refuses 1 'v.img: mounted by machine-11111111 \(slot [0-9]+\); unmount it there first' "$ctl" tune v.img --uuid random
refuses 1 'v.img: mounted by machine-11111111' "$ctl" tune v.img --label other
refuses 1 'v.img: mounted by machine-11111111' "$ctl" tune v.img --lease 9 --uuid random
expect 0 "$ctl" -j tune v.img
json "d == {'uuid': '$uuid', 'label': 'third', 'lease_ms': 7000}"
for at in 0 $(((32 << 20) - 4096)); do
	cmp <(tail -c +$((at + 1)) v.img | head -c 4096) <(tail -c +$((at + 1)) before | head -c 4096) ||
		fail "tune has changed the superblock while a system uses the volume"
done
expect 0 "$ctl" tune v.img --lease never # the system continues as before
# The system dies: the next tune first recovers its slot.
say 1 mkdir 0 dir
say 1 reset 0
expect 0 "$ctl" tune v.img --uuid random --label fourth
is "$(info 'd["uuid"]')" fourth
expect 0 "$ctl" ls v.img /
says '^dir$'
echo "exit 0" >&"${to[1]}"
wait "${pid[1]}" || true

# --- two tools at the same time: both succeed one after the other, or one reports the other ---
refused=0 was=$(info 'd["uuid"][:4] + d["label"]')
for try in $(seq 12); do
	"$ctl" tune v.img --uuid 11111111-1111-1111-1111-111111111111 --label one 2>err1 & one=$!
	"$ctl" tune v.img --uuid 22222222-2222-2222-2222-222222222222 --label two 2>err2 & two=$!
	s1=0 s2=0
	wait $one || s1=$?
	wait $two || s2=$?
	refused=$((refused + s1 + s2))
	now=$(info 'd["uuid"][:4] + d["label"]')
	if ((s1 && s2)); then # each tool has detected the other
		[[ $now == "$was" ]] ||
			fail "refused commands have changed the volume: $(cat err1 err2)"
		continue
	fi
	was=$now
	case $now in
	1111one) ((s1 == 0)) || fail "a refused command has changed the volume" ;;
	2222two) ((s2 == 0)) || fail "a refused command has changed the volume" ;;
	*) fail "a mixture of both commands: $(info 'd["uuid"], d["label"]') (try $try)" ;;
	esac
done
((refused <= 18)) || fail "$refused of 24 commands are refused; most pairs should have one success"
echo "$refused of 24 commands were refused"
expect 0 "$fsck" -n v.img

# --- tune is killed at any time, and runs again: the old pair or the new one, never a mixture ---
for us in 500 1000 2000 3000 5000 8000 12000 20000 40000 80000; do
	"$ctl" tune v.img --uuid 33333333-3333-3333-3333-333333333333 --label three 2>/dev/null &
	sleep "$(printf '0.%06d' $us)"
	kill -9 $! 2>/dev/null || true
	wait $! 2>/dev/null || true
	case $("$ctl" -j info v.img 2>/dev/null | pick 'd["uuid"][:4] + d["label"]') in
	"$was" | 3333three | 4444four) ;;
	*) fail "a mixture: $(info 'd["uuid"], d["label"]')" ;;
	esac
	expect 0 "$ctl" tune v.img --uuid 44444444-4444-4444-4444-444444444444 --label four
	is 44444444-4444-4444-4444-444444444444 four
done
expect 0 "$ctl" cat v.img /file
same out file
echo "$checks checks"
