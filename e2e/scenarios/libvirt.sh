#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A volume through libvirt. A real libvirtd on a node defines and starts the output of `stargatectl
# volume libvirt-xml`, with QEMU as an unprivileged user. The VM has the volume at the volume's own
# physical address. libvirt makes QEMU allocate the complete volume in advance. The kernel satisfies
# that request, so QEMU itself stores nothing. During the request, other processes continuously
# write to files of the volume.
#
# node: --guests 1 --no-mount --size 64M --pkgs "libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients qemu-system-x86 lvm2"
# limit: 1200
# shellcheck disable=SC2016 # quoted text is for the node's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

# here WHAT COMMAND: checks that COMMAND succeeds on the node.
here() {
	local said
	said=$(on host "$2" 2>&1 </dev/null) || fail "$1: $2: $said"
	passed "$1"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

step "a volume that the node has mounted"
here "a volume with two files is made and mounted" 'for try in $(seq 500); do [ -b /dev/pmem0 ] && break; sleep 0.02; done
	stargatectl zone create sm /dev/pmem0 && stargatectl volume create data --size 32M &&
	mkdir -p /mnt/data && mount -t stargatefs /dev/sm/data /mnt/data && cd /mnt/data &&
	{ echo seen from libvirt; head -c 64K /dev/zero; } >page && fallocate -l 8M tally &&
	sync -f .'
base=$(on host 'stargatectl -j volume show data' </dev/null |
	python3 -c 'import json, sys; print(json.load(sys.stdin)["base"])')
dd if="$RIG_RANGE" of="$work/copy" bs=2M skip=$(((base - RIG_BASE) / 2097152)) count=16 status=none
at=$("$SG_TOOLS/stargatectl" -j stat "$work/copy" /page 2>/dev/null |
	python3 -c 'import json, sys; print(json.load(sys.stdin)["table"]["runs"][0]["phys"])')

step "libvirtd"
# Without udev, the scenario itself must make /dev/kvm accessible and register it with libvirt.
here "libvirtd runs" 'printf "stdio_handler = \"file\"\nnamespaces = []\n" >>/etc/libvirt/qemu.conf
	chmod 666 /dev/kvm
	mkdir -p /run/libvirt && libvirtd -d &&
	for try in $(seq 200); do virsh -q list && exit; sleep 0.1; done; exit 1'
on host 'virsh version' </dev/null | sed -n 's/^/   | /; /\(Running\|library\)/p'

# The VM has the devices that stargatectl printed, and the usual devices.
compile lookout tally
put "$compiled/tally" /root/tally host
here "the guest's kernel is copied" 'cp /rig/boot/0/vmlinuz /run/vmlinuz && chmod 644 /run/vmlinuz'
python3 - "$compiled/lookout" <<'PYTHON' | on host 'cat >/run/initrd && chmod 644 /run/initrd'
import sys
def entry(name, mode, data):
    fields = [0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
    head = b"070701" + b"".join(b"%08x" % f for f in fields) + name + b"\0"
    return head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)
program = open(sys.argv[1], "rb").read()
sys.stdout.buffer.write(entry(b"init", 0o100755, program) + entry(b"TRAILER!!!", 0, b""))
PYTHON
machine=0b5e55ed-0000-4000-8000-00000000beef
on host "stargatectl volume libvirt-xml data --memory 256M --machine $machine" </dev/null >"$work/recipe"
python3 - "$work/recipe" "$at" >"$work/domain" <<'PYTHON'
import sys
machine, devices = open(sys.argv[1]).read().split("<!-- in <devices> -->")
print(f"""<domain type='kvm'>
<name>tenant</name>
{machine}
<vcpu>1</vcpu>
<os>
  <type arch='x86_64' machine='q35'>hvm</type>
  <kernel>/run/vmlinuz</kernel>
  <initrd>/run/initrd</initrd>
  <cmdline>console=ttyS0 loglevel=5 iomem=relaxed no_timer_check at={sys.argv[2]}</cmdline>
</os>
<features><acpi/></features>
<devices>
  <emulator>/usr/bin/qemu-system-x86_64</emulator>
  {devices}
  <serial type='file'><source path='/run/tenant.log'/></serial>
</devices>
</domain>""")
PYTHON
on host 'cat >/run/domain' <"$work/domain"
here "libvirt accepts the output of stargatectl" 'virt-xml-validate /run/domain domain && virsh -q define /run/domain'

step "libvirt starts the VM while processes write"
tracing=/sys/kernel/tracing
here "the kernel traces madvise(), which requests memory in advance" "cd $tracing &&
	echo 1 >events/syscalls/sys_enter_madvise/enable && echo 1 >events/syscalls/sys_exit_madvise/enable"
here "writers run on the node" '(/root/tally /mnt/data/tally /run/enough >/run/tallied 2>&1 </dev/null &)
	(cd /mnt/data; while [ ! -e /run/enough ]; do
		head -c 256K /dev/urandom >/run/bytes
		cp /run/bytes g && cmp /run/bytes g && mv g g.$((n++ % 4)) || {
			echo lost >/run/lost; exit; }
	done >/dev/null 2>&1 </dev/null &)
	until [ -e /mnt/data/g.1 ]; do sleep 0.05; done'
here "libvirt starts the VM" 'virsh -q start tenant'
same "QEMU runs as an unprivileged user" libvirt-qemu \
	"$(on host 'stat -c %U /proc/$(cat /run/libvirt/qemu/tenant.pid)' </dev/null)"
same "the list of holders has QEMU and the VM's UUID" "rw $machine qemu-system-x86" \
	"$(on host "cut -d' ' -f2- /sys/fs/stargatefs/*/holders | sort -u" </dev/null)"
here "the VM has read the node's bytes at their address on the node, and answered" '
	answered() { [ "$(head -n 1 /mnt/data/page)" = "seen by the machine" ]; }
	for try in $(seq 1200); do ! answered || break; sleep 0.1; done
	answered && grep -a "^lookout: seen from libvirt" /run/tenant.log'
here "the VM has shut down, and the counting process has ended" 'for try in $(seq 600); do
		[ "$(virsh -q list --state-running)" ] || break; sleep 0.1; done
	touch /run/enough; for try in $(seq 300); do [ -s /run/tallied ] && break; sleep 0.1; done'

step "the results of the requests for memory"
on host "echo 0 >$tracing/tracing_on; cat $tracing/trace" </dev/null >"$work/trace"
# Finds each madvise() of QEMU with MADV_POPULATE_WRITE (0x17) in the trace, and its result in the
# same thread.
asked=$(awk '/sys_madvise\(.*behavior: 17\)/ { split($0, a, "len_in: "); sub(/,.*/, "", a[2]); len[$1] = a[2] }
	/sys_madvise -> / && $1 in len { print len[$1], $NF; delete len[$1] }' <"$work/trace")
[[ -n $asked ]] || fail "no process requested memory in advance"
same "every request for memory in advance succeeded" 0x0 "$(awk '{ print $2 }' <<<"$asked" | sort -u)"
size=$(on host 'stat -c %s /mnt/data/.stargate/region' </dev/null)
most=$(awk '{ print $1 }' <<<"$asked" | while read -r len; do echo $((16#$len)); done | sort -n | tail -n 1)
[[ $most -ge $size ]] || fail "no request covers the complete volume: $asked"
passed "one request covers all $size bytes of the volume"
rounds=$(on host 'cat /run/tallied' </dev/null)
[[ $rounds =~ ^[0-9]+$ && $rounds -gt 1 ]] || fail "a counter was overwritten: $rounds"
passed "a process increased 2048 counters $rounds times meanwhile, and none was overwritten"
here "each file had the bytes that were written" '[ ! -e /run/lost ]'
here "the list of holders is empty, and the volume passes fsck" '[ -z "$(cat /sys/fs/stargatefs/*/holders)" ] &&
	umount /mnt/data && stargatectl volume check data'
here "libvirtd ends" 'kill $(cat /run/libvirtd.pid)'
finish
