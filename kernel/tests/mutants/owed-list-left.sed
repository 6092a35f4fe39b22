# SPDX-License-Identifier: Apache-2.0
#
# Recovery does not take over the lists of owed inodes of a dead system: their space stays in use.
# file: kernel/core/journal/deferred_list.c
# test: owed_test
/^bool sg_owed_empty/,/^}/s/if (sg_get(vol, sg_deferred_head(vol, slot, i)))/if (slot == ~0u)/
