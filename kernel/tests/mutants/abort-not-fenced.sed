# SPDX-License-Identifier: Apache-2.0
#
# An aborted transaction frees its fresh pages before the stores to them are complete.
# file: kernel/core/journal/tx.c
# test: crash_abort_test
/^void sg_tx_abort/,/^}/s/sg_fence();/;/
