#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Two systems change to another release of the module, one after the other (unmount, rmmod, insmod,
# mount). During the change, the other system continues to use the volume. At the end one system
# reboots. A module in use cannot be unloaded.
#
# rig: --guests 2 --size 64M
# kernels: 6.12
# maps: walk
# limit: 900
# shellcheck disable=SC2016 # quoted text is for the VMs' shells
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"
cd "$(dirname "$0")/../.."
# shellcheck source=e2e/lib/release.sh
source e2e/lib/release.sh

# versions: prints the versions of all systems that have the volume mounted.
versions() {
	"$SG_TOOLS/stargatectl" --json systems "$RIG_RANGE" 2>/dev/null | tr -d ' \n' |
		grep -oE '"name":"g[0-9]"[^}]*"version":"[^"]*"' |
		sed -E 's/"name":"(g[0-9])".*"version":"([^"]*)"/\1=\2/' | sort | tr '\n' ' '
}

# sees GUEST WHAT EXPECTED COMMAND: checks that COMMAND prints EXPECTED in the guest.
sees() {
	local got
	got=$(on "$1" "$4" 2>&1 </dev/null) || true
	same "$1: $2" "$3" "$got"
}

step "a second release is built"
other_release
for guest in g1 g2; do has_other "$guest"; done
sees g1 "the kernel names the version of the loaded module" "$now" 'cat /sys/module/stargatefs/version'
same "the volume shows the releases of its members" "g1=$now g2=$now " "$(versions)"

step "modules in use"
refused "the module is not unloaded while a volume is mounted" 'in use' 'rmmod stargatefs'
on g1 'mkdir /mnt/sg/dir /mnt/again && mount --bind /mnt/sg/dir /mnt/again && umount /mnt/sg'
refused "the module is not unloaded while another mount exists" 'in use' 'rmmod stargatefs'
on g1 'mount -t stargatefs /dev/pmem0 /mnt/sg && umount /mnt/again && exec 9>/mnt/sg/open
	umount -l /mnt/sg; rmmod stargatefs 2>&1; echo text >&9; exec 9>&-' >"$RIG_DIR/said" 2>&1 </dev/null || true
grep -q 'in use' "$RIG_DIR/said" || fail "the module was unloaded while a file was open: $(cat "$RIG_DIR/said")"
passed "the module is not unloaded while a file of a lazily detached mount is open"
holds "the volume can be mounted" 'mount -t stargatefs /dev/pmem0 /mnt/sg && grep -q text /mnt/sg/open'

# made GUEST: prints the number of files that the guest's work has made.
made() { on "$1" "ls /mnt/sg/of.$1 | wc -l" </dev/null; }

# upgrade GUEST OTHER: upgrades GUEST while OTHER works, and checks that OTHER makes files
# meanwhile.
upgrade() {
	local before
	until before=$(made "$2") && [[ $before -gt 0 ]]; do sleep 0.1; done
	on "$1" 'umount /mnt/sg && rmmod stargatefs && insmod /root/next.ko &&
		mount -t stargatefs /dev/pmem0 /mnt/sg' </dev/null || fail "$1: the module cannot be replaced"
	[[ $(made "$2") -gt $before ]] || fail "$2 made no file during the upgrade of $1"
	passed "$2 made files during the upgrade of $1"
	sees "$1" "the loaded module has the other release" 9.9.9 'cat /sys/module/stargatefs/version'
}

# work GUEST: makes one file after the other in the guest until /root/stop exists. Each file
# contains its number.
work() {
	on "$1" "mkdir -p /mnt/sg/of.$1; n=0; rm -f /root/stop; until [ -e /root/stop ]; do
		n=\$((n + 1)); echo \$n >/mnt/sg/of.$1/\$n || exit 1
		[ \$(cat /mnt/sg/of.$1/\$n) = \$n ] || exit 1; done; echo \$n" </dev/null >"$RIG_DIR/work.$1" &
	worker=$!
}

# done_working GUEST OTHER: checks that the guest's work found no error, and that OTHER can read all
# its files.
done_working() {
	on "$1" 'touch /root/stop' </dev/null
	wait "$worker" || fail "$1: its work failed"
	local n
	n=$(<"$RIG_DIR/work.$1")
	[[ $n -gt 0 ]] || fail "$1 made no file"
	sees "$2" "all $n files that $1 made can be read" "$n" \
		"for i in \$(seq $n); do cat /mnt/sg/of.$1/\$i; done | sort -n | uniq | wc -l"
}

step "upgrades one after the other"
on g1 'head -c 4M /dev/urandom >/mnt/sg/data && ln -s data /mnt/sg/link'
sums=$(on g1 'cd /mnt/sg && sha256sum data && stat -c "%n %i %s %y %a" data link dir open')
work g2
upgrade g1 g2
done_working g2 g1
same "both systems are members" "g1=9.9.9 g2=$now " "$(versions)"
sees g1 "the files from before have their contents" "$sums" 'cd /mnt/sg && sha256sum data && stat -c "%n %i %s %y %a" data link dir open'
sees g1 "the other release cannot take a lock that this release holds" refused \
	'exec 9>/mnt/sg/lock; flock 9; touch /mnt/sg/has
	until [ -s /mnt/sg/tried ]; do sleep 0.1; done; cat /mnt/sg/tried' &
locker=$!
on g2 'until [ -e /mnt/sg/has ]; do sleep 0.1; done
	flock -n /mnt/sg/lock true && said=had || said=refused
	echo $said >/mnt/sg/tried' </dev/null
wait "$locker" || fail "locks between two releases failed"
work g1
upgrade g2 g1
done_working g1 g2
same "both systems have the other release" "g1=9.9.9 g2=9.9.9 " "$(versions)"
sees g2 "the files from before have their contents" "$sums" 'cd /mnt/sg && sha256sum data && stat -c "%n %i %s %y %a" data link dir open'

step "a reboot of one system"
work g2
stop_guest g1
start_guest g1
done_working g2 g1
sees g1 "the files from before have their contents" "$sums" 'cd /mnt/sg && sha256sum data && stat -c "%n %i %s %y %a" data link dir open'
same "g1 has its earlier release after the reboot" "g1=$now g2=9.9.9 " "$(versions)"
finish
