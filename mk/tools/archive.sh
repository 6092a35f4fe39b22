# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Fetches signed packages of Debian's archive, independent of this machine's packages and apt
# sources. A script sources this file after versions.env.

# archive FOLDER SUITE: makes the configuration of a separate apt in FOLDER, for that suite and its
# updates.
archive() {
	local dir=$1 base=${2%-backports} suite keys=/usr/share/keyrings/debian-archive-keyring.gpg
	mkdir -p "$dir"/{apt.conf.d,preferences.d,lists/partial,cache/archives/partial}
	: >"$dir/status"
	for suite in "$base" "$base-updates" "$base-security" "$2"; do
		case $suite in
		*-security) echo "deb [signed-by=$keys] $DEBIAN_SECURITY_MIRROR $suite main" ;;
		*) echo "deb [signed-by=$keys] $DEBIAN_MIRROR $suite main" ;;
		esac
	done | awk '!seen[$0]++' >"$dir/sources.list"
	of_archive "$dir" update
}

# of_archive FOLDER ARGUMENT...: runs apt-get with that configuration, and prints its output only if
# it fails.
of_archive() {
	local dir=$1
	shift
	apt-get -qq -y -o Dir::Etc="$dir" -o Dir::Etc::SourceList="$dir/sources.list" -o Dir::State="$dir" \
		-o Dir::State::status="$dir/status" -o Dir::Cache="$dir/cache" -o APT::Architecture=amd64 \
		-o APT::Install-Recommends=0 -o APT::Sandbox::User=root -o Acquire::Languages=none \
		-o Acquire::Retries=3 "$@" 2>"$dir/log" || { cat "$dir/log" >&2; exit 1; }
}
