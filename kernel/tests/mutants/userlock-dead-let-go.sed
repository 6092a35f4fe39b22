# SPDX-License-Identifier: Apache-2.0
#
# The locks of dead systems are free before their journals have been replayed.
# file: kernel/core/filelock/lock_table.c
# test: userlock_test
s/return SG_SLOT_STATE(state) != SG_SLOT_FREE;/return SG_SLOT_STATE(state) == SG_SLOT_LIVE;/
