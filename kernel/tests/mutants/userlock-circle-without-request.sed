# SPDX-License-Identifier: Apache-2.0
#
# A brief request for a POSIX lock is made late, so the search for a cycle does not find it.
# file: kernel/core/filelock/lock_table.c
# test: userlock_brief_test
s/	if (soon && SG_USERLOCK_KIND(want->head) != SG_USERLOCK_POSIX &&/	if (soon \&\&/
