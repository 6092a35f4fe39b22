# SPDX-License-Identifier: Apache-2.0
#
# The bell of a slot's last owner counts as that of its next owner.
# file: kernel/core/base/doorbell.c
# test: doorbell_test
/^static bool is_connected/,/^}/s/state == SG_SLOT_WORD(SG_SLOT_LIVE, SG_DOORBELL_INC(word))/SG_SLOT_STATE(state) == SG_SLOT_LIVE/
