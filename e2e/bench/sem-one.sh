#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# e2e/bench/sem runs this inside the rig. Measures many processes of one system. sem-common.sh
# describes the output.
# shellcheck source=e2e/bench/sem-common.sh
source "$(dirname "$0")/sem-common.sh"

bench_programs
load
for kind in "${here[@]}"; do
	for processes in 2 4 8; do rate one "$kind" "$processes" g1; done
	pair one "$kind" g1 g1
done
load
