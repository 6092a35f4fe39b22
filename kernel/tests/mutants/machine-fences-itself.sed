# SPDX-License-Identifier: Apache-2.0
#
# Who declares a machine dead does not look whether it is its own.
# file: kernel/core/member/machine.c
# test: systems_death_test
/^unsigned int sg_fence_machine(/,/^}/s/is_ourselves(vol, i, &slot) || //
