# SPDX-License-Identifier: Apache-2.0
#
# Pages are freed by the private copy of the ledger, whatever the volume says by now.
# file: kernel/core/ledger.c
# test: set_back_test
s/if (sg_get(vol, at) != word) {/if (false) {/
