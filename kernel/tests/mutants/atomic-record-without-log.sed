# SPDX-License-Identifier: Apache-2.0
#
# The words of a record are written back, but not the log behind them.
# file: kernel/core/journal/tx.c
# test: crash_atomic_test
s/^\tsg_wb(a, offsetof(struct sg_area, word) + n \* sizeof(struct sg_word));$/\tsg_wb(a, offsetof(struct sg_area, word) + tx->n * sizeof(struct sg_word));/
