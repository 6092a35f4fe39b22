#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Three systems with different kernels and map modes make, remove and rename the same few
# directories at the same time. They move directories into others, and rename them over others. At
# the end all systems report the same place of every directory, and each can make files in every
# directory. If one system creates a directory under the name of a removed one, the other systems
# can use the new directory.
#
# rig: --guests 3 --size 64M --mem 320M
# mixed: 6.1,6.12,7.2
# node: --guests 2 --kernel 6.1,7.2 --size 64M
# kernels: 6.12
# maps: inside
# limit: 900
# node-limit: 1800
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

seed=$(seed)
program_everywhere places
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# view SYSTEM: prints inode and path of each directory, and the directories in which the system
# cannot make a file.
view() {
	on "$1" 'cd /mnt/sg && find . -mindepth 1 -printf "%i %p\n" | sort
		find . -type d | while read -r d; do
			echo x >"$d/probe" && rm "$d/probe" || echo "nothing can be made in $d"
		done' </dev/null 2>&1
}

each_its_map
for ((round = 1; round <= $(scaled 2 3 50); round++)); do
	step "round $round"
	jobs=()
	for system in "${systems[@]}"; do
		on "$system" "/root/places $((seed + 100 * round + ${#jobs[@]})) $(scaled 3000 6000 20000) \
			/mnt/sg" </dev/null >"$work/said.$system" 2>&1 &
		jobs+=($!)
	done
	for job in "${jobs[@]}"; do wait "$job" || fail "SG_SEED=$seed: $(cat "$work"/said.*)"; done
	for system in "${systems[@]}"; do passed "$system found no error: $(<"$work/said.$system")"; done
	for system in "${systems[@]}"; do view "$system" >"$work/view.$system"; done
	for system in "${systems[@]:1}"; do
		diff "$work/view.${systems[0]}" "$work/view.$system" ||
			fail "SG_SEED=$seed: ${systems[0]} and $system see different directories"
	done
	! grep nothing "$work"/view.* || fail "SG_SEED=$seed: a system cannot make a file in a directory"
	passed "all systems see the same $(wc -l <"$work/view.${systems[0]}") names"
	holds "everything can be removed" 'rm -r /mnt/sg/*'
	for system in "${systems[@]}"; do
		[[ -z $(on "$system" 'ls /mnt/sg' </dev/null) ]] || fail "$system still sees a removed name"
	done
	passed "no system sees a removed name"
done
finish
