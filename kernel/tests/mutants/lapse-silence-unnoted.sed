# SPDX-License-Identifier: Apache-2.0
#
# A system that fences a silent one does not record that the fenced system may still run.
# file: kernel/core/member/fence.c
# test: lapse_test
s/if (may_continue(vol, slot, seen))/if (0 \&\& may_continue(vol, slot, seen))/
