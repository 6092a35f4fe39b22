#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# KVM with kvm-patches, on a node: a volume as identity memory of a VM whose monitor maps nothing.
# In each mode of the processor, the guest reads and writes the host's bytes at that physical
# address. KVM refuses memory that was not opened. The guest loses revoked memory immediately, and
# exits instead of crashing. The host detects the VM's system: it guards the system, and fences it
# on request or when its monitor is killed. The cases run with the TDP MMU, without it, and with
# shadow paging. Stock KVM runs for comparison, and the times of each give the table of
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
member='machine-aaaaaaaa' # the name of its system
project=$(dirname "$0")/../..
env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -s -C "$project" build/tests/machine >&2 ||
	fail "no machine"
put "$project/build/tests/machine" /root/machine host
on host 'mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug'

# denied WHAT PATTERN COMMAND: checks that COMMAND fails in the node, with PATTERN in its output.
denied() {
	if said=$(on host "$3" 2>&1 </dev/null); then fail "$1: not refused: $said"; fi
	grep -qE -- "$2" <<<"$said" || fail "$1: refused without '$2': $said"
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

# tell WHAT: sends an order to that process.
tell() {
	local said
	said=$(on host "n=\$(wc -l </run/member.out); echo '$1' >/run/member.in
		for i in \$(seq 1000); do
			[ \$(wc -l </run/member.out) -eq \$n ] || break
			sleep 0.01
		done; tail -n +\$((n + 1)) /run/member.out" </dev/null)
	same "the machine's system: $1" ok "$said"
}

# --- costs ----------------------------------------------------------------------------------------

declare -A seen # KEY/COLUMN of the table: the values
repeats=$(scaled 3 5 20)

# note KEY VALUE: adds the value to the current column.
note() { seen[$1/$column]+=" $2"; }

# gained NAME: prints the difference between the first and the last of the last vmm's statistics.
gained() {
	sed -nE "s/^stats .*\b$1=([0-9]+).*/\1/p" <<<"$said" |
		awk 'NR == 1 { a = $1 } { b = $1 } END { print b - a }'
}

# took NAME: prints the duration of the last vmm's action, in us.
took() { sed -nE "s/^$1 (-?[0-9]+) .*/\1/p" <<<"$said"; }

# untouched: discards all memory, so that the host outside must allocate it.
untouched() {
	on host 'umount /mnt/sg' || fail "not unmounted"
	fallocate --dig-holes "$RIG_RANGE"
	on host 'mount -t stargatefs /dev/pmem0 /mnt/sg' || fail "not mounted"
}

# populate KEY: the guest of a new VM reads all memory.
populate() {
	vmm run "$kind" $region stats sum stats
	says "the guest reads at each physical address what the host has there" '^sum [0-9]+ same'
	note "$1" "$(took sum)"
}

# fence_by WAY: fences a new VM, whose guest writes the time.
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

# revoke: takes the volume from a monitor that holds it without a VM's name.
revoke() {
	local round
	for ((round = 0; round < repeats; round++)); do
		vmm fence "$kind" $region "$page" revoke
		says "it wrote, and does so no more" '^fence -?[0-9]+ [0-9]+$'
		note revoked-last "$(took fence)"
		note revoked "${said##* }"
	done
}

# measure COLUMN KIND
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
		says "all is mapped in advance" '^prefault [0-9]+ done'
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

# row TITLE KEY DIVISOR
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
[[ -n $page ]] || fail "the file is not in one piece: $("$SG_TOOLS/stargatectl" stat "$RIG_RANGE" /file)"
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
[[ $(value 2m) -ge $((${part#*,} / 2)) && $(value 4k) -lt 20 ]] || fail "not by 2 MiB pages"
passed "KVM maps the volume by 2 MiB pages: $(value 2m), with $(value guest-faults) faults"
vmm run "identity:$part" $region prefault stats sum stats
says "all is mapped in advance" '^prefault [0-9]+ done'
says "and is the same" '^sum [0-9]+ same'

vmm run identity $region sum
says "all of the volume" '^sum [0-9]+ same'
if on host 'grep -qw pdpe1gb /proc/cpuinfo' </dev/null; then
	vmm run "identity:$large" $region sum stats
	same "is one page of 1 GiB, with no mapping of the monitor" 1 "$(value 1g)"
	measure large "identity:$large"
else
	echo "   (1 GiB in one page: not tried, for want of pdpe1gb)"
fi

# The guest's accesses in each configuration.
exercise() {
	local bits
	for bits in 16 32 64; do
		vmm run "identity:$near" $region "write$bits" "$page" 256
		says "$bits-bit code writes, and the host finds it" "^write$bits [0-9]+ done"
	done
	on host "cmp -n 1048576 /mnt/sg/file <(tail -c +$((offset + 1)) $region)" ||
		fail "the file is not what the guest wrote"
	passed "the guest's stores are in the file"

	on host 'head -c 2M /dev/urandom | dd of=/mnt/sg/file conv=notrunc status=none &&
		sync /mnt/sg/file'
	vmm run "identity:$near" $region sum
	says "the guest reads what the host has written" '^sum [0-9]+ same'

	vmm run "identity:$near" $region sum churn stats sum stats
	[[ $(($(value guest-faults) - 8)) -le $(sed -nE '0,/^stats/s/.*guest-faults=([0-9]+).*/\1/p' <<<"$said") ]] ||
		fail "mappings of the monitor cost the guest its own"
	passed "mappings of the monitor come and go without effect"

	vmm run "readonly:$near" $region sum write64 "$page" 1
	says "read-only it is read" '^sum [0-9]+ same'
	says "but not written" '^write64 [0-9]+ write as of a device'

	vmm run "identity:$near" $region log write64 "$page" 7 dirty dirty write64 "$page" 3 dirty
	same "pages that are written to are logged" "7 0 3 " \
		"$(sed -nE 's/^dirty 0 ([0-9]+) pages/\1/p' <<<"$said" | tr '\n' ' ')"
}

# start_spinning ACTION...: starts a VM in the background that has opened the file $opened.
opened=$region
start_spinning() { spin "identity:$near" "$opened" "$page" "$@"; }

revocation() {
	start_spinning spin "$page" drop slot write64 "$page" 5
	denied "the volume is in use" busy "umount /mnt/sg"
	vmm revoke $region 1
	says "nobody else's volume is revoked" '^revoke [0-9]+ 0 machines'
	vmm revoke $region '$(sed -n "s/^spinning //p" /run/vmm)'
	says "its volume is revoked" '^revoke [0-9]+ 1 machines'
	await_end
	same "each access to a revoked slot ends in an exit" 2 "$(grep -c '^spin .* memory fault, revoked,' <<<"$said")"
	says "a new slot is as good as the first" '^write64 [0-9]+ done'
}

# The module, which owns the memory, is unloaded while the slot exists.
owner_goes() {
	start_spinning leave await /run/go spin "$page" drop
	vmm revoke $region 0
	await_left
	holds_in_node "volume and module are free then" 'umount /mnt/sg && rmmod stargatefs'
	await_end
	same "the slot outlives both" 2 "$(grep -c '^spin .* memory fault, revoked,' <<<"$said")"
	holds_in_node "all is as before" 'insmod /root/stargatefs.ko-$(uname -r) && mount -t stargatefs /dev/pmem0 /mnt/sg'
}

await_left() {
	holds_in_node "it is open no more" 'for i in $(seq 200); do
		grep -q "^leave" /run/vmm && exit; sleep 0.05; done; exit 1'
}

# of KEY: prints the value of KEY for that system from the host's tool, or nothing if there is no
# such system.
of() {
	on host "stargatectl --json systems $region" </dev/null | python3 -c 'import json, sys
print(*[s.get(sys.argv[1]) for s in json.load(sys.stdin)["systems"] if s["name"] == sys.argv[2]])' "$1" "$member"
}

# until_system KEY VALUE WHAT
until_system() {
	local try
	for ((try = 0; try < 20; try++)); do
		[[ $(of "$1") != "$2" ]] || { passed "$3"; return; }
		sleep 0.2
	done
	fail "$3: not so: $1 is '$(of "$1")'"
}

word() { on host "od -An -tu8 -j $offset -N 8 $region" </dev/null | xargs; }

# start_held: starts a VM whose guest stores, and which is opened by its UUID; sets $pid to its
# monitor.
start_held() {
	local before
	opened=$region@$machine
	start_spinning
	opened=$region
	pid=$(on host 'sed -n "s/^spinning //p" /run/vmm' </dev/null)
	same "the monitor is listed" "$pid rw $machine vmm" \
		"$(on host "grep $machine /sys/fs/stargatefs/pmem0/holders" </dev/null)"
	same "the monitor is shown as the holder for the system" "$pid" "$(of held_by)"
	until_system guarded True "the host stands by it"
	before=$(word)
	sleep 1
	[[ $(word) -gt $before ]] || fail "its guest does not store"
	passed "the guest stores"
}

# A VM on identity memory, opened for its UUID, can be fenced like a VM that maps the memory.
fencing() {
	local before
	step "the host as the machine's fence"
	start_member
	tell "join $region $machine 1"
	start_held
	tell "still 0"
	holds_in_node "it is fenced" "stargatectl systems $region fence $member >/run/said"
	holds_in_node "and its monitor said to be revoked" "grep -q '^process $pid (vmm), revoked\$' /run/said"
	before=$(word)
	sleep 1
	same "the system can store nothing more" "$before" "$(word)"
	await_end
	says "its monitor gets an error" '^spin .* memory fault, revoked,'
	until_system state "" "its slot is free"
	same "no process holds the volume for this VM" 0 \
		"$(on host "grep -c $machine /sys/fs/stargatefs/pmem0/holders" </dev/null || true)"

	tell "join $region $machine 2"
	start_held
	on host "rm -f /run/enough; VOLUME_BASE=$base /root/vmm run readonly:$near $region@$machine await /run/enough" \
		</dev/null >/dev/null &
	reader=$!
	holds_in_node "one that may only read is listed, too" "for i in \$(seq 200); do
		grep -q '^[0-9]* ro $machine vmm\$' /sys/fs/stargatefs/pmem0/holders && exit; sleep 0.05; done; exit 1"
	on host 'touch /run/enough' </dev/null
	wait "$reader" || fail "the reader failed"
	same "the end of the process fences no system" alive "$(of state)"
	on host "kill -KILL $pid" </dev/null
	! wait "$background" || fail "the monitor is not killed"
	until_system state "" "the monitor is killed: its system is dead, though its heartbeat moves"
	holds_in_node "the log says it" "dmesg | grep '$member (slot [0-9]*): its VM has ended: fenced'"
	end_member
}

# Runs the test of the patch series. Its memory is a part of the volume, whose bytes are restored
# afterwards.
selftest() {
	local saved
	saved=$(mktemp)
	holds_in_node "(unmounted)" 'umount /mnt/sg'
	head -c 4M "$RIG_RANGE" >"$saved"
	holds_in_node "(owner)" "insmod /root/kvm_identity_owner.ko start=$RIG_BASE size=4194304"
	on host "/root/identity_memory_test $(scaled 10 30 1000)" </dev/null 2>&1 | sed "s/^/   | /" ||
		fail "the series' selftest"
	passed "the series' selftest"
	holds_in_node "(no owner)" 'rmmod kvm_identity_owner'
	dd if="$saved" of="$RIG_RANGE" conv=notrunc status=none
	rm "$saved"
	holds_in_node "(mounted)" 'mount -t stargatefs /dev/pmem0 /mnt/sg'
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
