# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Common parts of scenarios with another release of the module. The other release has the same
# sources as this release, but another version number. A scenario sources this file after
# scenario.sh, in the project's folder.

other=9.9.9

# other_release: compiles the other release, and sets $next to its path. Sets $now to the version of
# this release.
other_release() {
	# The folder keeps object files, so that make compiles only changed sources again.
	local work dir=build/e2e/next-$SG_KERNEL
	now=$(sed -n 's/^#define SG_RELEASE.*"\(.*\)"$/\1/p' kernel/core/format/version.h)
	work=$(mktemp -d)
	cp -a kernel/core kernel/module "$work"
	mkdir -p "$dir"
	sed -i "s/^#define SG_RELEASE.*/#define SG_RELEASE	\"$other\"/" "$work/core/format/version.h"
	e2e/rig build-module --kernel "$SG_KERNEL" "$work/module" "$dir" >"$work/log" 2>&1 ||
		fail "the other release does not build: $(tail -n 20 "$work/log")"
	rm -rf --one-file-system "$work"
	next=$dir/stargatefs.ko
}

# has_other SYSTEM: copies the other release to the system; modinfo must print different versions.
has_other() {
	on "$1" 'cat >/root/next.ko' <"$next" || fail "$1 does not get the other release"
	same "$1: modinfo prints different versions for the two modules" "$now $other" "$(on "$1" \
		'modinfo -F version /root/stargatefs.ko /root/next.ko | xargs' </dev/null)"
}
