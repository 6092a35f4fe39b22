# SPDX-License-Identifier: Apache-2.0
#
# A release does not queue for its chain.
# file: kernel/core/filelock/lock_table.c
# test: userlock_paused_test
s/wait ? SG_USERLOCK_QUEUE : SG_USERLOCK_TRY/((void)wait, SG_USERLOCK_TRY)/
