# SPDX-License-Identifier: Apache-2.0
#
# What the slot's last owner has said is taken for its owner's word.
# file: kernel/core/member/freeze.c
# test: freeze_test
s/^\(\t       SG_FROZEN(SG_FREEZE_NR(vol->freezing.word), \)SG_SLOT_INC(state));/\1slot_at(vol, slot)->frozen >> 32 | 0 * state);/
