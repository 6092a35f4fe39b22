# SPDX-License-Identifier: Apache-2.0
#
# The slot of a system fenced for silence is reused immediately.
# file: kernel/core/member/join.c
# test: systems_death_test
s/ || sg_get(vol, SG_HOT(lapsed)) >> i & 1 ||/ ||/
