#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Idmapped mounts and user namespaces. The owner that a process sees depends on the mount and on the
# process's user namespace. No process gains rights.
#
# rig: --pkgs "acl attr"
# maps: inside
# limit: 300
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

# Makes two commands in the VM. `as USER COMMAND` runs COMMAND as USER. `in_namespace COMMAND` runs
# it as root of a new user namespace.
on g1 'cat >/usr/local/bin/as && chmod 755 /usr/local/bin/as' <<'EOT'
#!/bin/sh
user=$1; shift
exec setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
EOT
on g1 'cat >/usr/local/bin/in_namespace && chmod 755 /usr/local/bin/in_namespace' <<'EOT'
#!/bin/sh
exec unshare --user --map-users 0:100000:1000 --map-groups 0:100000:1000 --setuid 0 --setgid 0 "$@"
EOT

mapped() {
	local map=$1
	holds "files of several owners are made" 'mkdir -p /mnt/sg/tree /run/mapped && cd /mnt/sg/tree &&
		chmod 777 . && >root && >user && chown 1000:1000 user &&
		>high && chown 70000:70000 high && chmod 600 *'
	holds "$map: an idmapped mount is made" \
		'mount --bind -o X-mount.idmap=b:0:100000:65536 /mnt/sg/tree /run/mapped'
	holds "the mount shows mapped owners" 'cd /run/mapped &&
		[ "$(stat -c %u:%g root user | xargs)" = "100000:100000 101000:101000" ]'
	holds "an owner without a mapping is nobody" '[ "$(stat -c %u /run/mapped/high)" = 65534 ]'
	holds "a file that is made there gets the unmapped owner on the volume" \
		'as 101000 sh -c "echo hi >/run/mapped/made" &&
		[ "$(stat -c %u:%g /mnt/sg/tree/made)" = 1000:1000 ] &&
		[ "$(stat -c %u:%g /run/mapped/made)" = 101000:101000 ]'
	refused "a user without a mapping cannot create files" 'Value too large|Overflow|denied' \
		'as 5 touch /run/mapped/no'
	holds "chown through the mount sets the unmapped owner on the volume" 'chown 100007 /run/mapped/made &&
		[ "$(stat -c %u /mnt/sg/tree/made)" = 7 ]'
	holds "the mapped owner may read" 'as 101000 cat /run/mapped/user'
	refused "another user may not read" 'denied' 'as 101001 cat /run/mapped/user'
	holds "entries of access lists are mapped" 'setfacl -m u:101001:r /run/mapped/user &&
		getfacl -cn /mnt/sg/tree/user | grep -q "^user:1001:r--" &&
		as 101001 cat /run/mapped/user'
	holds "the mapped owner can rename, link and remove" 'cd /run/mapped &&
		as 101000 mv user user2 && as 101000 ln user2 user3 && as 101000 rm user2 user3'
	refused "a user without a mapping cannot rename a file" 'Value too large|Overflow|denied' \
		'cd /run/mapped && mv root elsewhere'

	holds "$map: an idmapped mount of the whole volume is made" 'mkdir -p /run/whole &&
		mount --bind -o X-mount.idmap=b:0:100000:65536 /mnt/sg /run/whole'
	refused "a user without a mapping cannot create a semaphore" 'maps no owner' \
		'stargate-sem -v /run/whole create nobody'
	holds "the refused command has made no semaphore" '! stargate-sem -v /mnt/sg show nobody && umount /run/whole'

	holds "a user namespace sees the owners of the plain mount as its own users" 'cd /mnt/sg/tree &&
		>mine && chown 100000:100000 mine && chmod 666 mine && in_namespace sh -c "
			[ \$(stat -c %u mine) = 0 ] && [ \$(stat -c %u root) = 65534 ] &&
			echo x >mine && chmod 600 mine"'
	refused "root of the namespace has no access to files of other owners" 'denied' \
		'cd /mnt/sg/tree && in_namespace cat root'
	refused "root of the namespace may not mount the volume" 'denied|permi|must be superuser' \
		'unshare --user --map-root-user --mount mount -t stargatefs /dev/pmem0 /run/mapped'
	refused "root of the namespace may not set trusted attributes" 'not permitted|denied' \
		'cd /mnt/sg/tree && in_namespace setfattr -n trusted.a -v b mine'
	holds "all files and mounts can be removed" 'umount /run/mapped && rm -r /mnt/sg/tree'
}

each_map mapped
finish
