# SPDX-License-Identifier: Apache-2.0
#
# A transaction that begins waits for readers, although the ledger has room.
# file: kernel/core/deferred/reclaim.c
# test: ripe_test
s/return reclaim(vol, budget, sg_ledger_is_full(vol));/return reclaim(vol, budget, true);/
