# SPDX-License-Identifier: Apache-2.0
#
# A list that is taken over replaces the existing one, instead of going in front of it.
# file: kernel/core/deferred/deferred_inodes.c
# test: owed_test
/^static int splice/,/^}/s/SG_OWED(SG_OWED_INO(sg_tx_get(tx, head)))/SG_OWED(0)/
