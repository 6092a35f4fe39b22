# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Functions of both demos, which print commands and their output.
set -euo pipefail

title() { printf '\n%s\n%s\n' "$1" "${1//?/-}"; }
tell() { fold -s -w 92 <<<"$*" | sed 's/ *$//'; }
fail() {
	printf '\nDEMO FAILED: %s\n' "$*" >&2
	exit 1
}

# vm SYSTEM COMMAND: prints a command after the system's name, runs it there, and prints its output.
vm() {
	printf '  %s#   %s\n' "$1" "$2"
	on "$1" "$2" </dev/null | sed 's/^/        /' || fail "in $1: $2"
}

times=()
# timed WHAT START: adds a line to the table at the end.
timed() {
	times+=("$(awk -v what="$1" -v a="$2" -v b="$EPOCHREALTIME" \
		'BEGIN { printf "%-46s %7.2f s", what, b - a }')")
}

# Prints the table.
took() {
	title "Duration of each step ($1)"
	printf '  %s\n' "${times[@]}"
	echo
}

# A program for a system. It writes orders without end, each into a new file. It renames the file
# when the order is complete, and then prints a line.
# shellcheck disable=SC2016,SC2034 # for a system's shell; run by the demos
orders='mkdir -p /mnt/sg/orders; cd /mnt/sg/orders; n=0
	while n=$((n + 1)); do
		head -c $((1 + RANDOM)) /dev/urandom >new
		sum=$(sha256sum <new)
		mv new order-$n
		echo "${sum%% *}  order-$n"
	done'

# noted NOTES: prints the number of complete orders. An incomplete line does not count.
noted() {
	sed -i -nE '/^[0-9a-f]{64}  order-[0-9]+$/p' "$1"
	wc -l <"$1"
}
