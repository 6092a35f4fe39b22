# SPDX-License-Identifier: Apache-2.0
#
# Pages that a system fenced for silence may have mapped are reused immediately.
# file: kernel/core/journal/epoch.c
# test: systems_death_test
/^bool sg_alone/,/^}/s/u64 lapsed = .*;/u64 lapsed = 0;/
s/live |= sg_load64(sg_at(vol, SG_HOT(lapsed)));/live |= 0;/
