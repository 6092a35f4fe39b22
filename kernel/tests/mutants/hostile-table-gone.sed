# SPDX-License-Identifier: Apache-2.0
#
# A table that another member removes is added again as long as free pages exist.
# file: kernel/core/table/table.c
# test: hostile
s/p->e || p->level >= above/p->e || !above/
