# SPDX-License-Identifier: Apache-2.0
#
# The record may reach memory before the pages that it publishes.
# file: kernel/core/journal/tx.c
# test: crash_test
/^static void make_valid/,/^}/{/^\tif (!tx->plain || tx->fresh)$/{N;d;};}
