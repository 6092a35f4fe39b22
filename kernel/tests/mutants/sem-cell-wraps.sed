# SPDX-License-Identifier: Apache-2.0
#
# A reader that withdraws decrements a count that has been cleared.
# file: kernel/core/sem/sem_rw.c
# test: hostile
s/sg_sem_cell_less(cell, 1);/sg_add64(cell, ~0ULL);/
