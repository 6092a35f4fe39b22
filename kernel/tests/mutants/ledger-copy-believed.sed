# SPDX-License-Identifier: Apache-2.0
#
# Pages are freed by the private copy of the ledger, whatever the volume says by now.
# file: kernel/core/ledger.c
# test: set_back_test
s/if (of_epoch(sg_get(vol, at), 0) != of_epoch(word, 0)) {/if (false) {/
