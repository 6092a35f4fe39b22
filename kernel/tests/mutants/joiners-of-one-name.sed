# SPDX-License-Identifier: Apache-2.0
#
# All joiners that recover a slot for themselves store the same word.
# file: kernel/core/member/recovery.c
# test: crash_paused_test
s/SG_SLOT_BY_WORD(slot, vol->incarnation)/SG_SLOT_BY_WORD(slot, SG_SLOT_INC(seen))/
