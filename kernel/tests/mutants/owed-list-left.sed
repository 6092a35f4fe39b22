# SPDX-License-Identifier: Apache-2.0
#
# Recovery does not take over a dead system's lists of deferred inodes: their space stays in use.
# file: kernel/core/journal/deferred_list.c
# test: deferred_test
/^bool sg_deferred_empty/,/^}/s/if (sg_get(vol, sg_deferred_head(vol, slot, i)))/if (slot == ~0u)/
