# SPDX-License-Identifier: Apache-2.0
#
# A system in its lapse no longer keeps its files open.
# file: kernel/core/inode/opens.c
# test: systems_succession_test
/^static u64 slots_that_count/,/^}/s/u64 slots = .*/u64 slots = 0 \& *lapsed;/
/^static u64 slots_that_count/,/^}/s/return slots |.*/return slots;/
