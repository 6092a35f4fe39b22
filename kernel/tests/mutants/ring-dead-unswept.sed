# SPDX-License-Identifier: Apache-2.0
#
# Claims of a dead system stay.
# file: kernel/core/sem/sem_ring.c
# test: ring_test
s/		    !sg_sem_cell_counts(vol, sg_load64(&side->own\[i\])))/		    0)/
