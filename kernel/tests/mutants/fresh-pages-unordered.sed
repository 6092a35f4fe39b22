# SPDX-License-Identifier: Apache-2.0
#
# The record may reach memory before the pages that it publishes.
# file: kernel/core/journal/tx.c
# test: crash_test
/^static void make_valid/,/^}/s/^\tif (!tx->only_record)$/\tif (false)/
