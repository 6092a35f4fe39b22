# SPDX-License-Identifier: Apache-2.0
#
# The words that a paused joiner has stored over the owner's identity are not corrected.
# file: kernel/core/member/fence.c
# test: crash_join_test
/sg_slot_mend(vol);/d
