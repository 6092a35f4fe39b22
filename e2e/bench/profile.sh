#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# e2e/bench/profile runs this inside the rig. Prints "cost OPERATION INSTRUCTIONS SPREAD" and "where
# OPERATION SAMPLES MODULE FUNCTION" (e2e/programs/cost.c).
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

repeats=${SG_REPEATS:-48}
operations=(read-4k write-4k append-4k create open-close)

program cost
for operation in "${operations[@]}"; do
	step "$operation" >&2
	said=$(on g1 "/root/cost /mnt/sg 7 $operation" </dev/null 2>&1) || fail "cost: $said"
	echo "cost $said"
	said=$(on g1 "/root/cost --where /mnt/sg $repeats $operation" </dev/null 2>&1) || fail "cost --where: $said"
	printf '%s\n' "$said"
done
