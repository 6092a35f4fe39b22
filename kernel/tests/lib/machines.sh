#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Processes that use a volume as systems (machine.c), and all functions of tools.sh. Tests of tools
# that change a volume in use source this file.
set -euo pipefail
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "${BASH_SOURCE[0]}")/tools.sh"

machine=$tools/../tests/machine
[[ -x $machine ]] || fail "no $machine: make build PART=test-programs"
# shellcheck disable=SC2034 # used by the sourcing scripts
m1=11111111-2222-3333-4444-555555555501
# shellcheck disable=SC2034
m2=11111111-2222-3333-4444-555555555502

# start N starts a process that can use volumes. say N LINE sends a command to process N, and fails
# unless the answer is ok.
declare -A to from pid
start() {
	local in out
	mkfifo "in$1" "out$1"
	"$machine" <"in$1" >"out$1" &
	# shellcheck disable=SC2034
	pid[$1]=$!
	exec {in}>"in$1" {out}<"out$1"
	to[$1]=$in from[$1]=$out
	rm "in$1" "out$1"
}
say() {
	local n=$1 answer
	shift
	echo "$*" >&"${to[$n]}"
	read -r -t 60 -u "${from[$n]}" answer || fail "no answer to '$*'"
	[[ $answer == ok ]] || fail "$*: $answer"
	checks=$((checks + 1))
}
