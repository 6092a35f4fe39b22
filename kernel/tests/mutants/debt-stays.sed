# SPDX-License-Identifier: Apache-2.0
#
# A deferred free stays in the ledger after it has been reclaimed.
# file: kernel/core/journal/ledger.c
# test: model_test
s/^\tsg_tx_set(tx, ledger_entry_off(tx->vol->ledger, i), 0);$/\t;/
