# SPDX-License-Identifier: Apache-2.0
#
# Who is to die waits for the place of whoever has the area.
# file: kernel/core/journal/tx.c
# test: hostile
s/err ? sg_alloc(sizeof(\*spare)) : NULL/NULL/
