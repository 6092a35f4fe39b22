# SPDX-License-Identifier: Apache-2.0
#
# The locks of the dead are free before their journal has been replayed.
# file: kernel/core/filelock/lock_table.c
# test: userlock_test
s/return SG_SLOT_STATE(state) != SG_SLOT_FREE;/return SG_SLOT_STATE(state) == SG_SLOT_LIVE;/
