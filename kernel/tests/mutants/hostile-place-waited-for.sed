# SPDX-License-Identifier: Apache-2.0
#
# A killed thread waits for the holder of a transaction area.
# file: kernel/core/journal/tx.c
# test: hostile
s/err ? sg_alloc(sizeof(\*spare)) : NULL/NULL/
