# SPDX-License-Identifier: Apache-2.0
#
# A system stays frozen until the time limit although the copying system is dead.
# file: kernel/core/member/freeze.c
# test: freeze_test
/^static bool freeze_is_over/,/^}/s/ || !holder_lives(vol)//
