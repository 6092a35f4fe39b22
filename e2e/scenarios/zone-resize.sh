#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A volume of a zone grows over memory of a deleted volume, and no old content is readable. The
# volume grows while it is unmounted, while its host has it mounted, and while host and a second
# system have it mounted. If a system has no memory for the growth, the error names it and nothing
# changes. If a system does not answer, the volume keeps the memory whose size the host's mount has
# already read. A terminal shows the progress of wiping.
#
# g2 has the same memory, and acts as another system that has a volume mounted.
#
# rig: --guests 2 --pages --no-mount --size 256M --mem 320M --pkgs lvm2
# kernels: 6.12
# maps: walk
# limit: 900
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"
mib=$((1 << 20))

at() { on "$1" "$2" </dev/null || fail "$1: $2"; }

# bytes BASE MIB: prints that part of the memory, which it reads from outside the VM.
bytes() { tail -c +$(($1 - RIG_BASE + 1)) "$RIG_RANGE" | head -c $(($2 * mib)) || true; }

# told BASE MIB: prints the number of lines with the secret in that memory.
told() { bytes "$1" "$2" | grep -ac 'a secret of others' || true; }

# secret FROM MIB: makes an LVM volume FROM MiB behind the volume's base, fills it with the secret,
# and removes it without wiping.
secret() {
	holds "the $2 MiB behind the volume have old content" "export DM_DISABLE_UDEV=1
		lvcreate -y -q -W n -Z n --addtag others -L $2M -n others sm && vgmknodes &&
		yes 'a secret of others' | dd of=/dev/sm/others bs=2M count=$(($2 / 2)) \
			iflag=fullblock oflag=direct status=none && lvremove -y -q sm/others"
	[[ $(told $((base + $1 * mib)) "$2") -gt $(($2 * mib / 20)) ]] || fail "the memory behind the volume does not have the old content"
}

# clean FROM MIB: checks that the volume's new memory does not contain the secret.
clean() { same "the new $2 MiB of the volume have no old content" 0 "$(told $((base + $1 * mib)) "$2")"; }

# sized SYSTEM MIB: checks the size that the module and df report. df does not count metadata.
sized() {
	same "$1 has $2 MiB" "$2" "$(at "$1" 'echo $(($(cat /sys/fs/stargatefs/*/size) >> 20))')"
	at "$1" "mb=\$(df -BM --output=size /mnt/a | tail -n 1 | tr -dc 0-9) &&
		[ \$mb -le $2 ] && [ \$mb -gt $(($2 * 9 / 10)) ] || { df /mnt/a; exit 1; }" >/dev/null
	passed "df in $1 shows about $2 MiB"
}

# grows MIB: checks that the volume grows. The function repeats the command after status 7 (busy),
# which a slow system on a shared host causes.
grows() {
	holds "the volume grows to $1 MiB" "for try in \$(seq 6); do
			s=0; stargatectl volume resize a --size $1M || s=\$?
			[ \$s = 7 ] || exit \$s
		done; exit 7"
}

# wiped COMMAND: checks that a terminal shows progress from 0 to 100 %, and that the command then
# clears the line.
wiped() {
	local said last=0 now
	said=$(at g1 "script -qec 'stargatectl volume $1' /run/said >/dev/null; tr '\\r' '\\n' </run/said")
	mapfile -t said < <(grep -aoP '^wiping b: +\K\d+(?= %)' <<<"$said")
	same "volume $1 reports its progress from 0 to 100 %" "0 100" "${said[0]:-} ${said[-1]:-}"
	for now in "${said[@]}"; do
		[[ $now -ge $last && $now -le 100 ]] || fail "the progress decreases: ${said[*]}"
		last=$now
	done
	passed "the progress has ${#said[@]} steps"
	at g1 "grep -qaP '100 %\\r\\x1b\\[K' /run/said"
	passed "at the end the terminal shows no progress"
}

step "growth over memory of a deleted volume"
holds "a zone is made" "stargatectl zone create sm /dev/pmem0"
holds "a volume is made" "stargatectl volume create a --size 32M -- --max-size 256M"
base=$(($(at g1 'stargatectl -j volume show a' | grep -oP '"base": "?\K0x[0-9a-f]+')))
secret 32 32
grows 64
holds "the volume passes fsck" "stargatectl volume check a"
clean 32 32

step "growth of a mounted volume"
holds "the volume is mounted" "mkdir -p /mnt/a && mount -t stargatefs /dev/sm/a /mnt/a &&
	cp /bin/bash /mnt/a/bash && exec 9</mnt/a/bash"
sized g1 64
secret 64 32
grows 96
clean 64 32
sized g1 96
holds "the grown volume has its files, and more space" \
	"cmp /bin/bash /mnt/a/bash && head -c 60M /dev/zero >/mnt/a/more && sync && rm /mnt/a/more"

step "growth while another system's device still has the old size"
at g2 'mkdir -p /mnt/a && modprobe dm_mod && DM_DISABLE_UDEV=1 vgchange -qq -ay sm &&
	mount -t stargatefs /dev/sm/a /mnt/a'
sized g2 96
secret 96 32
refused "the error names the other system" 'no more than 96 MiB while g2 .*uses the volume' \
	"stargatectl volume resize a --size 128M"
same "programs get the reason as JSON" '"in-use" 6' "$(on g1 'set -o pipefail; stargatectl -j volume resize a \
	--size 128M 2>/dev/null | grep -o "\"in-use\""; echo $?' </dev/null | xargs -d '\n')"
same "LVM has not extended the volume" "96.00m stargate" "$(at g1 'lvs --noheadings -o lv_size,lv_tags sm/a | xargs')"
same "LVM has no other volume" 1 "$(at g1 'lvs --noheadings sm | wc -l')"
sized g1 96
sized g2 96

holds "the volume is unmounted in g1" "umount /mnt/a"
refused "the resize is refused after the unmount in g1" 'g2' "stargatectl volume resize a --size 128M"
same "LVM has not extended the volume" "96.00m stargate" "$(at g1 'lvs --noheadings -o lv_size,lv_tags sm/a | xargs')"
holds "the volume is mounted in g1" "mount -t stargatefs /dev/sm/a /mnt/a"

step "growth while another system has the volume on a larger device"
at g2 "umount /mnt/a && DM_DISABLE_UDEV=1 vgchange -qq -an sm &&
	dmsetup --noudevsync create box \
		--table '0 $((128 * 2048)) linear /dev/pmem0 $(((base - RIG_BASE) / 512))' &&
	dmsetup mknodes && mount -t stargatefs /dev/mapper/box /mnt/a"
sized g2 96
secret 96 32
pause_guest g2
refused "the error names a system that does not answer" 'g2 .*does not answer' \
	"stargatectl volume resize a --size 128M"
resume_guest g2
sized g1 96
# The mount has read the new size, and cannot shrink. A user of the volume can make the mount access
# the new memory, so no other volume may get it (D10).
same "the volume keeps the memory that the mount has detected" "128.00m stargate $((128 * mib))" \
	"$(at g1 'lvs --noheadings -o lv_size,lv_tags sm/a; stat -c %s /mnt/a/.stargate/region' | xargs)"
clean 96 32
same "programs can read both sizes" "$((128 * mib)) $((96 * mib))" \
	"$(at g1 'stargatectl -j volume show a' | python3 -c 'import json, sys
v = json.load(sys.stdin)
print(v["size"], v["file_system"])')"
grows 128
clean 96 32
sized g1 128
sized g2 128
holds "a file is written to the new part" "head -c 90M /dev/urandom >/mnt/a/new && sha256sum </mnt/a/new >/mnt/a/sum && sync"
at g2 'sha256sum </mnt/a/new | cmp - /mnt/a/sum && umount /mnt/a'
passed "g2 reads what g1 has written to the new part"
holds "the volume passes fsck" "umount /mnt/a && stargatectl volume check a"

step "growth into a reserve"
holds "a volume with a reserve is made" "stargatectl volume delete a && stargatectl volume create c --size 32M --reserve 64M"
holds "another volume is made directly behind the reserve" "stargatectl volume create d --size 32M"
# shown KEY...: prints the values of the keys for volume c in the output of `volume show`.
shown() {
	at g1 "stargatectl -j volume show c" | python3 -c 'import json, sys
v = json.load(sys.stdin)
print(*(v.get(k) for k in sys.argv[1:]))' "$@"
}
same "the volume shows its memory, its size and its largest size" "$((96 * mib)) $((32 * mib)) $((96 * mib))" \
	"$(shown size file_system can_grow_to)"
holds "the volume is mounted" "mount -t stargatefs /dev/sm/c /mnt/a && cp /bin/bash /mnt/a"
same "a VM gets the memory of the volume with its reserve" $((96 * mib)) "$(at g1 'stat -c %s /mnt/a/.stargate/region')"
base=$(($(shown base)))
at g2 "umount -a -t stargatefs; dmsetup --noudevsync remove box; dmsetup --noudevsync create box \
		--table '0 $((96 * 2048)) linear /dev/pmem0 $(((base - RIG_BASE) / 512))' &&
	dmsetup mknodes && mount -t stargatefs /dev/mapper/box /mnt/a"
sized g1 32
sized g2 32
holds "the volume grows into its reserve" "stargatectl volume resize c --size 96M"
sized g1 96
sized g2 96
refused "the volume cannot grow beyond its reserve" "largest possible size is 96 MiB" "stargatectl volume resize c --size 98M"
same "the neighbour of the volume is unchanged" "ready $((32 * mib))" "$(at g1 'stargatectl -j volume show d' |
	python3 -c 'import json, sys
v = json.load(sys.stdin)
print(v["state"], v["size"])')"
at g2 'cmp /bin/bash /mnt/a/bash && umount /mnt/a'
holds "a clone with a reserve is made" "umount /mnt/a && stargatectl volume delete d &&
	stargatectl volume clone c e --reserve 16M && stargatectl volume check e"
same "the clone has its reserve" "$((112 * mib)) $((96 * mib))" "$(at g1 'stargatectl -j volume show e' | python3 -c 'import json, sys
v = json.load(sys.stdin)
print(v["size"], v["file_system"])')"
refused "a reserve larger than the zone is refused" "largest possible volume, with so much behind it, has" \
	"stargatectl volume create f --size 32M --reserve 16M"
refused "a reserve beyond the volume's largest size is refused" "can grow only to 20 MiB .*its reserve reaches to 24 MiB" \
	"stargatectl volume create f --size 16M --reserve 8M -- --max-size 20M"
refused "a clone's reserve beyond its largest size is refused" "can grow only to 512 MiB .*its reserve reaches to 1.1 GiB" \
	"stargatectl volume clone c f --reserve 992M"
refused "a reserve of 0 is refused" "2M to 64T" "stargatectl volume create f --size 32M --reserve 0"
holds "the volumes are deleted" "stargatectl volume delete e && stargatectl volume delete c"

step "the progress of wiping"
wiped "create b --size 64M"
same "without a terminal no progress is shown" "" "$(at g1 'stargatectl volume delete b 2>&1')"
holds "another volume is made" "stargatectl volume create b --size 32M"
wiped "resize b --size 64M"
wiped "delete b"
finish
