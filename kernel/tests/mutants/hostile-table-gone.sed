# SPDX-License-Identifier: Apache-2.0
#
# A table that another member removes is added again for as long as there are pages.
# file: kernel/core/table/table.c
# test: hostile
s/p->e || p->level >= above/p->e || !above/
