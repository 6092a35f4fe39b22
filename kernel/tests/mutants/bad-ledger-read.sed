# SPDX-License-Identifier: Apache-2.0
#
# Deferred frees are reclaimed without a check whether their ledger page is bad memory.
# file: kernel/core/deferred/reclaim.c
# test: bad_test
s/if (sg_is_lost(vol, ledger_entry_off(l, c.i))) {/if (0) {/
