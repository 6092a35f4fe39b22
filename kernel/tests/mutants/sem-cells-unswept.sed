# SPDX-License-Identifier: Apache-2.0
#
# The count in a process's cell stays after the process exits.
# file: kernel/core/sem/sem_open.c
# test: sem_test
/^static void give_cells/,/^}/ { /sg_store64(sg_at(vol, sem->words + 8 \* sem->cell), 0);/d; }
