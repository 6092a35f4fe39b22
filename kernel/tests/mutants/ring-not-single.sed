# SPDX-License-Identifier: Apache-2.0
#
# A ring for one receiver accepts another receiver.
# file: kernel/core/sem/sem_ring.c
# test: ring_test
s/if (taken \&\& ring->flags \& SG_SEM_SINGLE)/if (0)/
