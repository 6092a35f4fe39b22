# SPDX-License-Identifier: Apache-2.0
#
# Pages are freed by the private copy of the ledger, without a check of the volume's ledger.
# file: kernel/core/deferred/reclaim.c
# test: hostile
s/if (ledger_of_epoch(sg_get(vol, at), 0) != ledger_of_epoch(word, 0)) {/if (false) {/
