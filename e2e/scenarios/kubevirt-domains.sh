#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# KubeVirt VMs without KubeVirt. The domains come from virt-launcher's converter of KubeVirt 1.6,
# 1.7, 1.8 and 1.9 (mk/test/kubevirt stores them). The scenario sends them by gRPC to the real
# stargate-hook, for volumes that are mounted on a node. A real libvirtd defines and starts the
# resulting domain, with QEMU under the same user as in KubeVirt. The VMs mount the volumes, one of
# which has a bad page.
#
# Before the scenario sends a domain to the hook, it makes one change. Because there are no disks,
# it adds a kernel to boot, as KubeVirt's kernelBoot does. Disks, sockets, network, processor,
# emulator and the domain's type stay as KubeVirt sets them. One domain gets another type before it
# starts. The environment is as in a launcher's pod: hook and QEMU run as user 107, libvirt has no
# security driver, and no daemon gives files to that user. The sockets are in the same folder, and
# each claim has its own path.
#
# suite: kubevirt
# node: --guests 1 --mem 640M --no-mount --size 128M --pkgs "libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients qemu-system-x86 lvm2"
# limit: 3600
# shellcheck disable=SC2016 # quoted text is for the node's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=e2e/lib/zone.sh
source "$(dirname "$0")/../lib/zone.sh"

home=$(cd "$(dirname "$0")/../.." && pwd)
machines=$home/csi-driver/test/kubevirt/vms
converted=$home/csi-driver/internal/kubevirt/domainxml/testdata
machine=0b5e55ed-0000-4000-8000-00000000beef # the VM's UUID in the converter's input
pod=4a5c5f3e-0000-4000-8000-00000000abcd     # the VMI object's UUID in the converter's input
qemu=107
size=$((16 << 20)) # of each volume
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# here WHAT COMMAND: checks that COMMAND succeeds on the node.
here() { in_one host "$@"; }

step "KubeVirt's domains"
mkdir "$work/domains" "$work/programs"
python3 - "$machines" "$converted" "$work/domains" <<'PYTHON' || fail "a kernel cannot be added to the converter's domains"
import pathlib, re, sys
machines, converted, out = map(pathlib.Path, sys.argv[1:])
words = "console=ttyS0 loglevel=5 no_timer_check panic=1 sg.role=visitor sg.volumes=%d"
for vmi in sorted(machines.glob("*.yaml")):
    text = vmi.read_text()
    if "test/refused" in text:
        continue
    claims = re.search(r'stargate\.csi\.dev/volumes: ("[^"]*"|[^,}]*)', text)[1].strip('"')
    for version in sorted(converted.glob("kubevirt-*")):
        domain = (version / (vmi.stem + ".xml")).read_text()
        kernel = "<kernel>/run/boot/vmlinuz</kernel><initrd>/run/boot/initrd</initrd>" \
            f"<cmdline>{words % (claims.count(',') + 1)}</cmdline>"
        domain, n = re.subn(r"(<os>.*?</type>)", r"\1" + kernel, domain, flags=re.DOTALL)
        assert n == 1, vmi
        folder = out / version.name.removeprefix("kubevirt-") / vmi.stem
        folder.mkdir(parents=True)
        (folder / "in").write_text(domain)
        (folder / "claims").write_text(claims + "\n")
PYTHON
versions=$(ls "$work/domains")
same "the test covers these versions of KubeVirt" "1.6 1.7 1.8 1.9" "${versions//$'\n'/ }"
(cd "$home/csi-driver" && ../mk/tools/go build -trimpath -buildvcs=false -ldflags '-s -w' \
	-o "$work/programs/" ./cmd/stargate-hook ./test/hookcall) || fail "the hook does not compile"
"$home/e2e/cluster/machine-boot" "$work/boot" "$SG_KERNEL" || fail "the VMs' boot files cannot be made"
{ echo "qemu=$qemu console=/run/kubevirt-private/$pod/virt-serial0-log" && cat; } >"$work/node" <<'NODE'
set -euo pipefail

# with_hook KIND COMMAND...: runs the command while the hook of the pod of VM KIND runs.
with_hook() {
	local hook
	rm -f /run/hook/socket
	setpriv --reuid "$qemu" --regid "$qemu" --clear-groups --no-new-privs \
		/run/programs/stargate-hook --socket /run/hook/socket --volumes "/run/pods/$1" \
		>>/run/hook/log 2>&1 </dev/null &
	hook=$!
	trap "kill $hook" EXIT
	for try in $(seq 1200); do [ ! -S /run/hook/socket ] || break; sleep 0.05; done
	"${@:2}"
	trap - EXIT
	kill $hook
	wait $hook
}
# about VERSION KIND: changes to the folder of that domain.
about() { name=default_$2 && cd "/run/domains/$1/$2"; }
# ask DOMAIN: sends the domain and the claims of this folder to the hook, and prints its answer.
ask() { /run/programs/hookcall /run/hook/socket "$1" "$(cat claims)"; }
# define DOMAIN: defines the domain and prints libvirt's version of it.
define() { virsh -q define "$1" >/dev/null && virsh dumpxml --inactive "$name"; }
undefine() { virsh -q undefine "$name" >/dev/null; }
# but_for_chance FILE: removes the random addresses of network cards, which libvirt makes.
but_for_chance() { sed '/<mac address=/d' "$1"; }

# defined VERSION KIND: defines the domain that the hook returns, and checks that a second call of
# the hook changes nothing.
defined() {
	about "$@"
	ask in >out
	ask out >once-more
	cmp out once-more
	define out >first
	ask first >back
	define back >second
	cmp first second
}
# repeatedly VERSION KIND: defines the same domain three times, and checks that the results are
# equal and valid.
repeatedly() {
	local round
	defined "$@"
	undefine
	for round in 1 2; do
		define out >fresh
		cmp <(but_for_chance first) <(but_for_chance fresh)
		undefine
	done
	virt-xml-validate first domain
	virt-xml-validate back domain
}
addresses() { grep -oE "base='0x[^']*'|addr=0x[^,]*" "$1"; }
# edited VERSION KIND: checks that a domain with more memory keeps the addresses of its volumes, and
# that `virsh edit` restores the first domain.
edited() {
	defined "$@"
	sed -e 's/268435456</402653184</' -e 's/cores="1"/cores="2"/' \
		-e 's/>1<\/vcpu>/>2<\/vcpu>/' in >larger-in
	ask larger-in >larger-out
	define larger-out >larger
	grep -q ">2</vcpu>" larger
	grep -q "<cell id='0' cpus='0-1' memory='393216'" larger
	cmp <(addresses first) <(addresses larger)
	cat >/run/editor <<-EDITOR
		#!/bin/bash
		set -e
		sed -i -e "s/>2<\/vcpu>/>1<\/vcpu>/" -e "s/cores='2'/cores='1'/" \
			-e "s/cpus='0-1' memory='393216'/cpus='0' memory='262144'/" "\$1"
		/run/programs/hookcall /run/hook/socket "\$1" "$(cat claims)" >/run/edited
		cp /run/edited "\$1"
	EDITOR
	chmod 755 /run/editor
	EDITOR=/run/editor virsh -q edit "$name" </dev/null
	virsh dumpxml --inactive "$name" >edited
	cmp first edited
	undefine
}
# started VERSION KIND: starts the domain, and records QEMU's user and mappings.
started() {
	local process
	defined "$@"
	rm -f "$console"
	virsh -q start "$name"
	process=$(pgrep -x qemu-system-x86)
	stat -c %u "/proc/$process" >user
	awk '/\.stargate/ { print $2, $NF }' "/proc/$process/maps" | sort >mapped
}
NODE
tar -C "$work" -c domains programs boot node | on host 'tar -C /run -x --no-same-owner'

step "claims that are mounted as the driver mounts them"
# No system joins the volume of a read-only claim.
here "the node has volumes" "for try in \$(seq 500); do [ -b /dev/pmem0 ] && break; sleep 0.02; done
	stargatectl zone create sm /dev/pmem0 &&
	for name in data logs models data-ro models-ro; do
		stargatectl volume create \$name --size 16M &&
			stargatectl label /dev/sm/\$name \${name%-ro} || exit
	done
	for name in data-ro models-ro; do
		mount -t stargatefs /dev/sm/\$name /mnt &&
			echo published in \$name >/mnt/greeting && umount /mnt || exit
	done"
declare -A base
for volume in data logs models data-ro models-ro; do
	base[$volume]=$(printf '0x%x' "$(of "$volume" base)")
	echo "$volume ${base[$volume]}"
done >"$work/bases"
for kind in "$work/domains/1.9"/*; do
	tr ',' '\n' <"$kind/claims" | while IFS=: read -r claim how; do
		echo "${kind##*/} $claim $claim${how:+-$how} ${how:+ro,nojoin,}nosuid,nodev"
	done
done >"$work/mounts"
here "each volume is mounted in the folder of its pod" "while read -r kind claim volume options; do
		mkdir -p /run/pods/\$kind/\$claim &&
		mount -t stargatefs -o \$options,region_gid=$qemu,region_mode=0660 \
			/dev/sm/\$volume /run/pods/\$kind/\$claim || exit
	done <<<'$(<"$work/mounts")'"

step "libvirtd"
here "libvirtd runs" "printf '%s\n' 'user = \"+$qemu\"' 'group = \"+$qemu\"' 'dynamic_ownership = 0' \
		'security_driver = \"none\"' 'namespaces = []' 'stdio_handler = \"file\"' \
		>>/etc/libvirt/qemu.conf
	install -d -o $qemu -g $qemu /run/hook /run/kubevirt-private/$pod
	chmod 666 /dev/kvm # there is no udev
	mkdir -p /run/libvirt && libvirtd -d &&
	for try in \$(seq 600); do virsh -q list && exit; sleep 0.1; done; exit 1"
on host 'virsh version' </dev/null | sed -n 's/^/   | /; /\(Running\|library\)/p'

# on_node WHAT KIND COMMAND...: runs one of the functions above while the hook of VM KIND runs.
on_node() { here "$1" ". /run/node; with_hook ${*:2}"; }

step "repeated definitions of the domains"
denied host "a VM with memory at the address of its volume is refused" "give it at most 14Gi" \
	". /run/node; about 1.9 large; with_hook large ask in"
rm -r "$work"/domains/*/large
declare -A first
for kind in "$work"/domains/1.9/*; do
	kind=${kind##*/}
	for version in $versions; do
		# Versions with the same domain are tested once.
		text=$kind:$(sha256sum <"$work/domains/$version/$kind/in")
		if [[ -n ${first[$text]:-} ]]; then
			echo "   $version: $kind: same domain as in ${first[$text]}"
			continue
		fi
		first[$text]=$version
		on_node "$version: $kind: repeated definitions are equal" "$kind" repeatedly "$version" "$kind"
	done
done

step "the volumes in libvirt's domains"
on host 'tar -C /run -c domains' </dev/null | tar -C "$work" -x
python3 - "$work" $machine >"$work/said" 2>&1 <<'PYTHON' || fail "$(<"$work/said")"
import pathlib, sys
import xml.etree.ElementTree as tree
work, machine = pathlib.Path(sys.argv[1]), sys.argv[2]
bases = dict(line.split() for line in (work / "bases").read_text().splitlines())
size, checked = 16 << 20, 0
for path in sorted(work.glob("domains/*/*/first")):
    kind = path.parent.name
    expected, slots = set(), 0
    for claim in (path.parent / "claims").read_text().strip().split(","):
        claim, _, how = claim.partition(":")
        region = f"/run/pods/{kind}/{claim}/.stargate/region@{machine}"
        expected.add((region, int(bases[claim + ("-" + how if how else "")], 16), size, how))
        slots += 1
    domain = tree.parse(path).getroot()
    found = []
    for m in domain.findall("devices/memory"):
        assert m.get("model") == "nvdimm" and m.get("access") == "shared", path
        assert m.findtext("source/alignsize") == "2048", path
        found.append((m.findtext("source/path"), int(m.find("address").get("base"), 16),
                      int(m.findtext("target/size")) << 10, ""))
    words = [a.get("value") for a in domain.findall("{*}commandline/{*}arg")]
    given = [dict(w.split("=", 1) for w in word.split(",") if "=" in w) for word in words]
    for o in (o for o in given if "mem-path" in o):
        assert o["share"] == "on" and o["readonly"] == "on" and o["prealloc"] == "off", path
        device, = (d for d in given if d.get("memdev") == o["id"])
        found.append((o["mem-path"], int(device["addr"], 16), int(o["size"]), "ro"))
    assert len(found) == slots and set(found) == expected, f"{path}: {found}, not {expected}"
    assert domain.findtext("uuid") == machine, path
    assert domain.find("maxMemory").get("slots") == str(slots), path
    checked += 1
print(checked)
PYTHON
[[ $(<"$work/said") -ge 11 ]] || fail "only $(<"$work/said") domains were checked, at least 11 expected"
passed "$(<"$work/said") domains have each volume once, with this VM's name and the volume's address"

step "domains that are edited"
on_node "1.6: minimal: virsh edit restores the domain" minimal edited 1.6 minimal
on_node "1.9: mixed: virsh edit restores the domain" mixed edited 1.9 mixed

# says WORDS: checks that the VM prints the words on a separate line.
says() {
	grep -qxF "SG $1" "$work/console" || fail "the VM does not print '$1': $(<"$work/console")"
	passed "$1"
}

# runs VERSION KIND: checks that the VM starts, mounts its volumes, and writes an answer into each.
runs() {
	local kind=$2 claim how at region written=() before="" after="" mapped=() memory=()
	local word=$RANDOM$RANDOM read=()
	step "$1: $kind runs"
	while IFS=: read -r claim how; do
		at=${base[$claim${how:+-$how}]}
		memory+=("has $(printf '%x-%x' "$at" $((at + size - 1)))")
		region=/run/pods/$kind/$claim/.stargate/region@$machine
		if [[ -z $how ]]; then
			written+=("/run/pods/$kind/$claim") mapped+=("rw-s $region")
			read+=("mounted $claim at $at" "read in $claim: $word" "stored in $claim")
		else
			before+=$(bytes "$at" $((at + size))) mapped+=("r--s $region")
			read+=("mounted $claim read-only at $at" "read in $claim: published in $claim-ro"
				"cannot store in $claim")
		fi
	done < <(tr ',' '\n' <"$work/domains/$1/$kind/claims")
	here "each volume gets the word that its VM reads" "for folder in ${written[*]}; do
		rm -f \$folder/answer && echo $word >\$folder/greeting || exit; done"
	on_node "libvirt starts $kind" "$kind" started "$1" "$kind"
	same "QEMU runs as the user of a launcher's pod" $qemu "$(on host "cat /run/domains/$1/$kind/user" </dev/null)"
	same "QEMU has mapped the volumes" "$(printf '%s\n' "${mapped[@]}" | sort)" \
		"$(on host "cat /run/domains/$1/$kind/mapped" </dev/null)"
	on host ". /run/node; for try in \$(seq 4000); do
		! grep -qE 'SG done|Kernel panic' \$console || break; sleep 0.3; done
		tr -d '\r' <\$console" </dev/null >"$work/console" || fail "the VM's console cannot be read"
	for claim in "${memory[@]}" "${read[@]}"; do says "$claim"; done
	! grep -q '^SG failed' "$work/console" || fail "$(<"$work/console")"
	same "the guest has no further memory device" "${#memory[@]}" "$(grep -c '^SG has ' "$work/console")"
	for claim in "${written[@]}"; do
		same "the node reads the VM's answer in ${claim##*/}" "$word to $machine" \
			"$(on host "cat $claim/answer" </dev/null)"
	done
	while IFS=: read -r claim how; do
		[[ -z $how ]] || after+=$(bytes "${base[$claim-ro]}" $((${base[$claim-ro]} + size)))
	done < <(tr ',' '\n' <"$work/domains/$1/$kind/claims")
	[[ -z $before ]] || same "the VM has changed no byte of a read-only volume" "$before" "$after"
	here "the guest has shut down, and no process has mapped its volumes" ". /run/node; about $1 $kind
		for try in \$(seq 600); do
			[ \"\$(virsh -q domstate --reason \$name)\" = 'shut off (shutdown)' ] && break
			sleep 0.5
		done
		virsh -q domstate --reason \$name | grep -x 'shut off (shutdown)' &&
			[ -z \"\$(cat /sys/fs/stargatefs/*/holders)\" ] && undefine"
}
runs 1.6 minimal
runs 1.7 requests-only
runs 1.8 mixed
runs 1.9 read-only
# An emulating QEMU in an emulated node takes too long, so this domain uses KVM.
on host "sed -i 's/<domain type=\"qemu\"/<domain type=\"kvm\"/' /run/domains/1.9/emulated-three/in" </dev/null
runs 1.9 emulated-three

step "a volume with a bad page that the node's processor has reported"
hurt=/run/pods/minimal/data
here "a file is made" "head -c 64K /dev/urandom >$hurt/hurt && sync -f $hurt"
at=$(on host "stargatectl -j stat /dev/sm/data /hurt 2>/dev/null" </dev/null |
	python3 -c 'import json, sys; print(json.load(sys.stdin)["table"]["runs"][0]["phys"])')
at=$((at + 3 * 4096))
here "the kernel checks the memory each second" 'echo 1 >/sys/devices/system/machinecheck/machinecheck0/check_interval'
machine_check host 4 0x9400100000080000 0 "$(printf '0x%x' $((at + 128)))" 0
here "the volume lists the bad page, and volume.json reports it" "for try in \$(seq 300); do
		! stargatectl bad $hurt/.stargate/region | grep -q none || { sleep 0.1; continue; }
		break
	done
	stargatectl bad $hurt/.stargate/region | grep $(printf '0x%x' "$at") &&
		grep '\"bad\": true' $hurt/.stargate/volume.json"
# The domain from before the error preallocates the volume's memory, which fails at the bad page.
# The hook prevents this in new domains.
denied host "a domain that preallocates the memory of a bad page does not start" "preallocating memory" ". /run/node
	about 1.6 minimal; define first >/dev/null; virsh -q start \$name && exit; undefine; false"
for version in $versions; do
	on_node "$version: minimal: repeated definitions with a bad page are equal" minimal repeatedly "$version" minimal
done
on_node "1.9: mixed: repeated definitions with a bad page are equal" mixed repeatedly 1.9 mixed
runs 1.8 minimal
says "read of hurt in data: 12288 bytes, and then: Input/output error"
same "the node gets an error when it reads the bad page, and continues" "Input/output error" "$(on host \
	"dd if=$hurt/hurt of=/dev/null bs=4096 skip=3 count=1 2>&1 | sed -nE 's/.*: (Input.*)/\\1/p'" </dev/null)"

step "the end of the node"
here "the volumes pass fsck" 'umount /run/pods/*/* && for volume in logs models data-ro models-ro; do
	stargatectl volume check $volume || exit; done'
here "libvirtd ends" 'kill $(cat /run/libvirtd.pid)'
finish
