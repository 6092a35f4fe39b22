#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# e2e/bench/sem runs this inside the rig, in a guest in which one instruction takes one nanosecond.
# Prints "cost KIND INSTRUCTIONS", twice for each kind, and the processor time of sleepers
# (sem-common.sh).
# shellcheck source=e2e/bench/sem-common.sh
source "$(dirname "$0")/sem-common.sh"

bench_programs
cost() {
	echo "cost $1 $(at g1 "/root/sembench cost $1 $2 $3")"
	echo "cost $1 $(at g1 "/root/sembench cost $1 $2 $3")"
}
for kind in user-mutex user-semaphore user-read user-write; do cost $kind /mnt/sg/lock 20000; done
for kind in kernel-mutex kernel-semaphore; do cost $kind /mnt/sg/lock 3000; done
for kind in pthread-mutex pthread-robust sem_t futex spin; do cost $kind /dev/shm/words 20000; done
for kind in sysv sysv-undo posix flock; do cost $kind /mnt/sg/file 3000; done
go_cost() {
	local handle thread
	read -r handle thread <<<"$(at g1 '/root/semgo time go 3000')"
	echo "cost go-mutex $handle"
	echo "cost go-by-thread $thread"
}
go_cost
go_cost
for kind in nothing "${here[@]}"; do asleep "$kind"; done
