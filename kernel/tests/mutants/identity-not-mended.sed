# SPDX-License-Identifier: Apache-2.0
#
# What a paused joiner has stored over the owner's name stays.
# file: kernel/core/member/fence.c
# test: crash_join_test
/sg_slot_mend(vol);/d
