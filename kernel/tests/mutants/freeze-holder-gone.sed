# SPDX-License-Identifier: Apache-2.0
#
# Who stands still for one who is dead does so to the end.
# file: kernel/core/member/freeze.c
# test: freeze_test
/^static bool is_over/,/^}/s/ || !holder_lives(vol)//
