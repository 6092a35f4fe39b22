# SPDX-License-Identifier: Apache-2.0
#
# A transaction's record counts as durable before it is written back.
# file: kernel/core/journal/tx.c
# test: crash_test
/offsetof(struct sg_area, word) + n \* sizeof/d
