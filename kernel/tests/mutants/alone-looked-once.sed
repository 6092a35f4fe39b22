# SPDX-License-Identifier: Apache-2.0
#
# A system that is alone begins to reclaim, and does not check again that no other system has
# joined.
# file: kernel/core/deferred/reclaim.c
# test: systems_epoch_test
/^static bool reclaim_quiesce(/,/^}/s/if (!sg_alone(vol))/if (0)/
