#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The upper layer and the work directory of an overlayfs are on StargateFS. The scenario tests
# copying up, whiteouts, opaque directories, renamed directories, and the content of the upper
# layer.
#
# rig: --pkgs "attr"
# maps: inside
# limit: 300
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

layers=lowerdir=/run/lower,upperdir=/mnt/sg/upper,workdir=/mnt/sg/work
mount_overlay="mount -t overlay -o $layers,redirect_dir=on,index=on overlay /run/merged"

overlay_on_top() {
	local map=$1
	holds "a lower layer is made" 'mkdir -p /run/lower/dir/sub /run/lower/gone /run/merged &&
		cd /run/lower && echo one >file && echo two >dir/file && echo 3 >dir/sub/file &&
		echo 4 >gone/file && ln -sf file link && chmod 640 file'
	holds "$map: overlayfs accepts the volume as its upper layer" \
		"modprobe overlay; mkdir -p /mnt/sg/upper /mnt/sg/work && $mount_overlay"
	holds "overlayfs reports no missing feature" \
		'! dmesg | grep -i "overlayfs:.*\(does not support\|falling back\|missing\|fail\)"'

	holds "a file is copied up when it is written" 'cd /run/merged && echo more >>file &&
		[ "$(xargs <file)" = "one more" ] && [ "$(cat /run/lower/file)" = one ] &&
		[ "$(stat -c %a /mnt/sg/upper/file)" = 640 ]'
	holds "a removed name becomes a whiteout" 'cd /run/merged && rm link && ! [ -L link ] &&
		[ "$(stat -c "%F %t:%T" /mnt/sg/upper/link)" = "character special file 0:0" ]'
	holds "a whiteout can be replaced by a new file" 'cd /run/merged && echo new >link &&
		[ "$(cat link)" = new ] && [ -f /mnt/sg/upper/link ]'
	holds "a directory that replaces a lower one is opaque" 'cd /run/merged && rm -r gone && mkdir gone &&
		[ -z "$(ls -A gone)" ] && getfattr -n trusted.overlay.opaque /mnt/sg/upper/gone'
	holds "a lower directory can be renamed" 'cd /run/merged && mv dir moved &&
		[ "$(cat moved/file moved/sub/file | xargs)" = "two 3" ] && ! [ -e dir ] &&
		getfattr -n trusted.overlay.redirect /mnt/sg/upper/moved'
	holds "an upper file can replace a lower name" 'cd /run/merged && mv link moved/file &&
		[ "$(cat moved/file)" = new ]'
	holds "hard links work" 'cd /run/merged && ln file second &&
		[ "$(stat -c %h file)" = 2 ] && echo x >>second && tail -n 1 file | grep -q x'
	holds "extended attributes work" 'cd /run/merged &&
		setfattr -n user.a -v b file && getfattr -n user.a --only-values file | grep -q b'
	holds "a file that is removed while open can be used" 'cd /run/merged && exec 5<>file &&
		rm file && echo y >&5 && exec 5>&-'

	holds "after a second mount all files are there" "umount /run/merged && $mount_overlay"'
		cd /run/merged && [ "$(cat moved/file)" = new ] &&
		[ "$(ls | xargs)" = "gone moved second" ]'
	holds "the layers can be removed" \
		'umount /run/merged && rm -rf /run/lower /mnt/sg/upper /mnt/sg/work'
}

each_map overlay_on_top
finish
