# SPDX-License-Identifier: Apache-2.0
#
# A system loads the lapses before the states of slots. It misses a slot that passes from live to
# lapsed between the two loads.
# file: kernel/core/journal/epoch.c
# test: lapse_test
/^bool sg_alone(/,/^}/{
s/u64 others = sg_slots_taken(vol);/u64 others = sg_load64(sg_at(vol, SG_HOT(lapsed)));/
s/others |= sg_load64(.*/others |= sg_slots_taken(vol);/
}
