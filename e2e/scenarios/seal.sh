#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Sealed files on running kernels: what is refused in both systems, a writer and a mapping in the
# same and in the other system, a system that dies with the file open, digests.
#
# rig: --guests 2 --size 128M
# test: walk
# limit: 600
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

program_everywhere seal

# beside GUEST COMMAND: runs COMMAND in the background, until it prints "mapped".
beside() {
	local i
	on "$1" "$2" >"$RIG_DIR/beside" 2>&1 </dev/null &
	job=$!
	for ((i = 0; i < 300; i++)); do
		! grep -q mapped "$RIG_DIR/beside" || return 0
		sleep 0.1
	done
	fail "$2: $(cat "$RIG_DIR/beside")"
}

# end GUEST: ends that command. The processor may be emulated, so no time is long enough for it.
end() {
	on "$1" 'pkill -x seal' </dev/null || fail "$1: the command has ended: $(cat "$RIG_DIR/beside")"
	wait "$job" || true
	! grep -q '^seal: ' "$RIG_DIR/beside" || fail "$1: $(cat "$RIG_DIR/beside")"
}

step "a seal"
holds "a file" 'head -c 9M /dev/urandom >/mnt/sg/f && head -c 5000 /dev/urandom >/mnt/sg/g && sync'
sum=$(on g1 'sha256sum </mnt/sg/f' </dev/null)
holds "sealed with a digest" 'stargatectl seal --digest /mnt/sg f | grep ^sha256:'
holds "refusals here" '/root/seal refuses /mnt/sg/f'
on g2 '/root/seal refuses /mnt/sg/f' </dev/null || fail "refusals in the other system"
passed "refusals in the other system"
same "the other system verifies it" "$(on g1 'stargatectl verify /mnt/sg f' </dev/null)" \
	"$(on g2 'stargatectl verify /mnt/sg f' </dev/null)"
holds "names and attributes may change" 'cd /mnt/sg && chmod 640 f && chown 7 f && chown 0 f &&
	touch f && ln f l && mv l m && rm m && setfattr -n user.a -v b f || [ "$(type -t setfattr)" = "" ]'
same "bytes are the same" "$sum" "$(on g2 'sha256sum </mnt/sg/f' </dev/null)"
refused "of another user" 'not permitted|denied' 'setpriv --reuid 7 stargatectl seal /mnt/sg g'
refused "of a directory" 'not a regular file' 'mkdir /mnt/sg/d && stargatectl seal /mnt/sg d'
refused "of a file with holes" 'hole at byte 0' 'truncate -s 1M /mnt/sg/h && stargatectl seal /mnt/sg h'

step "writers and mappings"
beside g1 '/root/seal maps /mnt/sg/g 600'
refused "a mapping of this system" 'this system has the file open for writing' \
	'stargatectl seal /mnt/sg g'
end g1
beside g2 '/root/seal maps /mnt/sg/g 600'
refused "a mapping of the other system" 'has the file open' 'stargatectl seal /mnt/sg g'
end g2
holds "after their end" 'stargatectl seal --digest /mnt/sg g'
beside g2 '/root/seal reads /mnt/sg/g 600'
refused "a reader of the other system keeps the seal" 'has the file open' \
	'stargatectl unseal /mnt/sg g'
holds "another seal is none" 'stargatectl seal /mnt/sg g && stargatectl verify /mnt/sg g'
end g2
holds "unsealed" 'stargatectl unseal /mnt/sg g && echo more >>/mnt/sg/g'
on g2 'echo more >>/mnt/sg/g' </dev/null || fail "a write in the other system"
passed "writes go on"

step "a system dies with the file mapped"
beside g2 '/root/seal maps /mnt/sg/g 600'
kill_guest g2
wait "$job" || true
for ((i = 0; i < 60; i++)); do
	! on g1 'stargatectl seal --digest /mnt/sg g' </dev/null >/dev/null 2>&1 || break
	sleep 1
done
holds "it is sealed once the other system's stores are over" 'stargatectl verify /mnt/sg g'
start_guest g2
program_everywhere seal
on g2 '/root/seal refuses /mnt/sg/g && stargatectl verify /mnt/sg f g' </dev/null >/dev/null ||
	fail "g2 after its boot"
passed "the seal outlives the system"
holds "a sealed file is removed" 'rm /mnt/sg/f /mnt/sg/g'
finish
