#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Sealed files through two mounts of stargatefs-fuse, which are two systems.
# shellcheck source=kernel/tests/lib/fuse.sh
source "$(dirname "$0")/../lib/fuse.sh"

make_volume v 64M
serve a v
serve b v
head -c 300000 /dev/urandom >bytes
cp bytes a/f

# --- openers ---------------------------------------------------------------------------------
exec 8>>a/f
refuses 1 'f: a process of this system has the file open for writing' "$ctl" seal a f
exec 8>&-
exec 8<b/f
refuses 1 'f: .*\(slot [0-9]+\) has the file open' "$ctl" seal a f
exec 8<&-
exec 8<a/f
expect 0 "$ctl" seal --digest a f
says '^sha256:[0-9a-f]{64}  f$'
exec 8<&-

# A writer lengthens the file while the command waits for its close.
cp bytes a/grows
(exec 8>>a/grows; sleep 0.7; echo more >&8) &
sleep 0.2
expect 0 "$ctl" seal --digest a grows
wait $!
cp out digest
expect 0 "$ctl" verify b grows
cmp out digest || fail "the digest is not that of the sealed contents"

# --- refusals, in both mounts -----------------------------------------------------------------
for m in a b; do
	for how in 'echo x >>' 'echo x >' 'echo x 1<>' ; do
		expect 1 bash -c "$how $m/f"
		says 'not permitted' err
	done
	expect 1 truncate -s 10 $m/f
	says 'not permitted' err
	expect 1 fallocate -l 1M $m/f
	expect 1 cp --remove-destination /dev/null $m/none/f
	expect 1 dd if=/dev/zero of=$m/f bs=10 count=1 conv=notrunc status=none
	expect 0 cmp bytes $m/f
	expect 0 "$ctl" verify $m f
done
expect 0 chmod 600 b/f
expect 0 touch b/f
expect 0 ln b/f b/g
expect 0 mv b/g b/h
expect 0 rm b/h
expect 0 "$ctl" seal b f

# --- the end of a seal ------------------------------------------------------------------------
exec 8<b/f
refuses 1 'has the file open' "$ctl" unseal a f
exec 8<&-
exec 8<a/f
refuses 1 'a process of this system has the file open' "$ctl" unseal a f
exec 8<&-
expect 0 "$ctl" unseal a f
refuses 1 'f: is not sealed' "$ctl" verify b f
echo more >>b/f
checks=$((checks + 1))

# --- what cannot be sealed ---------------------------------------------------------------------
truncate -s 1M a/holes
refuses 1 'holes: the file has a hole at byte 0' "$ctl" seal a holes
expect 0 fallocate -l 1M a/holes
expect 0 "$ctl" seal a holes
refuses 1 'is not a regular file|: ' "$ctl" seal a .
if [[ $(id -u) -eq 0 ]] && command -v setpriv >/dev/null; then
	leave b
	serve b v -o allow_other
	expect 0 cp bytes b/of-root
	expect 0 chmod 644 b/of-root
	expect 1 setpriv --reuid 7 --clear-groups "$ctl" seal b of-root
	says 'not permitted|denied' err
fi
leave a
leave b
clean v
echo "$checks checks"
