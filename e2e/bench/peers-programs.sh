#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make bench, section programs: usual programs (programs/once). They use the page cache, if the
# system has one. Prints
#
#   program SYSTEM NAME MS          one line a round
#   not SYSTEM NAME REASON...       the program fails on this system
#
# shellcheck source=e2e/bench/peers-common.sh
source "$(dirname "$0")/peers-common.sh"

rounds=${SG_ROUNDS:-$(scaled 1 3 5)} files=${SG_FILES:-$(scaled 20 60 500)}
order=(stargatefs tmpfs ext4-dax 9p 9p-loose virtiofs virtiofs-auto nfs smb)
names=(clone status untar tar rsync compile sqlite array gotest remove)
export smb_cache=strict # the usual mount option of Samba's client

# The input of the programs is a part of Python's modules: as files, as an archive, and as a
# repository.
material() {
	local file
	at g1 "mkdir -p /root/tree && cd /usr/lib/python3.*/ &&
		find . -name '*.py' -size -64k | LC_ALL=C sort | head -n $files | tar -cf - -T - |
			tar -C /root/tree -xf - &&
		cd /root/tree && tar -cf /root/tree.tar . && git init -q . &&
		git config user.name bench && git config user.email bench@localhost && git add . &&
		git commit -q -m tree && git gc -q && du -sh --exclude=.git . && find . -name '*.py' | wc -l"
	# The tests of Go's package os run in the directory of the package's sources.
	mkdir "$work/os"
	CGO_ENABLED=0 "$root/mk/tools/go" test -c -o "$work/os/os.test" os >&2 || fail "os.test"
	cp -r "$("$root/mk/tools/go" env GOROOT)"/src/os/. "$work/os/"
	tar -C "$work" -cf - os | on g1 'tar -C /root -xf -' || fail "os"
	for file in "$root"/e2e/bench/programs/* "$root/e2e/programs/together.c"; do
		put "$file" "/root/$(basename "$file")"
	done
}

once() { # SYSTEM
	local name ms why
	on g1 "timeout 600 /root/once ${folder[$1]}" </dev/null >"$work/said" || fail "programs in $1"
	for name in "${names[@]}"; do
		read -r _ ms why < <(grep "^$name " "$work/said") || fail "$1: $name is missing in: $(<"$work/said")"
		if [[ $ms == failed ]]; then
			echo "not $1 $name $why"
		else
			echo "program $1 $name $ms"
		fi
	done
}

serve nfs smb
prepare g1 "${order[@]}"
material
step "a first run loads the programs into memory" >&2
once tmpfs >/dev/null
load
for ((round = 1; round <= rounds; round++)); do
	for system in "${order[@]}"; do
		step "round $round, $system" >&2
		once "$system"
	done
done
load
leave
