# SPDX-License-Identifier: Apache-2.0
#
# A copy counts although a system that was fenced for its silence may still store.
# file: kernel/core/member/freeze.c
# test: freeze_test
s/^\(\t\tif (\)lapsed != SG_SLOTS)$/\10)/
