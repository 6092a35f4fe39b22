# SPDX-License-Identifier: Apache-2.0
#
# The pages of a removed object's words stay allocated.
# file: kernel/core/sem/sem_table.c
# test: sem_names_test
s/^\t\tsem_table_cut_pages(tx, sg_sem_words_page(s->page, s->i), 2);/\t\tsg_tx_get(tx, SG_SEM_FIELD(s, head));/
