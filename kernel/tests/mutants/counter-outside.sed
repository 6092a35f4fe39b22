# SPDX-License-Identifier: Apache-2.0
#
# The counter of free pages changes in place, and not with the transaction.
# file: kernel/core/journal/tx.c
# test: crash_test
/^static void add_own_words/,/^}/s/tx_put(tx, off, sg_get(tx->vol, off) + (u64)tx->free_pages);/sg_store64(sg_at(tx->vol, off), sg_get(tx->vol, off) + (u64)tx->free_pages);/
