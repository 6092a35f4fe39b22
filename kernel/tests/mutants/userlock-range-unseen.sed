# SPDX-License-Identifier: Apache-2.0
#
# Records of ranges that nobody can ask for are nobody's locks, but cleared by nobody either.
# file: kernel/core/filelock/lock_table.c
# test: userlock_forged_test
s/ || !has_range(rec))) {$/)) {/
