# SPDX-License-Identifier: Apache-2.0
#
# A system that fences a machine does not check whether that machine is its own.
# file: kernel/core/member/machine.c
# test: systems_death_test
/^unsigned int sg_fence_machine(/,/^}/s/is_ourselves(vol, i, &slot) || //
