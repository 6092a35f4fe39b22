# SPDX-License-Identifier: Apache-2.0
#
# A list that is taken over replaces the existing list, instead of being put in front of it.
# file: kernel/core/deferred/deferred_inodes.c
# test: deferred_test
/^static int splice/,/^}/s/SG_DEFERRED_LINK(SG_DEFERRED_LINK_INO(sg_tx_get(tx, head)))/SG_DEFERRED_LINK(0)/
