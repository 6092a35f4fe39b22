# SPDX-License-Identifier: Apache-2.0
#
# A transaction's record is cleared before its words are durable in place.
# file: kernel/core/journal/tx.c
# test: crash_test
/^static void tx_write_back(/,/^}/s/sg_wb(vol->base + off, 8);/(void)0;/
