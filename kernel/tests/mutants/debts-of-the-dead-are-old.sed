# SPDX-License-Identifier: Apache-2.0
#
# Debts of the slot's last owner count from the day that they name.
# file: kernel/core/ledger.c
# test: systems_epoch_test
/^static void adopt_page/,/^}/s/of_epoch(word, sg_get(vol, SG_HOT(epoch)))/of_epoch(word, SG_DEBT_EPOCH(word))/
