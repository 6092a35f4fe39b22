# SPDX-License-Identifier: Apache-2.0
#
# Records of ranges that no process can request are no valid locks, but no system clears them.
# file: kernel/core/filelock/lock_table.c
# test: userlock_forged_test
s/ || !has_range(rec))) {$/)) {/
