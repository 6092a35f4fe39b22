# SPDX-License-Identifier: Apache-2.0
#
# A reader that closes an object on a read-only mount still counts.
# file: kernel/core/sem/sem_open.c
# test: sem_test
s/^		give_cells(vol, sem);$/		if (!sg_may_write(vol))\n			give_cells(vol, sem);/
