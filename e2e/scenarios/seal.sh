#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Sealed files on running kernels. Both systems refuse changes of a sealed file. A writer or a
# mapping, in the same or in the other system, prevents a seal. Further cases are a system that dies
# while it has the file open, and digests.
#
# rig: --guests 2 --size 128M
# test: walk
# limit: 600
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

program_everywhere seal

# beside GUEST COMMAND: starts COMMAND in the background, and waits until it prints "mapped".
beside() {
	local i
	on "$1" "$2" >"$RIG_DIR/beside" 2>&1 </dev/null &
	job=$!
	for ((i = 0; i < 300; i++)); do
		! grep -q mapped "$RIG_DIR/beside" || return 0
		sleep 0.1
	done
	fail "$1: $2: no mapping within 30 s: $(cat "$RIG_DIR/beside")"
}

# end GUEST: ends that command. Its own limit is long, because the processor may be emulated.
end() {
	on "$1" 'pkill -x seal' </dev/null || fail "$1: the command has ended: $(cat "$RIG_DIR/beside")"
	wait "$job" || true
	! grep -q '^seal: ' "$RIG_DIR/beside" || fail "$1: $(cat "$RIG_DIR/beside")"
}

step "a sealed file"
holds "two files are made" 'head -c 9M /dev/urandom >/mnt/sg/f && head -c 5000 /dev/urandom >/mnt/sg/g && sync'
sum=$(on g1 'sha256sum </mnt/sg/f' </dev/null)
holds "a file is sealed with a digest" 'stargatectl seal --digest /mnt/sg f | grep ^sha256:'
holds "this system refuses all changes of the sealed file" '/root/seal refuses /mnt/sg/f'
on g2 '/root/seal refuses /mnt/sg/f' </dev/null || fail "the other system accepts a change of the sealed file"
passed "the other system refuses all changes of the sealed file"
same "the other system verifies the same digest" "$(on g1 'stargatectl verify /mnt/sg f' </dev/null)" \
	"$(on g2 'stargatectl verify /mnt/sg f' </dev/null)"
holds "names and attributes of the sealed file can change" 'cd /mnt/sg && chmod 640 f && chown 7 f && chown 0 f &&
	touch f && ln f l && mv l m && rm m && setfattr -n user.a -v b f || [ "$(type -t setfattr)" = "" ]'
same "the other system reads the same bytes" "$sum" "$(on g2 'sha256sum </mnt/sg/f' </dev/null)"
refused "another user cannot seal a file" 'not permitted|denied' 'setpriv --reuid 7 stargatectl seal /mnt/sg g'
refused "a directory cannot be sealed" 'not a regular file' 'mkdir /mnt/sg/d && stargatectl seal /mnt/sg d'
refused "a file with holes cannot be sealed" 'hole at byte 0' 'truncate -s 1M /mnt/sg/h && stargatectl seal /mnt/sg h'

step "writers, mappings and readers of a file"
beside g1 '/root/seal maps /mnt/sg/g 600'
refused "a file that this system has mapped cannot be sealed" 'this system has the file open for writing' \
	'stargatectl seal /mnt/sg g'
end g1
beside g2 '/root/seal maps /mnt/sg/g 600'
refused "a file that the other system has mapped cannot be sealed" 'has the file open' 'stargatectl seal /mnt/sg g'
end g2
holds "the file can be sealed after the end of both processes" 'stargatectl seal --digest /mnt/sg g'
beside g2 '/root/seal reads /mnt/sg/g 600'
refused "a sealed file that the other system reads cannot be unsealed" 'has the file open' \
	'stargatectl unseal /mnt/sg g'
holds "a second seal of a sealed file changes nothing" 'stargatectl seal /mnt/sg g && stargatectl verify /mnt/sg g'
end g2
holds "the file can be unsealed and written" 'stargatectl unseal /mnt/sg g && echo more >>/mnt/sg/g'
on g2 'echo more >>/mnt/sg/g' </dev/null || fail "the other system cannot write the unsealed file"
passed "the other system can write the unsealed file"

step "a system that dies while it has the file mapped"
beside g2 '/root/seal maps /mnt/sg/g 600'
kill_guest g2
wait "$job" || true
for ((i = 0; i < 60; i++)); do
	! on g1 'stargatectl seal --digest /mnt/sg g' </dev/null >/dev/null 2>&1 || break
	sleep 1
done
holds "the file can be sealed after the other system is fenced" 'stargatectl verify /mnt/sg g'
start_guest g2
program_everywhere seal
on g2 '/root/seal refuses /mnt/sg/g && stargatectl verify /mnt/sg f g' </dev/null >/dev/null ||
	fail "after its boot, g2 does not find the files sealed"
passed "after its boot, g2 finds the files sealed"
holds "sealed files can be removed" 'rm /mnt/sg/f /mnt/sg/g'
finish
