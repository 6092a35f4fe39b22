# SPDX-License-Identifier: Apache-2.0
#
# A ring with one receiver takes another one.
# file: kernel/core/sem/sem_ring.c
# test: ring_test
s/if (taken \&\& ring->flags \& SG_SEM_SINGLE)/if (0)/
