# SPDX-License-Identifier: Apache-2.0
#
# Deferred frees of the slot's last owner count from the epoch in their entries.
# file: kernel/core/journal/ledger.c
# test: systems_epoch_test
/^void sg_ledger_adopt_page/,/^}/s/ledger_of_epoch(word, sg_get(vol, SG_HOT(epoch)))/ledger_of_epoch(word, SG_LEDGER_EPOCH(word))/
