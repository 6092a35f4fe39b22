# SPDX-License-Identifier: Apache-2.0
#
# A debt says that it is older than it is.
# file: kernel/core/ledger.c
# test: systems_epoch_test
/^static bool owe(/,/^}/s/sg_get(tx->vol, SG_HOT(epoch)))/sg_get(tx->vol, SG_HOT(epoch)) - 1)/
