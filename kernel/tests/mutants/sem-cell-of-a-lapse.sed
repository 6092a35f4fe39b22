# SPDX-License-Identifier: Apache-2.0
#
# A process gets the cell of a reader that was fenced for silence and may still store into it.
# file: kernel/core/sem/sem_open.c
# test: sem_paused_test
/^bool sg_sem_cell_lapses/,/^}/s/return own \&\&/return 0 \&\& own \&\&/
