# SPDX-License-Identifier: Apache-2.0
#
# A table that somebody takes away again is put there as long as there are pages.
# file: kernel/core/table/table.c
# test: hostile
s/p->e || p->level >= above/p->e || !above/
