# SPDX-License-Identifier: Apache-2.0
#
# The bytes of a log are stored in place before the record is valid.
# file: kernel/core/journal/tx.c
# test: crash_atomic_test
/^static void make_valid(/,/^}/s,^\tsg_fence();$,\tif (tx->redo)\n\t\ttx->redo->apply(tx\, tx->redo);\n\tsg_fence();,
