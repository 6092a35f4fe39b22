#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A full volume has a file that one system has removed while another system has it open. The last
# close in the other system frees the file immediately. Its space is then available to both systems.
# The same holds if the system that has the file open dies.
#
# rig: --guests 2 --size 64M --mem 320M
# mixed: 6.1,7.2
# node: --guests 2 --kernel 6.1,7.2 --size 64M
# kernels: 6.12
# maps: inside
# limit: 300
# node-limit: 900
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

at() { on "$1" "$2" </dev/null || fail "$1: $2"; }
# inodes SYSTEM: prints the number of inodes in use.
inodes() { at "$1" 'df --output=iused /mnt/sg | tail -n 1 | tr -d " "'; }

# left_open REMOVER USER: makes a file of 24 MiB. USER opens it, REMOVER removes it, and then fills
# all other space.
left_open() {
	at "$1" 'dd if=/dev/zero of=/mnt/sg/left bs=1M count=24 status=none'
	at "$2" 'sleep 1000 </mnt/sg/left >/dev/null 2>&1 & echo $! >/run/user'
	at "$1" 'rm /mnt/sg/left; ! dd if=/dev/zero of=/mnt/sg/filler bs=64k status=none 2>/dev/null'
}

# found SYSTEM WHAT: checks that the system's first request for the space succeeds.
found() {
	at "$1" 'dd if=/dev/zero of=/mnt/sg/found bs=1M count=20 status=none'
	at "$1" 'rm /mnt/sg/found /mnt/sg/filler'
	passed "$2"
}

roles=("g1 g2 g1" "g1 g2 g2" "g2 g1 g2" "g2 g1 g1")
! in_a_node || roles=("host g1 host" "host g2 g2" "g1 host g1" "g2 g1 host" "g1 g2 g1")
one=${systems[0]} two=${systems[1]}

each_its_map
before=$(inodes "$one")
for role in "${roles[@]}"; do
	read -r remover user needy <<<"$role"
	step "$remover removes a file that $user has open, and $needy needs the space"
	left_open "$remover" "$user"
	same "the inode stays while $user has the file open" $((before + 2)) "$(inodes "$remover")"
	at "$user" 'kill $(cat /run/user); while [ -e /proc/$(cat /run/user) ]; do :; done'
	same "the last close frees the inode" $((before + 1)) "$(inodes "$remover")"
	found "$needy" "$needy gets the space of the closed file"
done

step "a file that one system replaces repeatedly, and another one only looks at"
at "$two" 'while [ ! -e /run/enough ]; do stat /mnt/sg/turn; done >/dev/null 2>&1 &'
at "$one" "for i in \$(seq $(scaled 200 500 3000)); do
	echo \$i >/mnt/sg/new && mv /mnt/sg/new /mnt/sg/turn; done; rm /mnt/sg/turn"
at "$two" 'touch /run/enough; sleep 4' # $two may keep a replaced inode for two seconds
same "no inode of the replaced files remains" "$before" "$(inodes "$one")"

step "the system with the open file dies"
left_open "$one" "$two"
kill_guest "$two"
found "$one" "$one gets the space of the dead system's file"
finish
