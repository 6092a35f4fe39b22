# SPDX-License-Identifier: Apache-2.0
#
# The answer of a slot's last owner counts as the answer of the present owner.
# file: kernel/core/member/freeze.c
# test: freeze_test
s/^\(\t       SG_FROZEN(SG_FREEZE_NR(vol->freezing.word), \)SG_SLOT_INC(state));/\1freeze_slot_at(vol, slot)->frozen >> 32 | 0 * state);/
