#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The tools escape names that guests, users and other programs have chosen. No name sends a command
# to the terminal, ends a line, or changes the direction of text.
# shellcheck source=kernel/tests/lib/machines.sh
source "$(dirname "$0")/../lib/machines.sh"

evil=$'e\e[2J\nroot: \x07' # ESC, newline, bell
shown='e\\x1b\[2J\\x0aroot: \\x07'
turned=$'a\u202eb\u2028c\u009bd' # right-to-left override, line separator, CSI of 8 bits
turned_shown='a\\xe2\\x80\\xaeb\\xe2\\x80\\xa8c\\xc2\\x9bd'

# harmless FILE LINES: FILE has LINES lines, and no terminal commands.
harmless() {
	[[ $(wc -l <"$1") -eq $2 ]] || fail "$1 has $(wc -l <"$1") lines, not $2"
	! LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]' "$1" ||
		fail "$1 has bytes that command a terminal"
	checks=$((checks + 2))
}

"$mkfs" -q --phys 16G --size 32M v.img
export MACHINE_NAME=$evil # a system's name that a guest may choose
start 1
start 2
unset MACHINE_NAME
say 1 join v.img $m1 1
say 2 join v.img $m2 1

"$ctl" slots v.img >out 2>err
says "$shown"
harmless out "$(wc -l <out)"
expect 0 "$ctl" systems v.img
says "$shown"
harmless out 4
expect 1 "$ctl" systems v.img fence 0
says "$shown \(slot 0\): its heartbeat moves" err
harmless err 1
expect 0 "$ctl" systems v.img fence 0 --force
says "^$shown \(slot 0\): fenced$"
harmless out 1
harmless err 0

# Paths of files that a shell pattern may match.
"$mkfs" -q --phys 16G --size 16M w.img
cp w.img "$evil"
expect 0 "$fsck" "$evil"
says "^$shown: clean"
harmless out 1
expect 0 "$ctl" snapshot --stall 10000 w.img "2$evil"
says "^w.img: copied to 2$shown, "
harmless out 1
expect 0 "$ctl" snapshot --stall 10000 "$evil" s.img
says "^$shown: copied to s.img, "
harmless out 1
expect 0 "$ctl" clone --base 20G "$evil" "3$evil"
says "^$shown: copied to 3$shown, "
harmless out 1
expect 0 "$ctl" grow "$evil" --size 16M
says "^$shown: has "
harmless out 1

# Names of files, including names that change the direction of text; JSON has them as names.
echo x >"$turned"
expect 0 "$ctl" put w.img "$turned"
expect 0 "$ctl" ls w.img
says "^$turned_shown$"
harmless out 1
expect 0 "$ctl" -j ls w.img
! LC_ALL=C grep -qP '\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]' out ||
	fail "the JSON output has bytes that command a terminal"
json "d['directories'][0]['entries'][0]['name'] == 'a\u202eb\u2028c\u009bd'"
expect 1 "$ctl" cat w.img "/none$turned"
says "$turned_shown" err
harmless err 1

echo "$checks checks"
