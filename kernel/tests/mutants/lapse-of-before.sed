# SPDX-License-Identifier: Apache-2.0
#
# A watcher that was paused in a check ends the lapse of the slot's next owner.
# file: kernel/core/member/fence.c
# test: lapse_test
/^static void see_lapse/,/^}/s/if (sg_load64_acquire(sg_state_word(vol, slot)) != state)/if (0)/
