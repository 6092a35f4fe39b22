# SPDX-License-Identifier: Apache-2.0
#
# A deferred free gets the number of an earlier epoch.
# file: kernel/core/journal/ledger.c
# test: systems_epoch_test
s/: sg_get(tx->vol, SG_HOT(epoch));/: sg_get(tx->vol, SG_HOT(epoch)) - 1;/
