# SPDX-License-Identifier: Apache-2.0
#
# What was owed and has been freed stays in the ledger.
# file: kernel/core/journal/ledger.c
# test: model_test
s/^\tsg_tx_set(tx, ledger_entry_off(tx->vol->ledger, i), 0);$/\t;/
