# SPDX-License-Identifier: Apache-2.0
#
# A joiner that has just begun to recover a slot is fenced for the silence of the one before it.
# file: kernel/core/member/fence.c
# test: systems_death_test
/^static int fence_those_silent(/,/^}/s/fence_silent(vol, i, state\[i\])/fence_silent(vol, i, sg_load64(sg_state_word(vol, i)))/
