#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Changes of the mount while files are in use. The scenario changes map= repeatedly under load,
# makes the mount read-only and back, freezes and thaws it, and compares the text of /proc/mounts.
#
# rig: --size 256M --cpus 2
# maps: inside
# limit: 600
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

seed=$(seed)
echo "SG_SEED=$seed repeats the load"
program fsx stress mapcount

# shown: prints the line of the mount in /proc/mounts.
shown() { on g1 'grep " /mnt/sg " /proc/mounts'; }

step "map= changes under load"
seconds=$(scaled 4 10 120)
on g1 "/root/fsx -s $seed -l 3000000 -n 100000000 -t $seconds /mnt/sg/fsx" </dev/null &
fsx=$!
on g1 "mkdir /mnt/sg/storm; /root/stress -s $seed -p 3 -t $seconds /mnt/sg/storm" </dev/null &
storm=$!
changes=0
while kill -0 "$fsx" 2>/dev/null; do
	for map in splice shadow walk; do
		on g1 "mount -o remount,map=$map /mnt/sg" </dev/null || fail "remount to map=$map"
		grep -q "map=$map" <<<"$(shown)" ||
			fail "/proc/mounts does not show map=$map: $(shown)"
		changes=$((changes + 1))
		sleep 0.1
	done
done
wait "$fsx" || fail "fsx failed while map= changed, SG_SEED=$seed"
wait "$storm" || fail "stress failed while map= changed, SG_SEED=$seed"
[[ $changes -ge 3 ]] || fail "only $changes changes of map= within $seconds s"
passed "map= changed $changes times under load, and no program found an error"

step "options"
holds "errors= can be changed" 'mount -o remount,errors=continue /mnt/sg &&
	grep -q errors=continue /proc/mounts && mount -o remount,errors=remount-ro /mnt/sg'
before=$(shown)
refused "an unknown map mode is refused" 'map=teleport is unknown: use map=walk, splice or shadow' \
	'mount -o remount,map=teleport /mnt/sg'
refused "an unknown option is refused" 'bad|invalid|unknown|wrong' 'mount -o remount,nonsense /mnt/sg'
for place in size=0 phys=0 phys=0,size=0 size=256M; do
	refused "a remount cannot change $place" 'cannot be changed by a remount' "mount -o remount,$place /mnt/sg"
done
refused "a remount cannot relocate the volume" 'relocate: a remount does not move a volume; unmount it' \
	'mount -o remount,relocate /mnt/sg'
same "a refused remount changes nothing" "$before" "$(shown)"
for times in noatime relatime; do
	holds "/proc/mounts shows $times" \
		"mount -o remount,$times /mnt/sg && grep -q /mnt/sg.*$times /proc/mounts"
done

read_only() {
	local map=$1
	holds "map=$map: the mount becomes read-only" 'echo text >/mnt/sg/file && mount -o remount,ro /mnt/sg'
	refused "no file can be created" 'Read-only' 'touch /mnt/sg/new'
	refused "no file can be written" 'Read-only' 'echo more >>/mnt/sg/file'
	refused "no file can be removed" 'Read-only' 'rm /mnt/sg/file'
	holds "files can still be read" '[ "$(cat /mnt/sg/file)" = text ]'
	holds "the mount becomes read-write" \
		'mount -o remount,rw /mnt/sg && echo more >>/mnt/sg/file && rm /mnt/sg/file'
	refused "the mount cannot become read-only while a file is open for writing" 'busy' \
		'exec 5>/mnt/sg/open; mount -o remount,ro /mnt/sg'
	holds "the refused remount has left the mount writable" 'rm /mnt/sg/open'
}
each_map read_only

# progress: prints the size of the file that one process appends to, and the counter that another
# process increases in a mapping.
progress() { on g1 'stat -c %s /mnt/sg/log && od -An -tu8 -N8 /mnt/sg/mapped' </dev/null; }

frozen() {
	local map=$1 writer mapper before after
	on g1 'while :; do echo x >>/mnt/sg/log || exit 1; done' </dev/null >/dev/null 2>&1 &
	writer=$!
	on g1 '/root/mapcount /mnt/sg/mapped /run/stop' </dev/null &
	mapper=$!
	sleep 1
	holds "map=$map: the mount freezes under load" 'fsfreeze -f /mnt/sg'
	before=$(progress) || fail "map=$map: the writers have not begun"
	sleep 1
	same "neither calls nor mappings change a file while the mount is frozen" "$before" "$(progress)"
	refused "a second freeze is refused" 'busy' 'fsfreeze -f /mnt/sg'
	holds "the mount is thawed" 'fsfreeze -u /mnt/sg'
	sleep 0.5
	after=$(progress)
	[[ ${before%%$'\n'*} != "${after%%$'\n'*}" && ${before##*$'\n'} != "${after##*$'\n'}" ]] ||
		fail "map=$map: after the thaw a writer does not continue: $before, then $after"
	passed "map=$map: both writers continue after the thaw"
	holds "the load ends" 'touch /run/stop; pkill -f "sg/[l]og"; true'
	wait "$writer" || true
	wait "$mapper" || fail "map=$map: the writer of the mapping failed"
	holds "all files can be removed" 'rm -f /run/stop /mnt/sg/log /mnt/sg/mapped'
}
each_map frozen

# memory: prints a digest of the volume. A read-only mount that is not a member must not change it.
memory() { sha256sum <"$RIG_RANGE"; }
step "mounts with nojoin"
refused "a remount of a member with nojoin is refused" 'nojoin: a remount does not leave' 'mount -o remount,ro,nojoin /mnt/sg'
refused "a second mount with nojoin beside a member is refused" 'nojoin: mounted already, as a member' \
	'mount -o remount,ro /mnt/sg && mkdir -p /mnt/second &&
		mount -t stargatefs -o ro,nojoin /dev/pmem0 /mnt/second'
holds "the volume is unmounted" 'mount -o remount,rw /mnt/sg && echo kept >/mnt/sg/kept && umount /mnt/sg'
refused "a writable mount with nojoin is refused" 'mount it with ro,nojoin' 'mount -t stargatefs -o nojoin /dev/pmem0 /mnt/sg'
before=$(memory)
holds "a read-only mount with nojoin is accepted" 'mount -t stargatefs -o ro,nojoin /dev/pmem0 /mnt/sg &&
	grep -q " /mnt/sg .*nojoin" /proc/mounts && [ "$(cat /sys/fs/stargatefs/pmem0/slot)" = -1 ]'
holds "volume.json shows that the system has not joined" 'grep "\"joined\": false" /mnt/sg/.stargate/volume.json'
holds "a mount with nojoin can read all files" '[ "$(cat /mnt/sg/kept)" = kept ] && find /mnt/sg -type f -exec cat {} + >/run/all'
refused "a mount with nojoin cannot become writable" 'does not join' 'mount -o remount,rw /mnt/sg'
refused "region cannot be opened for writing by a mount with nojoin" 'denied|Read-only' 'exec 9<>/mnt/sg/.stargate/region'
holds "the volume is unmounted" 'umount /mnt/sg'
same "the mount with nojoin has changed no byte of the volume" "$before" "$(memory)"

step "nojoin after a power cut"
holds "a system joins the volume" 'mount -t stargatefs /dev/pmem0 /mnt/sg && echo more >>/mnt/sg/kept'
kill_guest g1
start_guest g1 --no-mount
refused "a mount with nojoin is refused if the volume needs recovery" 'needs recovery.*does not join' \
	'mkdir -p /mnt/sg && mount -t stargatefs -o ro,nojoin /dev/pmem0 /mnt/sg'
holds "after a member has recovered the volume, a mount with nojoin is accepted" 'mount -t stargatefs -o ro /dev/pmem0 /mnt/sg && umount /mnt/sg &&
	mount -t stargatefs -o ro,nojoin /dev/pmem0 /mnt/sg && [ "$(head -n 1 /mnt/sg/kept)" = kept ]'
finish
