#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs on a node whose KVM has kvm-patches. A VM has a volume as identity memory, and its monitor
# maps no memory. In each mode of the processor, the guest reads and writes the host's bytes at
# their physical addresses. KVM refuses memory that was not opened. The guest loses revoked memory
# immediately, and exits instead of crashing. The host knows the VM's system. It guards the system,
# and fences it on request or when the monitor is killed. The cases run with the TDP MMU, without
# it, and with shadow paging. Stock KVM runs for comparison. The measured times are in the table of
# kvm-patches/README.md.
#
# node: --guests 0 --size 1028M
# limit: 1800
# shellcheck disable=SC2016 # quoted text is for the node's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"
base=$RIG_BASE
# shellcheck source=e2e/lib/kvm.sh
source "$(dirname "$0")/../lib/kvm.sh"

region=/mnt/sg/.stargate/region
machine=aaaaaaaa-0000-4000-8000-000000000001
member='machine-aaaaaaaa' # the name of the VM's system
project=$(dirname "$0")/../..
env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -s -C "$project" build/tests/machine >&2 ||
	fail "the program machine does not compile"
put "$project/build/tests/machine" /root/machine host
on host 'mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug'

# denied WHAT PATTERN COMMAND: checks that COMMAND fails in the node, with PATTERN in its output.
denied() {
	if said=$(on host "$3" 2>&1 </dev/null); then fail "$1: the command succeeded: $said"; fi
	grep -qE -- "$2" <<<"$said" || fail "$1: the output does not match '$2': $said"
	passed "$1: $(grep -E -m 1 -- "$2" <<<"$said")"
}

# value NAME: prints a value of the last vmm's statistics.
value() { sed -nE "s/^stats .*\b$1=([0-9]+).*/\1/p" <<<"$said" | tail -n 1; }

# page_of FILE: prints the physical address of the file's first page, if the next 511 pages follow
# it contiguously.
page_of() {
	"$SG_TOOLS/stargatectl" --json stat "$RIG_RANGE" "$1" 2>/dev/null |
		sed -nE 's/.*"page": 0, "pages": 512, .*"phys": "(0x[0-9a-f]+)".*/\1/p'
}

holds_in_node() {
	local said
	said=$(on host "$2" 2>&1 </dev/null) || fail "$1: $2 said: $said"
	passed "$1"
}

# Starts a process that joins the volume as the VM's system, because the guest of `vmm` does not
# join. The process maps region without a VM's name, so that only the monitor holds the volume for
# the VM.
start_member() {
	on host 'rm -f /run/member.*; mkfifo /run/member.in; : >/run/member.out
		(exec 9<>/run/member.in; exec /root/machine <&9 >/run/member.out 2>&1) &
		echo $! >/run/member.pid' </dev/null
}

end_member() {
	on host 'kill -KILL $(cat /run/member.pid)
		for i in $(seq 200); do
			grep -q " machine$" /sys/fs/stargatefs/pmem0/holders || exit 0; sleep 0.05
		done; exit 1' </dev/null || fail "the system's process does not end"
}

# tell ORDER: sends the order to that process, and checks that the answer is `ok`.
tell() {
	local said
	said=$(on host "n=\$(wc -l </run/member.out); echo '$1' >/run/member.in
		for i in \$(seq 1000); do
			[ \$(wc -l </run/member.out) -eq \$n ] || break
			sleep 0.01
		done; tail -n +\$((n + 1)) /run/member.out" </dev/null)
	same "the process of the VM's system answers ok to: $1" ok "$said"
}

# --- costs ----------------------------------------------------------------------------------------

declare -A seen # maps KEY/COLUMN of the table to the measured values
repeats=$(scaled 3 5 20)

# note KEY VALUE: adds the value to the current column.
note() { seen[$1/$column]+=" $2"; }

# gained NAME: prints by how much the value NAME grew in the statistics of the last vmm.
gained() {
	sed -nE "s/^stats .*\b$1=([0-9]+).*/\1/p" <<<"$said" |
		awk 'NR == 1 { a = $1 } { b = $1 } END { print b - a }'
}

# took NAME: prints the duration of the last vmm's action, in us.
took() { sed -nE "s/^$1 (-?[0-9]+) .*/\1/p" <<<"$said"; }

# untouched: discards the volume's memory, so that the host outside must allocate it once more.
untouched() {
	on host 'umount /mnt/sg' || fail "the volume cannot be unmounted"
	fallocate --dig-holes "$RIG_RANGE"
	on host 'mount -t stargatefs /dev/pmem0 /mnt/sg' || fail "the volume cannot be mounted"
}

# populate KEY: makes the guest of a new VM read the complete volume, and notes the time as KEY.
populate() {
	vmm run "$kind" $region stats sum stats
	says "the guest reads at each physical address what the host has there" '^sum [0-9]+ same'
	note "$1" "$(took sum)"
}

# fence_by WAY: measures how long a fence takes. The guest of a new VM writes the time repeatedly.
# WAY is `kill` (the monitor is killed) or `alive` (the host fences the running VM).
fence_by() {
	local round fence=/sys/fs/stargatefs/pmem0/fence
	[[ $1 == alive ]] || fence=$1
	start_member
	for ((round = 1; round <= (repeats < 8 ? repeats : 8); round++)); do
		tell "join $region $machine $round"
		vmm fence "$kind" "$region@$machine" "$page" "$fence"
		says "it wrote, and does so no more" '^fence -?[0-9]+ [0-9]+$'
		note "$1-last" "$(took fence)"
		note "$1-dead" "${said##* }"
	done
	end_member
}

# revoke: measures how long it takes to revoke a volume that a monitor opened without a VM's name.
revoke() {
	local round
	for ((round = 0; round < repeats; round++)); do
		vmm fence "$kind" $region "$page" revoke
		says "it wrote, and does so no more" '^fence -?[0-9]+ [0-9]+$'
		note revoked-last "$(took fence)"
		note revoked "${said##* }"
	done
}

# measure COLUMN KIND: measures all rows of one column of the table.
measure() {
	local round column=$1 kind=$2
	for ((round = 0; round < 3; round++)); do
		untouched
		populate untouched
	done
	for ((round = 0; round < repeats; round++)); do
		populate touched
		note guest-faults "$(gained guest-faults)"
		note monitor-faults "$(gained monitor-faults)"
		note kvm-tables "$(gained kvm-tables-KiB)"
		note monitor-tables "$(gained monitor-tables-KiB)"
		vmm run "$kind" $region prefault stats sum stats
		says "KVM maps the complete volume in advance" '^prefault [0-9]+ done'
		note prefault "$(took prefault)"
		note prefaulted "$(gained guest-faults)"
	done
	fence_by kill
	fence_by alive
	[[ $kind == stock* ]] || revoke
}

# spread DIVISOR VALUE...: prints the median, and minimum and maximum in brackets.
spread() {
	local divisor=$1
	shift
	[[ $# -gt 0 ]] || return 0
	printf '%s\n' "$@" | sort -g | awk -v by="$divisor" '
		function text(x) { return by == 1 ? x "" : sprintf("%.2f", x / by) }
		{ v[NR] = $1 }
		END {
			median = text((v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2)
			print median (v[1] == v[NR] ? "" : " (" text(v[1]) ", " text(v[NR]) ")")
		}'
}

# row TITLE KEY DIVISOR: prints one row of the table.
row() {
	local column line="| $1 |"
	for column in stock patched identity large; do
		# shellcheck disable=SC2086 # several values
		line+=" $(spread "$3" ${seen[$2/$column]:-}) |"
	done
	echo "$line"
}

show_table() {
	step "duration: 1 GiB, median (least, most) of $repeats"
	echo "| | slot over a mapping, stock KVM | the same, KVM with the patches | identity slot, 2 MiB pages | identity slot, a page of 1 GiB |"
	echo "|---|---:|---:|---:|---:|"
	row "faults of the guest that reads all" guest-faults 1
	row "faults of the monitor's own mapping for them" monitor-faults 1
	row "ms until it has read all" touched 1000
	row "the same, of memory that nobody has touched before" untouched 1000
	row "ms until all is mapped in advance (\`KVM_PRE_FAULT_MEMORY\`)" prefault 1000
	row "faults of the guest that reads all then" prefaulted 1
	row "KiB of KVM's page tables" kvm-tables 1
	row "KiB of the monitor's page tables for it" monitor-tables 1
	row "the monitor is killed: ms until the guest's last store" kill-last 1000
	row "ms until the host has fenced its system" kill-dead 1000
	row "fenced alive: ms until the guest's last store" alive-last 1000
	row "ms until the host has fenced its system" alive-dead 1000
	row "only revoked: ms until the guest's last store" revoked-last 1000
	row "ms until nothing can be stored any more" revoked 1000
}

on host 'fallocate -l 2M /mnt/sg/file &&
	dd if=/dev/zero of=/mnt/sg/file bs=2M count=1 conv=notrunc,fsync status=none'
page=$(page_of /file)
[[ -n $page ]] || fail "the file has no contiguous 2 MiB: $("$SG_TOOLS/stargatectl" stat "$RIG_RANGE" /file)"
offset=$((page - RIG_BASE))
near=$((offset >> 21 << 1)),64 # the MiB around the file
part=2,1024 # MiB of the volume: no 1 GiB page fits
large=0,1024 # a 1 GiB page fits

step "stock KVM"
denied "stock KVM has no identity slots" "not supported" "VOLUME_BASE=$base /root/vmm run identity $region sum"
measure stock "stock:$part"

kvm 'tdp_mmu=1/'
measure patched "stock:$part"
measure identity "identity:$part"

vmm run "identity:$part" $region stats sum stats
says "the guest reads at each physical address what the host has there" '^sum [0-9]+ same'
[[ $(value 2m) -ge $((${part#*,} / 2)) && $(value 4k) -lt 20 ]] || fail "KVM does not map the volume by 2 MiB pages"
passed "KVM maps the volume by 2 MiB pages: $(value 2m), with $(value guest-faults) faults"
vmm run "identity:$part" $region prefault stats sum stats
says "KVM maps that part of the volume in advance" '^prefault [0-9]+ done'
says "after that, the guest reads the host's bytes" '^sum [0-9]+ same'

vmm run identity $region sum
says "the guest reads the complete volume" '^sum [0-9]+ same'
if on host 'grep -qw pdpe1gb /proc/cpuinfo' </dev/null; then
	vmm run "identity:$large" $region sum stats
	same "KVM maps 1 GiB by one page, without a mapping of the monitor" 1 "$(value 1g)"
	measure large "identity:$large"
else
	echo "   (a page of 1 GiB was not tested, because the processor has no pdpe1gb)"
fi

# exercise: tests the guest's accesses with the current parameters of KVM.
exercise() {
	local bits
	for bits in 16 32 64; do
		vmm run "identity:$near" $region "write$bits" "$page" 256
		says "the host reads what $bits-bit code of the guest wrote" "^write$bits [0-9]+ done"
	done
	on host "cmp -n 1048576 /mnt/sg/file <(tail -c +$((offset + 1)) $region)" ||
		fail "the file does not have the bytes that the guest wrote"
	passed "the guest's stores are in the file"

	on host 'head -c 2M /dev/urandom | dd of=/mnt/sg/file conv=notrunc status=none &&
		sync /mnt/sg/file'
	vmm run "identity:$near" $region sum
	says "the guest reads what the host has written" '^sum [0-9]+ same'

	vmm run "identity:$near" $region sum churn stats sum stats
	[[ $(($(value guest-faults) - 8)) -le $(sed -nE '0,/^stats/s/.*guest-faults=([0-9]+).*/\1/p' <<<"$said") ]] ||
		fail "the guest lost mappings when its monitor mapped and unmapped memory"
	passed "mappings that the monitor makes and removes do not affect the guest"

	vmm run "readonly:$near" $region sum write64 "$page" 1
	says "the guest can read a read-only volume" '^sum [0-9]+ same'
	says "the guest cannot write a read-only volume" '^write64 [0-9]+ write as of a device'

	vmm run "identity:$near" $region log write64 "$page" 7 dirty dirty write64 "$page" 3 dirty
	same "KVM logs the pages that the guest writes" "7 0 3 " \
		"$(sed -nE 's/^dirty 0 ([0-9]+) pages/\1/p' <<<"$said" | tr '\n' ' ')"
}

# start_spinning ACTION...: starts a VM in the background. Its monitor has opened the file $opened.
opened=$region
start_spinning() { spin "identity:$near" "$opened" "$page" "$@"; }

revocation() {
	start_spinning spin "$page" drop slot write64 "$page" 5
	denied "the volume is in use" busy "umount /mnt/sg"
	vmm revoke $region 1
	says "a revocation for another process affects no VM" '^revoke [0-9]+ 0 machines'
	vmm revoke $region '$(sed -n "s/^spinning //p" /run/vmm)'
	says "a revocation for the monitor affects its VM" '^revoke [0-9]+ 1 machines'
	await_end
	same "each access to a revoked slot ends in an exit" 2 "$(grep -c '^spin .* memory fault, revoked,' <<<"$said")"
	says "the guest can write through a new slot" '^write64 [0-9]+ done'
}

# The module, which owns the memory, is unloaded while the slot exists.
owner_goes() {
	start_spinning leave await /run/go spin "$page" drop
	vmm revoke $region 0
	await_left
	holds_in_node "the volume can be unmounted, and the module unloaded" 'umount /mnt/sg && rmmod stargatefs'
	await_end
	same "accesses to the remaining slot exit without harm" 2 "$(grep -c '^spin .* memory fault, revoked,' <<<"$said")"
	holds_in_node "the module can be loaded, and the volume mounted" 'insmod /root/stargatefs.ko-$(uname -r) && mount -t stargatefs /dev/pmem0 /mnt/sg'
}

await_left() {
	holds_in_node "the monitor has closed region" 'for i in $(seq 200); do
		grep -q "^leave" /run/vmm && exit; sleep 0.05; done; exit 1'
}

# of KEY: prints the value of KEY for the VM's system from the host's tool, or nothing if the system
# has no slot.
of() {
	on host "stargatectl --json systems $region" </dev/null | python3 -c 'import json, sys
print(*[s.get(sys.argv[1]) for s in json.load(sys.stdin)["systems"] if s["name"] == sys.argv[2]])' "$1" "$member"
}

# until_system KEY VALUE WHAT: waits until the VM's system has this VALUE.
until_system() {
	local try
	for ((try = 0; try < 20; try++)); do
		[[ $(of "$1") != "$2" ]] || { passed "$3"; return; }
		sleep 0.2
	done
	fail "$3: $1 is still '$(of "$1")'"
}

word() { on host "od -An -tu8 -j $offset -N 8 $region" </dev/null | xargs; }

# start_held: starts a VM whose guest stores repeatedly. The monitor opens region with the VM's
# UUID. Sets $pid to the monitor's process.
start_held() {
	local before
	opened=$region@$machine
	start_spinning
	opened=$region
	pid=$(on host 'sed -n "s/^spinning //p" /run/vmm' </dev/null)
	same "the list of holders has the monitor" "$pid rw $machine vmm" \
		"$(on host "grep $machine /sys/fs/stargatefs/pmem0/holders" </dev/null)"
	same "stargatectl shows the monitor as the holder for the VM's system" "$pid" "$(of held_by)"
	until_system guarded True "the host guards the VM's system"
	before=$(word)
	sleep 1
	[[ $(word) -gt $before ]] || fail "the VM's guest does not store"
	passed "the guest stores"
}

# A VM on identity memory that was opened with the VM's UUID can be fenced like a VM that maps the
# memory.
fencing() {
	local before
	step "the host guards and fences the VM's system"
	start_member
	tell "join $region $machine 1"
	start_held
	tell "still 0"
	holds_in_node "the host fences the VM's system" "stargatectl systems $region fence $member >/run/said"
	holds_in_node "the command reports the revocation of the monitor" "grep -q '^process $pid (vmm), revoked\$' /run/said"
	before=$(word)
	sleep 1
	same "the system can store nothing more" "$before" "$(word)"
	await_end
	says "the monitor gets an error" '^spin .* memory fault, revoked,'
	until_system state "" "the slot of the VM's system is free"
	same "no process holds the volume for this VM" 0 \
		"$(on host "grep -c $machine /sys/fs/stargatefs/pmem0/holders" </dev/null || true)"

	tell "join $region $machine 2"
	start_held
	on host "rm -f /run/enough; VOLUME_BASE=$base /root/vmm run readonly:$near $region@$machine await /run/enough" \
		</dev/null >/dev/null &
	reader=$!
	holds_in_node "the list of holders has a monitor with read access only" "for i in \$(seq 200); do
		grep -q '^[0-9]* ro $machine vmm\$' /sys/fs/stargatefs/pmem0/holders && exit; sleep 0.05; done; exit 1"
	on host 'touch /run/enough' </dev/null
	wait "$reader" || fail "the reader failed"
	same "the end of the reading monitor fences no system" alive "$(of state)"
	on host "kill -KILL $pid" </dev/null
	! wait "$background" || fail "the monitor was not killed"
	until_system state "" "after the monitor is killed, its system is fenced, although its heartbeat moves"
	holds_in_node "the log reports the fence" "dmesg | grep '$member (slot [0-9]*): its VM has ended: fenced'"
	end_member
}

# Runs the test of the patch series. The test uses a part of the volume as its memory, and the
# function restores the bytes of this part after the test.
selftest() {
	local saved
	saved=$(mktemp)
	holds_in_node "the volume is unmounted" 'umount /mnt/sg'
	head -c 4M "$RIG_RANGE" >"$saved"
	holds_in_node "the owner of the identity memory is loaded" "insmod /root/kvm_identity_owner.ko start=$RIG_BASE size=4194304"
	on host "/root/identity_memory_test $(scaled 10 30 1000)" </dev/null 2>&1 | sed "s/^/   | /" ||
		fail "the selftest of the patch series failed"
	passed "the selftest of the patch series succeeds"
	holds_in_node "the owner of the identity memory is unloaded" 'rmmod kvm_identity_owner'
	dd if="$saved" of="$RIG_RANGE" conv=notrunc status=none
	rm "$saved"
	holds_in_node "the volume is mounted" 'mount -t stargatefs /dev/pmem0 /mnt/sg'
}

exercise
revocation
fencing
owner_goes
selftest

kvm 'tdp_mmu=0/'
exercise
revocation
selftest

kvm '/npt=0'
exercise
revocation
selftest

show_table
finish
