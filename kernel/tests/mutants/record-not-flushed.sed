# SPDX-License-Identifier: Apache-2.0
#
# The record of a transaction is not written back before it counts as durable.
# file: kernel/core/journal/tx.c
# test: crash_test
/offsetof(struct sg_area, word) + n \* sizeof/d
