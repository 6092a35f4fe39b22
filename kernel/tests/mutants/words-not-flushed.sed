# SPDX-License-Identifier: Apache-2.0
#
# The words of a transaction are stored in place, but not durable, when its record is cleared.
# file: kernel/core/journal/tx.c
# test: crash_test
/^static void tx_write_back(/,/^}/s/sg_wb(vol->base + off, 8);/(void)0;/
