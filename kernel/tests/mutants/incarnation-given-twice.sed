# SPDX-License-Identifier: Apache-2.0
#
# A slot may be durable before the incarnation in it.
# file: kernel/core/member/join.c
# test: crash_test
/^int sg_slot_take/,/^}/{/SG_HOT(incarnation)), 8);/{N;d}}
