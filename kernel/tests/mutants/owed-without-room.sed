# SPDX-License-Identifier: Apache-2.0
#
# An inode for which the ledger has no room is put on no list, so the removal of its name fails.
# file: kernel/core/journal/deferred_list.c
# test: deferred_test
/^void sg_deferred_add/,/^}/s/if (tx->err || sg_tx_get(tx, sg_deferred_link(ref)))/sg_tx_fail(tx, -ENOSPC);\n\tif (tx->err || sg_tx_get(tx, sg_deferred_link(ref)))/
