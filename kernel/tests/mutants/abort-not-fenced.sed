# SPDX-License-Identifier: Apache-2.0
#
# A transaction is given up, and its fresh pages are freed, before the stores to them are complete.
# file: kernel/core/journal/tx.c
# test: crash_abort_test
/^void sg_tx_abort/,/^}/s/sg_fence();/;/
